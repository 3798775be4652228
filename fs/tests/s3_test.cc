// Packs in an S3-compatible store of other people's making (fs/tests/s3_server.py) that fails every
// tenth request, PostgreSQL as the engine, real servers that are killed.
#include "base/clock.h"
#include "fs/blob/s3_blobs.h"
#include "fs/engine/postgres_engine.h"
#include "fs/engine/testing/postgres_server.h"
#include "fs/pack/pack_set.h"
#include "fs/tests/mounted.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

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
  static std::string content(int i, size_t size = 200'000) {
    std::string bytes(size, '\0');
    unsigned state = static_cast<unsigned>(i) + 1;
    for (char& c : bytes) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
  }

  // PUTs stand still from now on, until release(); see s3_server.py.
  void hold(const std::string& mode) {
    (void)::unlink((place_ / "port.held").c_str());
    ASSERT_TRUE(base::write_file(place_ / "port.hold", mode).ok());
  }
  bool eventually_held() const {
    i64 give_up = base::system_clock().monotonic_us() + 60'000'000;
    while (!base::file_exists(place_ / "port.held")) {
      if (base::system_clock().monotonic_us() > give_up) return false;
      base::system_clock().sleep_us(5'000);
    }
    return true;
  }
  void release() { ASSERT_EQ(::unlink((place_ / "port.hold").c_str()), 0); }

  // Names of the packs in the object store, and of those that the engine knows.
  std::set<std::string> stored_packs() {
    S3Url url = *parse_s3_url(url_);
    auto names = S3Blobs(url, *find_s3_credentials(url)).list("");
    EXPECT_TRUE(names.ok());
    return names.ok() ? std::set(names->begin(), names->end()) : std::set<std::string>();
  }
  std::set<std::string> known_packs() {
    std::set<std::string> names;
    auto engine = open_postgres_engine(engine_, {});
    EXPECT_TRUE(engine.ok());
    if (!engine.ok()) return names;
    for (const Row& row : *(*engine)->scan("pack/")) {
      names.insert(PackSet::name_of(std::strtoull(row.key.c_str() + 5, nullptr, 10)));
    }
    return names;
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

// Writes synced files until told to stop or a call fails. A checkpoint begins after 128 MiB.
class SyncedWriter {
 public:
  static constexpr size_t kFileBytes = 2 << 20;

  SyncedWriter(std::string folder, int first, std::string (*content)(int, size_t))
      : folder_(std::move(folder)), first_(first), content_(content) {
    thread_ = std::thread([this] {
      while (!stop_.load() && write_one()) written_++;
    });
  }
  ~SyncedWriter() { stop(); }
  // The number behind the last file that is synced.
  int stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return first_ + written_.load();
  }

 private:
  bool write_one() {
    int number = first_ + written_.load();
    std::string bytes = content_(number, kFileBytes);
    std::string path = folder_ + "/f" + std::to_string(number);
    int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return false;
    bool good = ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
                ::fsync(fd) == 0;
    return ::close(fd) == 0 && good;
  }

  std::string folder_;
  int first_;
  std::string (*content_)(int, size_t);
  std::atomic<bool> stop_{false};
  std::atomic<int> written_{0};
  std::thread thread_;
};

TEST_F(S3Cluster, AKillInTheMiddleOfAnUploadLosesNothingAndLeavesNoPackBehind) {
  agentfs({"format", place_ / "one", "--engine", engine_, "--blobs", url_});
  std::string token = token_file(place_, place_ / "one");
  int files = 0;
  for (const char* mode : {"half", "stored"}) {
    for (bool kill_server : {true, false}) {
      SCOPED_TRACE(std::string(mode) + (kill_server ? ", server" : ", mount"));
      auto serve = [&] {
        return std::make_unique<Served>(place_ / "one",
                                        std::vector<std::string>{"--engine", engine_});
      };
      auto server = serve();
      std::vector<std::string> options = {"--token-file", token, "--private", "--journal",
                                          place_ / "journal"};
      Mount work(server->address(), options);
      hold(mode);
      SyncedWriter writer(work.path(), files, &content);
      ASSERT_TRUE(eventually_held()) << "no checkpoint began";
      if (kill_server) server->kill();
      work.kill();
      files = writer.stop();
      release();
      if (kill_server) server = serve();
      Mount back(server->address(), options);
      for (int i = 0; i < files; ++i) {
        ASSERT_TRUE(base::read_file(back / ("f" + std::to_string(i))).value_or("") ==
                    content(i, SyncedWriter::kFileBytes))
            << i << " of " << files << "; " << server->messages() << back.messages();
      }
      put_synced(back / "more", content(files));
      back.unmount();
      server->stop();
      agentfs({"gc", place_ / "one"});
      EXPECT_EQ(stored_packs(), known_packs());
      agentfs({"fsck", place_ / "one"});
    }
  }
}

// Two packs take longer than the 15 seconds for which the server's own lease lives.
TEST_F(S3Cluster, AnObjectStoreSlowerThanALeaseHoldsNobodyUp) {
  agentfs({"format", place_ / "one", "--engine", engine_, "--blobs", url_});
  Served server(place_ / "one", {"--engine", engine_});
  Mount work(server.address(), {"--token-file", token_file(place_, place_ / "one"), "--private",
                                "--journal", place_ / "journal"});
  put_synced(work / "old", content(1));
  hold("slow");
  SyncedWriter writer(work.path(), 0, &content);
  ASSERT_TRUE(eventually_held()) << "no checkpoint began";
  int files = writer.stop();
  i64 end = base::system_clock().monotonic_us() + 34'000'000;
  for (int i = 0; base::system_clock().monotonic_us() < end; ++i) {
    put_synced(work / ("small" + std::to_string(i % 10)), "new");
    ASSERT_TRUE(base::read_file(work / "old").value_or("") == content(1)) << server.messages();
    base::system_clock().sleep_us(100'000);
  }
  release();
  EXPECT_TRUE(base::read_file(work / ("f" + std::to_string(files - 1))).value_or("") ==
              content(files - 1, SyncedWriter::kFileBytes));
  EXPECT_EQ(server.messages().find("taken by another"), std::string::npos) << server.messages();
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
