#include "base/files.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(Files, ReplaceLeavesNothingBeside) {
  TempDir dir;
  ASSERT_TRUE(write_file(dir / "a", "old").ok());
  ASSERT_TRUE(replace_file(dir / "a", "new").ok());
  EXPECT_EQ(read_file(dir / "a").value(), "new");
  EXPECT_EQ(list_directory(dir.path()).value(), std::vector<std::string>{"a"});
}

TEST(Files, ListTreeIsSortedAndRelative) {
  TempDir dir;
  ASSERT_TRUE(make_directories(dir / "b/c").ok());
  ASSERT_TRUE(write_file(dir / "b/c/2", "").ok());
  ASSERT_TRUE(write_file(dir / "1", "").ok());
  EXPECT_EQ(list_tree(dir.path()).value(), (std::vector<std::string>{"1", "b/c/2"}));
}

TEST(Files, ErrorsNameThePath) {
  Result<std::string> missing = read_file("/no/such/file");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message().find("/no/such/file"), std::string::npos);
}

TEST(Files, TempDirGoesWithItsObject) {
  std::string path;
  {
    TempDir dir;
    path = dir.path();
    ASSERT_TRUE(write_file(dir / "x", "1").ok());
    EXPECT_TRUE(is_directory(path));
  }
  EXPECT_FALSE(file_exists(path));
}

}  // namespace
}  // namespace base
