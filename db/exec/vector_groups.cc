#include "db/exec/vector_groups.h"

#include "db/exec/join_hash.h"

namespace db {

void VectorGroups::reset(std::vector<const Collation*> collations) {
  collations_ = std::move(collations);
  values_.clear();
  hashes_.clear();
  table_.assign(64, 0);
  bytes_.reset();
}

void VectorGroups::find(const std::vector<const Vector*>& keys, const Selection& rows,
                        u32* groups) {
  u64 hashes[kBatchRows];
  for (u32 i = 0; i < rows.count; ++i) hashes[i] = 0;
  for (size_t k = 0; k < keys.size(); ++k) {
    for (u32 i = 0; i < rows.count; ++i) {
      hashes[i] =
          hashes[i] * 0x9e3779b97f4a7c15u + hash_cell(*keys[k], rows.rows[i], collations_[k]);
    }
  }
  for (u32 i = 0; i < rows.count; ++i) {
    u32 r = rows.rows[i];
    if ((size() + 1) * 2 > table_.size()) grow();
    u64 mask = table_.size() - 1;
    u64 hash = hashes[i] ^ (hashes[i] >> 29);
    for (u64 at = hash & mask;; at = (at + 1) & mask) {
      u32 place = table_[at];
      if (place == 0) {
        add(keys, r, hash);
        table_[at] = static_cast<u32>(size());
        groups[r] = static_cast<u32>(size()) - 1;
        break;
      }
      if (hashes_[place - 1] == hash && equal(place - 1, keys, r)) {
        groups[r] = place - 1;
        break;
      }
    }
  }
}

bool VectorGroups::equal(u32 group, const std::vector<const Vector*>& keys, u32 at) const {
  const Value* stored = row(group);
  for (size_t k = 0; k < keys.size(); ++k) {
    Type type = stored[k].type();
    if (type == keys[k]->types[at]) {
      if (type == Type::kNull) continue;
      if (type == Type::kInteger) {
        if (stored[k].raw_integer() != keys[k]->cells[at].i) return false;
        continue;
      }
      if (type >= Type::kText && collations_[k]->kind == Collation::Kind::kBinary) {
        if (stored[k].bytes() != keys[k]->bytes(at)) return false;
        continue;
      }
    }
    Value value;
    keys[k]->load(at, value);
    if (compare(stored[k], value, collations_[k]) != 0) return false;
  }
  return true;
}

void VectorGroups::add(const std::vector<const Vector*>& keys, u32 at, u64 hash) {
  for (const Vector* key : keys) {
    values_.emplace_back();
    key->load(at, values_.back());
    if (!values_.back().has_bytes()) continue;
    std::string_view bytes = key->bytes(at);
    char* copy = static_cast<char*>(bytes_.allocate(bytes.size() + 1, 1));
    std::memcpy(copy, bytes.data(), bytes.size());
    values_.back().set_borrowed(key->types[at], copy, bytes.size());
  }
  hashes_.push_back(hash);
}

void VectorGroups::grow() {
  std::vector<u32> wider(table_.size() * 2);
  u64 mask = wider.size() - 1;
  for (size_t i = 0; i < hashes_.size(); ++i) {
    u64 at = hashes_[i] & mask;
    while (wider[at] != 0) at = (at + 1) & mask;
    wider[at] = static_cast<u32>(i + 1);
  }
  table_.swap(wider);
}

}  // namespace db
