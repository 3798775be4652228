// The groups of a vectorised GROUP BY: keys in columns, numbered in order of first appearance.
#pragma once

#include "db/exec/vector.h"

namespace db {

class VectorGroups {
 public:
  void reset(std::vector<const Collation*> collations);
  // The group of each selected row, new ones added; `from` = size() before the call tells which.
  void find(const std::vector<const Vector*>& keys, const Selection& rows, u32* groups);
  size_t size() const { return hashes_.size(); }
  const Value* row(size_t group) const { return values_.data() + group * collations_.size(); }

 private:
  bool equal(u32 group, const std::vector<const Vector*>& keys, u32 at) const;
  void add(const std::vector<const Vector*>& keys, u32 at, u64 hash);
  void grow();

  std::vector<const Collation*> collations_;
  std::vector<Value> values_;  // a group's keys one after the other; bytes in bytes_
  std::vector<u64> hashes_;
  std::vector<u32> table_;  // group + 1, 0: free
  sql::Arena bytes_{4096};
};

}  // namespace db
