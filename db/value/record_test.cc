#include "db/value/record.h"

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

}  // namespace
}  // namespace db
