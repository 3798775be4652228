// The statistics that decide whether a change is kept: paired log ratios, Wilcoxon's signed-rank
// test (exact up to 50 pairs without ties, normal approximation with tie correction otherwise) and
// the Hodges-Lehmann estimate with its interval. A sample plan is fixed before measuring; looks
// share the error rate (alpha spending), so looking twice does not buy luck. Thread-safe: pure
// functions.
#pragma once

#include "base/types.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace team {

struct SignedRank {
  int pairs = 0;      // without zero differences
  f64 w_plus = 0;     // sum of ranks of positive differences
  f64 p_greater = 1;  // P(W >= w_plus) when nothing differs: small means "differences above zero"
  f64 p_less = 1;
};
SignedRank signed_rank(std::span<const f64> differences);

struct ShiftEstimate {
  f64 shift = 0;  // Hodges-Lehmann: median of the Walsh averages
  f64 low = 0;    // interval at `confidence`
  f64 high = 0;
};
// REQUIRES: differences not empty, 0 < confidence < 1.
ShiftEstimate hodges_lehmann(std::span<const f64> differences, f64 confidence);

f64 median(std::span<const f64> values);           // REQUIRES: not empty
f64 quantile(std::span<const f64> values, f64 q);  // nearest rank, 0 <= q <= 1

// A plan of looks: after looks[i] pairs, test at alphas[i]. alphas sum to at most the total.
struct SamplePlan {
  std::vector<int> looks = {20, 40, 80};
  std::vector<f64> alphas = {0.004, 0.003, 0.003};
  f64 effect_min = 0.01;  // keep only when the estimated gain is at least this
};

enum class PerfVerdict { kKeep, kReject };
const char* name_of(PerfVerdict verdict);

struct PerfDecision {
  PerfVerdict verdict = PerfVerdict::kReject;
  int pairs = 0;
  f64 p = 1;
  f64 gain = 0, gain_low = 0, gain_high = 0;  // 0.05 = 5 % faster
  std::string why;
};
// `log_ratios[i]` = ln(baseline time / candidate time) of pair i: above zero means faster. Decides
// at a look of the plan; nullopt: between looks or not decided yet, measure on.
std::optional<PerfDecision> decide(const SamplePlan& plan, std::span<const f64> log_ratios);

}  // namespace team
