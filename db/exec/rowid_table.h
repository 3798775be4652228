// The wanted columns of a whole table in memory, found by rowid: what a join turns to once it has
// looked up so many rows one by one that reading all of them costs no more. For tables whose rowids
// lie close together.
#pragma once

#include "db/exec/stored_column.h"
#include "db/exec/vector_source.h"

namespace db {

class RowidTable {
 public:
  static constexpr u32 kNoRow = StoredColumn::kNoRow;
  static constexpr u64 kMaxBytes = u64{64} << 20;

  // `wanted`: the item's columns that load() gives, by their place.
  RowidTable(const JoinLevel& level, const ColumnRefs& wanted);
  // Would a table of so many rowids be too large whatever its texts are?
  bool too_large(u64 rowids) const { return rowids > kMaxBytes / (4 + 13 * columns_.size()); }
  // Reads the table, whose rowids go from `first` to `last`. False: too large after all, or failed.
  bool build(i64 first, i64 last, Cx& cx);

  u32 find(i64 rowid) const {
    const u64 at = static_cast<u64>(rowid) - static_cast<u64>(first_);
    return at < places_.size() ? places_[at] : kNoRow;
  }
  void load(size_t place, const u32* rows, u32 count, Vector& to) const {
    columns_[place].load(rows, count, to);
  }

 private:
  void append(Batch& batch);

  AccessPath scan_path_;
  JoinLevel scan_level_;
  ColumnRefs wanted_;
  ColumnRef rowid_;
  std::unique_ptr<BatchSource> source_;
  i64 first_ = 0;
  std::vector<u32> places_;  // of rowid first_ + i
  std::vector<StoredColumn> columns_;
  u32 rows_ = 0;
  u64 text_bytes_ = 0;
  sql::Arena bytes_{65536};
};

}  // namespace db
