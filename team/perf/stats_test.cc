#include "team/perf/stats.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

namespace team {
namespace {

f64 gaussian(base::Rng& rng) {
  return std::sqrt(-2 * std::log(1 - rng.unit())) * std::cos(2 * 3.14159265358979 * rng.unit());
}

// The share of simulated sessions that keep a change of `gain` under 9.5 % noise.
f64 kept_share(f64 gain, int sessions, u64 seed) {
  base::Rng rng(seed);
  SamplePlan plan;
  int kept = 0;
  for (int s = 0; s < sessions; ++s) {
    std::vector<f64> ratios;
    while (true) {
      ratios.push_back(std::log(1 + gain) + 0.095 * gaussian(rng));
      auto decision = decide(plan, ratios);
      if (!decision) continue;
      kept += decision->verdict == PerfVerdict::kKeep;
      break;
    }
  }
  const f64 share = static_cast<f64>(kept) / sessions;
  std::printf("a change of %+.0f %% is kept in %.2f %% of %d simulated sessions\n", gain * 100,
              share * 100, sessions);
  return share;
}

// Values from the published table of the signed-rank distribution: n = 5, W = 15 is 1/32.
TEST(SignedRank, IsExactForSmallSamples) {
  std::vector<f64> all_up = {1, 2, 3, 4, 5};
  EXPECT_DOUBLE_EQ(signed_rank(all_up).p_greater, 1.0 / 32);
  std::vector<f64> mixed = {-1, 2, 3, 4, 5};
  EXPECT_DOUBLE_EQ(signed_rank(mixed).p_greater, 2.0 / 32);
  EXPECT_DOUBLE_EQ(signed_rank(mixed).w_plus, 14);
}

TEST(SignedRank, IgnoresZerosAndSharesRanksOfTies) {
  std::vector<f64> values = {0, 1, -1, 2, 2};
  SignedRank result = signed_rank(values);
  EXPECT_EQ(result.pairs, 4);
  EXPECT_DOUBLE_EQ(result.w_plus, 1.5 + 3.5 + 3.5);
}

// The definition itself as the oracle: flip signs at random and count how often the sum is as
// large.
TEST(SignedRank, AgreesWithRandomSignFlips) {
  base::Rng rng(7);
  for (bool ties : {false, true}) {
    std::vector<f64> values;
    for (int i = 0; i < 40; ++i) {
      f64 value = gaussian(rng) + 0.2;
      values.push_back(ties ? std::round(value * 4) / 4 : value);
    }
    SignedRank result = signed_rank(values);
    int as_large = 0;
    constexpr int kFlips = 20'000;
    for (int flip = 0; flip < kFlips; ++flip) {
      std::vector<f64> flipped = values;
      for (f64& value : flipped) value = rng.chance(0.5) ? value : -value;
      as_large += signed_rank(flipped).w_plus >= result.w_plus;
    }
    EXPECT_NEAR(result.p_greater, static_cast<f64>(as_large) / kFlips, 0.01) << ties;
  }
}

TEST(HodgesLehmann, FindsAShiftAndItsIntervalCoversIt) {
  base::Rng rng(11);
  int covered = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<f64> values;
    for (int i = 0; i < 30; ++i) values.push_back(0.2 + gaussian(rng));
    ShiftEstimate estimate = hodges_lehmann(values, 0.95);
    covered += estimate.low <= 0.2 && 0.2 <= estimate.high;
  }
  EXPECT_GE(covered, 368);  // 95 % of 400 is 380; three standard deviations below
}

TEST(PerfDecision, KeepsAChangeThatDoesNothingInUnderOnePercent) {
  EXPECT_LT(kept_share(0, 4000, 1), 0.01);
}

TEST(PerfDecision, FindsAPlantedGainOfFivePercent) {
  EXPECT_GT(kept_share(0.05, 400, 2), 0.95);
}

TEST(PerfDecision, RejectsASlowdown) {
  EXPECT_EQ(kept_share(-0.05, 400, 3), 0);
}

TEST(PerfDecision, DecidesOnlyAtALookOfThePlan) {
  std::vector<f64> ratios(19, 0.5);
  EXPECT_FALSE(decide(SamplePlan{}, ratios).has_value());
}

}  // namespace
}  // namespace team
