// Private mounts of a served workspace, with real processes: the lease goes to the mount, its
// changes follow, viewers watch, and what happens when client, server or wire fail under load.
#include "base/clock.h"
#include "fs/tests/mounted.h"
#include "fs/tests/proxy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

namespace fs::testing {
namespace {

constexpr int kLeaseSeconds = 3;

class Private : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
    store_ = place_ / "store";
    agentfs({"format", store_});
    token_ = token_file(place_, store_, {"--agent", "tester"});
    serve();
  }
  void serve(int port = 0) {
    served_ = std::make_unique<Served>(
        store_, std::vector<std::string>{"--lease-seconds", std::to_string(kLeaseSeconds)}, port);
  }
  // `journal` names the mount to the server: the same one is the same client again.
  std::unique_ptr<Mount> mount(const std::string& journal, std::vector<std::string> more = {},
                               int port = 0) {
    std::vector<std::string> options = {"--token-file", token_, "--private", "--journal",
                                        place_ / journal};
    options.insert(options.end(), more.begin(), more.end());
    return std::make_unique<Mount>(address(port), options);
  }
  std::string address(int port = 0) const {
    return "agentfs://127.0.0.1:" + std::to_string(port == 0 ? served_->port() : port) + "/main";
  }
  std::unique_ptr<Mount> viewer() {
    return std::make_unique<Mount>(address(),
                                   std::vector<std::string>{"--token-file", token_, "--read-only"});
  }
  std::string list() { return agentfs({"list", store_}).out; }

  base::TempDir place_{"agentfs-private"};
  std::string store_, token_;
  std::unique_ptr<Served> served_;
};

// Creates files until told to stop or a call fails; knows how many are acknowledged.
class Writer {
 public:
  explicit Writer(std::string folder, bool sync = false) : folder_(std::move(folder)) {
    thread_ = std::thread([this, sync] {
      while (!stop_.load() && step(sync)) done_++;
    });
  }
  ~Writer() { stop(); }
  int stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return done_.load();
  }
  int done() const { return done_.load(); }
  static std::string content(int i) { return "content of file " + std::to_string(i); }

 private:
  bool step(bool sync) {
    int i = done_.load();
    std::string name = folder_ + "/f" + std::to_string(i);
    // A server started meanwhile must not inherit it: the mount would be busy for ever.
    int fd = ::open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0) return false;
    std::string text = content(i);
    bool good = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (good && sync) good = ::fsync(fd) == 0;
    return ::close(fd) == 0 && good;
  }
  std::string folder_;
  std::atomic<bool> stop_{false};
  std::atomic<int> done_{0};
  std::thread thread_;
};

// How many of the writer's first `count` files are there and whole.
int whole_files(const std::string& folder, int count) {
  int good = 0;
  for (int i = 0; i < count; i++) {
    auto text = base::read_file(folder + "/f" + std::to_string(i));
    if (text.ok() && *text == Writer::content(i)) good++;
  }
  return good;
}

bool eventually(const std::function<bool()>& holds, int seconds = 20) {
  i64 end = base::system_clock().monotonic_us() + i64{seconds} * 1'000'000;
  while (!holds()) {
    if (base::system_clock().monotonic_us() > end) return false;
    base::system_clock().sleep_us(50'000);
  }
  return true;
}

TEST_F(Private, WhatItWroteIsThereForTheNextHolderAndForASharedMount) {
  {
    auto one = mount("one");
    ASSERT_TRUE(base::make_directories(*one / "src").ok());
    ASSERT_TRUE(base::write_file(*one / "src/a", std::string(300'000, 'x')).ok());
    EXPECT_EQ(base::read_file(*one / "src/a").value_or("").size(), 300'000u);
  }
  {
    auto two = mount("two");
    EXPECT_EQ(base::read_file(*two / "src/a").value_or(""), std::string(300'000, 'x'));
    ASSERT_TRUE(base::write_file(*two / "src/b", "second").ok());
  }
  Mount shared(address(), {"--token-file", token_});
  EXPECT_EQ(base::read_file(shared / "src/b").value_or(""), "second");
  EXPECT_TRUE(base::write_file(shared / "src/c", "third").ok());
}

TEST_F(Private, ASecondWriterIsRefusedAndAViewerIsNot) {
  auto one = mount("one");
  ASSERT_TRUE(base::write_file(*one / "f", "old").ok());
  std::string folder = place_ / "m";
  ASSERT_TRUE(base::make_directories(folder).ok());
  auto refused = agentfs({"mount", address(), folder, "--token-file", token_, "--private",
                          "--journal", place_ / "two"},
                         true);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("held by tester"), std::string::npos) << refused.err;
  refused = agentfs({"mount", address(), folder, "--token-file", token_}, true);
  EXPECT_NE(refused.exit_code, 0) << "nor may it be shared";
  auto watch = viewer();
  EXPECT_TRUE(eventually([&] { return base::read_file(*watch / "f").value_or("") == "old"; }));
  ASSERT_TRUE(base::write_file(*one / "f", "new").ok());
  EXPECT_TRUE(eventually([&] { return base::read_file(*watch / "f").value_or("") == "new"; }))
      << "a viewer's cache is told what changed";
  EXPECT_EQ(result(::open((*watch / "g").c_str(), O_CREAT | O_WRONLY, 0644)), -EROFS);
  EXPECT_TRUE(base::write_file(*one / "g", "still the holder").ok());
}

TEST_F(Private, AfterFsyncAViewerSeesTheChangeAtOnce) {
  auto one = mount("one");
  auto watch = viewer();
  ASSERT_TRUE(base::write_file(*one / "f", "0").ok());
  for (int i = 1; i < 20; i++) {
    int fd = ::open((*one / "f").c_str(), O_WRONLY | O_TRUNC);
    std::string text = std::to_string(i);
    ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ASSERT_EQ(::fsync(fd), 0);
    ::close(fd);
    EXPECT_EQ(base::read_file(*watch / "f").value_or(""), text);
  }
}

TEST_F(Private, ADaemonKilledUnderLoadLosesNothingAcknowledged) {
  for (int round = 0; round < 3; round++) {
    auto one = mount("one");
    std::string folder = *one / ("round" + std::to_string(round));
    ASSERT_TRUE(base::make_directories(folder).ok());
    Writer writer(folder);
    EXPECT_TRUE(eventually([&] { return writer.done() > 50; }));
    ::kill(one->daemon_pid(), SIGKILL);
    int acknowledged = writer.stop();
    one->kill();
    auto again = mount("one");
    EXPECT_EQ(whole_files(*again / ("round" + std::to_string(round)), acknowledged), acknowledged);
  }
}

TEST_F(Private, AServerKilledUnderLoadLosesNothingAndTheMountGoesOn) {
  auto one = mount("one");
  Writer writer(one->path());
  for (int round = 0; round < 3; round++) {
    int before = writer.done();
    EXPECT_TRUE(eventually([&] { return writer.done() > before + 30; }));
    int port = served_->port();
    served_->kill();
    serve(port);
    EXPECT_TRUE(eventually([&] { return writer.done() > before + 60; })) << one->messages();
  }
  int acknowledged = writer.stop();
  one->unmount();
  auto two = mount("two");
  EXPECT_EQ(whole_files(two->path(), acknowledged), acknowledged);
}

TEST_F(Private, ACutConnectionIsMadeAnewAndNobodyNotices) {
  Proxy wire(served_->port());
  auto one = mount("one", {}, wire.port());
  Writer writer(one->path(), true);
  for (int round = 0; round < 5; round++) {
    int before = writer.done();
    EXPECT_TRUE(eventually([&] { return writer.done() > before + 5; })) << one->messages();
    wire.cut();
  }
  int acknowledged = writer.stop();
  one->unmount();
  auto two = mount("two");
  EXPECT_EQ(whole_files(two->path(), acknowledged), acknowledged);
}

TEST_F(Private, APartitionedWriterIsFencedAndItsLastChangesBecomeAFork) {
  Proxy wire(served_->port());
  auto one = mount("one", {}, wire.port());
  ASSERT_TRUE(base::write_file(*one / "common", "seen by all").ok());
  int fd = ::open((*one / "common").c_str(), O_RDONLY);
  ASSERT_EQ(::fsync(fd), 0);
  wire.partition(true);
  ASSERT_TRUE(base::write_file(*one / "unseen", "only here").ok()) << "the lease still lasts";
  i64 began = base::system_clock().monotonic_us();
  auto two = mount("two", {"--steal"});
  EXPECT_LT(base::system_clock().monotonic_us() - began, 2 * i64{kLeaseSeconds} * 1'000'000);
  EXPECT_TRUE(base::write_file(*two / "common", "written by the second").ok());
  EXPECT_FALSE(base::file_exists(*two / "unseen"));
  EXPECT_FALSE(base::read_file(*one / "common").ok()) << "a mount without its lease shows nothing";
  EXPECT_FALSE(base::write_file(*one / "late", "no").ok());
  wire.partition(false);
  EXPECT_TRUE(eventually([&] { return list().find("main.rescue-") != std::string::npos; }))
      << one->messages() << served_->messages();
  EXPECT_FALSE(base::write_file(*one / "late", "no").ok()) << "it stays fenced";
  ::close(fd);
  one->abandon();
  two->unmount();
  served_->stop();
  std::string all = list();
  std::string fork = all.substr(all.find("main.rescue-"));
  fork = fork.substr(0, fork.find_first_of(" \n\t"));
  EXPECT_EQ(agentfs({"diff", store_, "main", fork}).out, "M /common\nA /unseen\n");
  Mount rescued(store_, {"--workspace", fork});
  EXPECT_EQ(base::read_file(rescued / "unseen").value_or(""), "only here");
  EXPECT_EQ(base::read_file(rescued / "common").value_or(""), "seen by all");
  rescued.unmount();
  agentfs({"fsck", store_});
}

TEST_F(Private, ADeadWriterThatComesBackTooLateFindsItsTailInAFork) {
  Proxy wire(served_->port());
  auto one = mount("one", {}, wire.port());
  ASSERT_TRUE(base::write_file(*one / "common", "x").ok());
  int fd = ::open((*one / "common").c_str(), O_RDONLY);
  ASSERT_EQ(::fsync(fd), 0);
  ::close(fd);
  wire.partition(true);
  ASSERT_TRUE(base::write_file(*one / "unseen", "only here").ok());
  one->kill();
  auto two = mount("two", {"--steal"});
  ASSERT_TRUE(base::write_file(*two / "f", "y").ok());
  two->unmount();
  wire.partition(false);
  auto again = mount("one");
  EXPECT_FALSE(base::file_exists(*again / "unseen"));
  EXPECT_EQ(base::read_file(*again / "f").value_or(""), "y");
  EXPECT_NE(list().find("main.rescue-"), std::string::npos) << again->messages();
}

TEST_F(Private, AStoppedWriterThatWakesAfterItsLeaseWritesNothingMore) {
  auto one = mount("one");
  ASSERT_TRUE(base::write_file(*one / "f", "old").ok());
  ASSERT_EQ(base::read_file(*one / "f").value_or(""), "old");
  int fd = ::open((*one / "f").c_str(), O_RDONLY);
  ASSERT_EQ(::fsync(fd), 0);
  ASSERT_EQ(::kill(one->daemon_pid(), SIGSTOP), 0);
  auto two = mount("two", {"--steal"});
  ASSERT_TRUE(base::write_file(*two / "f", "new").ok());
  ASSERT_EQ(::kill(one->daemon_pid(), SIGCONT), 0);
  EXPECT_FALSE(base::write_file(*one / "late", "no").ok());
  EXPECT_TRUE(eventually([&] { return !base::read_file(*one / "f").ok(); }))
      << "names of the past are gone from the kernel";
  char byte = 0;
  EXPECT_TRUE(eventually([&] { return ::pread(fd, &byte, 1, 0) < 0; })) << "and its pages";
  ::close(fd);
  one->abandon();
  EXPECT_FALSE(base::file_exists(*two / "late"));
}

TEST_F(Private, AHolderThatIsAskedHandsOverAtOnce) {
  auto one = mount("one");
  Writer writer(one->path());
  EXPECT_TRUE(eventually([&] { return writer.done() > 20; }));
  i64 began = base::system_clock().monotonic_us();
  auto two = mount("two", {"--steal"});
  EXPECT_LT(base::system_clock().monotonic_us() - began, i64{kLeaseSeconds} * 1'000'000)
      << "no lease had to run out";
  int acknowledged = writer.stop();
  EXPECT_EQ(whole_files(two->path(), acknowledged), acknowledged);
  EXPECT_TRUE(base::write_file(*two / "g", "mine").ok());
  one->abandon();
  EXPECT_EQ(list().find("rescue"), std::string::npos) << "nothing had to be saved";
}

}  // namespace
}  // namespace fs::testing
