// Time as a seam: the shipped code asks a Clock, tests and simulations hand in a ManualClock.
#pragma once

#include "base/types.h"

namespace base {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Microseconds since 1970-01-01 UTC. May jump.
  virtual i64 wall_us() = 0;
  // Microseconds since some fixed point; never goes back.
  virtual i64 monotonic_us() = 0;
  virtual void sleep_us(i64 duration_us) = 0;
};

// The machine's clock.
Clock& system_clock();

// A clock that moves only when told to; sleeping moves it. Single-threaded.
class ManualClock : public Clock {
 public:
  explicit ManualClock(i64 start_us = 1'700'000'000'000'000) : wall_us_(start_us) {}
  i64 wall_us() override { return wall_us_; }
  i64 monotonic_us() override { return monotonic_us_; }
  void sleep_us(i64 duration_us) override { advance_us(duration_us); }
  void advance_us(i64 duration_us) {
    wall_us_ += duration_us;
    monotonic_us_ += duration_us;
  }
  void jump_wall_us(i64 by_us) { wall_us_ += by_us; }

 private:
  i64 wall_us_;
  i64 monotonic_us_ = 0;
};

}  // namespace base
