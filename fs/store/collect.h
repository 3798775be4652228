// What a store's points reach, and what follows from it: consistency and garbage (internal to
// fs/store).
#pragma once

#include "fs/store/store_impl.h"

#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace fs {

// A named place from which things are reachable.
struct Root {
  std::string name;  // workspace, or workspace@snapshot
  u32 number = 0;    // of the workspace, 0 for a snapshot
  Point point;
};
base::Result<std::vector<Root>> all_roots(Engine& engine);

// Ids of pages and data that trees and tails of the roots refer to. Shared subtrees are walked
// once.
class Marker {
 public:
  explicit Marker(StoreImpl& store) : store_(store) {}
  // The tree, and for a root with a log of its own the log as far as it is written.
  base::Status mark(const Root& root);
  bool reached(u64 id) const { return ids_.contains(id); }
  u64 pages() const { return pages_; }
  const std::unordered_set<u64>& ids() const { return ids_; }
  // Data that only lies in logs.
  const std::unordered_set<u64>& in_logs() const { return in_logs_; }

 private:
  base::Status mark_value(std::string_view key, std::string_view value);
  StoreImpl& store_;
  std::unordered_set<u64> ids_;
  std::unordered_set<u64> in_logs_;
  u64 pages_ = 0;
};

}  // namespace fs
