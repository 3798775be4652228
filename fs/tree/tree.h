// The checkpoint tree: an immutable B+tree of pages (fs/tree/page.h), changed by copy on write.
// Folding changes into a root writes new pages along the changed paths and shares the rest;
// comparing two roots skips pages they share, so it costs what differs.
//
// Pages come from a PageSource and go to a PageSink, which names them; PageId 0 is the empty tree.
// Errors: those of the source, and kCorruption for pages that do not decode. Tree is thread-safe if
// its source is.
#pragma once

#include "fs/state/base_state.h"
#include "fs/tree/page.h"

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace fs {

class PageSource {
 public:
  virtual ~PageSource() = default;
  virtual base::Result<std::shared_ptr<const Page>> page(PageId id) = 0;
};

// Decodes and caches pages that `read` gives as bytes. Thread-safe.
class CachedPages : public PageSource {
 public:
  using Read = std::function<base::Result<std::shared_ptr<const std::string>>(PageId)>;
  explicit CachedPages(Read read, size_t pages_max = 2048)
      : read_(std::move(read)), pages_max_(pages_max) {}
  base::Result<std::shared_ptr<const Page>> page(PageId id) override;

 private:
  Read read_;
  size_t pages_max_;
  std::mutex mutex_;
  std::list<PageId> recent_;
  struct Cached {
    std::shared_ptr<const Page> page;
    std::list<PageId>::iterator place;
  };
  std::unordered_map<PageId, Cached> cache_;
};

// A root as a map from keys to values.
class Tree : public BaseState {
 public:
  Tree(std::shared_ptr<PageSource> source, PageId root) : source_(std::move(source)), root_(root) {}
  base::Result<std::optional<std::string>> get(std::string_view key) const override;
  base::Status scan(std::string_view prefix, const Visit& visit) const override;
  PageId root() const { return root_; }

 private:
  base::Status scan_page(PageId id, std::string_view prefix, const Visit& visit, int depth) const;
  std::shared_ptr<PageSource> source_;
  PageId root_;
};

// Key -> new value, or nullopt to delete.
using TreeChanges = std::map<std::string, std::optional<std::string>>;
using PageSink = std::function<base::Result<PageId>(std::string_view bytes)>;
// The root of the tree `root` with the changes made.
base::Result<PageId> fold(PageSource& source, PageId root, const TreeChanges& changes,
                          const PageSink& sink);

// Calls `visit` for every key whose value differs, in order, with the value on each side or null.
using VisitDifference = std::function<base::Status(std::string_view key, const std::string* before,
                                                   const std::string* after)>;
base::Status compare(PageSource& source, PageId before, PageId after, const VisitDifference& visit);

// Every page of a tree, parents first. `enter` says whether to go below a page (false: seen
// before).
base::Status for_each_page(PageSource& source, PageId root,
                           const std::function<bool(PageId)>& enter,
                           const std::function<base::Status(const Page&)>& visit);

}  // namespace fs
