#include "base/random.h"

#include <gtest/gtest.h>

#include <array>

namespace base {
namespace {

TEST(Rng, OneSeedReproducesOneRun) {
  Rng a(42), b(42), c(43);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    u64 value = a.next();
    EXPECT_EQ(value, b.next());
    differs |= value != c.next();
  }
  EXPECT_TRUE(differs);
}

TEST(Rng, BelowIsEvenWithinFivePercent) {
  Rng rng(7);
  std::array<int, 10> counts{};
  for (int i = 0; i < 100'000; ++i) ++counts[rng.below(10)];
  for (int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Rng, BetweenReachesBothEnds) {
  Rng rng(3);
  bool low = false, high = false;
  for (int i = 0; i < 1'000; ++i) {
    i64 value = rng.between(-2, 2);
    ASSERT_GE(value, -2);
    ASSERT_LE(value, 2);
    low |= value == -2;
    high |= value == 2;
  }
  EXPECT_TRUE(low && high);
}

TEST(Rng, UnitStaysBelowOne) {
  Rng rng(9);
  for (int i = 0; i < 10'000; ++i) {
    f64 value = rng.unit();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
  }
}

}  // namespace
}  // namespace base
