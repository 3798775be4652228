#include "team/report/report.h"

#include <algorithm>
#include <map>

namespace team {

using base::Json;

f64 CostRow::cached_share() const {
  return usage.input() == 0 ? 0
                            : static_cast<f64>(usage.in_cached) / static_cast<f64>(usage.input());
}

base::Result<CostTable> cost_table(const RunState& state, const std::string& by) {
  std::map<std::string, CostRow> rows;
  CostRow total;
  total.name = "total";
  for (const UsageRow& u : state.usage()) {
    std::string name;
    if (by == "role")
      name = u.role;
    else if (by == "stage")
      name = u.stage;
    else if (by == "task")
      name = u.task;
    else if (by == "attempt")
      name = u.attempt;
    else if (by == "model")
      name = u.model_got.empty() ? u.model_asked : u.model_got;
    else {
      return base::Error(base::ErrorCode::kInvalidArgument,
                         "cost can be shown by role, stage, task, attempt or model, not by " + by);
    }
    if (u.outcome == "ambiguous") name = "(in doubt)";
    CostRow& row = rows[name];
    row.name = name;
    for (CostRow* r : {&row, &total}) {
      ++r->calls;
      r->usage += u.usage;
      r->cost_nusd += u.cost_nusd;
    }
  }
  CostTable table;
  for (auto& [name, row] : rows) {
    row.output_share = static_cast<f64>(row.usage.output()) /
                       static_cast<f64>(std::max<i64>(1, total.usage.output()));
    row.cost_share =
        static_cast<f64>(row.cost_nusd) / static_cast<f64>(std::max<i64>(1, total.cost_nusd));
    table.rows.push_back(row);
  }
  std::sort(table.rows.begin(), table.rows.end(), [](const CostRow& a, const CostRow& b) {
    return a.cost_nusd != b.cost_nusd ? a.cost_nusd > b.cost_nusd : a.name < b.name;
  });
  total.output_share = total.cost_share = 1;
  table.rows.push_back(total);
  return table;
}

Json CostTable::to_json() const {
  Json out = Json::array();
  for (const CostRow& row : rows) {
    out.push(Json::object({{"name", row.name},
                           {"calls", row.calls},
                           {"usage", team::to_json(row.usage)},
                           {"cost_nusd", row.cost_nusd},
                           {"output_share", row.output_share},
                           {"cost_share", row.cost_share}}));
  }
  return out;
}

}  // namespace team
