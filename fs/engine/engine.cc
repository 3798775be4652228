#include "fs/engine/engine.h"

namespace fs {

base::Error fenced_out() {
  return base::Error(base::ErrorCode::kConflict, "a later epoch has fenced this one");
}

base::Error not_next(Seq head) {
  return base::Error(base::ErrorCode::kConflict,
                     "the segment does not follow record " + std::to_string(head) + " of the log");
}

base::Status commit_surely(Engine& engine, const std::vector<RowWrite>& writes) {
  for (int attempt = 0; attempt < engine.attempts_max(); ++attempt) {
    base::Status done = engine.commit(writes);
    bool retried = attempt > 0 && !done.ok() && done.error().code() == base::ErrorCode::kConflict;
    if (done.ok() || (done.error().code() != base::ErrorCode::kUnavailable && !retried))
      return done;
    // All rows changed together, so the first that was to change tells for all.
    for (const RowWrite& write : writes) {
      if (write.check_only) continue;
      auto row = engine.get(write.key);
      if (!row.ok()) break;  // still in the dark: try again
      bool as_written = write.value
                            ? row->version == write.expected + 1 && row->value == *write.value
                            : row->version == 0;
      if (as_written) return {};
      if (row->version != write.expected) {
        return base::Error(base::ErrorCode::kConflict, write.key + " was changed by somebody else");
      }
      break;
    }
  }
  return base::Error(base::ErrorCode::kUnavailable,
                     "the engine does not answer; whether the change happened is not known");
}

base::Status append_surely(Engine& engine, const LogSegment& segment) {
  base::Status done;
  for (int attempt = 0; attempt < engine.attempts_max(); ++attempt) {
    done = engine.append(segment);
    if (done.ok() || done.error().code() != base::ErrorCode::kUnavailable) break;
  }
  return done;
}

}  // namespace fs
