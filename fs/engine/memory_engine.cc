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

base::Status MemoryLog::fence(Epoch wanted) {
  if (wanted < epoch) {
    return base::Error(base::ErrorCode::kConflict, "a later epoch has fenced this one");
  }
  epoch = wanted;
  return {};
}

base::Status MemoryLog::append(const LogSegment& segment) {
  auto same = segments.find(segment.first);
  bool repeated = same != segments.end() && same->second.hash == segment.hash &&
                  same->second.epoch == segment.epoch;
  if (repeated && !FS_MUTANT(kRetryNotRecognised)) return {};
  if (segment.epoch != epoch && !FS_MUTANT(kFenceIgnored)) {
    return base::Error(base::ErrorCode::kConflict, "a later epoch has fenced this one");
  }
  if (segment.first != head() + 1 && !FS_MUTANT(kGapAllowed)) {
    return base::Error(base::ErrorCode::kConflict, "the segment does not follow record " +
                                                       std::to_string(head()) + " of the log");
  }
  segments[segment.first] = segment;
  return {};
}

base::Status MemoryEngine::fence(u32 workspace, Epoch epoch) {
  std::lock_guard lock(mutex_);
  return logs_[workspace].fence(epoch);
}

base::Status MemoryEngine::append(const LogSegment& segment) {
  std::lock_guard lock(mutex_);
  return logs_[segment.workspace].append(segment);
}

base::Result<std::vector<LogSegment>> MemoryEngine::segments(u32 workspace, Seq from) {
  std::lock_guard lock(mutex_);
  std::vector<LogSegment> result;
  for (const auto& [first, segment] : logs_[workspace].segments) {
    if (segment.last >= from) result.push_back(segment);
  }
  return result;
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
