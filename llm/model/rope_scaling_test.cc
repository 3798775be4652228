#include "llm/model/rope_scaling.h"

#include <gtest/gtest.h>

#include <cmath>

namespace llm {
namespace {

constexpr i32 kDim = 64;
constexpr f64 kBase = 10000;

TEST(RopeScaling, LinearSlowsEveryPairAndDivisorsTheirOwn) {
  const auto plain = rope_frequencies(kDim, kBase);
  ASSERT_EQ(plain.size(), 32u);
  EXPECT_EQ(plain[0], 1);
  RopeScaling linear;
  linear.kind = RopeScaling::Kind::kLinear;
  linear.factor = 4;
  const auto slowed = rope_frequencies(kDim, kBase, linear);
  RopeScaling divided;
  divided.divisors.assign(32, 1);
  divided.divisors[31] = 8;
  const auto own = rope_frequencies(kDim, kBase, divided);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_DOUBLE_EQ(slowed[i], plain[i] / 4);
    EXPECT_DOUBLE_EQ(own[i], i == 31 ? plain[i] / 8 : plain[i]);
  }
}

// Pairs that turn more than 32 times in the original context stay, those that turn less than once
// slow down by the factor, and what lies between fades from one to the other.
TEST(RopeScaling, YarnKeepsTheFastPairsAndSlowsTheSlowOnes) {
  RopeScaling yarn;
  yarn.kind = RopeScaling::Kind::kYarn;
  yarn.factor = 8;
  yarn.original_context = 2048;
  const auto plain = rope_frequencies(kDim, kBase);
  const auto scaled = rope_frequencies(kDim, kBase, yarn);
  i32 between = 0;
  for (size_t i = 0; i < 32; ++i) {
    const f64 turns = plain[i] * yarn.original_context / (2 * 3.14159265358979);
    const f64 kept = scaled[i] / plain[i];
    if (turns > 32 * 1.4) {
      EXPECT_DOUBLE_EQ(kept, 1) << i;
    } else if (turns < 1 / 1.4) {
      EXPECT_DOUBLE_EQ(kept, 1.0 / 8) << i;
    } else {
      between += kept < 1 && kept > 1.0 / 8 ? 1 : 0;
    }
    if (i > 0) EXPECT_LE(kept, scaled[i - 1] / plain[i - 1]);
  }
  EXPECT_GT(between, 5);
}

}  // namespace
}  // namespace llm
