#include "base/clock.h"

#include <time.h>

namespace base {
namespace {

i64 read_clock_us(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return i64{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

class SystemClock : public Clock {
 public:
  i64 wall_us() override { return read_clock_us(CLOCK_REALTIME); }
  i64 monotonic_us() override { return read_clock_us(CLOCK_MONOTONIC); }
  void sleep_us(i64 duration_us) override {
    timespec left{duration_us / 1'000'000, (duration_us % 1'000'000) * 1'000};
    while (nanosleep(&left, &left) != 0) {
    }
  }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace base
