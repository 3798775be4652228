#include "base/json.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace base {
namespace {

TEST(Json, RoundTripsEveryKind) {
  const std::string text = R"({"a":[1,-2,3.5,1e300,true,null],"b":{"c":"x\"\n\u0001é"},"d":[]})";
  Json value = Json::parse(text).value();
  EXPECT_EQ(Json::parse(value.dump()).value(), value);
  EXPECT_EQ(Json::parse(value.dump_pretty()).value(), value);
  EXPECT_EQ(value["a"][1].as_int(), -2);
  EXPECT_EQ(value["b"]["c"].as_string(), "x\"\n\x01\xc3\xa9");
}

TEST(Json, KeepsSixtyFourBitIntegers) {
  EXPECT_EQ(Json::parse("9223372036854775807").value().as_int(), INT64_MAX);
  EXPECT_EQ(Json(INT64_MIN).dump(), "-9223372036854775808");
  EXPECT_TRUE(Json::parse("1").value().is_integer());
  EXPECT_FALSE(Json::parse("1.0").value().is_integer());
}

TEST(Json, CanonicalFormSortsKeys) {
  EXPECT_EQ(Json::parse(R"({"b":1,"a":{"d":2,"c":3}})").value().dump_canonical(),
            R"({"a":{"c":3,"d":2},"b":1})");
}

TEST(Json, MissingMembersChainToNull) {
  Json value = Json::object({{"a", 1}});
  EXPECT_TRUE(value["x"]["y"][3].is_null());
  EXPECT_EQ(value["x"].as_int(5), 5);
}

TEST(Json, ErrorsNameTheByte) {
  Result<Json> bad = Json::parse(R"({"a":1,})");
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message().find("at byte 7"), std::string::npos) << bad.error().message();
  EXPECT_FALSE(Json::parse("").ok());
  EXPECT_FALSE(Json::parse("1 2").ok());
  EXPECT_FALSE(Json::parse(std::string(100, '[')).ok()) << "deeper than allowed";
}

// A hash over what was written must hold for what is read back.
TEST(Json, NumbersComeBackToTheLastBit) {
  Rng rng(3);
  for (int i = 0; i < 20'000; ++i) {
    f64 value = std::bit_cast<f64>(rng.next());
    if (!std::isfinite(value)) continue;
    std::string text = Json::array({Json(value), Json(rng.unit()), 7}).dump();
    ASSERT_EQ(Json::parse(text).value().dump(), text);
  }
}

TEST(Json, SetReplacesAndKeepsOrder) {
  Json value;
  value.set("b", 1).set("a", 2).set("b", 3);
  EXPECT_EQ(value.dump(), R"({"b":3,"a":2})");
  value.remove("b");
  EXPECT_FALSE(value.has("b"));
}

}  // namespace
}  // namespace base
