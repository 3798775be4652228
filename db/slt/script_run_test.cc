// Against the system's SQLite: what is tested here is the runner, so its peer is the engine.
#include "db/slt/script_run.h"

#include "db/slt/pool.h"

#include <gtest/gtest.h>

namespace db::slt {
namespace {

RunReport run(std::string_view text) {
  static std::unique_ptr<Library> library = Library::load("libsqlite3.so.0").value();
  return run_script(*library, parse_script(text, "sqlite").value(), {}).value();
}

u64 failures(std::string_view text) {
  return run(text).failed;
}

TEST(SltRun, RendersByTheColumnsLetter) {
  EXPECT_EQ(failures("query TIR\nSELECT 'a'||char(9), 4294967298, 1\n----\na@\n2\n1.000\n\n"), 0u);
  EXPECT_EQ(failures("query TTI\nSELECT '', NULL, '12x'\n----\n(empty)\nNULL\n12\n\n"), 0u);
}

TEST(SltRun, SortsRenderedText) {
  EXPECT_EQ(failures("query I rowsort\nVALUES(9),(10),(-1),(NULL)\n----\n-1\n10\n9\nNULL\n\n"), 0u);
  EXPECT_EQ(failures("query IT rowsort\nVALUES(2,'a'),(1,'z')\n----\n1\nz\n2\na\n\n"), 0u);
  EXPECT_EQ(failures("query IT valuesort\nVALUES(2,'a'),(1,'z')\n----\n1\n2\na\nz\n\n"), 0u);
}

TEST(SltRun, HashesLongResults) {
  // md5 of "1\n2\n3\n"
  const std::string expected = "3 values hashing to c0710d6b4f15dfa88f600b0e6b624077\n\n";
  EXPECT_EQ(failures("hash-threshold 2\n\nquery I\nVALUES(1),(2),(3)\n----\n" + expected), 0u);
  EXPECT_EQ(failures("hash-threshold 2\n\nquery I\nVALUES(1),(2),(4)\n----\n" + expected), 1u);
}

TEST(SltRun, LabelsTieResultsTogether) {
  EXPECT_EQ(
      failures("query I nosort x\nSELECT 1\n----\n1\n\nquery I nosort x\nSELECT 2\n----\n2\n\n"),
      1u);
}

TEST(SltRun, CountsEveryKindOfFailure) {
  EXPECT_EQ(failures("statement ok\nnonsense\n\n"), 1u);
  EXPECT_EQ(failures("statement error\nSELECT 1\n\n"), 1u);
  EXPECT_EQ(failures("query II\nSELECT 1\n----\n1\n\n"), 1u) << "column count";
  EXPECT_EQ(failures("query I\nSELECT 1\n----\n2\n\n"), 1u);
  EXPECT_EQ(failures("query I\nSELECT 1\n\n"), 1u) << "rows where none were expected";
}

TEST(SltRun, KeepsTheFirstFailureWithBothResults) {
  RunReport report = run("query I\nSELECT 1\n----\n2\n\nquery I\nSELECT 3\n----\n4\n\n");
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(report.failed, 2u);
  EXPECT_EQ(report.failures[0].line, 1u);
  EXPECT_EQ(report.failures[0].got, std::vector<std::string>{"1"});
}

TEST(SltPool, ACrashCostsOneJobAlone) {
  std::vector<int> signals(3, -1);
  std::vector<std::string> outputs(3);
  run_jobs(
      {0, 1, 2}, 2, 10'000,
      [](size_t index) {
        if (index == 1) __builtin_trap();
        return std::to_string(index);
      },
      [&](size_t index, const JobEnd& end) {
        signals[index] = end.signal;
        outputs[index] = end.output;
      });
  EXPECT_EQ(outputs[0], "0");
  EXPECT_EQ(outputs[2], "2");
  EXPECT_NE(signals[1], 0);
}

TEST(SltPool, AHangIsKilled) {
  bool timed_out = false;
  run_jobs(
      {0}, 1, 100,
      [](size_t) {
        while (true) {
        }
        return std::string();
      },
      [&](size_t, const JobEnd& end) { timed_out = end.timed_out; });
  EXPECT_TRUE(timed_out);
}

}  // namespace
}  // namespace db::slt
