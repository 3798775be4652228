// A new version beside the current one, on the same requests at the same time: each request goes to
// both, in random order, and the pairs are judged by tests whose plan is fixed before. More errors:
// an exact sign test on the requests that only one of them answered. Slower: the signed-rank test
// on the log ratios of the pairs that both answered, with an interval that lies above `slower_min`
// as a whole. That is asked of all pairs together and of each kind of request alone, because one
// command that became slow hides among those that did not; the two questions halve the error rate,
// the kinds share their half. Looks share it, too. A canary that dies is worse without any test.
//
// Two processes of one program differ, too: in memory layout, in the core they run on. That is not
// the version's fault, so "slower" is believed only when it holds in each of `rounds` rounds, and
// before every round but the first both are started anew, in the other order.
//
// Worse means rolled back: the canary is stopped and the current version goes on.
// Single-threaded. Errors: only when the current version itself cannot be had.
#pragma once

#include "base/json.h"
#include "base/random.h"
#include "team/ops/service.h"
#include "team/ops/traffic.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace team {

struct CanaryPlan {
  std::vector<int> looks = {50, 100, 200};
  std::vector<f64> alphas = {0.002, 0.002, 0.002};  // of each of the two tests
  f64 slower_min = 0.10;                            // 0.10 = 10 % more time an answer
  int rounds = 5;                                   // that must all say "slower"
  u64 seed = 1;
};

struct CanaryVerdict {
  bool promote = false;
  std::string why;
  bool slower_only = false;  // worse in nothing but time: the kind of verdict that is tried again
  int pairs = 0;
  i64 only_canary_failed = 0, only_current_failed = 0;
  f64 p_errors = 1, p_slower = 1;
  f64 slower = 0, slower_low = 0, slower_high = 0;  // time an answer, relative: 0.2 = 20 % more
  std::optional<Crash> crash;                       // of the canary
};
base::Json to_json(const CanaryVerdict& verdict);

// The decision without the processes: feed it pairs, it says when there is a verdict.
class CanaryJudge {
 public:
  explicit CanaryJudge(CanaryPlan plan) : plan_(std::move(plan)) {}
  // `kind`: which request of the traffic it was, from 0.
  void add(const Answer& current, const Answer& canary, size_t kind = 0);
  std::optional<CanaryVerdict> verdict() const;  // at a look of the plan

 private:
  bool slower_in(const std::vector<f64>& log_ratios, f64 alpha, CanaryVerdict& out) const;

  CanaryPlan plan_;
  int pairs_ = 0;
  i64 only_canary_failed_ = 0, only_current_failed_ = 0;
  std::vector<f64> log_ratios_;            // ln(canary time / current time), of all pairs
  std::vector<std::vector<f64>> by_kind_;  // the same ones, by kind of request
};

// The rounds: the first verdict, or the last one when "slower" held in all of them.
base::Result<CanaryVerdict> judge_rounds(
    const CanaryPlan& plan, const std::function<base::Result<CanaryVerdict>(int round)>& round);

// P(X >= successes) for n fair coins.
f64 sign_test(i64 successes, i64 n);

// Both are started already. Stops the canary when the verdict is not to promote it.
base::Result<CanaryVerdict> try_canary(Service& current, Service& canary,
                                       const std::vector<Exchange>& traffic, const CanaryPlan& plan,
                                       const std::function<void(const std::string&)>& progress);

}  // namespace team
