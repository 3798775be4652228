// The product under supervision: a sealed artefact in its own sandbox on the host's loopback,
// probed until it answers, started again with growing pauses when it dies, its last words and the
// call stack of its death kept. Single-threaded: tend() does the work that is due.
#pragma once

#include "base/result.h"
#include "team/ops/crash_watch.h"
#include "team/sandbox/sandbox.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace team {

class DiskFault;

// How a product is served; words may hold {product} {data} {port}.
struct ServeSpec {
  std::vector<std::string> serve;
  std::vector<std::string> probe;
  std::string probe_expect;
};

struct Crash {
  int signal = 0;
  int exit_code = 0;
  std::string last_words;     // end of its standard error
  CallStack stack;            // of the thread that died; empty when it could not be read
  std::string stack_problem;  // why it could not
  std::string what() const;   // "signal 6 in kv::Store::run", "status 1"
};

// Pauses between starts: doubling up to a cap, back to the first after a good stretch.
class Backoff {
 public:
  // nullopt: it died too often in a row, a crash loop.
  std::optional<i64> next_us();
  void served(i64 us);  // how long it served before it died
  int in_a_row() const { return in_a_row_; }

  static constexpr i64 kFirstUs = 50'000;
  static constexpr i64 kCapUs = 5'000'000;
  static constexpr i64 kGoodUs = 10'000'000;  // served that long: the count begins anew
  static constexpr int kMax = 6;

 private:
  int in_a_row_ = 0;
};

class Service {
 public:
  struct Options {
    ServeSpec spec;
    std::string artifact;  // folder
    std::string data;      // folder that outlives restarts
    std::string log;       // file
    int port = 0;
    i64 ready_timeout_ms = 10'000;
  };
  // `sandbox` outlives the service.
  Service(const Sandbox& sandbox, Options options)
      : sandbox_(sandbox), options_(std::move(options)) {}
  ~Service();
  Service(const Service&) = delete;

  // Starts it and waits until the probe answers. Errors: kUnavailable when it does not in time or
  // ends at once.
  base::Status start();
  // Notices a death, keeps what it said, starts it again. The crash, if there was one that nobody
  // asked for. Errors: kUnavailable for a crash loop.
  base::Result<std::optional<Crash>> tend();
  void kill_hard();         // SIGKILL, as a fault
  void signal(int number);  // to the program itself
  void stop();
  bool running() { return process_ && !process_->poll(); }
  i64 ready_ms() const { return ready_ms_; }  // how long the last start took
  int restarts() const { return restarts_; }
  int port() const { return options_.port; }
  i64 rss_bytes() const { return process_ ? process_->rss_bytes() : 0; }
  i64 cpu_us() const;  // of the process that runs now

  // A client command in a sandbox that reaches the port; its output, both streams. `port`: where
  // {port} in its words points to, when not to the service itself.
  base::Result<base::ProcessResult> client(const std::vector<std::string>& argv,
                                           i64 timeout_ms = 20'000, int port = 0) const;
  // Stops it and starts it with a disk that can be made to misbehave (every file call then costs
  // more), or null: without again.
  base::Status restart_with(DiskFault* disk);
  // Sends raw bytes to the port and reads what comes back within `wait_ms`.
  base::Result<std::string> send(const std::string& bytes, i64 wait_ms) const;
  std::vector<std::string> expand(const std::vector<std::string>& argv, int port = 0) const;

 private:
  base::Status spawn();
  base::Status wait_ready();
  void follow();
  std::optional<Crash> reap();

  const Sandbox& sandbox_;
  Options options_;
  std::unique_ptr<CrashWatch> watch_;  // before process_: that one must be gone first
  std::optional<SandboxProcess> process_;
  std::string disk_socket_;  // of the DiskFault it runs with; "": none
  Backoff backoff_;
  i64 ready_us_ = 0;  // when it last became ready, on the monotonic clock
  i64 ready_ms_ = 0;
  int restarts_ = 0;
  bool killed_ = false;
};

}  // namespace team
