// The static report of a run: one HTML file without outside references, made from the ledger alone.
// Also the cost table that `fleet cost` prints. Errors: those of the ledger; kIo.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/core/run_state.h"

#include <string>
#include <vector>

namespace team {

struct CostRow {
  std::string name;
  i64 calls = 0;
  Usage usage;
  i64 cost_nusd = 0;
  f64 output_share = 0, cost_share = 0;
  f64 cached_share() const;
};
struct CostTable {
  std::vector<CostRow> rows;  // dearest first, then a row "total"
  base::Json to_json() const;
};
// `by`: role | stage | task | attempt | model. Errors: kInvalidArgument.
base::Result<CostTable> cost_table(const RunState& state, const std::string& by);

// Writes FOLDER/report.html from FOLDER/ledger.db.
base::Status write_report(const std::string& folder);

}  // namespace team
