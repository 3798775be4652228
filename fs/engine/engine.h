// Where roots, leases, heads and pack tables live: a small ordered table of versioned rows with
// conditional, atomic, durable commits, and a fenced log of segments. So little that any database
// can serve: SQLite on one machine (sqlite_engine.h), PostgreSQL and its kin in a cluster
// (postgres_engine.h), memory for tests and simulation (memory_engine.h).
//
// A row's version is 0 while it does not exist and grows by one with every change.
// Errors: kConflict when an expectation does not hold (nothing was changed), kBusy when another
// process is in the way for too long, kUnavailable when the outcome is unknown: it may or may not
// have happened; commit_surely() below finds out. kIo, kCorruption. Thread-safe.
#pragma once

#include "base/result.h"
#include "fs/state/types.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fs {

struct Row {
  std::string key;
  std::string value;
  u64 version = 0;
};

// Expects the version; puts the value, deletes the row (no value), or only checks (`check_only`).
struct RowWrite {
  std::string key;
  std::optional<std::string> value;
  u64 expected = 0;
  bool check_only = false;
};

// A stretch of a workspace's log. `hash` names its content, so that a retry is recognised.
struct LogSegment {
  u32 workspace = 0;
  Epoch epoch = 0;
  Seq first = 0;
  Seq last = 0;
  std::string hash;
  std::string bytes;
};

// How far a log got, and in which epoch one may append to it; all zero when there is none.
struct LogState {
  u32 workspace = 0;
  Epoch epoch = 0;
  Seq head = 0;      // its last record
  std::string hash;  // of its last segment; "" when it began behind record `head`
};

// What every engine says when it refuses a segment.
base::Error fenced_out();
base::Error not_next(Seq head);

class Engine {
 public:
  virtual ~Engine() = default;
  // A row that is not there has version 0 and an empty value.
  virtual base::Result<Row> get(std::string_view key) = 0;
  // Rows whose key starts with `prefix`, in order, as of one moment.
  virtual base::Result<std::vector<Row>> scan(std::string_view prefix) = 0;
  // All or nothing, durable on success. An expectation of a missing row is version 0.
  virtual base::Status commit(const std::vector<RowWrite>& writes) = 0;

  // Only the highest epoch ever passed to fence() may append, and only the next seq; the first is
  // behind `base`. Appending the very same segment again succeeds without effect.
  virtual base::Status fence(u32 workspace, Epoch epoch, Seq base) = 0;
  virtual base::Status append(const LogSegment& segment) = 0;
  virtual base::Result<LogState> log(u32 workspace) = 0;
  virtual base::Result<std::vector<LogState>> logs() = 0;
  // The first `limit` segments that hold records from `from` on, in order.
  virtual base::Result<std::vector<LogSegment>> segments(u32 workspace, Seq from, size_t limit) = 0;
  // How often the two functions below try: less where a call has waited and tried for long itself.
  virtual int attempts_max() const { return 20; }
  // Deletes segments all of whose records are before `before`; the log's state stays. How many.
  virtual base::Result<u64> drop_segments(u32 workspace, Seq before) = 0;
};

// commit(), and when its outcome is unknown reads the rows until it is known. The first write must
// put a value that nobody else could have written (it names the writer), or an unknown outcome
// stays unknown.
base::Status commit_surely(Engine& engine, const std::vector<RowWrite>& writes);
// append(), repeated while its outcome is unknown.
base::Status append_surely(Engine& engine, const LogSegment& segment);

}  // namespace fs
