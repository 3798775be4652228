#include "team/ops/triggers.h"

#include "team/ops/monitor.h"

#include <gtest/gtest.h>

namespace team {
namespace {

TEST(Trigger, IsReadFromASentenceOfTheRightForm) {
  auto p99 = parse_trigger("p99 above 5 ms");
  ASSERT_TRUE(p99.has_value());
  EXPECT_EQ(p99->metric, "p99");
  EXPECT_DOUBLE_EQ(p99->limit, 5);
  EXPECT_DOUBLE_EQ(parse_trigger("p50 above 300us")->limit, 0.3);
  EXPECT_DOUBLE_EQ(parse_trigger("restart above 10 s")->limit, 10'000);
  EXPECT_DOUBLE_EQ(parse_trigger("memory above 2 GB")->limit, 2'000);
  EXPECT_FALSE(parse_trigger("answers below 100 a second")->above);
  EXPECT_EQ(parse_trigger("cost above budget")->metric, "budget");
  EXPECT_DOUBLE_EQ(parse_trigger("cost above 2.5 USD")->limit, 2.5);
}

TEST(Trigger, WhatIsMeantForPeopleIsLeftToThem) {
  for (const char* text :
       {"", "one core is the bottleneck", "a restart takes more than ten seconds", "p99 above",
        "p99 above ms", "p99 above 5 MB", "p99 over 5 ms", "beauty above 5"}) {
    EXPECT_FALSE(parse_trigger(text).has_value()) << text;
  }
}

TEST(Trigger, FiresOnMeasuredValuesOnly) {
  const Trigger trigger = *parse_trigger("p99 above 5 ms");
  EXPECT_EQ(fired(trigger, {{"p99", 7.25}}), "p99 was 7.25 ms, above 5 ms");
  EXPECT_EQ(fired(trigger, {{"p99", 5.0}}), "");
  EXPECT_EQ(fired(trigger, {{"p50", 900}}), "");  // not measured
  EXPECT_EQ(fired(*parse_trigger("cost above budget"), {{"budget", 104}}),
            "budget was 104 %, above 100 %");
  EXPECT_EQ(fired(*parse_trigger("answers below 100"), {{"answers", 12}}),
            "answers was 12 a second, below 100 a second");
}

TEST(Measured, ComesFromWhatTheMonitorWrote) {
  const base::Json operation = base::Json::object({{"wall_ms", 2'000},
                                                   {"answers", 90},
                                                   {"errors", 10},
                                                   {"p50_us", 300},
                                                   {"p99_us", 7'250},
                                                   {"p999_us", 9'000},
                                                   {"rss_max", 12'000'000},
                                                   {"restarts", 1},
                                                   {"restart_ms", 80}});
  const Measured measured = measured_from(operation);
  EXPECT_DOUBLE_EQ(measured.at("p99"), 7.25);
  EXPECT_DOUBLE_EQ(measured.at("errors"), 10);
  EXPECT_DOUBLE_EQ(measured.at("answers"), 45);
  EXPECT_DOUBLE_EQ(measured.at("memory"), 12);
  EXPECT_TRUE(measured_from(base::Json::object()).empty());
}

}  // namespace
}  // namespace team
