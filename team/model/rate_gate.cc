#include "team/model/rate_gate.h"

#include <algorithm>
#include <chrono>

namespace team {

i64 RateLimit::wait_us(i64 now_us) const {
  if (hold_until_us_ > now_us) return hold_until_us_ - now_us;
  return in_flight_ < limit_ ? 0 : -1;
}

void RateLimit::succeeded() {
  --in_flight_;
  if (++successes_ < limit_) return;
  successes_ = 0;
  limit_ = std::min(limit_ + 1, limit_max_);
}

void RateLimit::throttled(i64 now_us, i64 hold_us) {
  --in_flight_;
  successes_ = 0;
  limit_ = std::max(1, limit_ / 2);
  hold_until_us_ = std::max(hold_until_us_, now_us + hold_us);
}

void RateLimit::failed() {
  --in_flight_;
}

RateGate::RateGate(base::Clock& clock, int first_limit, int limit_max)
    : clock_(clock), state_(first_limit, limit_max) {}

i64 RateGate::enter() {
  const i64 begin_us = clock_.monotonic_us();
  std::unique_lock lock(mutex_);
  for (;;) {
    const i64 wait_us = state_.wait_us(clock_.monotonic_us());
    if (wait_us == 0) break;
    if (wait_us < 0) {
      changed_.wait(lock);
    } else {
      lock.unlock();
      clock_.sleep_us(wait_us);
      lock.lock();
    }
  }
  state_.started();
  return clock_.monotonic_us() - begin_us;
}

void RateGate::leave_ok() {
  std::lock_guard lock(mutex_);
  state_.succeeded();
  changed_.notify_all();
}

void RateGate::leave_throttled(i64 hold_us) {
  std::lock_guard lock(mutex_);
  state_.throttled(clock_.monotonic_us(), hold_us);
  changed_.notify_all();
}

void RateGate::leave_failed() {
  std::lock_guard lock(mutex_);
  state_.failed();
  changed_.notify_all();
}

int RateGate::limit() {
  std::lock_guard lock(mutex_);
  return state_.limit();
}

}  // namespace team
