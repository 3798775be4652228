#include "fs/pack/pack_set.h"

#include <algorithm>
#include <cstdio>

namespace fs {

using base::Error;
using base::ErrorCode;

namespace {
constexpr size_t kReadersMax = 512;  // open files
}

std::string PackSet::name_of(u64 number) {
  char name[32];
  std::snprintf(name, sizeof name, "%012llx.pack", static_cast<unsigned long long>(number));
  return name;
}

void PackSet::index(const PackInfo& pack) {
  packs_[pack.number] = pack;
  for (auto [first, last] : pack.ranges) {
    ranges_.emplace(first, Range{last, pack.number});
    range_length_max_ = std::max(range_length_max_, last - first);
  }
}

void PackSet::add(const PackInfo& pack) {
  std::lock_guard lock(mutex_);
  index(pack);
}

base::Status PackSet::reload() {
  auto fresh = TRY(load_());
  std::lock_guard lock(mutex_);
  packs_.clear();
  ranges_.clear();
  range_length_max_ = 0;
  for (const PackInfo& pack : fresh) index(pack);
  std::erase_if(readers_, [&](const auto& item) { return !packs_.contains(item.first); });
  return {};
}

std::vector<PackInfo> PackSet::packs() const {
  std::lock_guard lock(mutex_);
  std::vector<PackInfo> all;
  for (const auto& [number, pack] : packs_) all.push_back(pack);
  return all;
}

std::vector<u64> PackSet::candidates(u64 id) const {
  std::vector<u64> numbers;
  u64 lowest = id > range_length_max_ ? id - range_length_max_ : 0;
  for (auto at = ranges_.lower_bound(lowest); at != ranges_.end() && at->first <= id; ++at) {
    if (at->second.last >= id) numbers.push_back(at->second.pack);
  }
  return numbers;
}

base::Result<std::shared_ptr<PackReader>> PackSet::reader(u64 number) {
  {
    std::lock_guard lock(mutex_);
    auto at = readers_.find(number);
    if (at != readers_.end()) return at->second;
  }
  auto opened =
      TRY(PackReader::open(*options_.blobs, name_of(number), options_.key, options_.seal));
  std::lock_guard lock(mutex_);
  if (readers_.size() >= kReadersMax) readers_.clear();  // those in use live on with their users
  readers_[number] = opened;
  return opened;
}

base::Result<std::shared_ptr<const std::string>> PackSet::find(u64 id) {
  std::vector<u64> numbers;
  {
    std::lock_guard lock(mutex_);
    auto cached = cache_.find(id);
    if (cached != cache_.end()) {
      recent_.splice(recent_.begin(), recent_, cached->second.place);
      return cached->second.bytes;
    }
    numbers = candidates(id);
  }
  for (u64 number : numbers) {
    auto pack = TRY(reader(number));
    auto bytes = TRY(pack->read(id));
    if (!bytes) continue;
    auto shared = std::make_shared<const std::string>(std::move(*bytes));
    remember(id, shared);
    return shared;
  }
  return Error(ErrorCode::kNotFound, "slot " + std::to_string(id) + " is in no pack");
}

base::Result<std::shared_ptr<const std::string>> PackSet::read(u64 id) {
  auto found = find(id);
  if (found.ok() || found.error().code() != ErrorCode::kNotFound) return found;
  TRY(reload());
  found = find(id);
  if (found.ok() || found.error().code() != ErrorCode::kNotFound) return found;
  return Error(ErrorCode::kCorruption, found.error().message() + "; run fsck on the store");
}

void PackSet::remember(u64 id, std::shared_ptr<const std::string> bytes) {
  std::lock_guard lock(mutex_);
  if (cache_.contains(id) || bytes->size() > options_.cache_bytes) return;
  recent_.push_front(id);
  cached_bytes_ += bytes->size();
  cache_[id] = {std::move(bytes), recent_.begin()};
  while (cached_bytes_ > options_.cache_bytes) {
    auto oldest = cache_.find(recent_.back());
    cached_bytes_ -= oldest->second.bytes->size();
    cache_.erase(oldest);
    recent_.pop_back();
  }
}

}  // namespace fs
