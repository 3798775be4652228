// Lets the caller go first: a serving thread that counts as idle while the machine is quiet.
//
// The scheduler wakes a caller on another processor when the one it slept on is busy, and the
// thread that sends its reply keeps that one busy. On a quiet machine the other processor is
// halted, and waking it costs a virtual machine far more than the call: 190 us a call against 40. A
// thread under SCHED_IDLE does not count as busy, so the caller stays where it is, and a call costs
// two switches on one processor.
//
// Such a thread starves as soon as anything else wants its processor. Hence it yields only while
// nothing else can run on the machine, and a guard looks every millisecond: requests that wait
// while none is served, or no request for a while, end it. No request, no cost: the guard sleeps
// then.
//
// yield() is for the serving thread alone, which must outlive the object.
#pragma once

#include "base/types.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace fs::fuse {

class Yielding {
 public:
  // `device`: readable while a request waits. `served`: grows with each request.
  Yielding(int device, const std::atomic<u64>& served);
  ~Yielding();
  Yielding(const Yielding&) = delete;
  Yielding& operator=(const Yielding&) = delete;

  // Called now and then by the serving thread: go on (or begin) yielding, or stop it.
  void yield(bool on);
  // Moves the serving thread to a processor, and the guard with it: woken on another one, the guard
  // would draw the caller there. False where it is not allowed (cpusets).
  bool stay_on(int processor);
  bool is_yielding() const { return yielding_.load(std::memory_order_relaxed); }

 private:
  static constexpr i64 kLookUs = 5000;  // seldom: each look may make the scheduler move the caller
  static constexpr i64 kRestUs = 100'000;  // after requests waited in vain
  static constexpr int kQuietLooks = 4;    // without a request: the burst is over

  void guard();
  void end();

  const int device_;
  const std::atomic<u64>& served_;
  const pid_t thread_;
  std::atomic<bool> yielding_{false};
  std::atomic<i64> not_before_us_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread guard_;  // not running where this process may not return from SCHED_IDLE
};

// Threads of this machine that could run now, the asking one among them; -1 when it cannot be told.
int runnable_threads();

}  // namespace fs::fuse
