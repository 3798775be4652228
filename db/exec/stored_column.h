// A column of values that grows, for tables that a join keeps in memory. Its texts and blobs lie in
// an arena of the owner's.
#pragma once

#include "db/exec/vector.h"

namespace db {

class StoredColumn {
 public:
  static constexpr u32 kNoRow = 0xffffffff;

  void append(const Vector& from, u32 at, sql::Arena& arena);
  void load(u32 row, Value& out) const;
  // `count` rows; kNoRow gives NULL.
  void load(const u32* rows, u32 count, Vector& to) const;

  std::vector<Type> types;
  std::vector<VectorCell> cells;
  std::vector<u32> sizes;
};

}  // namespace db
