#include "team/sandbox/workspace.h"

#include "base/files.h"
#include "base/process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace team {
namespace {

using base::ErrorCode;

class WorkspaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(base::make_directories(dir_ / "seed/src").ok());
    ASSERT_TRUE(base::write_file(dir_ / "seed/src/a.c", "int a;\n").ok());
    ASSERT_TRUE(base::write_file(dir_ / "seed/run.sh", "#!/bin/sh\n").ok());
    ASSERT_EQ(::chmod((dir_ / "seed/run.sh").c_str(), 0755), 0);
    ASSERT_TRUE(base::write_file(dir_ / "outside", "secret").ok());
  }
  Workspace fork(const std::string& name) {
    return *Workspace::fork_directory(dir_ / "seed", dir_ / name);
  }
  base::TempDir dir_;
};

TEST_F(WorkspaceTest, ForksHaveTheSameHashAndEveryChangeAnother) {
  const Workspace a = fork("a");
  const Workspace b = fork("b");
  const std::string hash = *a.tree_hash();
  EXPECT_EQ(hash, *b.tree_hash());
  ASSERT_TRUE(b.write("src/a.c", "int b;\n").ok());
  EXPECT_NE(hash, *b.tree_hash());
  ASSERT_TRUE(b.write("src/a.c", "int a;\n").ok());
  EXPECT_EQ(hash, *b.tree_hash());
  ASSERT_EQ(::chmod((a.path() + "/run.sh").c_str(), 0644), 0);
  EXPECT_NE(hash, *a.tree_hash());
}

TEST_F(WorkspaceTest, NoPathLeadsOut) {
  const Workspace work = fork("w");
  ASSERT_EQ(::symlink("../outside", (work.path() + "/link").c_str()), 0);
  ASSERT_EQ(::symlink("/etc", (work.path() + "/etc").c_str()), 0);
  for (const char* path :
       {"../outside", "/etc/passwd", "link", "etc/passwd", "src/../../outside"}) {
    EXPECT_EQ(work.read(path).error().code(), ErrorCode::kPermission) << path;
  }
  for (const char* path : {"../new", "/tmp/new", "etc/new", "src/../../new", "../x/y"}) {
    EXPECT_FALSE(work.write(path, "x").ok()) << path;
    EXPECT_FALSE(work.remove(path).ok()) << path;
  }
  EXPECT_FALSE(base::file_exists(dir_ / "new"));
  // A link itself may be replaced; what it points to stays.
  ASSERT_TRUE(work.write("link", "mine").ok());
  EXPECT_EQ(*base::read_file(dir_ / "outside"), "secret");
}

TEST_F(WorkspaceTest, WritingMakesFoldersAndKeepsTheExecutableBit) {
  const Workspace work = fork("w");
  ASSERT_TRUE(work.write("deep/er/file.txt", "hi").ok());
  EXPECT_EQ(*work.read("deep/er/file.txt"), "hi");
  ASSERT_TRUE(work.write("run.sh", "#!/bin/bash\n").ok());
  EXPECT_EQ(::access((work.path() + "/run.sh").c_str(), X_OK), 0);
  EXPECT_EQ(work.write("src", "x").error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(WorkspaceTest, RestoreUndoesEverything) {
  const Workspace work = fork("w");
  const std::string hash = *work.tree_hash();
  ASSERT_TRUE(work.snapshot_to(dir_ / "snap").ok());
  ASSERT_TRUE(work.remove("src/a.c").ok());
  ASSERT_TRUE(work.write("junk", "x").ok());
  ASSERT_TRUE(work.restore_from(dir_ / "snap").ok());
  EXPECT_EQ(*work.tree_hash(), hash);
}

TEST_F(WorkspaceTest, CommitAndForkRoundTripWithoutHistory) {
  const Workspace work = fork("w");
  ASSERT_TRUE(base::run_process({.argv = {"git", "init", "-q", "--bare", dir_ / "repo"}})->ok());
  const std::string first = *work.commit_to(dir_ / "repo", "", "first");
  EXPECT_EQ(first, *work.commit_to(dir_ / "repo", "", "first"));
  ASSERT_TRUE(work.write("b.c", "int b;\n").ok());
  const std::string second = *work.commit_to(dir_ / "repo", first, "second");
  const Workspace again = *Workspace::fork_commit(dir_ / "repo", second, dir_ / "again");
  EXPECT_EQ(*again.tree_hash(), *work.tree_hash());
  EXPECT_FALSE(base::file_exists(again.path() + "/.git"));
}

TEST_F(WorkspaceTest, DiffNamesRelativePaths) {
  const Workspace work = fork("w");
  ASSERT_TRUE(work.write("src/a.c", "int b;\n").ok());
  const std::string diff = *work.diff_from(dir_ / "seed");
  EXPECT_NE(diff.find("--- a/src/a.c\n+++ b/src/a.c\n"), std::string::npos) << diff;
  EXPECT_EQ(diff.find(dir_.path()), std::string::npos) << diff;
}

}  // namespace
}  // namespace team
