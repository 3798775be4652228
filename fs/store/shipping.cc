#include "fs/store/shipping.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "fs/log/segment.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

constexpr u64 kSegmentBytesMax = 1u << 20;  // one batch may be larger
constexpr u64 kFileBytes = 32u << 20;
constexpr size_t kFetchAtOnce = 64;
constexpr std::string_view kFetching = "fetching-";

std::string hash_of(const Chain& chain) {
  return base::to_hex(chain);
}

// The chain that a log's hash names; zeros for a log that has none yet.
Result<Chain> chain_of(const std::string& hash) {
  Chain chain{};
  if (hash.empty()) return chain;
  for (size_t i = 0; i < chain.size() && hash.size() == 2 * kChainBytes; ++i) {
    unsigned byte = 0;
    if (std::sscanf(hash.c_str() + 2 * i, "%2x", &byte) != 1) break;
    chain[i] = static_cast<u8>(byte);
  }
  if (hash_of(chain) == hash) return chain;
  return Error(ErrorCode::kCorruption, "a log of the engine has a hash that is none");
}

// Builds a journal file out of the engine's segments.
class FileWriter {
 public:
  FileWriter(base::Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  Status add(const LogSegment& segment) {
    std::string_view bytes = segment.bytes;
    auto header = decode_segment_header(base::as_bytes(bytes));
    if (!header || header->workspace != segment.workspace) {
      return Error(ErrorCode::kCorruption,
                   "the engine's log of workspace " + std::to_string(segment.workspace) +
                       " is damaged at record " + std::to_string(segment.first));
    }
    if (!file_) {
      file_ = TRY(disk_.open(path_, {.create = true}));
      TRY(file_->truncate(0));
    } else {
      bytes.remove_prefix(kSegmentHeaderBytes);
    }
    TRY(file_->write_at(offset_, base::as_bytes(bytes)));
    offset_ += bytes.size();
    return {};
  }
  u64 bytes() const { return offset_; }
  Status finish() { return file_ ? file_->sync() : Status(); }

 private:
  base::Disk& disk_;
  std::string path_;
  std::unique_ptr<base::DiskFile> file_;
  u64 offset_ = 0;
};

}  // namespace

// --- shipping ---

void LogShipper::add(const BatchPlace& batch) {
  std::lock_guard lock(mutex_);
  waiting_.push_back(batch);
}

Seq LogShipper::shipped() const {
  std::lock_guard lock(mutex_);
  return shipped_;
}

u64 LogShipper::segments() const {
  std::lock_guard lock(mutex_);
  return segments_;
}

void LogShipper::reset_segments() {
  std::lock_guard lock(mutex_);
  segments_ = 0;
}

Result<LogSegment> LogShipper::segment_of(const std::vector<BatchPlace>& batches) const {
  LogSegment segment;
  segment.workspace = workspace_;
  segment.epoch = epoch_;
  segment.first = batches.front().first;
  segment.last = batches.back().last;
  segment.hash = hash_of(batches.back().after);
  segment.bytes = encode_segment_header({workspace_, epoch_, batches.front().before});
  for (const BatchPlace& batch : batches) {
    size_t at = segment.bytes.size();
    segment.bytes.resize(at + batch.length, '\0');  // a file that ends in the padding is whole
    base::Bytes to(reinterpret_cast<u8*>(segment.bytes.data()) + at, batch.length);
    TRY(batch.file->read_at(batch.offset, to));
  }
  return segment;
}

Status LogShipper::ship() {
  std::lock_guard one(ship_mutex_);
  std::vector<BatchPlace> batches;
  {
    std::lock_guard lock(mutex_);
    batches = waiting_;
  }
  for (size_t at = 0; at < batches.size();) {
    std::vector<BatchPlace> some;
    u64 bytes = 0;
    while (at < batches.size() &&
           (some.empty() || bytes + batches[at].length <= kSegmentBytesMax)) {
      bytes += batches[at].length;
      some.push_back(batches[at++]);
    }
    TRY(append_surely(engine_, TRY(segment_of(some))));
    std::lock_guard lock(mutex_);
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(some.size()));
    shipped_ = some.back().last;
    ++segments_;
  }
  return {};
}

// --- opening ---

Result<std::vector<LogSegment>> LogFetcher::segments_from(u32 workspace, Seq from) {
  auto segments = TRY(engine_.segments(workspace, from, kFetchAtOnce));
  if (!segments.empty() && segments.front().first <= from) return segments;
  return Error(ErrorCode::kCorruption, "the engine's log of workspace " +
                                           std::to_string(workspace) + " lacks record " +
                                           std::to_string(from) + "; restore the engine");
}

// What the journal on this disk holds behind `base`, and how that goes with the engine's log. One
// that is damaged is no error here: the engine's counts.
Result<LocalLog> LogFetcher::look(u32 workspace, const LogState& log, Seq base) {
  LocalLog local;
  local.shipped = log.head;
  local.chain = TRY(chain_of(log.hash));
  LogScan scan;
  scan.disk = &disk_;
  scan.seal = seal_;
  scan.folder = log_folder_;
  scan.workspace = workspace;
  scan.from = base + 1;
  scan.batch = [&](const BatchPlace& batch) {
    if (batch.last <= base) return;
    local.last = batch.last;
    local.last_chain = batch.after;
    if (batch.last == log.head) local.meets = batch.after == local.chain;
    if (batch.first == log.head + 1) local.meets = log.hash.empty() || batch.before == local.chain;
    if (batch.first > log.head) local.unshipped.push_back(batch);
  };
  (void)scan_log(scan);
  return local;
}

// Files of a log that does not count any more, under names that nobody reads.
Result<std::vector<std::string>> LogFetcher::set_aside(u32 workspace) {
  std::vector<std::string> paths;
  for (const SegmentName& name : TRY(list_segments(disk_, log_folder_))) {
    if (name.workspace != workspace) continue;
    paths.push_back(name.path + ".unshipped");
    TRY(disk_.rename(name.path, paths.back()));
  }
  return paths;
}

Result<LocalLog> LogFetcher::prepare(u32 workspace, Epoch epoch, Seq base, bool alone) {
  TRY(engine_.fence(workspace, epoch, base));
  LogState log = TRY(engine_.log(workspace));
  LocalLog local = TRY(look(workspace, log, base));
  if (local.meets && (local.unshipped.empty() || alone)) return local;
  std::vector<std::string> old = TRY(set_aside(workspace));
  local.unshipped.clear();
  TRY(fetch_log(workspace, base + 1, log.head));
  // A journal that is older than the engine's log, or lost its end with the power, is part of it.
  bool lost = local.last > base && !TRY(holds(workspace, base, local));
  if (!lost) {
    for (const std::string& path : old) TRY(disk_.remove(path));
  } else {
    base::log_error("store",
                    "changes that were not in the engine when another server took the workspace "
                    "are not part of it; they stay in the folder log as *.unshipped",
                    {{"workspace", u64{workspace}}, {"to", local.last}});
  }
  return local;
}

// Whether the log in the folder now goes through where `local` ended.
Result<bool> LogFetcher::holds(u32 workspace, Seq base, const LocalLog& local) {
  bool found = false;
  LogScan scan;
  scan.disk = &disk_;
  scan.seal = seal_;
  scan.folder = log_folder_;
  scan.workspace = workspace;
  scan.from = base + 1;
  scan.check_data = false;
  scan.batch = [&](const BatchPlace& batch) {
    if (batch.last == local.last) found = batch.after == local.last_chain;
  };
  TRY(scan_log(scan));
  return found;
}

Status LogFetcher::fetch_log(u32 workspace, Seq from, Seq to) {
  for (Seq next = from; next <= to;) {
    auto segments = TRY(segments_from(workspace, next));
    SegmentName name{workspace, segments.front().first, segments.front().epoch, {}};
    FileWriter file(disk_, segment_path(log_folder_, name));
    for (const LogSegment& segment : segments) {
      TRY(file.add(segment));
      next = segment.last + 1;
      if (file.bytes() >= kFileBytes) break;
    }
    TRY(file.finish());
  }
  return {};
}

// --- tails ---

Result<std::vector<LogFetcher::TailName>> LogFetcher::list_tails() {
  std::vector<TailName> all;
  for (const std::string& entry : TRY(disk_.list(tail_folder_))) {
    TailName name;
    unsigned long long first = 0, last = 0;
    int used = 0;
    int fields = std::sscanf(entry.c_str(), "%6x-%16llx-%16llx.tail%n", &name.workspace, &first,
                             &last, &used);
    if (fields != 3 || static_cast<size_t>(used) != entry.size()) continue;
    name.first = first;
    name.last = last;
    name.path = tail_folder_ + "/" + entry;
    all.push_back(std::move(name));
  }
  std::sort(all.begin(), all.end(), [](const TailName& a, const TailName& b) {
    return std::tie(a.workspace, a.first, b.last) < std::tie(b.workspace, b.first, a.last);
  });
  return all;
}

Result<std::vector<SegmentName>> LogFetcher::covering(u32 workspace, Seq from, Seq to) {
  std::vector<SegmentName> found;
  Seq next = from;
  for (const TailName& name : TRY(list_tails())) {
    bool useful = name.workspace == workspace && name.first <= next && name.last >= next;
    if (!useful || next > to) continue;
    found.push_back({workspace, name.first, 0, name.path});
    next = name.last + 1;
  }
  if (next <= to) found.clear();
  return found;
}

Result<std::vector<SegmentName>> LogFetcher::tail(u32 workspace, Seq from, Seq to) {
  std::lock_guard one(fetch_mutex_);
  auto found = TRY(covering(workspace, from, to));
  if (!found.empty()) return found;
  u64 random = base::random_seed();
  for (Seq next = from; next <= to;) {
    auto segments = TRY(segments_from(workspace, next));
    // A name of its own until it is whole: other processes may fetch the same.
    std::string path = tail_folder_ + "/" + std::string(kFetching) + std::to_string(random);
    FileWriter file(disk_, path);
    Seq first = segments.front().first, last = 0;
    for (const LogSegment& segment : segments) {
      TRY(file.add(segment));
      last = segment.last;
      if (file.bytes() >= kFileBytes || last >= to) break;
    }
    TRY(file.finish());
    char name[64];
    std::snprintf(name, sizeof name, "/%06x-%016llx-%016llx.tail", workspace,
                  static_cast<unsigned long long>(first), static_cast<unsigned long long>(last));
    TRY(disk_.rename(path, tail_folder_ + name));
    next = last + 1;
  }
  return covering(workspace, from, to);
}

Result<u64> LogFetcher::drop_tails(
    const std::function<bool(u32 workspace, Seq first, Seq last)>& is_needed) {
  u64 dropped = 0;
  for (const std::string& entry : TRY(disk_.list(tail_folder_))) {
    // Left by a crash, or on its way: then its maker fails, and fetches again when asked again.
    if (entry.starts_with(kFetching)) (void)disk_.remove(tail_folder_ + "/" + entry);
  }
  for (const TailName& name : TRY(list_tails())) {
    if (is_needed(name.workspace, name.first, name.last)) continue;
    TRY(disk_.remove(name.path));
    ++dropped;
  }
  return dropped;
}

}  // namespace fs
