#include "db/slt/record.h"

#include <gtest/gtest.h>

namespace db::slt {
namespace {

Script parse(std::string_view text) {
  return parse_script(text, "sqlite").value();
}

TEST(SltRecord, ReadsStatementsAndQueries) {
  Script script = parse(
      "hash-threshold 3\n\nstatement ok\nCREATE TABLE t(\n  a)\n\nstatement error\nnonsense\n\n"
      "query IT rowsort label-1\nSELECT 1,\n 'x'\n----\n1\nx\n\nquery I\nSELECT 2\n\nhalt\n");
  ASSERT_EQ(script.records.size(), 6u);
  EXPECT_EQ(script.records[0].threshold, 3u);
  EXPECT_EQ(script.records[1].sql, "CREATE TABLE t(\n  a)");
  EXPECT_EQ(script.records[1].line, 3u);
  EXPECT_EQ(script.records[2].kind, RecordKind::kStatementError);
  EXPECT_EQ(script.records[3].sort, SortMode::kRowSort);
  EXPECT_EQ(script.records[3].label, "label-1");
  EXPECT_EQ(script.records[3].expected, (std::vector<std::string>{"1", "x"}));
  EXPECT_TRUE(script.records[4].expected.empty());
}

TEST(SltRecord, ConditionsStackAndIgnoreCase) {
  Script script = parse(
      "onlyif MYSQL # DIV for integers:\nstatement ok\nA\n\nskipif sqlite\nskipif mysql\nhalt\n\n"
      "onlyif SQLite\nstatement ok\nB\n");
  EXPECT_TRUE(script.records[0].skip);
  EXPECT_TRUE(script.records[1].skip);
  EXPECT_FALSE(script.records[2].skip);
}

TEST(SltRecord, CommentsVanishInsideRecords) {
  Script script = parse("query T\nSELECT\n# a comment\n1\n----\n# another\nv\r\n\n");
  EXPECT_EQ(script.records[0].sql, "SELECT\n1");
  EXPECT_EQ(script.records[0].expected, std::vector<std::string>{"v"});
}

TEST(SltRecord, BadRecordsNameTheLine) {
  for (const char* text :
       {"\nstatement maybe\n", "\nquery X\n", "\nhash-threshold many\n", "\nnonsense\n"}) {
    base::Result<Script> bad = parse_script(text, "sqlite");
    ASSERT_FALSE(bad.ok()) << text;
    EXPECT_TRUE(bad.error().message().starts_with("line 2:")) << bad.error().message();
  }
}

}  // namespace
}  // namespace db::slt
