#include "team/ops/canary.h"

#include "team/ops/test_server.h"

#include <cmath>
#include <csignal>
#include <cstdio>

namespace team {
namespace {

f64 gaussian(base::Rng& rng) {
  return std::sqrt(-2 * std::log(1 - rng.unit())) * std::cos(2 * 3.14159265358979 * rng.unit());
}

// Two processes of one program differ by that much (spread of the log) on a busy small machine.
constexpr f64 kInstanceSpread = 0.2;

Answer simulated(base::Rng& rng, f64 slower, f64 errors) {
  Answer answer;
  answer.good = !rng.chance(errors);
  answer.us = static_cast<i64>(400 * (1 + slower) * std::exp(0.4 * gaussian(rng)));
  return answer;
}

// `kinds` of request in turn; only the first of them is slower.
f64 rolled_back_share(f64 slower, f64 errors, int rollouts, size_t kinds = 1) {
  int rolled_back = 0;
  base::Rng rng(17);
  for (int i = 0; i < rollouts; ++i) {
    auto round = [&](int) -> base::Result<CanaryVerdict> {
      CanaryJudge judge{CanaryPlan()};
      const f64 instance = std::exp(kInstanceSpread * gaussian(rng)) - 1;
      std::optional<CanaryVerdict> verdict;
      for (size_t i = 0; !verdict; ++i) {
        const f64 more = (1 + (i % kinds == 0 ? slower : 0)) * (1 + instance) - 1;
        judge.add(simulated(rng, 0, 0.01), simulated(rng, more, 0.01 + errors), i % kinds);
        verdict = judge.verdict();
      }
      return std::move(*verdict);
    };
    auto verdict = judge_rounds(CanaryPlan(), round);
    rolled_back += !verdict->promote;
  }
  const f64 share = static_cast<f64>(rolled_back) / rollouts;
  std::printf(
      "a canary %+.0f %% slower in 1 of %zu kinds with %.0f %% more errors: %.1f %% of %d back\n",
      slower * 100, kinds, errors * 100, share * 100, rollouts);
  return share;
}

TEST(CanaryJudge, RollsAnEqualVersionBackInUnderOnePercentHoweverInstancesDiffer) {
  EXPECT_LT(rolled_back_share(0, 0, 600), 0.01);
  EXPECT_LT(rolled_back_share(0, 0, 600, 4), 0.01);
}

TEST(CanaryJudge, FindsWorseLatencyAndWorseErrors) {
  EXPECT_GT(rolled_back_share(1.0, 0, 200), 0.95);
  EXPECT_GT(rolled_back_share(0, 0.15, 200), 0.95);
}

TEST(CanaryJudge, FindsOneSlowCommandAmongThoseThatAreNot) {
  EXPECT_GT(rolled_back_share(2.0, 0, 200, 4), 0.95);
  EXPECT_GT(rolled_back_share(20.0, 0, 200, 4), 0.95);
}

TEST(CanaryJudge, AFasterVersionIsNeverRolledBack) {
  EXPECT_EQ(rolled_back_share(-0.2, 0, 200), 0);
}

// The tail of the binomial distribution: 5 heads of 5 is 1/32, 8 or more of 10 is 56/1024.
TEST(SignTest, IsTheExactTail) {
  EXPECT_NEAR(sign_test(5, 5), 1.0 / 32, 1e-12);
  EXPECT_NEAR(sign_test(8, 10), 56.0 / 1024, 1e-12);
  EXPECT_DOUBLE_EQ(sign_test(0, 0), 1);
}

class Canary : public ServedProduct {
 protected:
  // Rolls `mode` out beside a good version and says what became of it.
  CanaryVerdict roll_out(const std::string& mode) {
    current_ = make("good", 0);
    canary_ = make(mode, 1);
    EXPECT_TRUE(current_->start().ok());
    EXPECT_TRUE(canary_->start().ok());
    auto verdict = try_canary(*current_, *canary_, traffic_, CanaryPlan(), [](const auto&) {});
    EXPECT_TRUE(verdict.ok());
    std::printf("%s: %s, %s\n", mode.c_str(), verdict->promote ? "promoted" : "rolled back",
                verdict->why.c_str());
    return *verdict;
  }
  bool answers(const Service& service) {
    return TrafficClient(service.port()).ask(traffic_[0]).good;
  }
  std::unique_ptr<Service> current_, canary_;
};

TEST_F(Canary, ThatIsSlowIsRolledBackAndTheCurrentVersionServesOn) {
  const CanaryVerdict verdict = roll_out("slow");
  EXPECT_FALSE(verdict.promote);
  EXPECT_GE(verdict.slower_low, 0.1);
  EXPECT_TRUE(answers(*current_));
  EXPECT_FALSE(answers(*canary_));
}

TEST_F(Canary, ThatAnswersWronglyIsRolledBack) {
  const CanaryVerdict verdict = roll_out("wrong");
  EXPECT_FALSE(verdict.promote);
  EXPECT_NE(verdict.why.find("more errors"), std::string::npos);
  EXPECT_TRUE(answers(*current_));
  EXPECT_FALSE(answers(*canary_));
}

TEST_F(Canary, ThatCrashesIsRolledBackAtOnce) {
  const CanaryVerdict verdict = roll_out("crash");
  EXPECT_FALSE(verdict.promote);
  EXPECT_LT(verdict.pairs, 40);
  ASSERT_TRUE(verdict.crash.has_value());
  EXPECT_EQ(verdict.crash->signal, SIGABRT);
  EXPECT_TRUE(answers(*current_));
  EXPECT_FALSE(answers(*canary_));
}

TEST_F(Canary, ThatIsAsGoodIsPromoted) {
  const CanaryVerdict verdict = roll_out("good");
  EXPECT_TRUE(verdict.promote) << verdict.why;
  EXPECT_TRUE(answers(*canary_));
}

}  // namespace
}  // namespace team
