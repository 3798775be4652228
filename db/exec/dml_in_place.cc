// UPDATE and DELETE that change each row where the scan stands, instead of collecting the rows
// first and looking each one up again: when no change can show the scan a row twice or hide one
// from it.
#include "db/exec/dml_execution.h"
#include "db/exec/vector_choice.h"
#include "db/plan/binder.h"

#include <algorithm>

namespace db {
namespace {

bool has_subquery(Expr* expr) {
  return !walk(expr, [](Expr* e) { return e->subquery == nullptr; });
}

bool any_subquery(const List<Expr*>& exprs) {
  return std::any_of(exprs.begin(), exprs.end(), has_subquery);
}

// One table, read from end to end or along one path, with nothing before, between or behind.
bool is_plain_scan(const RowPlan& scan, const Table& table) {
  if (scan.kind != RowKind::kCore || scan.join == nullptr || scan.aggregate != nullptr ||
      scan.window != nullptr || scan.distinct || !scan.order.empty() || scan.limit != nullptr ||
      scan.offset != nullptr || scan.join->levels.size() != 1 ||
      any_subquery(scan.join->constant_filters)) {
    return false;
  }
  const JoinLevel& level = *scan.join->levels[0];
  if (level.source->kind != SourceKind::kTable || level.source->table != &table ||
      any_subquery(level.filters)) {
    return false;
  }
  const AccessPath& path = *level.path;
  for (const Lookup& lookup : path.lookups) {
    if (has_subquery(lookup.value)) return false;
  }
  if (has_subquery(path.low.value) || has_subquery(path.high.value)) return false;
  return path.kind == PathKind::kScan || path.kind == PathKind::kRowidEqual ||
         path.kind == PathKind::kRowidRange || path.kind == PathKind::kIndexSeek;
}

// May the update change the place of a row in this index?
bool moves_rows(const Index& index, const List<int>& columns) {
  if (index.where != nullptr) return true;
  for (const IndexColumn& one : index.columns) {
    if (one.column == kExpression) return true;
    if (std::find(columns.begin(), columns.end(), one.column) != columns.end()) return true;
  }
  return false;
}

}  // namespace

bool DmlExecution::fits_in_place(const Cx& cx) const {
  const WritePlan& write = *plan_.write;
  const Table& table = *write.table;
  if (plan_.kind == sql::StatementKind::kInsert || plan_.is_view || plan_.early ||
      plan_.has_returning || table.kind != TableKind::kTable || table.without_rowid ||
      table.has_virtual_columns || !write.generated.empty() || triggers_ != nullptr ||
      !is_plain_scan(*plan_.scan, table) || vector_fits(*plan_.scan, cx)) {
    return false;
  }
  const Index* driving = plan_.scan->join->levels[0]->path->index;
  if (plan_.kind == sql::StatementKind::kDelete) return driving == nullptr;
  if (driving != nullptr && moves_rows(*driving, plan_.columns)) return false;
  for (int column : plan_.columns) {
    if (column == kRowid || column == table.rowid_column) return false;
  }
  // REPLACE takes other rows away, which the scan may stand on.
  if (plan_.conflict == sql::ConflictAction::kReplace) return false;
  for (const auto& index : table.indexes) {
    if (index->conflict == sql::ConflictAction::kReplace) return false;
  }
  return !any_subquery(plan_.values) && !any_subquery(write.checks);
}

// REQUIRES: fits_in_place(), and no foreign keys.
bool DmlExecution::change_in_place(Cx& cx) {
  Slot& slot = cx.slots[static_cast<size_t>(plan_.target_slot)];
  slot.row = nullptr;
  slot.null_row = false;
  source_->open(cx);
  std::vector<Value> old_row;
  bool ok = true;
  while (ok && source_->move(cx)) {
    TableCursor& at = *slot.cursor;
    if (at.uses_index() && !at.find_row(cx)) {
      ok = !cx.failed();
      continue;
    }
    writer_.write_at(&at.rows());
    ok = cx.tick() && writer_.read_here(&old_row);
    if (!ok) break;
    slot.row = old_row.data();  // the values of SET read the copy, the scan's filters the cursor
    ok = plan_.kind == sql::StatementKind::kUpdate
             ? update_one(old_row, nullptr, plan_.columns, plan_.values, action_, cx)
             : delete_one(old_row, cx, true, true);
    slot.row = nullptr;
  }
  writer_.write_at(nullptr);
  source_->close(cx);
  return ok && !cx.failed();
}

}  // namespace db
