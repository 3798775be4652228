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

// One PING through {port}, in the time that a client has patience.
std::vector<std::string> ping() {
  return {"timeout", "3", "bash", "-c",
          "exec 3<>/dev/tcp/127.0.0.1/{port}; echo PING >&3; head -n 1 <&3"};
}

Fault bad(const std::string& kind, const std::string& mode, const std::string& load_expect) {
  Fault fault;
  fault.id = fault.kind = kind;
  fault.mode = mode;
  fault.load = fault.after = ping();
  fault.load_expect = load_expect;
  fault.expect = "+PONG";
  return fault;
}

TEST_F(ServedProduct, ABadDiskIsFeltWhileItLastsAndNoLonger) {
  auto service = make("keep", 0);
  ASSERT_TRUE(service->start().ok());
  for (const auto& [mode, answer] :
       {std::pair{"full", "-ERR disk"}, std::pair{"failing", "-ERR disk"},
        std::pair{"slow 50", "+PONG"}}) {
    auto outcome = inject(*sandbox_, *service, bad("disk", mode, answer));
    ASSERT_TRUE(outcome.ok()) << outcome.error().message();
    EXPECT_EQ(outcome->broke, "") << mode;
    EXPECT_EQ(outcome->seen.substr(0, 5), "+PONG") << mode;
  }
  auto wrong = inject(*sandbox_, *service, bad("disk", "full", "+PONG"));
  ASSERT_TRUE(wrong.ok()) << wrong.error().message();
  EXPECT_NE(wrong->broke.find("printed '-ERR disk', not '+PONG'"), std::string::npos)
      << wrong->broke;
}

TEST_F(ServedProduct, AServerThatDiesOfAFullDiskIsCaughtAndComesBack) {
  auto service = make("brittle", 0);
  ASSERT_TRUE(service->start().ok());
  auto outcome = inject(*sandbox_, *service, bad("disk", "full", ""));
  ASSERT_TRUE(outcome.ok()) << outcome.error().message();
  EXPECT_NE(outcome->broke.find("it died of a bad disk: signal 6"), std::string::npos)
      << outcome->broke;
  EXPECT_EQ(outcome->seen.substr(0, 5), "+PONG");
}

TEST_F(ServedProduct, ABadConnectionDelaysCutsAndChops) {
  auto service = make("good", 0);
  ASSERT_TRUE(service->start().ok());
  base::Clock& clock = base::system_clock();
  for (const char* mode : {"chop", "loss 50", "delay 300"}) {
    const i64 before_us = clock.monotonic_us();
    auto outcome = inject(*sandbox_, *service, bad("net", mode, "+PONG"));
    ASSERT_TRUE(outcome.ok()) << outcome.error().message();
    EXPECT_EQ(outcome->broke, "") << mode;
    if (mode == std::string("delay 300")) EXPECT_GE(clock.monotonic_us() - before_us, 600'000);
  }
  auto cut = inject(*sandbox_, *service, bad("net", "cut 2", "+PONG"));
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  EXPECT_NE(cut->broke, "");
}

TEST(Fault, APlanThatCannotBePlayedIsToldInASentence) {
  EXPECT_EQ(flaw_of(bad("disk", "slow 20", "")), "");
  EXPECT_EQ(flaw_of(bad("net", "loss 5", "")), "");
  EXPECT_EQ(flaw_of(bad("disk", "slow", "")),
            "fault disk has the mode 'slow'; a disk is full, failing or slow MS");
  EXPECT_NE(flaw_of(bad("net", "delay soon", "")), "");
  EXPECT_NE(flaw_of(bad("weather", "", "")), "");
  Fault idle = bad("disk", "full", "");
  idle.load.clear();
  EXPECT_EQ(flaw_of(idle), "fault disk needs a load that runs while it happens");
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
