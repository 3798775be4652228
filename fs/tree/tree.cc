#include "fs/tree/tree.h"

#include <algorithm>

namespace fs {

using base::Error;
using base::ErrorCode;

namespace {

Error damaged(PageId id) {
  return Error(ErrorCode::kCorruption,
               "tree page " + std::to_string(id) + " does not decode; run fsck on the store");
}

// The child that would hold `key`: the last whose first key is not greater.
size_t child_for(const Page& page, std::string_view key) {
  auto at = std::upper_bound(page.keys.begin(), page.keys.end(), key);
  return at == page.keys.begin() ? 0 : static_cast<size_t>(at - page.keys.begin()) - 1;
}

}  // namespace

base::Result<std::shared_ptr<const Page>> CachedPages::page(PageId id) {
  {
    std::lock_guard lock(mutex_);
    auto at = cache_.find(id);
    if (at != cache_.end()) {
      recent_.splice(recent_.begin(), recent_, at->second.place);
      return at->second.page;
    }
  }
  auto bytes = TRY(read_(id));
  auto decoded = decode_page(*bytes);
  if (!decoded) return damaged(id);
  auto page = std::make_shared<const Page>(std::move(*decoded));
  std::lock_guard lock(mutex_);
  if (cache_.contains(id)) return page;
  recent_.push_front(id);
  cache_[id] = {page, recent_.begin()};
  if (cache_.size() > pages_max_) {
    cache_.erase(recent_.back());
    recent_.pop_back();
  }
  return page;
}

base::Result<std::optional<std::string>> Tree::get(std::string_view key) const {
  PageId id = root_;
  for (int depth = 0; id != 0 && depth <= kLevelsMax; ++depth) {
    auto page = TRY(source_->page(id));
    if (page->level > 0) {
      id = page->children[child_for(*page, key)];
      continue;
    }
    auto at = std::lower_bound(page->keys.begin(), page->keys.end(), key);
    if (at == page->keys.end() || *at != key) return std::optional<std::string>();
    return std::optional<std::string>(page->values[static_cast<size_t>(at - page->keys.begin())]);
  }
  if (id != 0) return damaged(id);
  return std::optional<std::string>();
}

base::Status Tree::scan(std::string_view prefix, const Visit& visit) const {
  if (root_ == 0) return {};
  return scan_page(root_, prefix, visit, 0);
}

base::Status Tree::scan_page(PageId id, std::string_view prefix, const Visit& visit,
                             int depth) const {
  if (depth > kLevelsMax) return damaged(id);
  auto page = TRY(source_->page(id));
  if (page->level > 0) {
    for (size_t i = child_for(*page, prefix); i < page->keys.size(); ++i) {
      bool beyond = page->keys[i] > prefix && !page->keys[i].starts_with(prefix);
      if (beyond) break;
      TRY(scan_page(page->children[i], prefix, visit, depth + 1));
    }
    return {};
  }
  auto at = std::lower_bound(page->keys.begin(), page->keys.end(), prefix);
  for (; at != page->keys.end() && at->starts_with(prefix); ++at) {
    visit(*at, page->values[static_cast<size_t>(at - page->keys.begin())]);
  }
  return {};
}

// --- folding ---

namespace {

using ChangeIterator = TreeChanges::const_iterator;

// Builds a tree from the left: entries and whole subtrees in key order.
class Folder {
 public:
  Folder(PageSource& source, const PageSink& sink) : source_(source), sink_(sink) {}

  base::Status merge(PageId id, ChangeIterator from, ChangeIterator to) {
    if (id == 0) return add_changes(from, to);
    auto page = TRY(source_.page(id));
    if (page->level == 0) return merge_leaf(*page, from, to);
    for (size_t i = 0; i < page->keys.size(); ++i) {
      // Changes below the first key of all belong to the first child.
      ChangeIterator stop = to;
      if (i + 1 < page->keys.size()) {
        stop = from;
        while (stop != to && stop->first < page->keys[i + 1]) ++stop;
      }
      if (from == stop) {
        TRY(add_subtree(static_cast<u8>(page->level - 1), page->keys[i], page->children[i]));
      } else {
        TRY(merge(page->children[i], from, stop));
      }
      from = stop;
    }
    return {};
  }

  base::Result<PageId> finish() {
    for (size_t level = 0; level < builders_.size(); ++level) {
      bool top = level + 1 == builders_.size();
      PageBuilder& builder = builders_[level];
      if (top && builder.empty()) return PageId{0};
      // A lone child at the top is the root itself.
      if (top && level > 0 && builder.count() == 1) return builder.only_child();
      TRY(flush(level));
    }
    return PageId{0};
  }

 private:
  base::Status add_changes(ChangeIterator from, ChangeIterator to) {
    for (; from != to; ++from) {
      if (from->second) TRY(add_entry(from->first, *from->second));
    }
    return {};
  }

  base::Status merge_leaf(const Page& page, ChangeIterator from, ChangeIterator to) {
    for (size_t i = 0; i < page.keys.size(); ++i) {
      while (from != to && from->first < page.keys[i]) {
        if (from->second) TRY(add_entry(from->first, *from->second));
        ++from;
      }
      if (from != to && from->first == page.keys[i]) {
        if (from->second) TRY(add_entry(from->first, *from->second));
        ++from;
      } else {
        TRY(add_entry(page.keys[i], page.values[i]));
      }
    }
    return add_changes(from, to);
  }

  PageBuilder& builder(size_t level) {
    while (builders_.size() <= level) builders_.emplace_back(static_cast<u8>(builders_.size()));
    return builders_[level];
  }

  base::Status add_entry(std::string_view key, std::string_view value) {
    PageBuilder& leaf = builder(0);
    if (!leaf.empty() && leaf.bytes() + key.size() + value.size() > kPageBytes) TRY(flush(0));
    builder(0).add_value(key, value);
    return {};
  }

  // An unchanged subtree whose root page is of `level`.
  base::Status add_subtree(u8 level, std::string_view key, PageId id) {
    for (size_t below = 0; below <= level && below < builders_.size(); ++below) TRY(flush(below));
    return add_child(level + 1u, key, id);
  }

  base::Status add_child(size_t level, std::string_view key, PageId id) {
    if (level >= kLevelsMax) return Error(ErrorCode::kLimit, "the tree is too deep");
    if (!builder(level).empty() && builder(level).bytes() + key.size() > kPageBytes) {
      TRY(flush(level));
    }
    builder(level).add_child(key, id);
    return {};
  }

  base::Status flush(size_t level) {
    if (builder(level).empty()) return {};
    std::string key = builder(level).first_key();
    PageId id = TRY(sink_(builder(level).take()));
    return add_child(level + 1, key, id);
  }

  PageSource& source_;
  const PageSink& sink_;
  std::vector<PageBuilder> builders_;
};

}  // namespace

base::Result<PageId> fold(PageSource& source, PageId root, const TreeChanges& changes,
                          const PageSink& sink) {
  if (changes.empty()) return root;
  Folder folder(source, sink);
  TRY(folder.merge(root, changes.begin(), changes.end()));
  return folder.finish();
}

// --- comparing ---

namespace {

// What is still to come of one side: the next item is an entry or a whole subtree.
class Cursor {
 public:
  struct Item {
    std::string_view key;  // first key
    PageId subtree = 0;    // 0: an entry
    const std::string* value = nullptr;
    u8 level = 0;
  };
  explicit Cursor(PageSource& source) : source_(source) {}

  base::Status start(PageId root) {
    if (root == 0) return {};
    return push(root);
  }
  bool done() const { return stack_.empty(); }
  Item head() const {
    const Frame& top = stack_.back();
    const Page& page = *top.page;
    if (page.level == 0) return {page.keys[top.at], 0, &page.values[top.at], 0};
    return {page.keys[top.at], page.children[top.at], nullptr, static_cast<u8>(page.level - 1)};
  }
  void skip() {
    while (!stack_.empty() && ++stack_.back().at == stack_.back().page->keys.size()) {
      stack_.pop_back();
    }
  }
  // Replaces the subtree at the head by what is in it.
  base::Status open() {
    PageId id = head().subtree;
    // The frame below continues behind this subtree once ours is used up.
    return push(id);
  }

 private:
  struct Frame {
    std::shared_ptr<const Page> page;
    size_t at = 0;
  };
  base::Status push(PageId id) {
    if (stack_.size() > kLevelsMax) return damaged(id);
    stack_.push_back({TRY(source_.page(id)), 0});
    return {};
  }
  PageSource& source_;
  std::vector<Frame> stack_;
};

}  // namespace

base::Status compare(PageSource& source, PageId before, PageId after,
                     const VisitDifference& visit) {
  if (before == after) return {};
  Cursor left(source);
  Cursor right(source);
  TRY(left.start(before));
  TRY(right.start(after));
  while (!left.done() || !right.done()) {
    if (left.done() || right.done()) {
      Cursor& rest = left.done() ? right : left;
      if (rest.head().subtree != 0) {
        TRY(rest.open());
        continue;
      }
      TRY(visit(rest.head().key, left.done() ? nullptr : rest.head().value,
                left.done() ? rest.head().value : nullptr));
      rest.skip();
      continue;
    }
    Cursor::Item a = left.head();
    Cursor::Item b = right.head();
    if (a.subtree != 0 && a.subtree == b.subtree) {
      left.skip();
      right.skip();
    } else if (a.subtree == 0 && a.key < b.key) {
      TRY(visit(a.key, a.value, nullptr));
      left.skip();
    } else if (b.subtree == 0 && b.key < a.key) {
      TRY(visit(b.key, nullptr, b.value));
      right.skip();
    } else if (a.subtree != 0 && (b.subtree == 0 || a.level >= b.level)) {
      TRY(left.open());
    } else if (b.subtree != 0) {
      TRY(right.open());
    } else {
      if (*a.value != *b.value) TRY(visit(a.key, a.value, b.value));
      left.skip();
      right.skip();
    }
  }
  return {};
}

base::Status for_each_page(PageSource& source, PageId root,
                           const std::function<bool(PageId)>& enter,
                           const std::function<base::Status(const Page&)>& visit) {
  std::vector<PageId> open;
  if (root != 0) open.push_back(root);
  while (!open.empty()) {
    PageId id = open.back();
    open.pop_back();
    if (!enter(id)) continue;
    auto page = TRY(source.page(id));
    TRY(visit(*page));
    for (size_t i = page->children.size(); i-- > 0;) open.push_back(page->children[i]);
  }
  return {};
}

}  // namespace fs
