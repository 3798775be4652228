#include "llm/engine/page_pool.h"

#include "base/check.h"
#include "base/hash.h"

#include <algorithm>

namespace llm {

PagePool::PagePool(i32 pages) : pages_(static_cast<size_t>(pages)) {
  free_.reserve(static_cast<size_t>(pages));
  for (i32 page = pages; page > 0; --page) free_.push_back(page - 1);
  index_.reserve(static_cast<size_t>(pages));
}

size_t PagePool::KeyHash::operator()(const Key& key) const {
  return base::xxh3({reinterpret_cast<const u8*>(key.tokens.data()), sizeof(key.tokens)},
                    key.parent);
}

PagePool::Key PagePool::key_of(i32 parent, std::span<const i32> tokens) const {
  CHECK(tokens.size() == static_cast<size_t>(kTokens));
  Key key{parent < 0 ? 0 : pages_[static_cast<size_t>(parent)].serial, {}};
  std::copy(tokens.begin(), tokens.end(), key.tokens.begin());
  return key;
}

i32 PagePool::allocate() {
  i32 page;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else if (!idle_.empty()) {
    page = idle_.front();
    idle_.pop_front();
    Page& old = pages_[static_cast<size_t>(page)];
    old.is_idle = false;
    index_.erase(old.key);
    old.serial = 0;
  } else {
    return -1;
  }
  pages_[static_cast<size_t>(page)].uses = 1;
  return page;
}

void PagePool::release(i32 page) {
  Page& p = pages_[static_cast<size_t>(page)];
  CHECK(p.uses > 0);
  if (--p.uses > 0) return;
  if (p.serial == 0) {
    free_.push_back(page);
  } else {
    p.idle = idle_.insert(idle_.end(), page);
    p.is_idle = true;
  }
}

i32 PagePool::share(i32 parent, std::span<const i32> tokens) {
  // A parent that is not published has no findable children.
  if (parent >= 0 && pages_[static_cast<size_t>(parent)].serial == 0) return -1;
  const auto it = index_.find(key_of(parent, tokens));
  if (it == index_.end()) return -1;
  Page& p = pages_[static_cast<size_t>(it->second)];
  if (p.is_idle) {
    idle_.erase(p.idle);
    p.is_idle = false;
  }
  ++p.uses;
  return it->second;
}

i32 PagePool::publish(i32 page, i32 parent, std::span<const i32> tokens) {
  if (parent >= 0 && pages_[static_cast<size_t>(parent)].serial == 0) return page;
  const i32 existing = share(parent, tokens);
  if (existing >= 0) {
    release(page);
    return existing;
  }
  Page& p = pages_[static_cast<size_t>(page)];
  CHECK(p.serial == 0);
  p.serial = next_serial_++;
  p.key = key_of(parent, tokens);
  index_.emplace(p.key, page);
  return page;
}

}  // namespace llm
