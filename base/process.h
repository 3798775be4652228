// Child processes: start, feed, time out, kill with all their descendants' group, collect output.
// ProcessResult keeps what was printed even when the time ran out. Thread-safe except where said.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace base {

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] is searched on PATH
  std::string cwd;                // empty: ours
  std::optional<std::vector<std::pair<std::string, std::string>>> env;  // nullopt: ours
  std::vector<std::pair<std::string, std::string>> extra_env;           // added to the above
  std::string input;                   // fed to standard input, then closed
  i64 timeout_ms = 0;                  // 0: none. Then SIGTERM, and SIGKILL 500 ms later
  size_t output_bytes_max = 16 << 20;  // per stream; the middle is cut out beyond it
  bool merge_stderr = false;           // both streams in `out`, in the order they came
};

struct ProcessResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  int signal = 0;      // 0: it exited
  bool timed_out = false;
  std::string out;
  std::string err;
  i64 wall_us = 0;
  i64 cpu_us = 0;  // user and system, of the child and what it waited for
  i64 rss_max_bytes = 0;
  bool ok() const { return exit_code == 0 && !timed_out; }
};

// Runs to the end. Errors: kNotFound when argv[0] is not there; kInvalidArgument; kIo.
Result<ProcessResult> run_process(const ProcessSpec& spec);

// A child that lives on. Its group is killed when the object goes, unless released.
// Single-threaded.
class Process {
 public:
  struct Options {
    std::string stdout_path;  // empty: inherited; both streams may name one file; appended to
    std::string stderr_path;
    int stdin_fd = -1;  // instead of /dev/null and stdout_path; borrowed, the caller closes them
    int stdout_fd = -1;
    bool new_session = true;      // its own group, so that kill reaches all of it
    bool die_with_parent = true;  // SIGKILL when we die
  };
  // `input`, `timeout_ms`, `output_bytes_max` and `merge_stderr` of the spec are not used.
  static Result<Process> start(const ProcessSpec& spec, const Options& options);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  int pid() const { return pid_; }
  // Set once it has ended. Does not wait.
  std::optional<ProcessResult> poll();
  // Waits up to timeout_ms (negative: for ever).
  std::optional<ProcessResult> wait(i64 timeout_ms);
  // To the whole group.
  void kill(int signal);
  int release();  // the pid; the object lets go of it

 private:
  explicit Process(int pid) : pid_(pid) {}
  int pid_ = -1;
  i64 started_us_ = 0;
  std::optional<ProcessResult> ended_;
};

// The full path of a program on PATH.
std::optional<std::string> find_program(std::string_view name);

}  // namespace base
