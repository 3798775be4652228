// A mount outlives its daemon: kill -9 of the daemon under load, and no call fails, is lost, or is
// done twice.
#include "base/clock.h"
#include "base/json.h"
#include "fs/fuse/mount.h"
#include "fs/tests/mounted.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace fs::testing {
namespace {

class Kept : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
    store_ = place_ / "store";
    folder_ = place_ / "mnt";
    ASSERT_TRUE(base::make_directories(folder_).ok());
    agentfs({"format", store_});
    agentfs({"mount", store_, folder_, "--durability", GetParam()});
  }
  void TearDown() override { (void)fuse::unmount(folder_, true); }

  int daemon() {
    auto status = base::Json::parse(agentfs({"stat", store_, "--json"}, true).out);
    return status.ok() ? static_cast<int>((*status)["pid"].as_int()) : 0;
  }
  // Kills the daemon; returns when another one answers.
  void kill_daemon() {
    int pid = daemon();
    ASSERT_GT(pid, 0);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    int next = 0;
    for (int i = 0; i < 200 && (next == 0 || next == pid); i++) {
      base::system_clock().sleep_us(50'000);
      next = daemon();
    }
    ASSERT_GT(next, 0) << base::read_file(store_ + "/main.log").value_or("");
    ASSERT_NE(next, pid);
  }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }

  base::TempDir place_{"agentfs-kept"};
  std::string store_, folder_;
};

// Every call of the loop must do what it says, once: a call that was done and then done again would
// fail (EEXIST, ENOENT) or show.
TEST_P(Kept, CallsGoOnWhenTheDaemonIsKilledUnderLoad) {
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::string wrong;
  std::thread load([&] {
    auto must = [&](long result, const char* what) {
      if (result >= 0 || !wrong.empty()) return;
      wrong = std::string(what) + " of round " + std::to_string(rounds) + ": errno " +
              std::to_string(errno);
    };
    while (!stop.load() && wrong.empty()) {
      std::string i = std::to_string(rounds.load());
      must(::mkdir(at("d" + i).c_str(), 0755), "mkdir");
      int fd = ::open(at("d" + i + "/f").c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
      must(fd, "create");
      must(::write(fd, i.data(), i.size()), "write");
      must(::close(fd), "close");
      must(::link(at("d" + i + "/f").c_str(), at("l" + i).c_str()), "link");
      must(::rename(at("d" + i + "/f").c_str(), at("f" + i).c_str()), "rename");
      must(::unlink(at("l" + i).c_str()), "unlink");
      must(::rmdir(at("d" + i).c_str()), "rmdir");
      rounds++;
    }
  });
  for (int kills = 0; kills < 4; kills++) {
    int before = rounds.load();
    kill_daemon();
    for (int i = 0; i < 200 && rounds.load() < before + 5; i++) {
      base::system_clock().sleep_us(20'000);
    }
  }
  stop = true;
  load.join();
  EXPECT_EQ(wrong, "");
  EXPECT_GT(rounds.load(), 20);
  agentfs({"umount", folder_});
  agentfs({"mount", store_, folder_});
  for (int i = 0; i < rounds.load(); i++) {
    struct stat info{};
    std::string name = "f" + std::to_string(i);
    EXPECT_EQ(base::read_file(at(name)).value_or(""), std::to_string(i));
    ASSERT_EQ(::stat(at(name).c_str(), &info), 0);
    EXPECT_EQ(info.st_nlink, 1u);
    EXPECT_FALSE(base::is_directory(at("d" + std::to_string(i))));
  }
  agentfs({"umount", folder_});
  agentfs({"fsck", store_});
}

TEST_P(Kept, OpenFilesSurviveEvenUnlinkedOnes) {
  int before = ::open(at("before").c_str(), O_CREAT | O_RDWR, 0644);
  int after = ::open(at("after").c_str(), O_CREAT | O_RDWR, 0644);
  ASSERT_EQ(::write(before, "first", 5), 5);
  ASSERT_EQ(::write(after, "second", 6), 6);
  ASSERT_EQ(::unlink(at("before").c_str()), 0);
  kill_daemon();
  ASSERT_EQ(::unlink(at("after").c_str()), 0) << "unlinked when the daemon that opened it is gone";
  for (auto [fd, text] : {std::pair{before, "first"}, std::pair{after, "second"}}) {
    std::string want = text;
    ASSERT_EQ(::pwrite(fd, "!", 1, static_cast<off_t>(want.size())), 1);
    char got[16] = {};
    EXPECT_EQ(::pread(fd, got, sizeof(got), 0), static_cast<ssize_t>(want.size() + 1));
    EXPECT_EQ(got, want + "!");
    ::close(fd);
  }
  agentfs({"umount", folder_});
  auto checked = agentfs({"fsck", store_});
  EXPECT_NE(checked.out.find(" 1 inodes"), std::string::npos) << checked.out;
}

INSTANTIATE_TEST_SUITE_P(Modes, Kept, ::testing::Values("fsync", "op"));

}  // namespace
}  // namespace fs::testing
