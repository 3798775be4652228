// Packs in an S3-compatible store of other people's making (fs/tests/s3_server.py) that fails every
// tenth request, PostgreSQL as the engine, real servers that are killed.
#include "base/clock.h"
#include "fs/engine/testing/postgres_server.h"
#include "fs/tests/mounted.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace fs::testing {
namespace {

class S3Cluster : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
    std::string why;
    PostgresServer* postgres = shared_postgres(why);
    if (postgres == nullptr) GTEST_SKIP() << why;
    engine_ = postgres->new_store();
    other_engine_ = postgres->new_store();
    start_store();
  }
  void start_store() {
    std::string script = std::string(AGENTFS_SOURCE) + "/tests/s3_server.py";
    base::ProcessSpec spec;
    spec.argv = {"python3", script, place_ / "port", "10"};
    base::Process::Options options;
    options.stdout_path = options.stderr_path = place_ / "store.log";
    auto started = base::Process::start(spec, options);
    ASSERT_TRUE(started.ok());
    store_ = std::make_unique<base::Process>(std::move(*started));
    i64 give_up = base::system_clock().monotonic_us() + 90'000'000;  // it may have to be installed
    while (!base::file_exists(place_ / "port")) {
      auto ended = store_->poll();
      if (ended || base::system_clock().monotonic_us() > give_up) {
        GTEST_SKIP() << "moto does not run: " << base::read_file(place_ / "store.log").value_or("");
      }
      base::system_clock().sleep_us(100'000);
    }
    ::setenv("AWS_ACCESS_KEY_ID", "AKIDTEST", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "s3cret/of+the+test", 1);
    url_ = "s3://packs/of/this?endpoint=http://127.0.0.1:" + *base::read_file(place_ / "port");
  }
  static void put_synced(const std::string& path, const std::string& content) {
    int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
    ASSERT_GE(fd, 0) << path;
    EXPECT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    EXPECT_EQ(::fsync(fd), 0);
    ::close(fd);
  }
  static std::string content(int i) {
    std::string bytes(200'000, '\0');
    unsigned state = static_cast<unsigned>(i) + 1;
    for (char& c : bytes) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
  }

  base::TempDir place_{"agentfs-s3"};
  std::string engine_, other_engine_, url_;
  std::unique_ptr<base::Process> store_;
};

TEST_F(S3Cluster, NothingSyncedIsLostWhenServersDieAndTheStoreFailsEveryTenthRequest) {
  agentfs({"format", place_ / "one", "--engine", engine_, "--blobs", url_});
  std::string token = token_file(place_, place_ / "one");
  constexpr int kRounds = 4;
  constexpr int kFiles = 25;
  for (int round = 0; round < kRounds; ++round) {
    Served one(place_ / "one", {"--engine", engine_});
    Mount work(one.address(), {"--token-file", token});
    for (int i = round * kFiles; i < (round + 1) * kFiles; ++i) {
      put_synced(work / ("f" + std::to_string(i)), content(i));
    }
    one.kill();
    work.abandon();
    {
      Served again(place_ / "one", {"--engine", engine_});
      Mount back(again.address(), {"--token-file", token});
      EXPECT_EQ(base::read_file(back / "f0").value_or(""), content(0));
      back.unmount();
      again.stop();  // gives the lease back
    }
    // Folds what the snapshot stands on into packs; a workspace is folded when its log is large.
    agentfs({"snapshot", place_ / "one", "main@s" + std::to_string(round)});
    agentfs({"gc", place_ / "one"});
  }
  ASSERT_TRUE(base::remove_tree(place_ / "one").ok());  // the machine, with its cache
  Served two(place_ / "two", {"--engine", engine_, "--steal"});
  agentfs({"fork", place_ / "two", "main@s" + std::to_string(kRounds - 1), "fork"});
  Mount work(two.address("fork"),
             {"--token-file", token_file(place_, place_ / "two", {"--workspace", "*"})});
  for (int i = 0; i < kRounds * kFiles; ++i) {
    EXPECT_TRUE(base::read_file(work / ("f" + std::to_string(i))).value_or("") == content(i)) << i;
  }
  EXPECT_FALSE(base::list_directory(place_ / "two/cache").value_or({}).empty());
  agentfs({"fsck", place_ / "two"});
  auto other =
      agentfs({"format", place_ / "three", "--engine", other_engine_, "--blobs", url_}, true);
  EXPECT_NE(other.err.find("holds packs of another store"), std::string::npos) << other.err;
}

TEST_F(S3Cluster, AMissingEngineAndBadCredentialsAreASentenceEach) {
  auto no_engine = agentfs({"format", place_ / "x", "--blobs", url_}, true);
  EXPECT_NE(no_engine.err.find("add --engine URL"), std::string::npos) << no_engine.err;
  ::unsetenv("AWS_SECRET_ACCESS_KEY");
  auto no_key = agentfs({"format", place_ / "x", "--engine", engine_, "--blobs", url_}, true);
  EXPECT_NE(no_key.err.find("there are no credentials"), std::string::npos) << no_key.err;
  ::setenv("AWS_SECRET_ACCESS_KEY", "wrong", 1);
  auto wrong = agentfs({"format", place_ / "x", "--engine", engine_, "--blobs", url_}, true);
  EXPECT_NE(wrong.err.find("SignatureDoesNotMatch"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace fs::testing
