// Cache pages: who uses which, and which can be used again for the same text.
//
// A page holds 16 tokens of one sequence. A full page whose tokens are settled is published under
// (serial of the page before it, its tokens); a later sequence with the same beginning shares it.
// Equality is on the tokens themselves, not on a hash of them. Pages nobody uses stay published
// until their memory is wanted, the longest unused first. Single-threaded; allocates only in
// publish().
#pragma once

#include "base/types.h"

#include <array>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace llm {

class PagePool {
 public:
  static constexpr i32 kTokens = 16;
  using PageTokens = std::array<i32, kTokens>;

  explicit PagePool(i32 pages);

  // A page of the caller's own, or -1 when all are in use.
  i32 allocate();
  // Gives one use back.
  void release(i32 page);

  // Shares the published page with these tokens after `parent` (-1: the first of a text), or -1.
  i32 share(i32 parent, std::span<const i32> tokens);
  // Makes a full page findable. Returns the page to use from now on: another one when the same text
  // was published meanwhile (the caller's is released).
  i32 publish(i32 page, i32 parent, std::span<const i32> tokens);

  i32 total() const { return static_cast<i32>(pages_.size()); }
  // Free or reclaimable.
  i32 available() const { return static_cast<i32>(free_.size() + idle_.size()); }
  i32 cached() const { return static_cast<i32>(index_.size()); }

 private:
  struct Key {
    u64 parent;  // serial
    PageTokens tokens;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Page {
    i32 uses = 0;
    u64 serial = 0;  // 0: not published
    Key key{};
    std::list<i32>::iterator idle;
    bool is_idle = false;
  };
  Key key_of(i32 parent, std::span<const i32> tokens) const;

  std::vector<Page> pages_;
  std::vector<i32> free_;
  std::list<i32> idle_;  // published and unused, longest unused first
  std::unordered_map<Key, i32, KeyHash> index_;
  u64 next_serial_ = 1;
};

}  // namespace llm
