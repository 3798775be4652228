#include "fs/tree/page.h"

#include "fs/state/codec.h"

#include <algorithm>
#include <utility>

namespace fs {

std::optional<Page> decode_page(std::string_view bytes) {
  FieldReader in(bytes);
  Page page;
  page.level = in.fixed<u8>();
  u64 count = in.varint();
  if (!in.ok() || page.level >= kLevelsMax || count == 0 || count > bytes.size()) {
    return std::nullopt;
  }
  std::string key;
  for (u64 i = 0; i < count; ++i) {
    u64 shared = in.varint();
    std::string_view own = in.text();
    if (!in.ok() || shared > key.size()) return std::nullopt;
    std::string next = key.substr(0, shared).append(own);
    if (i > 0 && next <= key) return std::nullopt;
    key = next;
    page.keys.push_back(std::move(next));
    if (page.level == 0) {
      page.values.emplace_back(in.text());
    } else {
      page.children.push_back(in.fixed<u64>());
      if (page.children.back() == 0) return std::nullopt;
    }
  }
  if (!in.done()) return std::nullopt;
  return page;
}

void PageBuilder::add_key(std::string_view key) {
  size_t shared = 0;
  if (count_ == 0) {
    first_key_ = key;
  } else {
    size_t limit = std::min(key.size(), last_key_.size());
    while (shared < limit && key[shared] == last_key_[shared]) ++shared;
  }
  put_varint(body_, shared);
  put_text(body_, key.substr(shared));
  last_key_ = key;
  ++count_;
}

void PageBuilder::add_value(std::string_view key, std::string_view value) {
  add_key(key);
  put_text(body_, value);
}

void PageBuilder::add_child(std::string_view key, PageId child) {
  add_key(key);
  put_fixed<u64>(body_, child);
  last_child_ = child;
}

std::string PageBuilder::take() {
  std::string bytes(1, static_cast<char>(level_));
  put_varint(bytes, count_);
  bytes += body_;
  count_ = 0;
  body_.clear();
  return bytes;
}

}  // namespace fs
