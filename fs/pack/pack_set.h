// All packs of a store, and which of them holds an id. Ids of one workspace are handed out in order
// and packed in order, so a pack covers one or two ranges of ids and finding one is a search among
// ranges. The same id may lie in several packs (a fork and its parent fold the same tail): the
// bytes are the same, any will do. When a blob is gone, because collection has rewritten it, the
// list is loaded anew. Decoded slots are cached up to cache_bytes. Thread-safe.
#pragma once

#include "fs/pack/pack.h"

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace fs {

struct PackInfo {
  u64 number = 0;
  std::vector<std::pair<u64, u64>> ranges;  // first and last id of each, inclusive
  u64 bytes = 0;
  u64 slots = 0;
};

class PackSet {
 public:
  using Load = std::function<base::Result<std::vector<PackInfo>>()>;
  struct Options {
    BlobStore* blobs = nullptr;  // outlives the set
    StoreKey key{};
    u64 cache_bytes = 32u << 20;
    SealPointer seal;  // null: not encrypted
  };
  PackSet(Options options, Load load) : options_(std::move(options)), load_(std::move(load)) {}

  base::Status reload();
  void add(const PackInfo& pack);
  // kCorruption when no pack holds it.
  base::Result<std::shared_ptr<const std::string>> read(u64 id);
  base::Result<std::shared_ptr<PackReader>> reader(u64 number);
  static std::string name_of(u64 number);
  std::vector<PackInfo> packs() const;

 private:
  base::Result<std::shared_ptr<const std::string>> find(u64 id);
  std::vector<u64> candidates(u64 id) const;
  void remember(u64 id, std::shared_ptr<const std::string> bytes);
  void index(const PackInfo& pack);

  Options options_;
  Load load_;
  mutable std::mutex mutex_;
  std::map<u64, PackInfo> packs_;
  struct Range {
    u64 last;
    u64 pack;
  };
  std::multimap<u64, Range> ranges_;  // by first id
  u64 range_length_max_ = 0;          // how far below an id a range that covers it may begin
  std::unordered_map<u64, std::shared_ptr<PackReader>> readers_;
  std::list<u64> recent_;  // newest first
  struct Cached {
    std::shared_ptr<const std::string> bytes;
    std::list<u64>::iterator place;
  };
  std::unordered_map<u64, Cached> cache_;
  u64 cached_bytes_ = 0;
};

}  // namespace fs
