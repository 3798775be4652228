#include "db/exec/value_set.h"

namespace db {

ValueSet::ValueSet(int width, const Collation* const* collations) : width_(width), table_(16) {
  for (int i = 0; i < width; ++i) {
    const Collation* collation = collations != nullptr ? collations[i] : nullptr;
    collations_.push_back(collation != nullptr ? collation : &kBinary);
  }
}

u64 ValueSet::hash(const Value* row) const {
  u64 h = 0;
  for (int i = 0; i < width_; ++i) {
    h = h * 0x9e3779b97f4a7c15u + hash_value(row[i], collations_[static_cast<size_t>(i)]);
  }
  return h ^ (h >> 29);
}

bool ValueSet::equal(const Value* a, const Value* b) const {
  for (int i = 0; i < width_; ++i) {
    if (compare(a[i], b[i], collations_[static_cast<size_t>(i)]) != 0) return false;
  }
  return true;
}

size_t ValueSet::find(const Value* row) const {
  u64 h = hash(row);
  size_t mask = table_.size() - 1;
  for (size_t at = h & mask;; at = (at + 1) & mask) {
    u32 place = table_[at];
    if (place == 0) return kNone;
    if (hashes_[place - 1] == h && equal(this->row(place - 1), row)) return place - 1;
  }
}

size_t ValueSet::insert(const Value* row, bool* is_new) {
  if ((count_ + 1) * 2 > table_.size()) grow();
  u64 h = hash(row);
  size_t mask = table_.size() - 1;
  size_t at = h & mask;
  for (;; at = (at + 1) & mask) {
    u32 place = table_[at];
    if (place == 0) break;
    if (hashes_[place - 1] == h && equal(this->row(place - 1), row)) {
      *is_new = false;
      return place - 1;
    }
  }
  for (int i = 0; i < width_; ++i) {
    values_.push_back(row[i]);
    values_.back().keep();
  }
  hashes_.push_back(h);
  table_[at] = static_cast<u32>(++count_);
  *is_new = true;
  return count_ - 1;
}

void ValueSet::grow() {
  std::vector<u32> wider(table_.size() * 2);
  size_t mask = wider.size() - 1;
  for (size_t i = 0; i < count_; ++i) {
    size_t at = hashes_[i] & mask;
    while (wider[at] != 0) at = (at + 1) & mask;
    wider[at] = static_cast<u32>(i + 1);
  }
  table_.swap(wider);
}

void ValueSet::clear() {
  count_ = 0;
  values_.clear();
  hashes_.clear();
  table_.assign(16, 0);
}

}  // namespace db
