#include "fs/engine/memory_engine.h"

#include "fs/state/mutant.h"

namespace fs {

base::Result<Row> MemoryEngine::get(std::string_view key) {
  std::lock_guard lock(mutex_);
  auto at = rows_.find(key);
  return at == rows_.end() ? Row{std::string(key), "", 0} : at->second;
}

base::Result<std::vector<Row>> MemoryEngine::scan(std::string_view prefix) {
  std::lock_guard lock(mutex_);
  std::vector<Row> rows;
  for (auto at = rows_.lower_bound(prefix); at != rows_.end() && at->first.starts_with(prefix);
       ++at) {
    rows.push_back(at->second);
  }
  return rows;
}

base::Status MemoryEngine::commit(const std::vector<RowWrite>& writes) {
  std::lock_guard lock(mutex_);
  for (const RowWrite& write : writes) {
    auto at = rows_.find(write.key);
    u64 version = at == rows_.end() ? 0 : at->second.version;
    if (version != write.expected) {
      return base::Error(base::ErrorCode::kConflict, write.key + " was changed by somebody else");
    }
  }
  for (const RowWrite& write : writes) {
    if (write.check_only) continue;
    if (write.value) {
      rows_[write.key] = {write.key, *write.value, write.expected + 1};
    } else {
      rows_.erase(write.key);
    }
  }
  return {};
}

base::Status MemoryLog::fence(Epoch wanted, Seq begins_behind) {
  if (wanted < epoch) return fenced_out();
  epoch = wanted;
  if (begins_behind > head()) {
    segments.clear();  // a tree holds all of it
    base = begins_behind;
    base_hash.clear();
  }
  return {};
}

base::Status MemoryLog::append(const LogSegment& segment) {
  auto same = segments.find(segment.first);
  bool repeated = same != segments.end() && same->second.hash == segment.hash &&
                  same->second.epoch == segment.epoch;
  if (repeated && !FS_MUTANT(kRetryNotRecognised)) return {};
  if (segment.epoch != epoch && !FS_MUTANT(kFenceIgnored)) {
    return fenced_out();
  }
  if (segment.first != head() + 1 && !FS_MUTANT(kGapAllowed)) {
    return not_next(head());
  }
  segments[segment.first] = segment;
  return {};
}

u64 MemoryLog::drop(Seq before) {
  u64 dropped = 0;
  while (!segments.empty() && segments.begin()->second.last < before) {
    base = segments.begin()->second.last;
    base_hash = segments.begin()->second.hash;
    segments.erase(segments.begin());
    ++dropped;
  }
  return dropped;
}

base::Status MemoryEngine::fence(u32 workspace, Epoch epoch, Seq base) {
  std::lock_guard lock(mutex_);
  return logs_[workspace].fence(epoch, base);
}

base::Status MemoryEngine::append(const LogSegment& segment) {
  std::lock_guard lock(mutex_);
  return logs_[segment.workspace].append(segment);
}

base::Result<LogState> MemoryEngine::log(u32 workspace) {
  std::lock_guard lock(mutex_);
  const MemoryLog& log = logs_[workspace];
  return LogState{workspace, log.epoch, log.head(),
                  log.segments.empty() ? log.base_hash : log.segments.rbegin()->second.hash};
}

base::Result<std::vector<LogState>> MemoryEngine::logs() {
  std::vector<u32> workspaces;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [workspace, log] : logs_) workspaces.push_back(workspace);
  }
  std::vector<LogState> all;
  for (u32 workspace : workspaces) all.push_back(TRY(log(workspace)));
  return all;
}

base::Result<std::vector<LogSegment>> MemoryEngine::segments(u32 workspace, Seq from,
                                                             size_t limit) {
  std::lock_guard lock(mutex_);
  std::vector<LogSegment> result;
  for (const auto& [first, segment] : logs_[workspace].segments) {
    if (segment.last >= from && result.size() < limit) result.push_back(segment);
  }
  return result;
}

base::Result<u64> MemoryEngine::drop_segments(u32 workspace, Seq before) {
  std::lock_guard lock(mutex_);
  return logs_[workspace].drop(before);
}

template <class Call>
base::Status FaultyEngine::with_fault(Call call) {
  base::Error unknown(base::ErrorCode::kUnavailable, "the connection to the engine was lost");
  if (cut_off_) return unknown;
  bool lose_before = rng_.chance(unknown_ / 2);
  if (lose_before) return unknown;
  base::Status done = call();
  bool lose_after = rng_.chance(unknown_ / 2);
  if (lose_after) return unknown;
  return done;
}

base::Status FaultyEngine::commit(const std::vector<RowWrite>& writes) {
  return with_fault([&] { return below_.commit(writes); });
}

base::Status FaultyEngine::append(const LogSegment& segment) {
  return with_fault([&] { return below_.append(segment); });
}

}  // namespace fs
