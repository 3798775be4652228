// The cluster profile with real processes: PostgreSQL as the engine, several servers with folders
// of their own, mounts that know only a server and a token.
#include "base/clock.h"
#include "fs/engine/testing/postgres_server.h"
#include "fs/tests/mounted.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

namespace fs::testing {
namespace {

class Cluster : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
    std::string why;
    postgres_ = shared_postgres(why);
    if (postgres_ == nullptr) GTEST_SKIP() << why;
    engine_ = postgres_->new_store();
    agentfs({"format", place_ / "one", "--engine", engine_, "--blobs", place_ / "blobs"});
    token_ = token_file(place_, place_ / "one", {"--agent", "tester"});
  }
  // A server with a folder of its own, which joins the store when it is new.
  std::unique_ptr<Served> serve(const std::string& folder, int port = 0) {
    return std::make_unique<Served>(place_ / folder, std::vector<std::string>{"--engine", engine_},
                                    port);
  }
  std::unique_ptr<Mount> mount(const Served& server, std::vector<std::string> more = {}) {
    std::vector<std::string> options{"--token-file", token_};
    options.insert(options.end(), more.begin(), more.end());
    return std::make_unique<Mount>(server.address(), options);
  }
  static void put_synced(const std::string& path, const std::string& content) {
    int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_GE(fd, 0) << path;
    EXPECT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    EXPECT_EQ(::fsync(fd), 0);
    ::close(fd);
  }

  base::TempDir place_{"agentfs-cluster"};
  PostgresServer* postgres_ = nullptr;
  std::string engine_, token_;
};

TEST_F(Cluster, WhatOneServerStoredAnotherServerShows) {
  {
    auto one = serve("one");
    auto work = mount(*one);
    put_synced(*work / "small", "hello");
    put_synced(*work / "large", std::string(3'000'000, 'x'));
    work->unmount();
    one->stop();
  }
  agentfs({"gc", place_ / "one"});
  auto two = serve("two");
  auto work = mount(*two);
  EXPECT_EQ(base::read_file(*work / "small").value_or(""), "hello");
  EXPECT_EQ(base::read_file(*work / "large").value_or(""), std::string(3'000'000, 'x'));
}

TEST_F(Cluster, AServerWhoseMachineIsGoneIsFollowedByAnotherOneWithAllThatWasSynced) {
  auto one = serve("one");
  {
    auto work = mount(*one);
    for (int i = 0; i < 20; ++i) put_synced(*work / ("f" + std::to_string(i)), std::to_string(i));
    one->kill();
    ASSERT_TRUE(base::remove_tree(place_ / "one").ok());  // the machine, not only the process
    work->abandon();
  }
  auto two = serve("two");  // waits until the dead server's lease is over
  std::unique_ptr<Mount> work;
  i64 give_up = base::system_clock().monotonic_us() + 40'000'000;
  std::string folder = place_ / "probe";
  ASSERT_TRUE(base::make_directories(folder).ok());
  while (agentfs({"mount", two->address(), folder, "--token-file", token_}, true).exit_code != 0) {
    ASSERT_LT(base::system_clock().monotonic_us(), give_up) << two->messages();
    base::system_clock().sleep_us(200'000);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(base::read_file(folder + "/f" + std::to_string(i)).value_or(""), std::to_string(i));
  }
  agentfs({"umount", folder});
  two->stop();
  EXPECT_NE(agentfs({"fsck", place_ / "two"}).out.find("checked"), std::string::npos);
}

TEST_F(Cluster, AKilledServerThatComesBackHasWhatNobodySynced) {
  for (int round = 0; round < 3; ++round) {
    auto one = serve("one");
    auto work = mount(*one);
    std::string name = "round" + std::to_string(round);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(base::write_file(*work / (name + "." + std::to_string(i)), name).ok());
    }
    one->kill();
    work->abandon();
    auto again = serve("one");
    auto back = mount(*again);
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(base::read_file(*back / (name + "." + std::to_string(i))).value_or(""), name);
    }
  }
}

TEST_F(Cluster, ForksSnapshotsAndFsckWorkFromAnyServersFolder) {
  {
    auto one = serve("one");
    auto work = mount(*one);
    put_synced(*work / "f", "first");
    work->unmount();
    one->stop();
  }
  agentfs({"snapshot", place_ / "one", "main@good"});
  serve("two")->stop();
  agentfs({"fork", place_ / "two", "main@good", "agent-1"});
  {
    auto two = serve("two");
    Mount fork(two->address("agent-1"),
               {"--token-file", token_file(place_, place_ / "two", {"--workspace", "*"})});
    EXPECT_EQ(base::read_file(fork / "f").value_or(""), "first");
    put_synced(fork / "g", "second");
  }
  EXPECT_EQ(agentfs({"diff", place_ / "one", "main", "agent-1"}).out, "A /g\n");
  EXPECT_NE(agentfs({"log", place_ / "one", "agent-1"}).out.find("/g"), std::string::npos);
  agentfs({"gc", place_ / "one"});
  agentfs({"fsck", place_ / "two"});
}

TEST_F(Cluster, NeitherMountNorFolderListingShowsThePassword) {
  auto one = serve("one");
  auto work = mount(*one);
  std::string password = postgres_->password();
  EXPECT_EQ(one->messages().find(password), std::string::npos);
  EXPECT_EQ(work->messages().find(password), std::string::npos);
  // Whatever a mount's process can know: its environment and its command line.
  std::string pid = std::to_string(work->daemon_pid());
  for (const char* file : {"/environ", "/cmdline"}) {
    std::string text = base::read_file("/proc/" + pid + file).value_or("");
    EXPECT_EQ(text.find(password), std::string::npos) << file;
    EXPECT_EQ(text.find("postgres"), std::string::npos) << file;
  }
  auto again = agentfs({"format", place_ / "three", "--engine", engine_}, true);
  EXPECT_NE(again.exit_code, 0);
  EXPECT_NE(again.err.find("holds a store already"), std::string::npos) << again.err;
  EXPECT_EQ(again.err.find(password), std::string::npos) << again.err;
}

}  // namespace
}  // namespace fs::testing
