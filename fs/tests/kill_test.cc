// The daemon dies by SIGKILL at random moments under load; after each death the store is mounted
// again and must hold every change that was acknowledged, and nothing but them and perhaps the one
// call that was under way. AGENTFS_KILLS=N sets the number of deaths (6 here, 300 in the nightly
// run).
#include "base/clock.h"
#include "base/random.h"
#include "fs/tests/mounted.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <thread>

namespace fs::testing {
namespace {

using Tree = std::map<std::string, std::string>;  // file name -> content

// Makes changes one call at a time and knows what each successful one did.
class Load {
 public:
  Load(std::string root, Tree start, u64 seed)
      : root_(std::move(root)), before_(start), after_(std::move(start)), rng_(seed) {}

  // Until a call fails.
  void run() {
    while (step()) calls_++;
  }
  // The tree without and with the call that failed.
  const Tree& before() const { return before_; }
  const Tree& after() const { return after_; }
  // Whether `tree` is `before()` with the first pages of the write that failed.
  bool has_part_of_write(const Tree& tree) const {
    for (size_t end = (write_offset_ / kPage + 1) * kPage; end < write_offset_ + write_data_.size();
         end += kPage) {
      Tree partly = before_;
      std::string& content = partly[write_name_];
      size_t length = end - write_offset_;
      if (content.size() < end) content.resize(end, 0);
      content.replace(write_offset_, length, write_data_, 0, length);
      if (partly == tree) return true;
    }
    return false;
  }
  u64 calls() const { return calls_; }

 private:
  std::string at(const std::string& name) const { return root_ + "/" + name; }
  std::string some_name() { return "f" + std::to_string(rng_.below(40)); }

  // `after_` is what the tree will be; `call` makes it so, or fails.
  template <class Call>
  bool attempt(Call call) {
    if (!call()) return false;
    before_ = after_;
    return true;
  }

  bool step() {
    std::string name = some_name(), other = some_name();
    bool there = after_.contains(name);
    switch (rng_.below(8)) {
      case 0:
        if (!there) return true;
        after_.erase(name);
        return attempt([&] { return ::unlink(at(name).c_str()) == 0; });
      case 1:
        if (!there || name == other) return true;
        after_[other] = after_[name];
        after_.erase(name);
        return attempt([&] { return ::rename(at(name).c_str(), at(other).c_str()) == 0; });
      case 2:
        if (!there) return true;
        after_[name].resize(rng_.below(5000), 0);
        return attempt([&] {
          return ::truncate(at(name).c_str(), static_cast<off_t>(after_[name].size())) == 0;
        });
      default:
        return write(name, there);
    }
  }

  bool write(const std::string& name, bool there) {
    int fd = -1;
    if (!there) after_[name] = "";
    if (!attempt([&] { return (fd = ::open(at(name).c_str(), O_RDWR | O_CREAT, 0644)) >= 0; })) {
      return false;
    }
    std::string& content = after_[name];
    size_t offset = rng_.below(content.size() + 100);
    std::string data(1 + rng_.below(rng_.chance(0.9) ? 3000 : 100000),
                     static_cast<char>('a' + rng_.below(26)));
    if (content.size() < offset + data.size()) content.resize(offset + data.size(), 0);
    content.replace(offset, data.size(), data);
    write_name_ = name;
    write_offset_ = offset;
    write_data_ = data;
    bool good = attempt([&] {
      return ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset)) ==
             static_cast<ssize_t>(data.size());
    });
    if (good) write_data_.clear();
    if (good && rng_.chance(0.2)) good = ::fsync(fd) == 0;
    ::close(fd);
    return good;
  }

  std::string root_;
  Tree before_, after_;
  base::Rng rng_;
  u64 calls_ = 0;
  static constexpr size_t kPage = 4096;
  std::string write_name_, write_data_;  // data is empty unless a write failed
  size_t write_offset_ = 0;
};

Tree read_tree(const std::string& root) {
  Tree tree;
  for (const std::string& name : base::list_tree(root).value_or({})) {
    tree[name] = base::read_file(root + "/" + name).value_or("<unreadable>");
  }
  return tree;
}

// A short text for the difference, since contents are long.
std::string first_difference(const Tree& got, const Tree& expected) {
  for (const auto& [name, content] : expected) {
    if (!got.contains(name)) return name + " is missing";
    const std::string& have = got.at(name);
    if (have == content) continue;
    size_t at = 0;
    while (at < have.size() && at < content.size() && have[at] == content[at]) at++;
    return name + " differs at " + std::to_string(at) + ", " + std::to_string(have.size()) +
           " bytes instead of " + std::to_string(content.size());
  }
  for (const auto& [name, content] : got) {
    if (!expected.contains(name)) return name + " should not be there";
  }
  return "";
}

void survive_kills(const std::string& durability) {
  base::TempDir place("agentfs-kill");
  std::string store = place / "store";
  agentfs({"format", store});
  const char* given = std::getenv("AGENTFS_KILLS");
  int kills = given == nullptr ? 6 : std::atoi(given);
  Tree tree;
  u64 calls = 0;
  for (int round = 0; round < kills; round++) {
    Mount mount(store, {"--durability", durability, "--steal"});
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << round;
    Load load(mount.path(), tree, static_cast<u64>(round) + 1);
    base::Rng rng(static_cast<u64>(round) * 77 + 5);
    {
      std::jthread killer([&] {
        base::system_clock().sleep_us(rng.between(5'000, 150'000));
        ::kill(mount.daemon_pid(), SIGKILL);
      });
      load.run();
    }
    mount.kill();
    calls += load.calls();
    Mount again(store, {"--durability", durability, "--steal"});
    Tree got = read_tree(again.path());
    if (got != load.after() && !load.has_part_of_write(got)) {
      ASSERT_EQ(first_difference(got, load.before()), "") << "round " << round;
    }
    tree = std::move(got);
  }
  EXPECT_GT(calls, static_cast<u64>(kills)) << "the load must have done something";
}

TEST(Kill, NothingAcknowledgedIsLostInFsyncMode) {
  if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
  survive_kills("fsync");
}

TEST(Kill, NothingAcknowledgedIsLostInCloseMode) {
  if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
  survive_kills("close");
}

TEST(Kill, NothingAcknowledgedIsLostInOpMode) {
  if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
  survive_kills("op");
}

TEST(Store, ForksKeepInodesTimesAndContentsAndGoTheirOwnWays) {
  if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
  base::TempDir place("agentfs-fork");
  std::string store = place / "store";
  agentfs({"format", store});
  struct stat parent_info{};
  {
    Mount parent(store);
    ASSERT_TRUE(base::make_directories(parent / "src").ok());
    ASSERT_TRUE(base::write_file(parent / "src/a", "from the parent").ok());
    ASSERT_EQ(::stat((parent / "src/a").c_str(), &parent_info), 0);
    agentfs({"fork", store, "main", "child"});
    ASSERT_TRUE(base::write_file(parent / "src/a", "changed later").ok());
    Mount child(store, {"--workspace", "child"});
    EXPECT_EQ(base::read_file(child / "src/a").value_or(""), "from the parent");
    struct stat child_info{};
    ASSERT_EQ(::stat((child / "src/a").c_str(), &child_info), 0);
    EXPECT_EQ(child_info.st_ino, parent_info.st_ino);
    EXPECT_EQ(child_info.st_ctim.tv_sec, parent_info.st_ctim.tv_sec);
    EXPECT_EQ(child_info.st_ctim.tv_nsec, parent_info.st_ctim.tv_nsec);
    ASSERT_TRUE(base::write_file(child / "src/b", "only in the child").ok());
    EXPECT_FALSE(base::file_exists(parent / "src/b"));
    EXPECT_EQ(base::read_file(parent / "src/a").value_or(""), "changed later");
  }
}

TEST(Store, RollbackBringsASnapshotBackAfterAndDuringMounts) {
  if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
  base::TempDir place("agentfs-rollback");
  std::string store = place / "store";
  agentfs({"format", store});
  {
    Mount mount(store);
    ASSERT_TRUE(base::write_file(mount / "f", "good").ok());
    agentfs({"snapshot", store, "main@good"});
    ASSERT_TRUE(base::write_file(mount / "f", "bad").ok());
    EXPECT_NE(agentfs({"rollback", store, "main@good"}, true).exit_code, 0)
        << "a mounted workspace cannot be taken back under its kernel";
  }
  agentfs({"rollback", store, "main@good"});
  Mount mount(store);
  EXPECT_EQ(base::read_file(mount / "f").value_or(""), "good");
}

TEST(Store, SecondMountOfAWorkspaceIsRefusedWithASentence) {
  if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
  base::TempDir place("agentfs-second");
  std::string store = place / "store";
  agentfs({"format", store});
  Mount mount(store);
  std::string other = place / "other";
  ASSERT_TRUE(base::make_directories(other).ok());
  auto refused = agentfs({"mount", store, other}, true);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("mounted by"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace fs::testing
