// Runs jobs in child processes, a few at a time, one process a job: a crash or a hang of the engine
// under test costs that job alone. Single-threaded.
#pragma once

#include "base/types.h"

#include <functional>
#include <string>
#include <vector>

namespace db::slt {

struct JobEnd {
  std::string output;  // what the job returned, in part if it died
  int signal = 0;      // what killed it, 0 when it ended by itself
  bool timed_out = false;
};

// Calls `job(index)` in a child for each index in `order` and `done(index, end)` in the parent as
// they end, at most `processes` at once. A job that runs longer than timeout_ms is killed.
void run_jobs(const std::vector<size_t>& order, int processes, i64 timeout_ms,
              const std::function<std::string(size_t index)>& job,
              const std::function<void(size_t index, const JobEnd& end)>& done);

}  // namespace db::slt
