#include "team/core/merge_queue.h"

#include <gtest/gtest.h>

namespace team {
namespace {

TEST(MergeQueue, FindsTheFirstBreakingChangeOfEveryStack) {
  for (int height = 1; height <= 9; ++height) {
    for (int culprit = 0; culprit < height; ++culprit) {
      auto result =
          test_stack(height, [&](int at, bool) { return base::Result<bool>(at <= culprit); });
      ASSERT_TRUE(result.ok());
      EXPECT_EQ(result->culprit, culprit);
      EXPECT_EQ(result->good, culprit);
      EXPECT_LE(result->tests, 2 + 4) << "tip twice, then bisection";
    }
  }
}

TEST(MergeQueue, ATestThatPassesTheSecondTimeIsFlakyNotBroken) {
  auto result = test_stack(3, [](int, bool again) { return base::Result<bool>(again); });
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->flaky);
  EXPECT_EQ(result->good, 3);
  EXPECT_EQ(result->culprit, -1);
}

TEST(MergeQueue, AWholeGoodStackIsTestedOnce) {
  auto result = test_stack(5, [](int, bool) { return base::Result<bool>(true); });
  EXPECT_EQ(result->tests, 1);
  EXPECT_EQ(result->good, 5);
}

}  // namespace
}  // namespace team
