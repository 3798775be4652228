// Two mounts of one served workspace, with real processes: what each sees of the other, locks,
// tokens, and what happens when a mount stands still, dies, or loses its server.
#include "base/clock.h"
#include "fs/tests/mounted.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <thread>

namespace fs::testing {
namespace {

class Shared : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
    store_ = place_ / "store";
    agentfs({"format", store_});
    served_ = std::make_unique<Served>(store_);
    token_ = token_file(place_, store_);
    first_ = mount();
    second_ = mount();
  }
  std::unique_ptr<Mount> mount() {
    return std::make_unique<Mount>(served_->address(),
                                   std::vector<std::string>{"--token-file", token_});
  }

  base::TempDir place_{"agentfs-shared"};
  std::string store_, token_;
  std::unique_ptr<Served> served_;
  std::unique_ptr<Mount> first_, second_;
};

i64 seconds_since(i64 began_us) {
  return (base::system_clock().monotonic_us() - began_us) / 1'000'000;
}

TEST_F(Shared, AWorkspaceThatIsNotThereIsRefusedAndTheServerGoesOn) {
  std::string any = token_file(place_, store_, {"--workspace", "*"});
  std::string folder = place_ / "none";
  ASSERT_TRUE(base::make_directories(folder).ok());
  auto refused = agentfs({"mount", served_->address("none"), folder, "--token-file", any}, true);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("there is no workspace 'none'"), std::string::npos) << refused.err;
  EXPECT_TRUE(base::write_file(*first_ / "f", "still served").ok());
  EXPECT_EQ(base::read_file(*second_ / "f").value_or(""), "still served");
}

TEST_F(Shared, ExclusiveCreationHasOneWinnerAmongManyTries) {
  constexpr int tries = 100;
  int won[2] = {};
  auto race = [&](Mount& mount, int& count) {
    for (int i = 0; i < tries; i++) {
      std::string name = mount / ("lock" + std::to_string(i));
      int fd = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
      if (fd >= 0) {
        count++;
        ::close(fd);
      } else {
        EXPECT_EQ(errno, EEXIST);
      }
    }
  };
  {
    std::jthread one([&] { race(*first_, won[0]); });
    std::jthread two([&] { race(*second_, won[1]); });
  }
  EXPECT_EQ(won[0] + won[1], tries);
}

TEST_F(Shared, AppendsFromBothSidesAreAllThere) {
  constexpr int lines = 200;
  auto append = [](const std::string& path, const std::string& line) {
    int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    for (int i = 0; i < lines; i++) {
      EXPECT_EQ(::write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    }
    ::close(fd);
  };
  {
    std::jthread one([&] { append(*first_ / "log", "from the first\n"); });
    std::jthread two([&] { append(*second_ / "log", "from the second\n"); });
  }
  std::string got = base::read_file(*first_ / "log").value_or("");
  EXPECT_EQ(got.size(), size_t{lines} * (15 + 16));
  EXPECT_EQ(got, base::read_file(*second_ / "log").value_or(""));
}

bool try_lock(int fd, short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

TEST_F(Shared, LocksHoldAcrossMountsAndEndWithTheirHolder) {
  ASSERT_TRUE(base::write_file(*first_ / "f", "x").ok());
  int one = ::open((*first_ / "f").c_str(), O_RDWR);
  int two = ::open((*second_ / "f").c_str(), O_RDWR);
  ASSERT_GE(one, 0);
  ASSERT_GE(two, 0);
  EXPECT_EQ(::flock(one, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(result(::flock(two, LOCK_EX | LOCK_NB)), -EWOULDBLOCK);
  i64 began = base::system_clock().monotonic_us();
  {
    std::jthread unlocks([&] {
      base::system_clock().sleep_us(200'000);
      EXPECT_EQ(::flock(one, LOCK_UN), 0);
    });
    EXPECT_EQ(::flock(two, LOCK_EX), 0) << "waits until the other mount lets go";
  }
  EXPECT_GE(base::system_clock().monotonic_us() - began, 190'000);
  ::close(two);
  // The kernel tells us of a close after close(2) has returned.
  long closed = -1;
  for (int i = 0; i < 100 && closed != 0; i++) {
    closed = result(::flock(one, LOCK_EX | LOCK_NB));
    if (closed != 0) base::system_clock().sleep_us(20'000);
  }
  EXPECT_EQ(closed, 0) << "closing ends a lock";
  ::close(one);
  EXPECT_TRUE(base::write_file(*second_ / "f", "y").ok());
}

TEST_F(Shared, ByteRangeLocksOfADeadMountAreFreed) {
  ASSERT_TRUE(base::write_file(*first_ / "f", "x").ok());
  int one = ::open((*first_ / "f").c_str(), O_RDWR);
  int two = ::open((*second_ / "f").c_str(), O_RDWR);
  EXPECT_TRUE(try_lock(one, F_WRLCK));
  EXPECT_FALSE(try_lock(two, F_WRLCK));
  first_->kill();
  bool got = false;
  for (int i = 0; i < 100 && !got; i++) {
    got = try_lock(two, F_WRLCK);
    if (!got) base::system_clock().sleep_us(20'000);
  }
  EXPECT_TRUE(got);
  ::close(one);
  ::close(two);
}

TEST_F(Shared, AMountThatStandsStillHoldsOthersUpOnlyForTheLease) {
  ASSERT_TRUE(base::write_file(*second_ / "f", "old").ok());
  ASSERT_EQ(base::read_file(*first_ / "f").value_or(""), "old");
  ASSERT_EQ(::kill(second_->daemon_pid(), SIGSTOP), 0);
  i64 began = base::system_clock().monotonic_us();
  EXPECT_TRUE(base::write_file(*first_ / "f", "new").ok());
  EXPECT_LE(seconds_since(began), 7);
  began = base::system_clock().monotonic_us();
  EXPECT_TRUE(base::write_file(*first_ / "g", "more").ok());
  EXPECT_LE(seconds_since(began), 1) << "it is expelled now";
  ASSERT_EQ(::kill(second_->daemon_pid(), SIGCONT), 0);
  base::system_clock().sleep_us(300'000);
  EXPECT_NE(base::read_file(*second_ / "f").value_or("<error>"), "old")
      << "a mount whose lease ended shows no old names";
  second_->abandon();
}

TEST_F(Shared, CallsFailWithoutTheServerAndAFreshMountSeesEverything) {
  ASSERT_TRUE(base::write_file(*first_ / "f", "before").ok());
  served_->kill();
  EXPECT_FALSE(base::write_file(*first_ / "g", "lost").ok());
  first_->abandon();
  second_->abandon();
  served_ = std::make_unique<Served>(store_);
  auto again = mount();
  EXPECT_EQ(base::read_file(*again / "f").value_or(""), "before");
}

TEST_F(Shared, TokensOpenOnlyWhatTheySay) {
  std::string folder = place_ / "m";
  ASSERT_TRUE(base::make_directories(folder).ok());
  std::string other = token_file(place_, store_, {"--workspace", "another"});
  auto refused = agentfs({"mount", served_->address(), folder, "--token-file", other}, true);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("another"), std::string::npos) << refused.err;
  ASSERT_TRUE(base::write_file(place_ / "forged", "e30.AAAA").ok());
  EXPECT_NE(agentfs({"mount", served_->address(), folder, "--token-file", place_ / "forged"}, true)
                .exit_code,
            0);
  Mount reader(served_->address(), {"--token-file", token_file(place_, store_, {"--read-only"})});
  ASSERT_TRUE(base::write_file(*first_ / "f", "seen").ok());
  EXPECT_EQ(base::read_file(reader / "f").value_or(""), "seen");
  EXPECT_EQ(result(::open((reader / "g").c_str(), O_CREAT | O_WRONLY, 0644)), -EROFS);
}

}  // namespace
}  // namespace fs::testing
