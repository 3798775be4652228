// A hash set of rows of values, in order of first insertion: DISTINCT, GROUP BY, IN, UNION, hash
// join keys. Equality is that of `=` with the column's collation, NULLs being equal to each other.
// Values are kept (bytes are owned). Single-threaded.
#pragma once

#include "db/value/value.h"

#include <vector>

namespace db {

class ValueSet {
 public:
  explicit ValueSet(int width, const Collation* const* collations = nullptr);

  // The row's place, inserting it when it is new.
  size_t insert(const Value* row, bool* is_new);
  // The row's place, or kNone.
  size_t find(const Value* row) const;
  static constexpr size_t kNone = static_cast<size_t>(-1);

  size_t size() const { return count_; }
  int width() const { return width_; }
  Value* row(size_t index) { return values_.data() + index * static_cast<size_t>(width_); }
  const Value* row(size_t index) const {
    return values_.data() + index * static_cast<size_t>(width_);
  }
  void clear();

 private:
  u64 hash(const Value* row) const;
  bool equal(const Value* a, const Value* b) const;
  void grow();

  int width_;
  size_t count_ = 0;
  std::vector<const Collation*> collations_;
  std::vector<Value> values_;
  std::vector<u64> hashes_;
  std::vector<u32> table_;  // place + 1, 0: free
};

}  // namespace db
