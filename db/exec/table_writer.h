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
  TableWriter(const WritePlan& plan, Cx& cx) : plan_(plan), cx_(cx) {
    record_.set_encoding(encoding());
  }
  Encoding encoding() const { return cx_.session.encoding; }

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
  // `rowid_is_free`: nobody has this rowid, as new_rowid() has found out.
  bool find_conflicts(const Value* row, const Value* old_row, sql::ConflictAction statement,
                      bool rowid_is_free, std::vector<Conflict>* out);
  // May find_conflicts() find anything at all?
  bool can_conflict(bool rowid_is_free) const { return !rowid_is_free || has_unique_; }
  void fail_conflict(const Conflict& conflict);

  bool insert(Value* row);
  bool update(const Value* old_row, Value* row);
  bool remove(const Value* old_row);
  // Reads a whole row by rowid or primary key. False: not there (or failed).
  bool read(const Value* key, std::vector<Value>* row);
  bool read_current(std::vector<Value>* row);
  // The same without a copy of each text: the values borrow from one buffer, until the next call.
  bool read_borrowed(const Value* key, std::vector<Value>* row);
  // From now on update() and remove() change the row under this cursor of the table, and their old
  // row is the one that read_here() gave (values borrowed, as above). Null: back to looking rows
  // up. Not for WITHOUT ROWID tables, nor for changes of the rowid.
  void write_at(Cursor* cursor) { at_ = cursor; }
  bool read_here(std::vector<Value>* row);
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
  // What every row asks about a column, close together.
  struct Field {
    int column = 0;
    Affinity affinity = Affinity::kNone;
    bool is_rowid = false;
  };
  void list_fields();
  bool index_values(const IndexTree& tree, const Value* row, std::vector<Value>* out,
                    bool* applies);
  void primary_key(const Value* row, std::vector<Value>* key) const;
  bool same_key(const IndexTree& tree, const Value* old_row, const Value* row) const;
  Hit seek_row(const Value* key);
  bool decode_row(std::string_view record, i64 rowid, bool keep, std::vector<Value>* row);
  bool erase_index(IndexTree& tree, const std::vector<Value>& key);
  bool insert_index(IndexTree& tree, const std::vector<Value>& key);
  // The record of the row, good until the next one is made.
  ByteView table_record(const Value* row);
  bool show(const Value* row);
  bool conflict_of(const Index* index, sql::ConflictAction own, sql::ConflictAction statement,
                   const Value* key, std::vector<Conflict>* out);
  bool fail(sql::ConflictAction action, int code, std::string text);
  bool storage_failed(Cursor& cursor);

  const WritePlan& plan_;
  Cx& cx_;
  Cursor cursor_;
  Cursor* at_ = nullptr;  // a cursor of the scan, see write_at()
  std::unique_ptr<IndexOrder> primary_order_;
  std::vector<std::unique_ptr<IndexTree>> trees_;
  RecordBuilder record_;
  std::vector<Field> fields_;  // the record's columns, in its order
  std::vector<int> virtual_;   // columns that are in no record
  std::string row_bytes_;
  std::vector<Value> scratch_, scratch_key_, old_key_;
  bool open_ = false;
  bool has_unique_ = true;       // an index, or the key of a WITHOUT ROWID table
  bool has_constraints_ = true;  // NOT NULL, STRICT or CHECK
};

std::string describe_columns(const Index& index);

}  // namespace db
