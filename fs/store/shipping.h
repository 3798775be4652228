// Logs of a cluster: the engine holds them, so that any server can go on where another one stopped
// (internal to fs/store).
//
// A server still writes every batch to the journal on its own disk first: a killed process loses
// nothing. sync() then sends what is new to the engine, in segments of up to a few MiB; nothing is
// promised to anybody else's machine before it is there. A segment's bytes are a journal file
// (fs/log/journal.h): a header and whole batches; its hash is the chain behind them. So what comes
// back from the engine is read by the code that reads the disk, and checked by it.
//
//   DIR/log/      journals of the workspaces we serve: what the engine has, and our unshipped tail
//   DIR/tails/    stretches of logs that were fetched for forks, snapshots, fsck and so on:
//                 W-FIRST-LAST.tail, never changed; only a cache
#pragma once

#include "base/disk.h"
#include "fs/engine/engine.h"
#include "fs/log/journal.h"
#include "fs/store/point.h"

#include <mutex>
#include <string>
#include <vector>

namespace fs {

// Sends the batches of one open workspace to the engine, in order. Thread-safe.
class LogShipper {
 public:
  LogShipper(Engine& engine, u32 workspace, Epoch epoch, Seq shipped)
      : engine_(engine), workspace_(workspace), epoch_(epoch), shipped_(shipped) {}
  // A batch that is in the journal file; each follows the one before.
  void add(const BatchPlace& batch);
  // All that was added before the call is in the engine after it. Errors: kConflict, fenced;
  // kUnavailable, to be tried again; kIo.
  base::Status ship();
  Seq shipped() const;
  // Segments since the log was dropped last: many small ones are slow to read back.
  u64 segments() const;
  void reset_segments();

 private:
  base::Result<LogSegment> segment_of(const std::vector<BatchPlace>& batches) const;

  Engine& engine_;
  const u32 workspace_;
  const Epoch epoch_;
  std::mutex ship_mutex_;     // one at a time
  mutable std::mutex mutex_;  // guards what follows
  std::vector<BatchPlace> waiting_;
  Seq shipped_;
  u64 segments_ = 0;
};

// Where a workspace's log on the engine and on this machine meet, when it is opened.
struct LocalLog {
  Chain chain{};                      // behind record `shipped`
  Seq shipped = 0;                    // the engine has all up to here
  std::vector<BatchPlace> unshipped;  // ours alone, to be shipped first
  // Of the journal on this disk: how far it goes, and whether it goes through `shipped`.
  Seq last = 0;
  Chain last_chain{};
  bool meets = false;
};

// The engine's logs as files of this machine. Thread-safe.
class LogFetcher {
 public:
  LogFetcher(Engine& engine, base::Disk& disk, std::string log_folder, std::string tail_folder,
             SealPointer seal = nullptr)
      : engine_(engine),
        disk_(disk),
        log_folder_(std::move(log_folder)),
        tail_folder_(std::move(tail_folder)),
        seal_(std::move(seal)) {}

  // Makes DIR/log hold the workspace's log behind record `base`: what the engine has, and then what
  // only we have, if nobody else held the workspace since (`alone`). Fences all epochs below.
  base::Result<LocalLog> prepare(u32 workspace, Epoch epoch, Seq base, bool alone);
  // Files that hold at least records [from, to] of a workspace, fetched if need be.
  base::Result<std::vector<SegmentName>> tail(u32 workspace, Seq from, Seq to);
  // Forgets files of tails that `is_needed` does not want. How many.
  base::Result<u64> drop_tails(
      const std::function<bool(u32 workspace, Seq first, Seq last)>& is_needed);

 private:
  struct TailName {
    u32 workspace = 0;
    Seq first = 0;
    Seq last = 0;
    std::string path;
  };
  base::Result<std::vector<TailName>> list_tails();
  // Those that cover [from, to], in order; empty when there is a hole.
  base::Result<std::vector<SegmentName>> covering(u32 workspace, Seq from, Seq to);
  base::Result<LocalLog> look(u32 workspace, const LogState& log, Seq base);
  base::Result<bool> holds(u32 workspace, Seq base, const LocalLog& local);
  base::Result<std::vector<LogSegment>> segments_from(u32 workspace, Seq from);
  base::Status fetch_log(u32 workspace, Seq from, Seq to);
  base::Result<std::vector<std::string>> set_aside(u32 workspace);

  Engine& engine_;
  base::Disk& disk_;
  const std::string log_folder_;
  const std::string tail_folder_;
  const SealPointer seal_;
  std::mutex fetch_mutex_;  // one fetch at a time: two want the same often
};

}  // namespace fs
