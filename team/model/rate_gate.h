// One gate per back end, shared by all workers: at most `limit()` calls in flight, the limit found
// by additive increase (one more after a full round of successes) and multiplicative decrease
// (halved on 429, 529 and overload), and nobody sends before the time a Retry-After named.
//
// The policy (RateLimit) is plain arithmetic over a given time; RateGate adds the waiting.
// RateLimit is single-threaded, RateGate thread-safe. Times are microseconds of the monotonic
// clock.
#pragma once

#include "base/clock.h"
#include "base/types.h"

#include <condition_variable>
#include <mutex>

namespace team {

class RateLimit {
 public:
  RateLimit(int first_limit, int limit_max) : limit_(first_limit), limit_max_(limit_max) {}
  // Microseconds to wait before a call may start: 0 now, negative when a running call must end
  // first.
  i64 wait_us(i64 now_us) const;
  void started() { ++in_flight_; }
  void succeeded();
  // `hold_us`: how long nobody may start, from Retry-After or the back-off.
  void throttled(i64 now_us, i64 hold_us);
  void failed();  // any other end: says nothing about load
  int limit() const { return limit_; }
  int in_flight() const { return in_flight_; }

 private:
  int limit_;
  int limit_max_;
  int in_flight_ = 0;
  int successes_ = 0;
  i64 hold_until_us_ = 0;
};

class RateGate {
 public:
  explicit RateGate(base::Clock& clock, int first_limit = 4, int limit_max = 32);
  // Blocks until a call may start. Returns the microseconds waited.
  i64 enter();
  void leave_ok();
  void leave_throttled(i64 hold_us);
  void leave_failed();
  int limit();

 private:
  base::Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  RateLimit state_;
};

}  // namespace team
