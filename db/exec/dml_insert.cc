// INSERT: makes the rows, from VALUES, DEFAULT VALUES or a query, and puts them in; REPLACE and
// upserts.
#include "db/exec/dml_execution.h"
#include "db/exec/eval.h"

#include <algorithm>

namespace db {

using sql::ConflictAction;
using sql::TriggerEvent;
using sql::TriggerTime;

void DmlExecution::list_ungiven() {
  for (size_t i = 0; i < writer_.width(); ++i) {
    const int column = static_cast<int>(i);
    const auto& targets = plan_.targets;
    if (plan_.source == nullptr ||
        std::find(targets.begin(), targets.end(), column) == targets.end())
      ungiven_.push_back(column);
  }
}

bool DmlExecution::run_insert(Cx& cx) {
  if (plan_.source == nullptr) {
    fill_ungiven(cx);
    if (const int rowid = writer_.table().rowid_column; rowid >= 0)
      new_row_[writer_.width()] = new_row_[static_cast<size_t>(rowid)];
    return insert_one(false, cx);
  }
  const RowPlan& rows = *plan_.source;
  const size_t width = static_cast<size_t>(rows.width);
  // Row by row when nothing that a row brings about can change what the source gives next.
  const bool is_values =
      rows.kind == RowKind::kValues && rows.order.empty() && rows.limit == nullptr;
  const bool direct = (is_values && rows.rows.size() == 1) ||
                      (triggers_ == nullptr && plan_.upserts.empty() &&
                       (is_values || (!plan_.source_reads_target && foreign_keys_ == nullptr &&
                                      !plan_.has_returning)));
  if (direct && is_values) return insert_values(rows, cx);
  source_->open(cx);
  if (direct) {
    bool ok = true;
    while (ok && source_->next(cx)) ok = insert_source(source_->row(), cx);
    source_->close(cx);
    return ok && !cx.failed();
  }
  found_.clear();
  while (source_->next(cx)) {
    for (size_t i = 0; i < width; ++i) {
      found_.push_back(source_->row()[i]);
      found_.back().keep();
    }
  }
  source_->close(cx);
  if (cx.failed()) return false;
  for (size_t at = 0; at + width <= found_.size(); at += width) {
    if (!cx.tick() || !insert_source(&found_[at], cx)) return false;
  }
  return true;
}

// Each row of VALUES, computed where it is to be.
bool DmlExecution::insert_values(const RowPlan& rows, Cx& cx) {
  for (const List<Expr*>& exprs : rows.rows) {
    fill_ungiven(cx);
    bool rowid_given = false;
    for (u32 i = 0; i < plan_.targets.size(); ++i)
      eval(exprs[i], cx, *target(plan_.targets[i], &rowid_given));
    settle_rowid(rowid_given);
    if (cx.failed() || !insert_one(rowid_given, cx)) return false;
  }
  return true;
}

bool DmlExecution::insert_source(const Value* source, Cx& cx) {
  fill_ungiven(cx);
  bool rowid_given = false;
  for (u32 i = 0; i < plan_.targets.size(); ++i)
    *target(plan_.targets[i], &rowid_given) = source[i];
  settle_rowid(rowid_given);
  return !cx.failed() && insert_one(rowid_given, cx);
}

// Starts a row: what the statement does not give.
void DmlExecution::fill_ungiven(Cx& cx) {
  new_row_.resize(writer_.width() + 1);
  new_row_.back().set_null();
  for (int column : ungiven_) {
    const size_t at = static_cast<size_t>(column);
    if (plan_.defaults[at] != nullptr) {
      eval(plan_.defaults[at], cx, new_row_[at]);
    } else {
      new_row_[at].set_null();
    }
  }
}

// Where a value for this target goes: the rowid's own is the last of the row.
Value* DmlExecution::target(int column, bool* rowid_given) {
  if (column != kRowid && column != writer_.table().rowid_column)
    return &new_row_[static_cast<size_t>(column)];
  *rowid_given = true;
  return &new_row_.back();
}

void DmlExecution::settle_rowid(bool given) {
  const int column = writer_.table().rowid_column;
  if (given && column >= 0) new_row_[static_cast<size_t>(column)] = new_row_.back();
}

bool DmlExecution::choose_rowid(std::vector<Value>& row, bool given, Cx& cx) {
  const Table& table = writer_.table();
  if (table.without_rowid || plan_.is_view) return true;
  Value& rowid = row[writer_.width()];
  if (given && !rowid.is_null()) {
    if (!rowid.is_integer()) apply_affinity(rowid, Affinity::kInteger);
    if (!rowid.is_integer()) {
      cx.fail(rc::kMismatch, "datatype mismatch");
      return false;
    }
    return !table.autoincrement || note_autoincrement(rowid.raw_integer());
  }
  if (table.kind == TableKind::kVirtual) return true;  // it chooses its own
  i64 next = 0;
  if (table.autoincrement) {
    if (!next_autoincrement(&next, cx)) return false;
  } else {
    next = writer_.new_rowid();
    if (next == 0 && cx.failed()) return false;
  }
  rowid.set_integer(next);
  return true;
}

// Puts new_row_ in.
bool DmlExecution::insert_one(bool rowid_given, Cx& cx) {
  if (triggers_ == nullptr) return write_new(new_row_, rowid_given, cx);
  std::vector<Value> mine = std::move(new_row_);  // nested statements have a row of their own
  bool done = false;
  bool ok = !plan_.write->has_insert_triggers || before_insert(mine, &done, cx);
  if (ok && !done) ok = write_new(mine, rowid_given, cx);
  new_row_ = std::move(mine);
  return ok;
}

// BEFORE and INSTEAD OF triggers, which see -1 as a rowid that is not chosen yet. *done: there is
// nothing left to write.
bool DmlExecution::before_insert(const std::vector<Value>& row, bool* done, Cx& cx) {
  const Table& table = writer_.table();
  const size_t width = writer_.width();
  std::vector<Value> shown = row;
  if (shown[width].is_null()) shown[width].set_integer(-1);
  if (table.rowid_column >= 0) shown[static_cast<size_t>(table.rowid_column)] = shown[width];
  if (!plan_.is_view) {
    for (size_t i = 0; i < width; ++i) apply_affinity(shown[i], table.columns[i].affinity);
    return fire(TriggerEvent::kInsert, TriggerTime::kBefore, nullptr, shown.data(), nullptr, done);
  }
  if (!fire(TriggerEvent::kInsert, TriggerTime::kInsteadOf, nullptr, shown.data(), nullptr, done))
    return false;
  if (*done) return true;
  *done = true;
  count_change(18, shown.data(), cx);
  return return_row(shown.data(), cx);
}

bool DmlExecution::write_new(std::vector<Value>& row, bool rowid_given, Cx& cx) {
  const Table& table = writer_.table();
  const size_t width = writer_.width();
  const bool rowid_is_free = row[width].is_null() && !table.autoincrement;
  if (!choose_rowid(row, rowid_given, cx)) return false;
  writer_.complete(row.data());
  if (cx.failed()) return false;
  const Written checked = writer_.check(row.data(), action_, &plan_.defaults);
  if (checked == Written::kFailed) return writer_failed();
  if (checked == Written::kSkipped) return true;
  bool skip = false;
  if (!resolve(row, nullptr, action_, rowid_is_free, cx, &skip)) return false;
  if (skip) return true;
  if (table.kind == TableKind::kVirtual) {
    std::vector<Value> args(2);
    args.insert(args.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(width));
    if (rowid_given) args[1] = row[width];
    auto made = table.virtual_table->update(args);
    if (!made.ok()) {
      cx.fail(made.error());
      return false;
    }
    row[width].set_integer(made.value());
  } else if (!writer_.insert(row.data())) {
    return writer_failed();
  }
  if (!table.without_rowid) cx.session.last_insert_rowid = row[width].raw_integer();
  if (foreign_keys_ != nullptr && !foreign_keys_->after_insert(row.data())) return false;
  count_change(18, row.data(), cx);
  if (triggers_ != nullptr &&
      !fire(TriggerEvent::kInsert, TriggerTime::kAfter, nullptr, row.data(), nullptr, &skip)) {
    return false;
  }
  return return_row(row.data(), cx);
}

// Clears the way for a row, or says that it is to be skipped.
bool DmlExecution::resolve(std::vector<Value>& row, const Value* old_row, ConflictAction action,
                           bool rowid_is_free, Cx& cx, bool* skip) {
  if (writer_.table().kind == TableKind::kVirtual || !writer_.can_conflict(rowid_is_free))
    return true;
  std::vector<Conflict> conflicts;
  if (!writer_.find_conflicts(row.data(), old_row, action, rowid_is_free, &conflicts)) return false;
  if (conflicts.empty()) return true;
  if (old_row == nullptr && !plan_.upserts.empty()) {
    bool handled = false;
    if (!upsert(conflicts, row, cx, &handled)) return false;
    if (handled) {
      *skip = true;
      return true;
    }
  }
  if (conflicts[0].action == ConflictAction::kIgnore) {
    *skip = true;
    return true;
  }
  if (conflicts[0].action != ConflictAction::kReplace) {
    writer_.fail_conflict(conflicts[0]);
    return writer_failed();
  }
  for (Conflict& conflict : conflicts) {
    // An earlier deletion may have removed this one too.
    Value key = conflict.row.back();
    std::vector<Value> again;
    const Value* find = &key;
    std::vector<Value> primary;
    if (writer_.table().without_rowid) {
      const Index& index = *writer_.table().primary;
      for (int i = 0; i < index.key_columns; ++i) {
        primary.push_back(
            conflict.row[static_cast<size_t>(index.columns[static_cast<size_t>(i)].column)]);
      }
      find = primary.data();
    }
    if (!writer_.read(find, &again)) {
      if (cx.failed()) return false;
      continue;
    }
    if (!delete_one(again, cx, false, cx.session.recursive_triggers)) return false;
  }
  return true;
}

bool DmlExecution::upsert(const std::vector<Conflict>& conflicts, std::vector<Value>& row, Cx& cx,
                          bool* handled) {
  for (const UpsertPlan* one : plan_.upserts) {
    const Conflict* match = nullptr;
    for (const Conflict& conflict : conflicts) {
      if (one->any_target || conflict.index == one->index) {
        match = &conflict;
        break;
      }
    }
    if (match == nullptr) continue;
    *handled = true;
    if (one->do_nothing) return true;
    std::vector<Value> old_row = match->row;
    Slot& target = cx.slots[static_cast<size_t>(plan_.target_slot)];
    target.row = old_row.data();
    target.map = nullptr;
    Slot& excluded = cx.slots[static_cast<size_t>(plan_.excluded_slot)];
    excluded.row = row.data();
    excluded.map = nullptr;
    if (one->where != nullptr && eval_truth(one->where, cx) != 1) return !cx.failed();
    return update_one(old_row, nullptr, one->columns, one->values, ConflictAction::kDefault, cx);
  }
  return true;
}

}  // namespace db
