#include "team/ops/service.h"

#include "base/clock.h"
#include "team/ops/faults.h"
#include "team/ops/monitor.h"
#include "team/ops/test_server.h"

#include <algorithm>
#include <csignal>

namespace team {
namespace {

TEST(Backoff, DoublesUpToItsCapAndGivesUpOnACrashLoop) {
  Backoff backoff;
  std::vector<i64> pauses;
  while (auto pause = backoff.next_us()) pauses.push_back(*pause);
  ASSERT_EQ(pauses.size(), static_cast<size_t>(Backoff::kMax));
  for (size_t i = 1; i < pauses.size(); ++i) {
    EXPECT_EQ(pauses[i], std::min(Backoff::kCapUs, 2 * pauses[i - 1]));
  }
}

TEST(Backoff, BeginsAnewAfterAGoodStretchOnly) {
  Backoff backoff;
  EXPECT_EQ(backoff.next_us(), Backoff::kFirstUs);
  backoff.served(Backoff::kGoodUs - 1);
  EXPECT_EQ(backoff.next_us(), 2 * Backoff::kFirstUs);
  backoff.served(Backoff::kGoodUs);
  EXPECT_EQ(backoff.next_us(), Backoff::kFirstUs);
}

TEST_F(ServedProduct, ComesBackFromSigkillAndItsMonitorSawIt) {
  auto service = make("good", 0);
  ASSERT_TRUE(service->start().ok());
  Monitor monitor(*service, traffic_);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(monitor.round().ok());
  service->kill_hard();
  for (int i = 0; i < 20; ++i) {
    auto crash = monitor.round();
    ASSERT_TRUE(crash.ok());
    EXPECT_FALSE(crash->has_value());  // it was us
  }
  const base::Json seen = monitor.to_json();
  EXPECT_EQ(seen["restarts"].as_int(), 1);
  EXPECT_GE(seen["answers"].as_int(), 38);
  EXPECT_LE(seen["errors"].as_int(), 2);
  EXPECT_GT(seen["rss_max"].as_int(), 1'000'000);
  EXPECT_GT(seen["p99_us"].as_int(), 0);
  EXPECT_EQ(seen["asked"]["PING"].as_int(), 40);
}

TEST_F(ServedProduct, ACrashIsKeptWithItsSignalLastWordsAndStack) {
  auto service = make("crash", 0);
  ASSERT_TRUE(service->start().ok());
  Monitor monitor(*service, traffic_);
  std::optional<Crash> crash;
  for (int i = 0; i < 200 && !crash; ++i) {
    auto round = monitor.round();
    ASSERT_TRUE(round.ok()) << round.error().message();
    crash = *round;
  }
  ASSERT_TRUE(crash.has_value());
  EXPECT_EQ(crash->signal, SIGABRT);
  EXPECT_NE(crash->last_words.find("the roof is on fire"), std::string::npos);
  if (!crash->stack_problem.empty()) GTEST_SKIP() << crash->stack_problem;
  EXPECT_FALSE(crash->stack.empty());
  EXPECT_EQ(std::count(crash->stack.begin(), crash->stack.end(), "abort"), 0);
}

TEST_F(ServedProduct, SurvivesAPauseAndAStop) {
  auto service = make("good", 0);
  ASSERT_TRUE(service->start().ok());
  for (const char* kind : {"pause", "stop"}) {
    Fault fault;
    fault.id = fault.kind = kind;
    fault.ms = 200;
    fault.after = {"bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/{port}; echo PING >&3; head -n 1 <&3"};
    fault.expect = "+PONG";
    auto outcome = inject(*sandbox_, *service, fault);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message();
    EXPECT_EQ(outcome->broke, "") << kind;
  }
}

TEST_F(ServedProduct, AProgramThatNeverServesIsACrashLoopInOneSentence) {
  auto service = make("good", 0);
  ASSERT_TRUE(service->start().ok());
  ASSERT_TRUE(base::write_file(dir_ / "product/server.py", "raise SystemExit(3)\n").ok());
  service->kill_hard();
  auto tended = service->tend();
  ASSERT_FALSE(tended.ok());
  EXPECT_NE(tended.error().message().find("crash loop"), std::string::npos);
}

}  // namespace
}  // namespace team
