#include "team/ops/canary.h"

#include "base/check.h"
#include "base/clock.h"
#include "team/perf/stats.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace team {
namespace {

constexpr int kWarmUp = 5;  // requests to each before anything counts
constexpr int kProgressEvery = 10;
constexpr i64 kNoticeUs = 20'000;  // a death takes a moment to reach us

std::string sentence(const char* format, f64 a, f64 b, int pairs) {
  char text[160];
  std::snprintf(text, sizeof text, format, a, b, pairs);
  return text;
}

}  // namespace

f64 sign_test(i64 successes, i64 n) {
  f64 tail = 0;
  for (i64 k = successes; k <= n; ++k) {
    const auto kd = static_cast<f64>(k);
    const auto nd = static_cast<f64>(n);
    tail += std::exp(std::lgamma(nd + 1) - std::lgamma(kd + 1) - std::lgamma(nd - kd + 1) -
                     nd * std::log(2.0));
  }
  return std::min(1.0, tail);
}

void CanaryJudge::add(const Answer& current, const Answer& canary, size_t kind) {
  ++pairs_;
  if (kind >= by_kind_.size()) by_kind_.resize(kind + 1);
  if (current.good && !canary.good) ++only_canary_failed_;
  if (!current.good && canary.good) ++only_current_failed_;
  if (!current.good || !canary.good) return;
  // A microsecond is the clock's grain.
  log_ratios_.push_back(std::log(static_cast<f64>(std::max<i64>(1, canary.us)) /
                                 static_cast<f64>(std::max<i64>(1, current.us))));
  by_kind_[kind].push_back(log_ratios_.back());
}

// Sets the verdict's measures when the ratios show more than chance.
bool CanaryJudge::slower_in(const std::vector<f64>& log_ratios, f64 alpha,
                            CanaryVerdict& out) const {
  if (log_ratios.empty()) return false;
  const f64 p = signed_rank(log_ratios).p_greater;
  if (p >= alpha) return false;
  const ShiftEstimate shift = hodges_lehmann(log_ratios, 0.95);
  if (std::exp(shift.low) - 1 < plan_.slower_min) return false;
  out.p_slower = p;
  out.slower = std::exp(shift.shift) - 1;
  out.slower_low = std::exp(shift.low) - 1;
  out.slower_high = std::exp(shift.high) - 1;
  out.slower_only = true;
  return true;
}

std::optional<CanaryVerdict> CanaryJudge::verdict() const {
  CHECK(!plan_.looks.empty() && plan_.looks.size() == plan_.alphas.size());
  const auto look = std::find(plan_.looks.begin(), plan_.looks.end(), pairs_);
  if (look == plan_.looks.end()) return std::nullopt;
  const f64 alpha = plan_.alphas[static_cast<size_t>(look - plan_.looks.begin())];
  CanaryVerdict out;
  out.pairs = pairs_;
  out.only_canary_failed = only_canary_failed_;
  out.only_current_failed = only_current_failed_;
  out.p_errors = sign_test(only_canary_failed_, only_canary_failed_ + only_current_failed_);
  if (!log_ratios_.empty()) {
    out.p_slower = signed_rank(log_ratios_).p_greater;
  }
  if (!log_ratios_.empty() && (out.p_slower < alpha || pairs_ == plan_.looks.back())) {
    const ShiftEstimate shift = hodges_lehmann(log_ratios_, 0.95);
    out.slower = std::exp(shift.shift) - 1;
    out.slower_low = std::exp(shift.low) - 1;
    out.slower_high = std::exp(shift.high) - 1;
  }
  if (out.p_errors < alpha) {
    out.why = "more errors: " + std::to_string(only_canary_failed_) +
              " requests failed on it alone, " + std::to_string(only_current_failed_) +
              " on the current version alone" +
              sentence(" (p %.2g < %.3g after %d pairs)", out.p_errors, alpha, pairs_);
    return out;
  }
  const char* slower = "slower: an answer takes %+.0f %% (at least %+.0f %%) after %d pairs";
  const size_t kinds = by_kind_.size();
  if (slower_in(log_ratios_, kinds > 1 ? alpha / 2 : alpha, out)) {
    out.why = sentence(slower, out.slower * 100, out.slower_low * 100, pairs_);
    return out;
  }
  for (size_t kind = 0; kinds > 1 && kind < kinds; ++kind) {
    if (!slower_in(by_kind_[kind], alpha / 2 / static_cast<f64>(kinds), out)) continue;
    out.why = sentence(slower, out.slower * 100, out.slower_low * 100, pairs_) + ", for request " +
              std::to_string(kind + 1) + " of " + std::to_string(kinds);
    return out;
  }
  if (pairs_ < plan_.looks.back()) return std::nullopt;
  out.promote = true;
  out.why = sentence("not shown to be worse: errors p %.2g, slower p %.2g after %d pairs",
                     out.p_errors, out.p_slower, pairs_);
  return out;
}

base::Json to_json(const CanaryVerdict& verdict) {
  base::Json json = base::Json::object({{"promote", verdict.promote},
                                        {"why", verdict.why},
                                        {"pairs", verdict.pairs},
                                        {"only_canary_failed", verdict.only_canary_failed},
                                        {"only_current_failed", verdict.only_current_failed},
                                        {"p_errors", verdict.p_errors},
                                        {"p_slower", verdict.p_slower},
                                        {"slower", verdict.slower},
                                        {"slower_low", verdict.slower_low},
                                        {"slower_high", verdict.slower_high}});
  if (verdict.crash) json.set("crash", verdict.crash->what());
  return json;
}

base::Result<CanaryVerdict> judge_rounds(
    const CanaryPlan& plan, const std::function<base::Result<CanaryVerdict>(int round)>& round) {
  for (int i = 0;; ++i) {
    CanaryVerdict verdict = TRY(round(i));
    if (!verdict.slower_only) return verdict;
    if (i + 1 < plan.rounds) continue;
    verdict.why += ", and so in " + std::to_string(plan.rounds) + " rounds of fresh starts";
    return verdict;
  }
}

namespace {

class PairedTraffic {
 public:
  PairedTraffic(Service& current, Service& canary, const std::vector<Exchange>& traffic,
                const CanaryPlan& plan)
      : current_(current), canary_(canary), traffic_(traffic), plan_(plan), rng_(plan.seed) {}

  base::Status start_anew(bool canary_first) {
    canary_.stop();
    current_.stop();
    if (canary_first) (void)canary_.start();  // one that does not come up fails all its requests
    TRY(current_.start());
    if (!canary_first) (void)canary_.start();
    return {};
  }

  base::Result<CanaryVerdict> round(const std::function<void(const std::string&)>& progress) {
    TrafficClient old_client(current_.port());
    TrafficClient new_client(canary_.port());
    CanaryJudge judge(plan_);
    for (int i = -kWarmUp;; ++i) {
      const size_t kind = static_cast<size_t>(i + kWarmUp) % traffic_.size();
      const Exchange& exchange = traffic_[kind];
      const bool new_first = rng_.chance(0.5);
      Answer from_new, from_old;
      if (new_first) from_new = new_client.ask(exchange);
      from_old = old_client.ask(exchange);
      if (!new_first) from_new = new_client.ask(exchange);
      if (!from_new.good) base::system_clock().sleep_us(kNoticeUs);
      if (!from_new.good && !canary_.running()) return death(std::max(0, i));
      if (!from_old.good) TRY(current_.tend());
      if (i < 0) continue;
      judge.add(from_old, from_new, kind);
      if (std::optional<CanaryVerdict> verdict = judge.verdict()) return std::move(*verdict);
      if (i % kProgressEvery == 0) {
        progress(std::to_string(i) + " pairs of requests to both versions");
      }
    }
  }

 private:
  // One look at how it died; whether it would come up again does not matter any more.
  CanaryVerdict death(int pairs) {
    CanaryVerdict verdict;
    verdict.pairs = pairs;
    auto crash = canary_.tend();
    if (crash.ok() && *crash) verdict.crash = **crash;
    verdict.why = "it died" + (verdict.crash ? " of " + verdict.crash->what() : std::string()) +
                  " after " + std::to_string(pairs) + " pairs of requests";
    return verdict;
  }

  Service& current_;
  Service& canary_;
  const std::vector<Exchange>& traffic_;
  const CanaryPlan& plan_;
  base::Rng rng_;
};

}  // namespace

base::Result<CanaryVerdict> try_canary(Service& current, Service& canary,
                                       const std::vector<Exchange>& traffic, const CanaryPlan& plan,
                                       const std::function<void(const std::string&)>& progress) {
  CHECK(!traffic.empty());
  PairedTraffic pairs(current, canary, traffic, plan);
  CanaryVerdict verdict = TRY(judge_rounds(plan, [&](int round) -> base::Result<CanaryVerdict> {
    if (round > 0) TRY(pairs.start_anew(round % 2 == 1));
    return pairs.round(progress);
  }));
  if (!verdict.promote) canary.stop();
  return verdict;
}

}  // namespace team
