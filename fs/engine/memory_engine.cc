#include "fs/engine/memory_engine.h"

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

base::Status MemoryEngine::fence(u32 workspace, Epoch epoch) {
  std::lock_guard lock(mutex_);
  Log& log = logs_[workspace];
  if (epoch < log.epoch) {
    return base::Error(base::ErrorCode::kConflict, "a later epoch has fenced this one");
  }
  log.epoch = epoch;
  return {};
}

base::Status MemoryEngine::append(const LogSegment& segment) {
  std::lock_guard lock(mutex_);
  Log& log = logs_[segment.workspace];
  auto same = log.segments.find(segment.first);
  bool repeated = same != log.segments.end() && same->second.hash == segment.hash &&
                  same->second.epoch == segment.epoch;
  if (repeated) return {};
  if (segment.epoch != log.epoch) {
    return base::Error(base::ErrorCode::kConflict, "a later epoch has fenced this one");
  }
  Seq head = log.segments.empty() ? 0 : log.segments.rbegin()->second.last;
  if (segment.first != head + 1) {
    return base::Error(base::ErrorCode::kConflict, "the segment does not follow record " +
                                                       std::to_string(head) + " of the log");
  }
  log.segments[segment.first] = segment;
  return {};
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
