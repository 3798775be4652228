// The product under supervision: a sealed artefact in its own sandbox on the host's loopback,
// probed until it answers, started again with growing pauses when it dies, its last words kept.
// Single-threaded: tend() does the work that is due.
#pragma once

#include "base/result.h"
#include "team/sandbox/sandbox.h"
#include "team/stages/documents.h"

#include <optional>
#include <string>
#include <vector>

namespace team {

struct Crash {
  int signal = 0;
  int exit_code = 0;
  std::string last_words;  // end of its standard error
};

class Service {
 public:
  struct Options {
    ProductInterface interface;
    std::string artifact;  // folder
    std::string data;      // folder that outlives restarts
    std::string log;       // file
    int port = 0;
    i64 ready_timeout_ms = 10'000;
    int restarts_max = 5;  // without a good probe in between: a crash loop
  };
  // `sandbox` outlives the service.
  Service(const Sandbox& sandbox, Options options)
      : sandbox_(sandbox), options_(std::move(options)) {}
  ~Service();

  // Starts it and waits until the probe answers. Errors: kUnavailable when it does not in time or
  // keeps dying.
  base::Status start();
  // Notices a death, keeps what it said, starts it again. The crash, if there was one.
  base::Result<std::optional<Crash>> tend();
  void kill_hard();  // SIGKILL, as a fault
  void stop();
  i64 ready_ms() const { return ready_ms_; }  // how long the last start took

  // A client command in a sandbox that reaches the port; its output, both streams.
  base::Result<base::ProcessResult> client(const std::vector<std::string>& argv,
                                           i64 timeout_ms = 20'000) const;
  // Sends raw bytes to the port and reads what comes back within `wait_ms`.
  base::Result<std::string> send(const std::string& bytes, i64 wait_ms) const;
  std::vector<std::string> expand(const std::vector<std::string>& argv) const;

 private:
  base::Status spawn();
  base::Status wait_ready();
  base::Result<std::optional<Crash>> reap();

  const Sandbox& sandbox_;
  Options options_;
  std::optional<SandboxProcess> process_;
  int restarts_ = 0;
  i64 ready_ms_ = 0;
  bool killed_ = false;
};

}  // namespace team
