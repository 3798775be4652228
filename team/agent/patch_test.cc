#include "team/agent/patch.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <map>

namespace team {
namespace {

using base::ErrorCode;
using Files = std::map<std::string, std::string>;

base::Result<PatchPlan> plan(std::string_view patch, const Files& files) {
  return plan_patch(patch,
                    [&](const std::string& path) -> base::Result<std::optional<std::string>> {
                      const auto found = files.find(path);
                      if (found == files.end()) return std::optional<std::string>();
                      return std::optional<std::string>(found->second);
                    });
}

// The files after the patch; a failure is its error text under "error".
Files after(std::string_view patch, Files files) {
  const base::Result<PatchPlan> planned = plan(patch, files);
  if (!planned.ok()) return {{"error", planned.error().message()}};
  for (const FileChange& change : planned->changes) {
    if (change.content) {
      files[change.path] = *change.content;
    } else {
      files.erase(change.path);
    }
  }
  return files;
}

const Files kProgram = {{"a.c",
                         "int one() {\n"
                         "  return 1;\n"
                         "}\n"
                         "\n"
                         "int two() {\n"
                         "  return 2;\n"
                         "}\n"}};

std::string with_two(const std::string& body) {
  return "int one() {\n  return 1;\n}\n\nint two() {\n" + body + "}\n";
}

constexpr const char* kEnvelope =
    "*** Begin Patch\n*** Update File: a.c\n@@ int two() {\n-  return 2;\n+  return 22;\n*** End "
    "Patch\n";
constexpr const char* kUnified =
    "--- a/a.c\n+++ b/a.c\n@@ -5,3 +5,3 @@\n int two() {\n-  return 2;\n+  return 22;\n }\n";
constexpr const char* kSearch =
    "a.c\n```c\n<<<<<<< SEARCH\n  return 2;\n=======\n  return 22;\n>>>>>>> REPLACE\n```\n";

class Dialects : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Patch, Dialects, ::testing::Values(kEnvelope, kUnified, kSearch));

TEST_P(Dialects, SayTheSameThing) {
  EXPECT_EQ(after(GetParam(), kProgram)["a.c"], with_two("  return 22;\n"));
}

TEST_P(Dialects, ApplyingTwiceIsApplyingOnce) {
  const Files once = after(GetParam(), kProgram);
  const base::Result<PatchPlan> again = plan(GetParam(), once);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_TRUE(again->changes.empty());
  EXPECT_EQ(again->already_applied, 1);
}

TEST_P(Dialects, KeepCrlfAndAMissingLastNewline) {
  Files files = {{"a.c", "int two() {\r\n  return 2;\r\n}\r\n"}};
  EXPECT_EQ(after(GetParam(), files)["a.c"], "int two() {\r\n  return 22;\r\n}\r\n");
  files["a.c"] = "int two() {\n  return 2;\n}";
  EXPECT_EQ(after(GetParam(), files)["a.c"], "int two() {\n  return 22;\n}");
}

TEST(Patch, TrailingSpaceAndIndentationAreForgivenAndTheFilesOwnAreKept) {
  const Files files = {{"a.py", "class A:\n    def f(self):   \n        return 1\n"}};
  const std::string patch =
      "*** Begin Patch\n*** Update File: a.py\n def f(self):\n-    return 1\n+    if x:\n+        "
      "return 2\n"
      "*** End Patch\n";
  const base::Result<PatchPlan> planned = plan(patch, files);
  ASSERT_TRUE(planned.ok()) << planned.error().message();
  EXPECT_EQ(planned->inexact, 1);
  EXPECT_EQ(*planned->changes[0].content,
            "class A:\n    def f(self):   \n        if x:\n            return 2\n");
}

TEST(Patch, OneLikelyPlaceIsTakenWhenWordsDiffer) {
  const Files files = {{"a.c",
                        "void start(struct server* s) {\n  open_log(s);\n  listen_on(s, 7000);\n"
                        "  accept_loop(s);\n}\n\nvoid stop() {}\n"}};
  const std::string patch =
      "*** Begin Patch\n*** Update File: a.c\n void start(struct server *s) {\n   open_log(s);\n"
      "-  listen_on(s, 7000);\n+  listen_on(s, s->port);\n   accept_loop(s);\n*** End Patch\n";
  EXPECT_EQ(after(patch, files)["a.c"],
            "void start(struct server* s) {\n  open_log(s);\n  listen_on(s, s->port);\n  "
            "accept_loop(s);\n"
            "}\n\nvoid stop() {}\n");
}

TEST(Patch, AnUnclearPlaceIsRefusedAndNamed) {
  const Files files = {{"a.c", "x = 1;\ny = 2;\nx = 1;\n"}};
  const base::Result<PatchPlan> planned =
      plan("a.c\n<<<<<<< SEARCH\nx = 1;\n=======\nx = 3;\n>>>>>>> REPLACE\n", files);
  EXPECT_EQ(planned.error().code(), ErrorCode::kConflict);
  EXPECT_NE(planned.error().message().find("1, 3"), std::string::npos);
}

TEST(Patch, ALineNumberSettlesWhichPlaceIsMeant) {
  const Files files = {{"a.c", "x = 1;\ny = 2;\nx = 1;\n"}};
  EXPECT_EQ(after("--- a/a.c\n+++ b/a.c\n@@ -3 +3 @@\n-x = 1;\n+x = 3;\n", files)["a.c"],
            "x = 1;\ny = 2;\nx = 3;\n");
}

TEST(Patch, AMissShowsTheNearestLinesAndChangesNothing) {
  Files files = kProgram;
  files["b.c"] = "int b;\n";
  const std::string patch =
      "*** Begin Patch\n*** Update File: b.c\n-int b;\n+int c;\n*** Update File: a.c\n"
      " int two() {\n-  return 3;\n+  return 4;\n*** End Patch\n";
  const base::Result<PatchPlan> planned = plan(patch, files);
  ASSERT_FALSE(planned.ok());
  EXPECT_EQ(planned.error().code(), ErrorCode::kNotFound);
  EXPECT_NE(planned.error().message().find("6\t  return 2;"), std::string::npos)
      << planned.error().message();
  EXPECT_NE(planned.error().message().find("Read the file again"), std::string::npos);
}

TEST(Patch, FilesComeGoAndMove) {
  const std::string patch =
      "*** Begin Patch\n*** Add File: n/new.c\n+int n;\n*** Delete File: a.c\n*** Update File: "
      "b.c\n"
      "*** Move to: c.c\n-int b;\n+int c;\n*** End Patch\n";
  const Files files = {{"a.c", "x\n"}, {"b.c", "int b;\n"}};
  const Files expected = {{"n/new.c", "int n;\n"}, {"c.c", "int c;\n"}};
  EXPECT_EQ(after(patch, files), expected);
  EXPECT_EQ(after(patch, expected), expected);
  const std::string git =
      "diff --git a/a.c b/a.c\ndeleted file mode 100644\n--- a/a.c\n+++ /dev/null\n@@ -1 +0,0 "
      "@@\n-x\n"
      "diff --git a/n.c b/n.c\nnew file mode 100644\n--- /dev/null\n+++ b/n.c\n@@ -0,0 +1,2 "
      "@@\n+one\n"
      "+two\n\\ No newline at end of file\n"
      "diff --git a/b.c b/c.c\nrename from b.c\nrename to c.c\n--- a/b.c\n+++ b/c.c\n@@ -1 +1 @@\n"
      "-int b;\n+int c;\n";
  EXPECT_EQ(after(git, files), (Files{{"n.c", "one\ntwo"}, {"c.c", "int c;\n"}}));
}

TEST(Patch, AnAddedFileNeverOverwritesAnother) {
  const std::string patch = "*** Begin Patch\n*** Add File: a.c\n+int n;\n*** End Patch\n";
  EXPECT_EQ(plan(patch, kProgram).error().code(), ErrorCode::kExists);
}

TEST(Patch, SeveralHunksShiftEachOther) {
  Files files = {{"a.c", ""}};
  for (int i = 1; i <= 30; ++i) files["a.c"] += "line " + std::to_string(i % 10) + "\n";
  const std::string patch =
      "--- a/a.c\n+++ b/a.c\n@@ -2,1 +2,2 @@\n-line 2\n+two a\n+two b\n@@ -12,1 +13,1 @@\n-line "
      "2\n+twelve\n"
      "@@ -22,1 +23,1 @@\n-line 2\n+twenty-two\n";
  const std::string result = after(patch, files)["a.c"];
  EXPECT_EQ(result.find("line 2"), std::string::npos) << result;
  EXPECT_NE(result.find("line 1\ntwenty-two\nline 3"), std::string::npos);
}

TEST(Patch, WhatIsNoPatchSaysWhatOneLooksLike) {
  for (const char* text : {"", "please change a.c", "*** Begin Patch\n*** End Patch\n",
                           "<<<<<<< SEARCH\nx\n=======\ny\n", "@@ -1 +1 @@\n-x\n+y\n"}) {
    EXPECT_EQ(plan(text, kProgram).error().code(), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(Patch, AWriteThatFailsPutsBackWhatWasWritten) {
  const base::TempDir dir;
  ASSERT_TRUE(base::make_directories(dir / "w/blocked").ok());
  ASSERT_TRUE(base::write_file(dir / "w/a.c", "int a;\n").ok());
  const Workspace workspace = Workspace::open(dir / "w").value();
  const std::string hash = *workspace.tree_hash();
  // "blocked" is a folder, so that the second file cannot be written.
  const std::string patch =
      "*** Begin Patch\n*** Update File: a.c\n-int a;\n+int b;\n*** Add File: a.c/x\n+no\n*** End "
      "Patch\n";
  EXPECT_FALSE(apply_patch(patch, workspace).ok());
  EXPECT_EQ(*workspace.tree_hash(), hash);
}

TEST(Patch, PathsThatLeadOutAreRefused) {
  const base::TempDir dir;
  ASSERT_TRUE(base::make_directories(dir / "w").ok());
  const Workspace workspace = Workspace::open(dir / "w").value();
  const std::string patch = "*** Begin Patch\n*** Add File: ../out.c\n+no\n*** End Patch\n";
  EXPECT_EQ(apply_patch(patch, workspace).error().code(), ErrorCode::kPermission);
  EXPECT_FALSE(base::file_exists(dir / "out.c"));
}

}  // namespace
}  // namespace team
