// Samples the call stacks of programs that run in our sandboxes while it lives: every process
// below us that has a folder `marker` in its root (the product's mount) is looked at every
// `interval_us`, by its unwind tables. No tool has to be installed, no build flag set, no kernel
// counter allowed; what it needs is the right to trace its own descendants, which it says when
// missing. A look costs some tens of microseconds a thread and makes sleeping calls return early,
// so nothing is measured while a sampler runs.
//
// Thread-safe: one thread of its own; stop() may be called from the owner.
#pragma once

#include "team/perf/profile.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace team {

class Sampler {
 public:
  struct Options {
    int root_pid = 0;  // 0: ourselves
    std::string marker = "/product";
    i64 interval_us = 5'000;
    size_t stacks_max = 20'000;
  };
  explicit Sampler(Options options);
  Sampler() : Sampler(Options()) {}
  ~Sampler();
  Profile stop();

 private:
  void sample();
  std::vector<int> targets() const;

  Options options_;
  std::atomic<bool> stopping_{false};
  std::vector<CallStack> stacks_;
  std::string refused_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace team
