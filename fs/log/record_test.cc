#include "fs/log/record.h"

#include <gtest/gtest.h>

namespace fs {
namespace {

std::string sample() {
  std::string out;
  RecordWriter writer(out);
  writer.start();
  writer.put("key", "value");
  writer.remove("gone");
  RecordHeader header;
  header.seq = 7;
  header.epoch = 3;
  header.op = RecordOp::kRename;
  header.data = 9;
  header.data_length = 100;
  writer.finish(header);
  return out;
}

TEST(Record, GivesBackHeaderAndChangesInOrder) {
  std::string record = sample();
  auto header = decode_header(record);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->seq, 7u);
  EXPECT_EQ(header->op, RecordOp::kRename);
  EXPECT_EQ(header->data_length, 100u);
  std::string seen;
  auto walked = for_each_change(record, [&](const Change& change) {
    seen += (change.put ? "+" : "-") + std::string(change.key) + "=" + std::string(change.value);
    return true;
  });
  EXPECT_TRUE(walked.ok());
  EXPECT_EQ(seen, "+key=value-gone=");
}

TEST(Record, RefusesEveryTruncation) {
  std::string record = sample();
  for (size_t length = 0; length < record.size(); ++length) {
    EXPECT_FALSE(decode_header(std::string_view(record).substr(0, length))) << length;
  }
  // A wrong length inside the changes is found by the walk.
  record[kRecordHeaderBytes + 1] = 100;
  EXPECT_FALSE(for_each_change(record, [](const Change&) { return true; }).ok());
}

}  // namespace
}  // namespace fs
