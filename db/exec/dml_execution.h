// One run of INSERT, UPDATE or DELETE: finds or makes the rows, then for each: BEFORE triggers,
// constraints with their conflict actions, the write, foreign keys, AFTER triggers, RETURNING.
// All rows to change are collected before the first change, but for an INSERT whose source cannot
// see what it puts in, and for changes that leave the scan alone (dml_in_place.cc).
// Single-threaded.
#pragma once

#include "db/catalog/virtual_table.h"
#include "db/exec/execution.h"
#include "db/exec/foreign_key.h"
#include "db/exec/table_writer.h"
#include "db/exec/trigger_run.h"

namespace db {

class DmlExecution : public Execution {
 public:
  DmlExecution(const DmlPlan& plan, Cx& cx);
  int step(Cx& cx) override;
  void close(Cx& cx) override;
  sql::ConflictAction failed_action() const override { return failed_action_; }

 private:
  bool run(Cx& cx);
  bool run_insert(Cx& cx);
  bool run_update(Cx& cx);
  bool run_delete(Cx& cx);
  bool delete_all(Cx& cx, bool* done);
  bool collect(Cx& cx);
  bool fits_in_place(const Cx& cx) const;
  bool change_in_place(Cx& cx);
  void list_ungiven();
  bool insert_values(const RowPlan& rows, Cx& cx);
  bool insert_source(const Value* source, Cx& cx);
  void fill_ungiven(Cx& cx);
  Value* target(int column, bool* rowid_given);
  void settle_rowid(bool given);
  bool insert_one(bool rowid_given, Cx& cx);
  bool before_insert(const std::vector<Value>& row, bool* done, Cx& cx);
  bool write_new(std::vector<Value>& row, bool rowid_given, Cx& cx);
  bool choose_rowid(std::vector<Value>& row, bool given, Cx& cx);
  bool resolve(std::vector<Value>& row, const Value* old_row, sql::ConflictAction action,
               bool rowid_is_free, Cx& cx, bool* skip);
  bool upsert(const std::vector<Conflict>& conflicts, std::vector<Value>& row, Cx& cx,
              bool* handled);
  bool update_one(std::vector<Value>& old_row, const Value* early, const List<int>& columns,
                  const List<Expr*>& values, sql::ConflictAction action, Cx& cx);
  bool delete_one(std::vector<Value>& old_row, Cx& cx, bool count, bool fire);
  bool view_row(size_t at, std::vector<Value>* old_row);
  bool return_row(const Value* row, Cx& cx);
  bool next_autoincrement(i64* rowid, Cx& cx);
  bool note_autoincrement(i64 rowid);
  bool store_autoincrement(Cx& cx);
  bool writer_failed();
  bool fire(sql::TriggerEvent event, sql::TriggerTime time, const Value* old_row,
            const Value* new_row, const List<int>* changed, bool* skip);
  void count_change(int op, const Value* row, Cx& cx);

  const DmlPlan& plan_;
  sql::ConflictAction failed_action_ = sql::ConflictAction::kAbort;
  sql::ConflictAction action_ = sql::ConflictAction::kDefault;
  TableWriter writer_;
  std::unique_ptr<TriggerRunner> triggers_;
  std::unique_ptr<ForeignKeys> foreign_keys_;
  std::unique_ptr<RowStream> source_;
  size_t found_width_ = 0;
  std::vector<Value> found_;
  std::vector<int> ungiven_;    // INSERT: columns that the source has no value for
  std::vector<Value> new_row_;  // INSERT: the row that is being made
  std::vector<Value> new_values_;
  size_t returning_width_ = 0;
  std::vector<Value> returned_;
  size_t returned_at_ = 0;
  bool ran_ = false;
  bool in_place_ = false;
  bool sequence_known_ = false;
  bool sequence_changed_ = false;
  i64 sequence_ = 0;
  i64 sequence_row_ = 0;
};

}  // namespace db
