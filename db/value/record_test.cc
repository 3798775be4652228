#include "db/value/record.h"

#include "base/random.h"
#include "db/value/first_column.h"

#include <gtest/gtest.h>

namespace db {
namespace {

TEST(Varint, RoundTripsAtEveryLength) {
  for (int bits = 0; bits < 64; ++bits) {
    for (u64 value : {u64{1} << bits, (u64{1} << bits) - 1}) {
      u8 buffer[9] = {};
      int size = put_varint(buffer, value);
      u64 back = 0;
      EXPECT_EQ(get_varint(buffer, &back), size);
      EXPECT_EQ(back, value);
      EXPECT_EQ(get_varint_checked(buffer, buffer + size, &back), size);
      EXPECT_EQ(get_varint_checked(buffer, buffer + size - 1, &back), 0);
    }
  }
}

TEST(Record, RoundTripsEveryStorageClass) {
  std::vector<Value> row;
  for (i64 v : {0, 1, -1, 127, 128, -129, 8388607, -8388609}) row.push_back(Value::integer(v));
  row.push_back(Value::integer(INT64_MIN));
  row.push_back(Value::integer(140737488355327));
  row.push_back(Value::real(3.25));
  row.push_back(Value());
  row.push_back(Value::text(std::string(200, 'x')));
  row.push_back(Value::blob("ab"));
  for (int i = 0; i < 60; ++i) row.push_back(Value::integer(i));
  std::string record;
  encode_record(row, record);
  RecordView view(record);
  Value v;
  for (size_t i = 0; i < row.size(); ++i) {
    ASSERT_TRUE(view.column(static_cast<int>(i), v));
    EXPECT_EQ(v.type(), row[i].type()) << i;
    EXPECT_EQ(compare(v, row[i]), 0) << i;
  }
  EXPECT_FALSE(view.column(static_cast<int>(row.size()), v));
  EXPECT_EQ(view.count(), static_cast<int>(row.size()));
  EXPECT_EQ(compare_record(record, row, {}), 0);
}

TEST(Record, CutOffBytesAreCorruptNotCrashes) {
  std::vector<Value> row = {Value::text("hello"), Value::integer(70000)};
  std::string record;
  encode_record(row, record);
  for (size_t size = 0; size < record.size(); ++size) {
    RecordView view(std::string_view(record).substr(0, size));
    EXPECT_LE(view.count(), 2);
  }
}

Value random_value(base::Rng& rng) {
  static const char* kTexts[] = {"", "a", "A", "ab", "aB ", "abcdefgh", "abcdefghi", "b"};
  switch (rng.below(6)) {
    case 0:
      return Value();
    case 1:
      return Value::integer(static_cast<i64>(rng.next()) >> rng.below(64));
    case 2:
      return Value::real(static_cast<f64>(rng.between(-5, 5)) / 2);
    case 3:
      return Value::integer(rng.between(-3, 3));
    case 4:
      return Value::text(kTexts[rng.below(8)]);
    default:
      return Value::blob(std::string(rng.below(70), 'x'));
  }
}

TEST(Record, TwoStoredRecordsCompareAsTheirValuesDo) {
  base::Rng rng(1);
  KeyInfo info;
  info.columns = {{&kNocase, false, false}, {&kBinary, true, false}, {&kRtrim, false, false}};
  int different = 0;
  for (int i = 0; i < 20000; i++) {
    std::vector<Value> a, b;
    for (int c = 0; c < 3; c++) {
      a.push_back(random_value(rng));
      b.push_back(rng.chance(0.6) ? a.back() : random_value(rng));
    }
    std::string left, right;
    encode_record(a, left);
    encode_record(b, right);
    auto sign = [](int order) { return order < 0 ? -1 : order > 0; };
    ASSERT_EQ(sign(compare_records(left, right, info)), sign(compare_keys(a, b, info)));
    ASSERT_EQ(sign(compare_record(left, b, info)), sign(compare_keys(a, b, info)));
    different += compare_keys(a, b, info) != 0;
  }
  EXPECT_GT(different, 5000);
}

TEST(Record, ABuilderMakesOneRecordAfterAnother) {
  base::Rng rng(2);
  RecordBuilder builder;
  for (int i = 0; i < 2000; i++) {
    std::vector<Value> values;
    builder.clear();
    // Up to 2,000 columns: headers of one, two and three bytes' length.
    for (u64 n = rng.below(i % 50 == 0 ? 2001 : 200); n > 0; n--) {
      values.push_back(random_value(rng));
      builder.add(values.back());
    }
    std::vector<Value> again;
    ASSERT_TRUE(decode_record(builder.finish(), again));
    ASSERT_EQ(again.size(), values.size());
    for (size_t c = 0; c < values.size(); c++) {
      ASSERT_EQ(again[c].type(), values[c].type());
      ASSERT_EQ(compare(again[c], values[c]), 0);
    }
  }
  builder.clear();
  builder.add_real_column(Value::real(36));
  builder.add_real_column(Value::real(0.5));
  builder.add_real_column(Value::real(-0.0));
  builder.add_null();
  std::vector<Value> values;
  decode_record(builder.finish(), values);
  EXPECT_TRUE(values[0].is_integer());
  EXPECT_TRUE(values[1].is_real());
  EXPECT_TRUE(values[2].is_real());
  EXPECT_TRUE(values[3].is_null());
}

// What the look at a record in place decides is what compare_record() says.
TEST(Record, TheFirstColumnsDecideAsTheWholeRecord) {
  base::Rng rng(11);
  u32 decided = 0;
  for (int i = 0; i < 200000; ++i) {
    std::vector<Value> row, key;
    const size_t columns = 1 + rng.below(3);
    for (size_t c = 0; c < columns; ++c) row.push_back(random_value(rng));
    for (size_t c = 0; c < 1 + rng.below(columns); ++c)
      key.push_back(rng.below(3) == 0 ? random_value(rng) : row[c]);
    KeyInfo info;
    for (size_t c = 0; c < rng.below(4); ++c)
      info.columns.push_back({&kBinary, rng.below(2) == 0, false});
    std::string record;
    encode_record(row, record);
    const size_t size = record.size();
    record.append(8, '\xff');  // what may be read behind it decides nothing
    const base::ByteView stored = base::as_bytes(record).first(size);
    const int tie = static_cast<int>(rng.below(3)) - 1;
    const FirstColumn first(key, info, tie);
    int answer = 0;
    bool known = false;
    if (first.kind() == FirstColumn::Kind::kInteger)
      known = first.compare<FirstColumn::Kind::kInteger>(stored, &answer);
    if (first.kind() == FirstColumn::Kind::kText)
      known = first.compare<FirstColumn::Kind::kText>(stored, &answer);
    if (!known) continue;
    ++decided;
    const int order = compare_record(std::string_view(record).substr(0, size), key, info);
    const int expected = order != 0 ? order : tie;
    ASSERT_EQ(answer < 0, expected < 0) << i;
    ASSERT_EQ(answer > 0, expected > 0) << i;
  }
  EXPECT_GT(decided, 30000u);
}

TEST(Record, TheLastIntegerIsFoundFromBehind) {
  base::Rng rng(11);
  for (int i = 0; i < 20000; ++i) {
    std::vector<Value> row;
    for (size_t c = rng.below(4); c > 0; --c) row.push_back(random_value(rng));
    const i64 rowid = static_cast<i64>(rng.next()) >> rng.below(64);
    row.push_back(Value::integer(rowid));
    std::string record;
    encode_record(row, record);
    ASSERT_EQ(last_integer(record), rowid);
    record.resize(rng.below(record.size()));
    last_integer(record);  // reads nothing behind what there is
  }
  EXPECT_EQ(last_integer(""), 0);
  std::string text;
  encode_record(std::vector{Value::text("x")}, text);
  EXPECT_EQ(last_integer(text), 0);
}

}  // namespace
}  // namespace db
