// One page of the tree: sorted entries, keys prefix-compressed. About kPageBytes long; longer only
// when a single entry is.
//
//   level u8 (0: leaf), count varint, then per entry: shared key bytes varint, own key bytes as
//   text, and for a leaf the value as text, else the child's page id as u64
// In an inner page the key of an entry is the first key below that child.
// decode_page takes hostile bytes: nullopt for anything malformed or out of order.
// Thread-compatible.
#pragma once

#include "fs/state/types.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fs {

inline constexpr size_t kPageBytes = 16 * 1024;
inline constexpr u8 kLevelsMax = 12;

struct Page {
  u8 level = 0;
  std::vector<std::string> keys;
  std::vector<std::string> values;  // leaf
  std::vector<PageId> children;     // inner
};

std::optional<Page> decode_page(std::string_view bytes);

// Collects entries of one page.
class PageBuilder {
 public:
  explicit PageBuilder(u8 level) : level_(level) {}
  void add_value(std::string_view key, std::string_view value);
  void add_child(std::string_view key, PageId child);
  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  size_t bytes() const { return body_.size(); }
  const std::string& first_key() const { return first_key_; }
  PageId only_child() const { return last_child_; }
  // The page's bytes; the builder is empty again.
  std::string take();

 private:
  void add_key(std::string_view key);
  u8 level_;
  size_t count_ = 0;
  std::string body_;
  std::string first_key_;
  std::string last_key_;
  PageId last_child_ = 0;
};

}  // namespace fs
