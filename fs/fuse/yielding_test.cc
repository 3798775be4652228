#include "fs/fuse/yielding.h"

#include "base/clock.h"
#include "fs/fuse/caller_affinity.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

namespace fs::fuse {
namespace {

constexpr i64 kPatienceUs = 5'000'000;

class YieldingTest : public testing::Test {
 protected:
  YieldingTest() { EXPECT_EQ(::pipe(device_), 0); }
  ~YieldingTest() override {
    ::close(device_[0]);
    ::close(device_[1]);
  }

  // Until the guard has ended it; false when it never does.
  bool ends(const Yielding& yielding) {
    const i64 until = base::system_clock().monotonic_us() + kPatienceUs;
    while (yielding.is_yielding()) {
      if (base::system_clock().monotonic_us() > until) return false;
      base::system_clock().sleep_us(500);
    }
    return true;
  }

  int device_[2];
  std::atomic<u64> served_{0};
};

TEST_F(YieldingTest, TheThreadIsIdleWhileItYieldsAndOrdinaryAfterwards) {
  Yielding yielding(device_[0], served_);
  yielding.yield(true);
  if (!yielding.is_yielding()) GTEST_SKIP() << "this process may not return from SCHED_IDLE";
  EXPECT_EQ(::sched_getscheduler(0), SCHED_IDLE);
  yielding.yield(false);
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

TEST_F(YieldingTest, WithoutRequestsTheGuardEndsIt) {
  Yielding yielding(device_[0], served_);
  yielding.yield(true);
  ASSERT_TRUE(ends(yielding));
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
  yielding.yield(true);  // a burst that ended is no reason to rest
  if (::sched_getscheduler(0) == SCHED_OTHER) GTEST_SKIP() << "this process may not yield";
  EXPECT_TRUE(yielding.is_yielding());
}

TEST_F(YieldingTest, AThreadThatStarvesWhileRequestsWaitIsLifted) {
  const int processor = ::sched_getcpu();
  Yielding yielding(device_[0], served_);
  ASSERT_TRUE(yielding.stay_on(processor));
  std::atomic<bool> stop{false};
  std::thread hog([&] {  // inherits the processor
    while (!stop.load()) {
    }
  });
  ASSERT_EQ(::write(device_[1], "x", 1), 1);
  yielding.yield(true);
  const i64 until = base::system_clock().monotonic_us() + kPatienceUs;
  while (yielding.is_yielding() && base::system_clock().monotonic_us() < until) {
  }
  stop.store(true);
  hog.join();
  EXPECT_FALSE(yielding.is_yielding());
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

TEST_F(YieldingTest, TheEndOfTheObjectEndsIt) {
  {
    Yielding yielding(device_[0], served_);
    yielding.yield(true);
  }
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

TEST_F(YieldingTest, TheMachineSaysHowManyThreadsCanRun) {
  EXPECT_GE(runnable_threads(), 1);
}

TEST_F(YieldingTest, TheProcessorOfAThreadIsFound) {
  EXPECT_GE(processor_of(static_cast<u32>(::getpid())), 0);
  EXPECT_EQ(processor_of(0x7fffffff), -1);
}

}  // namespace
}  // namespace fs::fuse
