// The build side of a hash join, in columns: the rows of one FROM item that pass their own
// filters, found by equality of keys. Rows with equal keys come out in build order.
//
// Keys compare as `=` does (affinity applied, collations obeyed, 1 equals 1.0); a NULL finds
// nothing unless the lookup is IS. Without keys every row is found. Owns its bytes.
#pragma once

#include "db/exec/stored_column.h"
#include "db/exec/vector_source.h"

namespace db {

class JoinHash {
 public:
  static constexpr u32 kNoRow = StoredColumn::kNoRow;

  // `wanted`: the item's columns that load() gives, by their place.
  JoinHash(const JoinLevel& level, const ColumnRefs& wanted);
  void build(Cx& cx);

  // The first row for each selected row of `batch`, or kNoRow. `keys` are the lookups' values.
  void find(const VectorExprs& keys, Batch& batch, u32* first, Cx& cx);
  // The same for one row's keys, affinity applied.
  u32 find_one(const Value* keys);
  // The next row with the same keys.
  u32 after(u32 row) const {
    if (keys_.empty()) return row + 1 < rows_ ? row + 1 : kNoRow;
    for (u32 other = next_[row]; other != kNoRow; other = next_[other]) {
      if (hashes_[other] == hashes_[row] && same_keys(row, other)) return other;
    }
    return kNoRow;
  }
  // Column `place` of `count` rows; kNoRow gives NULL.
  void load(size_t place, const u32* rows, u32 count, Vector& to) const;
  // All of them for one row.
  void load_row(u32 row, Value* out) const;
  size_t rows() const { return rows_; }

 private:
  std::vector<const Vector*> key_vectors(const VectorExprs& keys, Batch& batch, Cx& cx);
  const Vector& key_vector(size_t key, const Vector& values, const Selection& rows,
                           sql::Arena& arena, Vector& scratch) const;
  void hash_rows(const std::vector<const Vector*>& keys, const Selection& rows, u64* out,
                 bool* usable) const;
  u32 match(u64 hash, const std::vector<const Vector*>& keys, u32 at) const;
  bool equal(u32 row, const std::vector<const Vector*>& keys, u32 at) const;
  bool same_keys(u32 a, u32 b) const;
  void append(Batch& batch, const VectorExprs& keys, Cx& cx);
  void link();

  const JoinLevel& level_;
  AccessPath scan_path_;
  JoinLevel scan_level_;
  ColumnRefs wanted_;
  std::unique_ptr<BatchSource> source_;
  std::vector<StoredColumn> columns_, keys_;
  std::vector<std::unique_ptr<Vector>> scratch_;
  std::vector<const Vector*> one_;
  std::vector<u64> hashes_;
  std::vector<u32> heads_, next_;
  u64 mask_ = 0;
  u32 rows_ = 0;
  sql::Arena bytes_{65536};
};

// Equal under `=` means equal hash.
u64 hash_cell(const Vector& values, u32 at, const Collation* collation);

}  // namespace db
