#include "db/exec/explain.h"

namespace db {
namespace {

class Explainer {
 public:
  std::vector<PlanLine> lines;

  void rows(const RowPlan& plan, int parent) {
    switch (plan.kind) {
      case RowKind::kCore:
        core(plan, parent);
        break;
      case RowKind::kValues:
        add(parent, plan.rows.size() == 1
                        ? "SCAN CONSTANT ROW"
                        : "SCAN " + std::to_string(plan.rows.size()) + "-ROW VALUES CLAUSE");
        break;
      case RowKind::kCompound:
        compound(plan, plan.arms.size() - 1, parent);
        break;
      case RowKind::kRecursive:
        rows(*plan.arms[0], add(parent, "SETUP"));
        for (u32 i = 1; i < plan.arms.size(); ++i)
          rows(*plan.arms[i], add(parent, "RECURSIVE STEP"));
        break;
    }
    if (!plan.order.empty() && plan.kind != RowKind::kRecursive)
      add(parent, "USE TEMP B-TREE FOR ORDER BY");
  }

  void subqueries(const Expr* expr, int parent) { walk_expr(expr, parent); }

 private:
  // The arms up to `last`: UNION ALLs in a row are read one after the other, the others are merged.
  void compound(const RowPlan& plan, u32 last, int parent) {
    auto is_all = [&](u32 i) { return plan.ops[i] == sql::CompoundOp::kUnionAll; };
    if (last == 0) return rows(*plan.arms[0], parent);
    if (!is_all(last)) {
      static constexpr const char* kNames[] = {"", "UNION", "UNION ALL", "INTERSECT", "EXCEPT"};
      int merge =
          add(parent, std::string("MERGE (") + kNames[static_cast<int>(plan.ops[last])] + ")");
      compound(plan, last - 1, add(merge, "LEFT"));
      return rows(*plan.arms[last], add(merge, "RIGHT"));
    }
    u32 first = last;
    while (first > 0 && is_all(first)) --first;
    int group = add(parent, "COMPOUND QUERY");
    compound(plan, first, add(group, "LEFT-MOST SUBQUERY"));
    for (u32 i = first + 1; i <= last; ++i) rows(*plan.arms[i], add(group, "UNION ALL"));
  }

  int add(int parent, std::string detail) {
    int id = static_cast<int>(lines.size()) + 1;
    lines.push_back({id, parent, std::move(detail)});
    return id;
  }

  void walk_expr(const Expr* expr, int parent) {
    if (expr == nullptr) return;
    if (expr->subquery != nullptr) {
      bool list = expr->op == Op::kInSelect;
      std::string text = expr->subquery->correlated ? "CORRELATED " : "";
      text += list ? "LIST SUBQUERY " : "SCALAR SUBQUERY ";
      rows(*expr->subquery->plan, add(parent, text + std::to_string(++subquery_)));
    }
    walk_expr(expr->left, parent);
    walk_expr(expr->right, parent);
    for (const Expr* arg : expr->args) walk_expr(arg, parent);
  }

  // Subqueries that a lookup or a range takes its values from.
  void walk_path(const AccessPath& path, int parent) {
    for (const Lookup& lookup : path.lookups) walk_expr(lookup.value, parent);
    walk_expr(path.low.value, parent);
    walk_expr(path.high.value, parent);
    for (const Expr* arg : path.virtual_args) walk_expr(arg, parent);
    for (const Expr* filter : path.build_filters) walk_expr(filter, parent);
    for (const AccessPath* branch : path.branches) walk_path(*branch, parent);
  }

  void core(const RowPlan& plan, int parent) {
    if (plan.join == nullptr || plan.join->levels.empty()) {
      add(parent, "SCAN CONSTANT ROW");
    } else {
      for (const JoinLevel* one : plan.join->levels) level(*one, parent);
    }
    bool sorted = plan.join != nullptr && plan.join->grouped;
    if (plan.aggregate != nullptr && !plan.aggregate->groups.empty() && !sorted) {
      add(parent, "USE TEMP B-TREE FOR GROUP BY");
    }
    if (plan.distinct) add(parent, "USE TEMP B-TREE FOR DISTINCT");
    for (const Expr* expr : plan.out) walk_expr(expr, parent);
    if (plan.join != nullptr) {
      for (const Expr* expr : plan.join->constant_filters) walk_expr(expr, parent);
      for (const JoinLevel* one : plan.join->levels) {
        walk_path(*one->path, parent);
        for (const Expr* expr : one->filters) walk_expr(expr, parent);
        for (const Expr* expr : one->on) walk_expr(expr, parent);
      }
    }
  }

  std::string column_name(const Index& index, size_t at) {
    int column = index.columns[at].column;
    if (column == kRowid) return "rowid";
    if (column == kExpression) return "<expr>";
    return index.table->columns[static_cast<size_t>(column)].name;
  }

  bool covering(const JoinLevel& level) {
    const Index* index = level.path->index;
    for (int used : level.source->used) {
      bool present = used == level.source->table->rowid_column;
      for (const IndexColumn& column : index->columns) present |= column.column == used;
      if (!present) return false;
    }
    return true;
  }

  std::string search(const JoinLevel& level, const AccessPath& path) {
    std::string terms;
    auto term = [&](const std::string& text) { terms += (terms.empty() ? "" : " AND ") + text; };
    if (path.kind == PathKind::kRowidEqual) return " USING INTEGER PRIMARY KEY (rowid=?)";
    if (path.kind == PathKind::kRowidRange) {
      if (path.low.value != nullptr) term("rowid>?");
      if (path.high.value != nullptr) term("rowid<?");
      return " USING INTEGER PRIMARY KEY (" + terms + ")";
    }
    const Index& index = *path.index;
    for (size_t i = 0; i < path.lookups.size(); ++i) term(column_name(index, i) + "=?");
    size_t next = path.lookups.size();
    if (next < index.columns.size()) {
      bool descending = index.columns[next].descending;
      if (path.low.value != nullptr) term(column_name(index, next) + (descending ? "<?" : ">?"));
      if (path.high.value != nullptr) term(column_name(index, next) + (descending ? ">?" : "<?"));
    }
    std::string what = index.table->primary == &index ? " USING PRIMARY KEY ("
                       : covering(level)              ? " USING COVERING INDEX " + index.name + " ("
                                                      : " USING INDEX " + index.name + " (";
    return what + terms + ")";
  }

  void level(const JoinLevel& level, int parent) {
    const AccessPath& path = *level.path;
    std::string name(level.source->name);
    if (name.empty()) name = "SUBQUERY";
    std::string tail = level.left ? " LEFT-JOIN" : "";
    switch (path.kind) {
      case PathKind::kScan: {
        std::string text = "SCAN " + name;
        if (path.index != nullptr && path.index != path.index->table->primary) {
          text += std::string(covering(level) ? " USING COVERING INDEX " : " USING INDEX ") +
                  path.index->name;
        }
        add(parent, text + tail);
        break;
      }
      case PathKind::kRows:
        if (level.source->rows != nullptr) {
          rows(*level.source->rows,
               add(parent, (level.source->materialized ? "MATERIALIZE " : "CO-ROUTINE ") + name));
        }
        add(parent, "SCAN " + name + tail);
        break;
      case PathKind::kHash:
        if (level.source->rows != nullptr)
          rows(*level.source->rows, add(parent, "MATERIALIZE " + name));
        add(parent, path.lookups.empty()
                        ? "SCAN " + name + tail
                        : "SEARCH " + name + " USING HASH TABLE (" +
                              std::to_string(path.lookups.size()) + " keys)" + tail);
        break;
      case PathKind::kVirtual:
        add(parent, "SCAN " + name + " VIRTUAL TABLE INDEX " + std::to_string(path.virtual_number) +
                        ":" + std::string(path.virtual_text) + tail);
        break;
      case PathKind::kMultiOr: {
        int id = add(parent, "MULTI-INDEX OR");
        int number = 0;
        for (const AccessPath* branch : path.branches) {
          add(add(id, "INDEX " + std::to_string(++number)),
              "SEARCH " + name + search(level, *branch));
        }
        break;
      }
      default:
        add(parent, "SEARCH " + name + search(level, path) + tail);
        break;
    }
  }

  int subquery_ = 0;
};

}  // namespace

std::vector<PlanLine> explain_plan(const RowPlan* select, const DmlPlan* dml) {
  Explainer explainer;
  if (select != nullptr) explainer.rows(*select, 0);
  if (dml != nullptr && dml->scan != nullptr && !dml->whole_table) {
    explainer.rows(*dml->scan, 0);
    for (const Expr* value : dml->values) explainer.subqueries(value, 0);
  }
  // Constant rows come from no scan.
  if (dml != nullptr && dml->source != nullptr &&
      (dml->source->kind != RowKind::kValues || dml->source->rows.size() > 1)) {
    explainer.rows(*dml->source, 0);
  }
  return std::move(explainer.lines);
}

}  // namespace db
