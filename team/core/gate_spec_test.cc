#include "team/core/gate_spec.h"

#include <gtest/gtest.h>

namespace team {
namespace {

base::Json parse(const char* text) {
  return base::Json::parse(text).value();
}

TEST(GateSpec, SurvivesARoundTripThroughJson) {
  auto gate = gate_from_json(parse(
      R"({"id":"recovery","kind":"fault","criteria":["C3"],"visibility":"held_out",
          "argv":["{sealed}/recovery.sh"],"service":{"argv":["{product}/build/kvd"],
          "ready_path":"{socket}/kv.sock"},"manifest":["a","b"],"limits":{"wall_ms":5000}})"));
  ASSERT_TRUE(gate.ok()) << gate.error().message();
  auto again = gate_from_json(to_json(*gate));
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(to_json(*again).dump_canonical(), to_json(*gate).dump_canonical());
  EXPECT_EQ(again->service.ready_path, "{socket}/kv.sock");
  EXPECT_EQ(again->limits.wall_ms, 5000);
}

TEST(GateSpec, RefusesUnknownKeysByName) {
  auto gate = gate_from_json(parse(R"({"id":"x","kind":"unit","argv":["a"],"alow_fail":true})"));
  ASSERT_FALSE(gate.ok());
  EXPECT_NE(gate.error().message().find("alow_fail"), std::string::npos);
}

TEST(GateSpec, RefusesAGateThatRunsNothing) {
  EXPECT_FALSE(gate_from_json(parse(R"({"id":"x","kind":"unit"})")).ok());
  EXPECT_FALSE(gate_from_json(parse(R"({"id":"x","kind":"magic","argv":["a"]})")).ok());
  EXPECT_FALSE(
      gate_from_json(parse(R"({"id":"x","kind":"unit","argv":["a"],"limits":{"wall_ms":0}})"))
          .ok());
}

}  // namespace
}  // namespace team
