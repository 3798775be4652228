#include "team/perf/stats.h"

#include "base/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace team {
namespace {

constexpr int kExactPairsMax = 50;

f64 normal_upper_tail(f64 z) {
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

// Ways to reach each rank sum with ranks 1..n, as probabilities.
std::vector<f64> exact_distribution(int n) {
  int sum_max = n * (n + 1) / 2;
  std::vector<f64> p(static_cast<size_t>(sum_max) + 1, 0.0);
  p[0] = 1;
  for (int rank = 1; rank <= n; ++rank) {
    for (int s = sum_max; s >= 0; --s) {
      f64 with = s >= rank ? p[static_cast<size_t>(s - rank)] : 0;
      p[static_cast<size_t>(s)] = 0.5 * (p[static_cast<size_t>(s)] + with);
    }
  }
  return p;
}

void exact_tails(SignedRank& result) {
  std::vector<f64> p = exact_distribution(result.pairs);
  auto w = static_cast<size_t>(result.w_plus);
  f64 below = 0;
  for (size_t s = 0; s < w; ++s) below += p[s];
  result.p_greater = std::max(0.0, 1 - below);
  result.p_less = std::min(1.0, below + p[w]);
}

void normal_tails(SignedRank& result, f64 tie_correction) {
  f64 n = result.pairs;
  f64 mean = n * (n + 1) / 4;
  f64 variance = n * (n + 1) * (2 * n + 1) / 24 - tie_correction / 48;
  if (variance <= 0) return;
  f64 sd = std::sqrt(variance);
  result.p_greater = normal_upper_tail((result.w_plus - mean - 0.5) / sd);
  result.p_less = normal_upper_tail((mean - result.w_plus - 0.5) / sd);
}

}  // namespace

SignedRank signed_rank(std::span<const f64> differences) {
  std::vector<f64> values;
  for (f64 d : differences) {
    if (d != 0) values.push_back(d);
  }
  SignedRank result;
  result.pairs = static_cast<int>(values.size());
  if (values.empty()) return result;
  std::sort(values.begin(), values.end(), [](f64 a, f64 b) { return std::fabs(a) < std::fabs(b); });
  bool ties = false;
  f64 tie_correction = 0;
  for (size_t i = 0; i < values.size();) {
    size_t j = i;
    while (j < values.size() && std::fabs(values[j]) == std::fabs(values[i])) ++j;
    f64 rank = (static_cast<f64>(i + 1) + static_cast<f64>(j)) / 2;
    auto count = static_cast<f64>(j - i);
    ties = ties || j - i > 1;
    tie_correction += count * count * count - count;
    for (size_t k = i; k < j; ++k) {
      if (values[k] > 0) result.w_plus += rank;
    }
    i = j;
  }
  if (!ties && result.pairs <= kExactPairsMax) {
    exact_tails(result);
  } else {
    normal_tails(result, tie_correction);
  }
  return result;
}

ShiftEstimate hodges_lehmann(std::span<const f64> differences, f64 confidence) {
  CHECK(!differences.empty() && confidence > 0 && confidence < 1);
  std::vector<f64> walsh;
  walsh.reserve(differences.size() * (differences.size() + 1) / 2);
  for (size_t i = 0; i < differences.size(); ++i) {
    for (size_t j = i; j < differences.size(); ++j) {
      walsh.push_back((differences[i] + differences[j]) / 2);
    }
  }
  std::sort(walsh.begin(), walsh.end());
  // Normal approximation of the rank of the interval's ends.
  auto n = static_cast<f64>(differences.size());
  f64 z = 0;  // upper quantile of the normal distribution, by bisection
  f64 tail = (1 - confidence) / 2;
  for (f64 low = 0, high = 10; high - low > 1e-9;) {
    z = (low + high) / 2;
    (normal_upper_tail(z) > tail ? low : high) = z;
  }
  f64 k = n * (n + 1) / 4 - z * std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  auto cut = static_cast<size_t>(std::max(0.0, std::floor(k)));
  cut = std::min(cut, (walsh.size() - 1) / 2);
  return {median(walsh), walsh[cut], walsh[walsh.size() - 1 - cut]};
}

f64 median(std::span<const f64> values) {
  CHECK(!values.empty());
  std::vector<f64> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

f64 quantile(std::span<const f64> values, f64 q) {
  CHECK(!values.empty() && q >= 0 && q <= 1);
  std::vector<f64> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  auto rank = static_cast<size_t>(std::ceil(q * static_cast<f64>(sorted.size())));
  return sorted[rank == 0 ? 0 : rank - 1];
}

const char* name_of(PerfVerdict verdict) {
  switch (verdict) {
    case PerfVerdict::kKeep:
      return "keep";
    case PerfVerdict::kReject:
      return "reject";
  }
  return "?";
}

std::optional<PerfDecision> decide(const SamplePlan& plan, std::span<const f64> log_ratios) {
  CHECK(!plan.looks.empty() && plan.looks.size() == plan.alphas.size());
  auto pairs = static_cast<int>(log_ratios.size());
  auto look = std::find(plan.looks.begin(), plan.looks.end(), pairs);
  if (look == plan.looks.end()) return std::nullopt;
  auto index = static_cast<size_t>(look - plan.looks.begin());
  bool last = index + 1 == plan.looks.size();
  f64 alpha = plan.alphas[index];
  SignedRank test = signed_rank(log_ratios);
  ShiftEstimate estimate = hodges_lehmann(log_ratios, 0.95);
  PerfDecision decision;
  decision.pairs = pairs;
  decision.p = test.p_greater;
  decision.gain = std::exp(estimate.shift) - 1;
  decision.gain_low = std::exp(estimate.low) - 1;
  decision.gain_high = std::exp(estimate.high) - 1;
  char text[160];
  if (test.p_greater < alpha && decision.gain >= plan.effect_min) {
    decision.verdict = PerfVerdict::kKeep;
    std::snprintf(text, sizeof text, "faster: p %.2g < %.3g after %d pairs", test.p_greater, alpha,
                  pairs);
  } else if (test.p_less < alpha) {
    decision.verdict = PerfVerdict::kReject;
    std::snprintf(text, sizeof text, "slower: p %.2g < %.3g after %d pairs", test.p_less, alpha,
                  pairs);
  } else if (decision.gain_high < plan.effect_min) {
    decision.verdict = PerfVerdict::kReject;
    std::snprintf(text, sizeof text, "no gain of %.0f %% or more fits the interval after %d pairs",
                  plan.effect_min * 100, pairs);
  } else if (last) {
    decision.verdict = PerfVerdict::kReject;
    std::snprintf(text, sizeof text, "not shown to be faster: p %.2g after %d pairs",
                  test.p_greater, pairs);
  } else {
    return std::nullopt;
  }
  decision.why = text;
  return decision;
}

}  // namespace team
