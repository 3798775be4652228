#include "fs/state/directory.h"

#include "base/check.h"
#include "base/hash.h"

#include <algorithm>

namespace fs {

namespace {
constexpr u32 kFree = 0;
constexpr size_t kIndexMin = 8;

u64 hash_of(std::string_view name) {
  return base::xxh3(base::as_bytes(name));
}
}  // namespace

void Directory::assign(std::vector<Slot> slots) {
  slots_ = std::move(slots);
  std::sort(slots_.begin(), slots_.end(),
            [](const Slot& a, const Slot& b) { return a.cookie < b.cookie; });
  live_ = slots_.size();
  rebuild();
}

size_t Directory::probe(std::string_view name) const {
  size_t mask = index_.size() - 1;
  size_t at = hash_of(name) & mask;
  while (index_[at] != kFree) {
    const Slot& slot = slots_[index_[at] - 1];
    if (slot.ino != 0 && slot.name == name) return at;
    at = (at + 1) & mask;
  }
  return at;
}

const Directory::Slot* Directory::find(std::string_view name) const {
  if (index_.empty()) return nullptr;
  u32 number = index_[probe(name)];
  return number == kFree ? nullptr : &slots_[number - 1];
}

void Directory::insert(std::string_view name, Ino ino, u64 cookie, FileType type) {
  // Emptied slots stay in the index until the next rebuild: keep the load, dead ones included,
  // under 3/4.
  if ((slots_.size() + 1) * 4 > index_.size() * 3) rebuild();
  Slot slot{std::string(name), ino, cookie, type};
  ++live_;
  if (slots_.empty() || slots_.back().cookie < cookie) {
    index_[probe(name)] = static_cast<u32>(slots_.size()) + 1;
    slots_.push_back(std::move(slot));
    return;
  }
  // An older cookie: when a directory is paged in (by name) or a record of a rename is applied
  // again.
  slots_.insert(slots_.begin() + static_cast<std::ptrdiff_t>(first_after(cookie)), std::move(slot));
  rebuild();
}

void Directory::replace(std::string_view name, Ino ino, FileType type) {
  u32 number = index_[probe(name)];
  CHECK(number != kFree);
  slots_[number - 1].ino = ino;
  slots_[number - 1].type = type;
}

void Directory::erase(std::string_view name) {
  u32 number = index_[probe(name)];
  CHECK(number != kFree);
  Slot& slot = slots_[number - 1];
  slot.ino = 0;
  slot.name = std::string();
  --live_;
  if (live_ == 0) {
    slots_.clear();
    index_.clear();
  }
}

size_t Directory::first_after(u64 after) const {
  auto at = std::upper_bound(slots_.begin(), slots_.end(), after,
                             [](u64 cookie, const Slot& slot) { return cookie < slot.cookie; });
  return static_cast<size_t>(at - slots_.begin());
}

void Directory::rebuild() {
  std::erase_if(slots_, [](const Slot& slot) { return slot.ino == 0; });
  size_t size = kIndexMin;
  while (size < slots_.size() * 2 + 2) size *= 2;
  index_.assign(size, kFree);
  size_t mask = size - 1;
  for (size_t i = 0; i < slots_.size(); ++i) {
    size_t at = hash_of(slots_[i].name) & mask;
    while (index_[at] != kFree) at = (at + 1) & mask;
    index_[at] = static_cast<u32>(i) + 1;
  }
}

}  // namespace fs
