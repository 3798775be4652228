#include "db/value/value.h"

#include <gtest/gtest.h>

namespace db {
namespace {

std::string text_of(f64 value) {
  char buffer[40];
  return std::string(buffer, format_real(value, buffer));
}

TEST(Numbers, RealsPrintAsTheShortestTextThatReadsBack) {
  EXPECT_EQ(text_of(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(text_of(1), "1.0");
  EXPECT_EQ(text_of(1e15), "1000000000000000.0");
  EXPECT_EQ(text_of(1e17), "1.0e+17");
  EXPECT_EQ(text_of(-1.5e-7), "-1.5e-07");
  EXPECT_EQ(text_of(0.0001), "0.0001");
  EXPECT_EQ(text_of(1e300 * 1e10), "Inf");
}

TEST(Numbers, TextGivesItsLongestNumericPrefix) {
  EXPECT_EQ(parse_integer_prefix(" -12abc"), -12);
  EXPECT_EQ(parse_integer_prefix("9223372036854775808"), INT64_MAX);
  EXPECT_EQ(parse_integer_prefix("-9223372036854775809"), INT64_MIN);
  EXPECT_DOUBLE_EQ(parse_real_prefix("1.5e2xyz"), 150.0);
  EXPECT_DOUBLE_EQ(parse_real_prefix(".5"), 0.5);
  EXPECT_FALSE(parse_number("12abc").whole);
  EXPECT_TRUE(parse_number(" 12 ").whole);
  EXPECT_EQ(parse_number("abc").type, Type::kNull);
  EXPECT_EQ(parse_number("1e").type, Type::kInteger);
}

TEST(Affinities, FollowTheDeclaredType) {
  EXPECT_EQ(affinity_of_type("INTEGER"), Affinity::kInteger);
  EXPECT_EQ(affinity_of_type("VARCHAR(30)"), Affinity::kText);
  EXPECT_EQ(affinity_of_type("FLOATING POINT"), Affinity::kInteger);
  EXPECT_EQ(affinity_of_type("DOUBLE"), Affinity::kReal);
  EXPECT_EQ(affinity_of_type(""), Affinity::kBlob);
  EXPECT_EQ(affinity_of_type("DECIMAL(10,2)"), Affinity::kNumeric);
}

TEST(Affinities, StoreTextNumbersAsNumbers) {
  Value v = Value::text("5.0");
  apply_affinity(v, Affinity::kInteger);
  EXPECT_TRUE(v.is_integer());
  v = Value::text("5x");
  apply_affinity(v, Affinity::kInteger);
  EXPECT_TRUE(v.is_text());
  v = Value::integer(36);
  apply_affinity(v, Affinity::kReal);
  EXPECT_TRUE(v.is_real());
}

TEST(Order, IntegersAndRealsCompareExactly) {
  EXPECT_LT(compare(Value::integer(9007199254740993), Value::real(9007199254740994.0)), 0);
  EXPECT_GT(compare(Value::integer(9007199254740993), Value::real(9007199254740992.0)), 0);
  EXPECT_EQ(compare(Value::integer(1), Value::real(1.0)), 0);
  EXPECT_EQ(hash_value(Value::integer(1)), hash_value(Value::real(1.0)));
  EXPECT_LT(compare(Value(), Value::integer(-5)), 0);
  EXPECT_LT(compare(Value::real(5), Value::text("1")), 0);
  EXPECT_LT(compare(Value::text("z"), Value::blob("a")), 0);
}

TEST(Values, CopiesShareBytesAndKeepOwnsThem) {
  std::string source = "hello";
  Value a = Value::borrowed_text(source);
  Value b = a;
  b.keep();
  source[0] = 'j';
  EXPECT_EQ(a.bytes(), "jello");
  EXPECT_EQ(b.bytes(), "hello");
  Value c = b;
  EXPECT_EQ(c.bytes().data(), b.bytes().data());
}

}  // namespace
}  // namespace db
