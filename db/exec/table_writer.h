// Writes rows of one table: generated columns, NOT NULL, STRICT, CHECK and uniqueness with their
// conflict actions, the table's tree and its indexes. Triggers and foreign keys are the caller's.
//
// A row is all columns, then the rowid. Single-threaded.
#pragma once

#include "db/exec/table_cursor.h"
#include "db/plan/dml_plan.h"

#include <functional>

namespace db {

enum class Written : u8 { kYes, kSkipped, kFailed };

// A constraint that a new row violates: the row in its way, and what to do about it.
struct Conflict {
  const Index* index = nullptr;  // null: the rowid
  sql::ConflictAction action = sql::ConflictAction::kAbort;
  std::vector<Value> row;  // the row in the way
};

class TableWriter {
 public:
  TableWriter(const WritePlan& plan, Cx& cx) : plan_(plan), cx_(cx) {}

  bool open();
  void close();
  const Table& table() const { return *plan_.table; }
  size_t width() const { return plan_.table->columns.size(); }

  // Affinities and generated columns of a row whose other columns are set.
  void complete(Value* row);
  // NOT NULL, STRICT, CHECK. `defaults` replaces NULLs under REPLACE.
  Written check(Value* row, sql::ConflictAction statement, const List<Expr*>* defaults);
  // Finds what is in the way of the row; `old_row` (may be null) does not count. The first conflict
  // whose action is not REPLACE comes first.
  bool find_conflicts(const Value* row, const Value* old_row, sql::ConflictAction statement,
                      std::vector<Conflict>* out);
  void fail_conflict(const Conflict& conflict);

  bool insert(Value* row);
  bool update(const Value* old_row, Value* row);
  bool remove(const Value* old_row);
  // Reads a whole row by rowid or primary key. False: not there (or failed).
  bool read(const Value* key, std::vector<Value>* row);
  bool read_current(std::vector<Value>* row);
  // A rowid that is free; 0 after a failure.
  i64 new_rowid();
  // The key that the row has in index `number` of the plan; *applies is false for partial indexes
  // that leave it out.
  bool index_key(int number, const Value* row, std::vector<Value>* out, bool* applies) {
    return index_values(*trees_[static_cast<size_t>(number)], row, out, applies);
  }
  Cursor& rows() { return cursor_; }
  // What to do about the failure that was reported.
  sql::ConflictAction failed_action = sql::ConflictAction::kAbort;

 private:
  struct IndexTree {
    const IndexWrite* write = nullptr;
    std::unique_ptr<IndexOrder> order;
    Cursor cursor;
  };
  bool index_values(const IndexTree& tree, const Value* row, std::vector<Value>* out,
                    bool* applies);
  bool erase_index(IndexTree& tree, const std::vector<Value>& key);
  bool insert_index(IndexTree& tree, const std::vector<Value>& key);
  void table_record(const Value* row, std::string* out, std::vector<Value>* key);
  bool show(const Value* row);
  bool conflict_of(const Index* index, sql::ConflictAction own, sql::ConflictAction statement,
                   const Value* key, std::vector<Conflict>* out);
  bool fail(sql::ConflictAction action, int code, std::string text);
  bool storage_failed(Cursor& cursor);

  const WritePlan& plan_;
  Cx& cx_;
  Cursor cursor_;
  std::unique_ptr<IndexOrder> primary_order_;
  std::vector<std::unique_ptr<IndexTree>> trees_;
  std::string record_;
  std::vector<Value> scratch_, scratch_key_, old_key_;
  bool open_ = false;
};

std::string describe_columns(const Index& index);

}  // namespace db
