#include "team/perf/loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <deque>
#include <map>

namespace team {
namespace {

using base::Json;
using base::Result;

f64 gaussian(base::Rng& rng) {
  return std::sqrt(-2 * std::log(1 - rng.unit())) * std::cos(2 * 3.14159265358979 * rng.unit());
}

// A program whose speed is a number, on a machine with the noise that was measured on a small
// virtual one: a spread of the log ratios of pairs of 9.5 %, and a speed that drifts.
class SimulatedHost : public PerfHost {
 public:
  explicit SimulatedHost(u64 seed) : rng_(seed) {}

  std::deque<Hypothesis> hypotheses;
  std::map<std::string, f64> speeds = {{"", 1000.0}};
  std::map<std::string, std::string> broken;  // candidate to what its gates say
  std::vector<std::string> shown;             // what the last author was told
  std::vector<std::string> events;
  Json last;
  int measured = 0;

  Result<Json> recorded(const std::string&, const Json&,
                        const std::function<Result<Json>()>& act) override {
    return act();
  }
  base::Status event(const std::string& type, Json body) override {
    events.push_back(type + " " + body["id"].as_string());
    last = std::move(body);
    return {};
  }
  void progress(const std::string&, const std::string&) override {}
  Result<Profile> profile(const std::string&) override {
    std::vector<CallStack> stacks(999, CallStack{"sync", "main"});
    stacks.push_back({"parse", "main"});
    return fold(stacks);
  }
  Result<Hypothesis> ask(const std::string&, const Profile&,
                         const std::vector<std::string>& tried) override {
    shown = tried;
    Hypothesis next = hypotheses.front();
    hypotheses.pop_front();
    return next;
  }
  Result<std::string> check(const std::string&, const std::string& candidate) override {
    return broken[candidate];
  }
  Result<f64> measure(const std::string& candidate) override {
    ++measured;
    drift_ += 0.01 * gaussian(rng_);
    return speeds[candidate] * std::exp(drift_ + 0.067 * gaussian(rng_));
  }
  base::Status keep(const std::string&, const std::string& candidate) override {
    speeds[""] = speeds[candidate];
    return {};
  }

 private:
  base::Rng rng_;
  f64 drift_ = 0;
};

// The share of whole loops that keep a candidate of that gain.
f64 kept_share(f64 gain, int loops, const PerfPlan& plan) {
  int kept = 0;
  for (int i = 0; i < loops; ++i) {
    SimulatedHost host(static_cast<u64>(i) + 1);
    host.hypotheses = {{"sync", "an idea", "", gain, "c"}};
    host.speeds["c"] = 1000 * (1 + gain);
    PerfPlan one = plan;
    one.experiments_max = 1;
    one.seed = static_cast<u64>(i) * 77 + 1;
    one.aa_alpha = 0;  // the check of the machine has a test of its own
    EXPECT_TRUE(run_experiments(host, one).ok());
    kept += host.events.back() == "experiment.kept X1";
  }
  const f64 share = static_cast<f64>(kept) / loops;
  std::printf("a change of %+.0f %% is kept in %.2f %% of %d simulated experiments\n", gain * 100,
              share * 100, loops);
  return share;
}

TEST(PerfLoop, KeepsAProgramThatIsNotFasterInUnderOnePercent) {
  EXPECT_LT(kept_share(0, 4000, default_perf_plan()), 0.01);
}

TEST(PerfLoop, FindsAPlantedGainOfFivePercent) {
  PerfPlan plan = default_perf_plan();
  plan.sample = SamplePlan();  // 20, 40, 80 pairs: what five percent need under this noise
  EXPECT_GT(kept_share(0.05, 400, plan), 0.95);
}

TEST(PerfLoop, FindsAGainOfFifteenPercentWithThirtyPairs) {
  EXPECT_GT(kept_share(0.15, 400, default_perf_plan()), 0.95);
}

TEST(PerfLoop, ASlowerProgramIsNeverKept) {
  EXPECT_EQ(kept_share(-0.05, 400, default_perf_plan()), 0);
}

TEST(PerfLoop, TheNextAuthorIsToldWhatWasTriedAndWhatBecameOfIt) {
  SimulatedHost host(5);
  host.hypotheses = {{"sync", "does not build", "", 0.5, "a"},
                     {"sync", "group commit", "", 3.0, "b"},
                     {"sync", "nothing", "", 3.0, "c"}};
  host.broken["a"] = "it breaks gate kill9 (E7)";
  host.speeds["b"] = 4000;
  host.speeds["c"] = 4000;
  PerfPlan plan = default_perf_plan();
  plan.experiments_max = 3;
  plan.aa_alpha = 0;
  ASSERT_TRUE(run_experiments(host, plan).ok());
  ASSERT_EQ(host.shown.size(), 2u);
  EXPECT_EQ(host.shown[0], "does not build: rejected, it breaks gate kill9 (E7)");
  EXPECT_EQ(host.shown[1].substr(0, 18), "group commit: kept");
}

TEST(PerfLoop, AnIdeaThatWasRejectedIsNotMeasuredAgain) {
  SimulatedHost host(5);
  host.hypotheses = {{"sync", "A bigger buffer", "", 0.5, "a"},
                     {"sync", "a bigger buffer!", "", 0.5, "a"}};
  host.broken["a"] = "it does not build";
  PerfPlan plan = default_perf_plan();
  plan.aa_alpha = 0;
  ASSERT_TRUE(run_experiments(host, plan).ok());
  EXPECT_EQ(host.events.back(), "experiment.rejected X2");
  EXPECT_EQ(host.last["why"].as_string(), "it was tried before");
}

TEST(PerfLoop, WhatCannotPayByAmdahlsLawIsNotEvenBuilt) {
  SimulatedHost host(5);
  host.hypotheses = {{"parse", "a faster parser", "parse", 0.5, "a"}};
  PerfPlan plan = default_perf_plan();
  plan.experiments_max = 1;
  plan.aa_alpha = 0;
  ASSERT_TRUE(run_experiments(host, plan).ok());
  EXPECT_EQ(host.measured, 2 * plan.aa_pairs);
  EXPECT_EQ(host.last["why"].as_string(),
            "parse has 0.1 % of the time: at most +0.1 % could be gained");
}

// The check fails by luck at its own rate and no more.
TEST(PerfLoop, AFitMachineIsSaidToBeFit) {
  int unfit = 0;
  for (u64 seed = 1; seed <= 1000; ++seed) {
    SimulatedHost host(seed);
    PerfPlan plan = default_perf_plan();
    plan.experiments_max = 0;
    plan.seed = seed;
    ASSERT_TRUE(run_experiments(host, plan).ok());
    unfit += !host.last["fit"].as_bool();
  }
  std::printf("%d of 1000 quiet machines were called unfit\n", unfit);
  EXPECT_LE(unfit, 20);  // 10 expected; three standard deviations above
}

}  // namespace
}  // namespace team
