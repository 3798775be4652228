// A table as a slot reads it: the b-tree of rows, or an index that leads to them. Columns that the
// index holds are read from it; the row itself is looked up only when another column is asked for.
//
// Values borrow from pages until the cursor moves. Single-threaded.
#pragma once

#include "db/exec/column_picks.h"
#include "db/exec/context.h"
#include "db/value/record.h"

#include <memory>

namespace db {

// The order of an index tree, and a search key for it.
class IndexOrder : public KeyOrder {
 public:
  IndexOrder(const Index& index, Session& session);
  int compare(ByteView a, ByteView b) const override;
  const KeyInfo& info() const { return info_; }

 private:
  KeyInfo info_;
};

class PrefixProbe : public KeyProbe {
 public:
  // `tie`: what to answer when the record starts with the key.
  PrefixProbe(std::span<const Value> key, const KeyInfo& info, int tie)
      : KeyProbe({key, info, tie}), key_(key), info_(info), tie_(tie) {}
  int compare(ByteView stored) const override;

 private:
  std::span<const Value> key_;
  const KeyInfo& info_;
  int tie_;
};

class TableCursor {
 public:
  TableCursor() = default;
  TableCursor(const TableCursor&) = delete;
  TableCursor& operator=(const TableCursor&) = delete;

  // Opens the table's tree, and with `index` that index's too. Rows are then driven by drive().
  bool open(Cx& cx, const Table& table, int database, const Index* index);
  void close();
  bool is_open() const { return table_ != nullptr; }
  int width() const { return width_; }
  const Table& table() const { return *table_; }

  // The cursor that moves: the index's, else the table's.
  Cursor& drive() { return index_ != nullptr ? index_cursor_ : cursor_; }
  Cursor& rows() { return cursor_; }
  const KeyInfo& key_info() const { return order_->info(); }
  // After every move of drive().
  void moved() {
    record_known_ = false;
    index_known_ = false;
    row_found_ = index_ == nullptr;
  }

  void column(int column, Value& out, Cx& cx);
  // Several columns of the table's record, whose picks are in its order. REQUIRES: made for table()
  // and index().
  void columns(std::span<const ColumnPick> picks, Value* out, Cx& cx);
  i64 rowid();
  bool uses_index() const { return index_ != nullptr; }
  const Index* index() const { return index_; }
  bool index_has(int column) const { return index_place_[static_cast<size_t>(column)] >= 0; }
  // Positions rows() on the row that the index points to.
  bool find_row(Cx& cx);

 private:
  void prepare(Cx& cx);
  // Views into pages are not good any more when somebody wrote meanwhile.
  void refresh(const Cx& cx) {
    if (epoch_ == cx.session.write_epoch) return;
    epoch_ = cx.session.write_epoch;
    moved();
  }
  // The records under the cursors, read when first asked for. False: failed.
  bool load_record(Cx& cx) { return record_known_ || load_record_slow(cx); }
  bool load_index_record(Cx& cx) { return index_known_ || load_index_record_slow(cx); }
  bool load_record_slow(Cx& cx);
  bool load_index_record_slow(Cx& cx);

  const Table* table_ = nullptr;
  const Index* index_ = nullptr;
  const Table* prepared_table_ = nullptr;  // whose orders and places are below, also when closed
  const Index* prepared_index_ = nullptr;
  int width_ = 0;
  Cursor cursor_;
  Cursor index_cursor_;
  std::unique_ptr<IndexOrder> order_;  // of index_, or of a WITHOUT ROWID table
  std::unique_ptr<IndexOrder> primary_order_;
  std::vector<i16> index_place_;  // column -> place in the index record, or -1
  std::vector<Value> primary_key_;
  RecordView record_;
  RecordView index_record_;
  bool record_known_ = false;
  bool index_known_ = false;
  bool row_found_ = false;
  u64 epoch_ = 0;
};

}  // namespace db
