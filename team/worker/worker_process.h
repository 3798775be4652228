// A worker: a child process of the same program that does one piece of work, an attempt or a gate
// run, and holds it on a lease. Every frame it sends, heartbeats included, renews the lease. One
// that dies, hangs or talks nonsense has lost it: it is killed with everything it started, its
// channel is closed, and nothing it still meant to say can arrive. The caller gives the work to a
// fresh one.
//
// Errors of next(): kCancelled when the worker was lost (it is dead and buried by then); `why` says
// how. Single-threaded; several workers may be driven by several threads.
#pragma once

#include "base/process.h"
#include "base/result.h"
#include "base/types.h"
#include "team/worker/channel.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace team {

struct WorkerOptions {
  std::vector<std::string> argv;  // empty: there are no workers, work is done in this process
  std::string log;                // what workers write to standard error; "": ours
  i64 lease_ms = 20'000;          // a worker silent for this long has lost its lease
  // A seam for crash tests: called when a worker starts on something: "gate", or the kind of an
  // effect.
  std::function<void(const std::string& what, int pid)> on_work = {};
};

class WorkerProcess {
 public:
  // Starts it and sends what to do. `options` outlive it.
  static base::Result<std::unique_ptr<WorkerProcess>> start(const WorkerOptions& options,
                                                            base::Json work);
  ~WorkerProcess();

  base::Status send(const base::Json& head);
  // The next frame that is not a heartbeat.
  base::Result<Frame> next();
  int pid() const { return pid_; }
  const std::string& why() const { return why_; }

 private:
  WorkerProcess(const WorkerOptions& options, base::Process process, int fd);
  base::Error lost(std::string why);
  void bury();

  const WorkerOptions& options_;
  base::Process process_;
  Channel channel_;
  int pid_;
  std::string why_;
};

// The worker's side: beats from a thread until it goes, or until `busy_ms_max` have passed since
// the last work(): a worker that hangs must not look alive. The process ends when the orchestrator
// is gone.
class Heartbeat {
 public:
  Heartbeat(Channel& channel, i64 lease_ms, i64 busy_ms_max);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  void work();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace team
