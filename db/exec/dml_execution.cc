#include "db/exec/dml_execution.h"

#include "db/catalog/virtual_transaction.h"
#include "db/exec/eval.h"

#include <algorithm>

namespace db {

using sql::ConflictAction;
using sql::TriggerEvent;
using sql::TriggerTime;

DmlExecution::DmlExecution(const DmlPlan& plan, Cx& cx) : plan_(plan), writer_(*plan.write, cx) {
  if (plan.kind == sql::StatementKind::kInsert) {
    if (plan.source != nullptr) source_ = make_stream(*plan.source, cx);
  } else {
    source_ = make_stream(*plan.scan, cx);
    found_width_ = static_cast<size_t>(plan.scan->width);
  }
  if (plan.write->has_insert_triggers || plan.write->has_update_triggers ||
      plan.write->has_delete_triggers) {
    triggers_ = std::make_unique<TriggerRunner>(*plan.write->table, cx);
  }
  in_place_ = fits_in_place(cx);
  returning_width_ = plan.returning.size();
  if (plan.kind == sql::StatementKind::kInsert) list_ungiven();
}

int DmlExecution::step(Cx& cx) {
  if (!ran_) {
    ran_ = true;
    changes = 0;
    returned_.clear();
    returned_at_ = 0;
    sequence_known_ = sequence_changed_ = false;
    action_ = conflict_override != ConflictAction::kDefault ? conflict_override : plan_.conflict;
    failed_action_ = ConflictAction::kAbort;
    foreign_keys_.reset();
    if (cx.session.foreign_keys && ForeignKeys::concerns(*plan_.write->table, cx.session)) {
      foreign_keys_ = std::make_unique<ForeignKeys>(*plan_.write->table, cx);
    }
    if (!run(cx)) {
      if (cx.raise != ConflictAction::kDefault) failed_action_ = cx.raise;
      return cx.code;
    }
  }
  if (returned_at_ * returning_width_ < returned_.size()) {
    row_ = &returned_[returned_at_++ * returning_width_];
    return rc::kRow;
  }
  return rc::kDone;
}

void DmlExecution::close(Cx& cx) {
  if (source_ != nullptr) source_->close(cx);
  returned_.clear();
  found_.clear();
  for (Value& value : new_row_) value.set_null();  // parameters may take their buffers back
  ran_ = false;
}

bool DmlExecution::run(Cx& cx) {
  if (const auto& table = writer_.table().virtual_table; table != nullptr) {
    if (Status joined = join_virtual(cx.session, table); !joined.ok()) {
      cx.fail(joined.error());
      return false;
    }
  }
  if (!writer_.open()) return false;
  bool done = false;
  switch (plan_.kind) {
    case sql::StatementKind::kInsert:
      done = run_insert(cx);
      break;
    case sql::StatementKind::kUpdate:
      done = run_update(cx);
      break;
    default:
      done = run_delete(cx);
      break;
  }
  if (sequence_changed_ && (done || failed_action_ == ConflictAction::kFail) &&
      !store_autoincrement(cx)) {
    return false;
  }
  if (done && foreign_keys_ != nullptr) done = foreign_keys_->finish();
  return done && !cx.failed();
}

bool DmlExecution::writer_failed() {
  failed_action_ = writer_.failed_action;
  return false;
}

bool DmlExecution::fire(TriggerEvent event, TriggerTime time, const Value* old_row,
                        const Value* new_row, const List<int>* changed, bool* skip) {
  if (triggers_ == nullptr) return true;
  if (triggers_->fire(event, time, old_row, new_row, changed, action_, skip)) return true;
  failed_action_ = triggers_->failed_action;
  return false;
}

void DmlExecution::count_change(int op, const Value* row, Cx& cx) {
  ++changes;
  ++cx.session.total_changes;
  const Table& table = *plan_.write->table;
  if (cx.session.hooks.update && !table.without_rowid && !plan_.is_view && !table.is_system()) {
    cx.session.hooks.update(op, table.schema->name.c_str(), table.name.c_str(),
                            row[writer_.width()].raw_integer());
  }
}

bool DmlExecution::return_row(const Value* row, Cx& cx) {
  if (!plan_.has_returning) return true;
  Slot& slot = cx.slots[static_cast<size_t>(plan_.returning_slot)];
  slot.row = const_cast<Value*>(row);
  slot.map = nullptr;
  for (Expr* expr : plan_.returning) {
    Value value;
    eval(expr, cx, value);
    value.keep();
    returned_.push_back(std::move(value));
  }
  return !cx.failed();
}

bool DmlExecution::collect(Cx& cx) {
  found_.clear();
  if (!plan_.is_view) {
    Slot& slot = cx.slots[static_cast<size_t>(plan_.target_slot)];
    slot.row = nullptr;
    slot.null_row = false;
  }
  source_->open(cx);
  while (source_->next(cx)) {
    for (size_t i = 0; i < found_width_; ++i) {
      found_.push_back(source_->row()[i]);
      found_.back().keep();
    }
  }
  source_->close(cx);
  return !cx.failed();
}

bool DmlExecution::run_update(Cx& cx) {
  if (in_place_ && foreign_keys_ == nullptr && action_ != ConflictAction::kReplace)
    return change_in_place(cx);
  if (!collect(cx)) return false;
  const Table& table = writer_.table();
  size_t key_width =
      plan_.is_view ? writer_.width()
                    : (table.without_rowid ? static_cast<size_t>(table.primary->key_columns) : 1);
  std::unique_ptr<ValueSet> seen;
  if (plan_.early && !plan_.is_view) seen = std::make_unique<ValueSet>(static_cast<int>(key_width));
  std::vector<Value> old_row;
  const bool borrows = triggers_ == nullptr && foreign_keys_ == nullptr;
  for (size_t at = 0; at + found_width_ <= found_.size(); at += found_width_) {
    if (!cx.tick()) return false;
    if (seen != nullptr) {
      bool is_new = false;
      seen->insert(&found_[at], &is_new);
      if (!is_new) continue;
    }
    if (plan_.is_view) {
      old_row.assign(found_.begin() + static_cast<std::ptrdiff_t>(at),
                     found_.begin() + static_cast<std::ptrdiff_t>(at + writer_.width()));
      old_row.emplace_back();
    } else if (!(borrows ? writer_.read_borrowed(&found_[at], &old_row)
                         : writer_.read(&found_[at], &old_row))) {
      if (cx.failed()) return false;
      continue;  // a trigger or a conflict removed it
    }
    if (!plan_.is_view) {
      Slot& slot = cx.slots[static_cast<size_t>(plan_.target_slot)];
      slot.row = old_row.data();
      slot.map = nullptr;
      slot.null_row = false;
    }
    const Value* early = plan_.early ? &found_[at + key_width] : nullptr;
    if (!update_one(old_row, early, plan_.columns, plan_.values, action_, cx)) return false;
  }
  return true;
}

bool DmlExecution::update_one(std::vector<Value>& old_row, const Value* early,
                              const List<int>& columns, const List<Expr*>& values,
                              ConflictAction action, Cx& cx) {
  const Table& table = writer_.table();
  size_t width = writer_.width();
  std::vector<Value> row = std::move(new_values_);  // nested statements find it empty
  row = old_row;
  for (u32 i = 0; i < columns.size(); ++i) {
    Value value;
    if (early != nullptr) {
      value = early[i];
    } else {
      eval(values[i], cx, value);
    }
    value.keep();
    if (cx.failed()) return false;
    int at = columns[i];
    if (at == kRowid || at == table.rowid_column) {
      apply_affinity(value, Affinity::kInteger);
      if (!value.is_integer()) {
        cx.fail(rc::kMismatch, "datatype mismatch");
        return false;
      }
      row[width] = value;
    }
    if (at >= 0) row[static_cast<size_t>(at)] = std::move(value);
  }
  bool skip = false;
  if (plan_.is_view) {
    if (!fire(TriggerEvent::kUpdate, TriggerTime::kInsteadOf, old_row.data(), row.data(), &columns,
              &skip)) {
      return false;
    }
    if (skip) return true;
    count_change(23, row.data(), cx);
    return return_row(row.data(), cx);
  }
  writer_.complete(row.data());
  if (cx.failed()) return false;
  if (triggers_ != nullptr && plan_.write->has_update_triggers) {
    if (!fire(TriggerEvent::kUpdate, TriggerTime::kBefore, old_row.data(), row.data(), &columns,
              &skip)) {
      return false;
    }
    if (skip) return true;
    // The trigger may have changed or removed the row: columns that are not set keep its new
    // values.
    std::vector<Value> key;
    if (table.without_rowid) {
      for (int i = 0; i < table.primary->key_columns; ++i) {
        key.push_back(
            old_row[static_cast<size_t>(table.primary->columns[static_cast<size_t>(i)].column)]);
      }
    } else {
      key.push_back(old_row[width]);
    }
    std::vector<Value> now;
    if (!writer_.read(key.data(), &now)) return !cx.failed();
    for (size_t i = 0; i < width; ++i) {
      bool set = false;
      for (int column : columns) set |= column == static_cast<int>(i);
      if (!set && static_cast<int>(i) != table.rowid_column) row[i] = now[i];
    }
    old_row = std::move(now);
    writer_.complete(row.data());
  }
  Written checked = writer_.check(row.data(), action, nullptr);
  if (checked == Written::kFailed) return writer_failed();
  if (checked == Written::kSkipped) return true;
  if (!resolve(row, old_row.data(), action, false, cx, &skip)) return false;
  if (skip) return true;
  if (table.kind == TableKind::kVirtual) {
    std::vector<Value> args = {old_row[width], row[width]};
    args.insert(args.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(width));
    auto updated = table.virtual_table->update(args);
    if (!updated.ok()) {
      cx.fail(updated.error());
      return false;
    }
  } else if (!writer_.update(old_row.data(), row.data())) {
    return writer_failed();
  }
  if (foreign_keys_ != nullptr && !foreign_keys_->after_update(old_row.data(), row.data()))
    return false;
  count_change(23, row.data(), cx);
  if (triggers_ != nullptr && !fire(TriggerEvent::kUpdate, TriggerTime::kAfter, old_row.data(),
                                    row.data(), &columns, &skip)) {
    return false;
  }
  const bool returned = return_row(row.data(), cx);
  new_values_ = std::move(row);
  return returned;
}

bool DmlExecution::delete_all(Cx& cx, bool* done) {
  *done = false;
  const Table& table = writer_.table();
  if (!plan_.whole_table || triggers_ != nullptr || foreign_keys_ != nullptr ||
      plan_.has_returning || cx.session.hooks.update) {
    return true;
  }
  Database& database = *cx.session.databases[static_cast<size_t>(plan_.write->database)];
  writer_.close();
  ++cx.session.write_epoch;
  auto cleared = database.store->clear_tree(table.root);
  if (!cleared.ok()) {
    cx.fail(cleared.error());
    return false;
  }
  for (const auto& index : table.indexes) {
    if (index.get() == table.primary) continue;
    auto index_cleared = database.store->clear_tree(index->root);
    if (!index_cleared.ok()) {
      cx.fail(index_cleared.error());
      return false;
    }
  }
  changes += cleared.value();
  cx.session.total_changes += cleared.value();
  *done = true;
  return true;
}

bool DmlExecution::run_delete(Cx& cx) {
  bool done = false;
  if (!delete_all(cx, &done)) return false;
  if (done) return true;
  if (in_place_ && foreign_keys_ == nullptr) return change_in_place(cx);
  if (!collect(cx)) return false;
  std::vector<Value> old_row;
  const bool borrows = triggers_ == nullptr && foreign_keys_ == nullptr;
  for (size_t at = 0; at + found_width_ <= found_.size(); at += found_width_) {
    if (!cx.tick()) return false;
    if (plan_.is_view) {
      old_row.assign(found_.begin() + static_cast<std::ptrdiff_t>(at),
                     found_.begin() + static_cast<std::ptrdiff_t>(at + writer_.width()));
      old_row.emplace_back();
      bool skip = false;
      if (!fire(TriggerEvent::kDelete, TriggerTime::kInsteadOf, old_row.data(), nullptr, nullptr,
                &skip)) {
        return false;
      }
      if (skip) continue;
      count_change(9, old_row.data(), cx);
      if (!return_row(old_row.data(), cx)) return false;
      continue;
    }
    if (writer_.table().kind == TableKind::kVirtual) {
      auto removed = writer_.table().virtual_table->update({&found_[at], 1});
      if (!removed.ok()) {
        cx.fail(removed.error());
        return false;
      }
      ++changes;
      ++cx.session.total_changes;
      continue;
    }
    if (!(borrows ? writer_.read_borrowed(&found_[at], &old_row)
                  : writer_.read(&found_[at], &old_row))) {
      if (cx.failed()) return false;
      continue;
    }
    if (!delete_one(old_row, cx, true, true)) return false;
  }
  return true;
}

bool DmlExecution::delete_one(std::vector<Value>& old_row, Cx& cx, bool count, bool fire_triggers) {
  bool skip = false;
  bool fires = fire_triggers && triggers_ != nullptr && plan_.write->has_delete_triggers;
  if (fires &&
      !fire(TriggerEvent::kDelete, TriggerTime::kBefore, old_row.data(), nullptr, nullptr, &skip)) {
    return false;
  }
  if (skip) return true;
  if (fires) {
    std::vector<Value> key;
    const Table& table = writer_.table();
    if (table.without_rowid) {
      for (int i = 0; i < table.primary->key_columns; ++i) {
        key.push_back(
            old_row[static_cast<size_t>(table.primary->columns[static_cast<size_t>(i)].column)]);
      }
    } else {
      key.push_back(old_row[writer_.width()]);
    }
    std::vector<Value> now;
    if (!writer_.read(key.data(), &now)) return !cx.failed();
  }
  if (!writer_.remove(old_row.data())) return writer_failed();
  if (foreign_keys_ != nullptr && !foreign_keys_->after_delete(old_row.data())) return false;
  if (count) count_change(9, old_row.data(), cx);
  if (fires &&
      !fire(TriggerEvent::kDelete, TriggerTime::kAfter, old_row.data(), nullptr, nullptr, &skip)) {
    return false;
  }
  return !count || return_row(old_row.data(), cx);
}

std::unique_ptr<Execution> make_dml(const DmlPlan& plan, Cx& cx) {
  return std::make_unique<DmlExecution>(plan, cx);
}

bool needs_statement_savepoint(const DmlPlan& plan, const Session& session) {
  const WritePlan& write = *plan.write;
  if (write.has_insert_triggers || write.has_update_triggers || write.has_delete_triggers)
    return true;
  if (session.foreign_keys) return true;
  if (plan.is_view) return true;
  if (plan.kind == sql::StatementKind::kInsert) {
    bool single = plan.source == nullptr ||
                  (plan.source->kind == RowKind::kValues && plan.source->rows.size() == 1);
    bool replaces = plan.conflict == sql::ConflictAction::kReplace;
    for (const auto& index : write.table->indexes)
      replaces |= index->conflict == sql::ConflictAction::kReplace;
    return !single || replaces || !plan.upserts.empty() || plan.has_returning;
  }
  return !plan.one_row || plan.conflict == sql::ConflictAction::kReplace || plan.has_returning;
}

}  // namespace db
