// One mount for all POSIX tests of a program, a fresh folder for each test.
#pragma once

#include "fs/tests/mounted.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace fs::testing {

class PosixTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::getenv("AGENTFS_TEST_FOLDER") == nullptr && can_mount()) {
      mount_ = std::make_unique<Mount>();
    }
  }
  static void TearDownTestSuite() { mount_.reset(); }

  void SetUp() override {
    const char* given = std::getenv("AGENTFS_TEST_FOLDER");
    if (given == nullptr && !mount_) GTEST_SKIP() << "this machine cannot mount FUSE";
    std::string root = given != nullptr ? given : mount_->path();
    here_ = root + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    (void)base::remove_tree(here_);
    ASSERT_EQ(::mkdir(here_.c_str(), 0755), 0) << here_;
  }
  void TearDown() override {
    if (!here_.empty()) (void)base::remove_tree(here_);
  }

  std::string at(const std::string& name) const { return here_ + "/" + name; }
  // Creates or replaces.
  void write(const std::string& name, const std::string& content) {
    int fd = ::open(at(name).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    ASSERT_GE(fd, 0) << name;
    EXPECT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    EXPECT_EQ(::close(fd), 0);
  }
  std::string read(const std::string& name) const {
    return base::read_file(at(name)).value_or("<unreadable>");
  }
  struct stat stat_of(const std::string& name) const {
    struct stat info{};
    EXPECT_EQ(::lstat(at(name).c_str(), &info), 0) << name;
    return info;
  }
  bool there(const std::string& name) const {
    struct stat info{};
    return ::lstat(at(name).c_str(), &info) == 0;
  }

  std::string here_;
  inline static std::unique_ptr<Mount> mount_;
};

inline i64 nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace fs::testing
