// Encrypted stores, with real processes: what lies on the disks shows nothing, the key opens it, no
// other does, and damage is found as ever.
#include "base/files.h"
#include "fs/engine/testing/postgres_server.h"
#include "fs/tests/mounted.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs::testing {
namespace {

// Words of a name, of a content that does not compress away, of a link's target and of an
// attribute.
const std::vector<std::string> kSecrets = {"zeitgeist-name", "quixotic-content-of-a-small-file",
                                           "jabberwock-target", "wolpertinger-folder"};

class Encrypted : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
  }
  static std::vector<std::string> with(std::vector<std::string> arguments, const std::string& key) {
    arguments.insert(arguments.end(), {"--key-file", key});
    return arguments;
  }
  base::ProcessResult run(std::vector<std::string> arguments, bool may_fail = false) const {
    return agentfs(with(std::move(arguments), key_), may_fail);
  }
  // A life that leaves something in every kind of file.
  static void live(const std::string& mount) {
    std::string folder = mount + "/" + kSecrets[3];
    ASSERT_TRUE(base::make_directories(folder).ok());
    for (int i = 0; i < 50; ++i) {
      std::string name = folder + "/" + kSecrets[0] + std::to_string(i);
      ASSERT_TRUE(base::write_file(name, kSecrets[1] + std::to_string(i)).ok());
    }
    ASSERT_EQ(::symlink(kSecrets[2].c_str(), (folder + "/link").c_str()), 0);
    int fd = ::open((folder + "/large").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    std::string large;
    for (int i = 0; i < 40'000; ++i) large += kSecrets[1] + std::to_string(i * i);
    ASSERT_EQ(::write(fd, large.data(), large.size()), static_cast<ssize_t>(large.size()));
    ASSERT_EQ(::fsync(fd), 0);
    ::close(fd);
  }
  // Which of the words are in files below the folder; their names count, too.
  static std::string shown_in(const std::string& folder) {
    std::string found;
    for (const std::string& path : base::list_tree(folder).value_or({})) {
      std::string bytes = path + base::read_file(folder + "/" + path).value_or("");
      for (const std::string& secret : kSecrets) {
        if (bytes.find(secret) != std::string::npos) found += secret + " in " + path + "\n";
      }
    }
    return found;
  }
  // One bit of each file below the folder, far from its start, changed.
  static void damage(const std::string& folder) {
    for (const std::string& name : base::list_tree(folder).value_or({})) {
      std::string path = folder + "/" + name;
      std::string bytes = base::read_file(path).value_or("");
      if (bytes.size() < 300) continue;
      bytes[200] = static_cast<char>(bytes[200] ^ 16);
      ASSERT_TRUE(base::write_file(path, bytes).ok());
    }
  }

  base::TempDir place_{"agentfs-encrypted"};
  std::string store_ = place_ / "store", key_ = place_ / "key";
};

TEST_F(Encrypted, TheFolderShowsNeitherNamesNorContents) {
  std::string plain = place_ / "plain";
  agentfs({"format", plain});
  run({"format", store_, "--encrypt"});
  for (const std::string& store : {plain, store_}) {
    auto options = store == plain ? std::vector<std::string>{} : with({}, key_);
    Mount mount(store, options);
    live(mount.path());
  }
  // Collection folds what a snapshot stands on: now there are packs, too.
  agentfs({"snapshot", plain, "main@good"});
  agentfs({"gc", plain});
  run({"snapshot", store_, "main@good"});
  run({"gc", store_});
  EXPECT_NE(shown_in(plain + "/packs"), "") << "or this test proves nothing";
  EXPECT_NE(shown_in(plain + "/log"), "");
  EXPECT_FALSE(base::list_tree(store_ + "/packs").value_or({}).empty());
  EXPECT_EQ(shown_in(store_), "");
  run({"fork", store_, "main@good", "agent-1"});
  {
    Mount mount(store_, with({"-w", "agent-1"}, key_));
    EXPECT_EQ(base::read_file(mount / (kSecrets[3] + "/" + kSecrets[0] + "7")).value_or(""),
              kSecrets[1] + "7");
    live(mount.path() + "/" + kSecrets[3]);
    EXPECT_EQ(shown_in(store_), "") << "while it is mounted";
    mount.kill();
  }
  EXPECT_NE(run({"diff", store_, "main", "agent-1"}).out.find(kSecrets[0]), std::string::npos);
  EXPECT_NE(run({"log", store_, "main"}).out.find(kSecrets[0]), std::string::npos);
  run({"remove", store_, "main@good"});
  run({"gc", store_});
  EXPECT_EQ(shown_in(store_), "");
  EXPECT_NE(run({"fsck", store_}).out.find("checked"), std::string::npos);
}

TEST_F(Encrypted, AnythingButItsKeyIsRefusedWithASentence) {
  run({"format", store_, "--encrypt"});
  ASSERT_TRUE(base::make_directories(place_ / "m").ok());
  std::string other = place_ / "other";
  agentfs({"format", place_ / "second", "--encrypt", "--key-file", other});
  for (auto command : std::vector<std::vector<std::string>>{{"mount", store_, place_ / "m"},
                                                            {"serve", store_},
                                                            {"fsck", store_},
                                                            {"gc", store_},
                                                            {"list", store_},
                                                            {"fork", store_, "main", "x"}}) {
    auto wrong = agentfs(with(command, other), true);
    EXPECT_NE(wrong.exit_code, 0) << command[0];
    EXPECT_NE(wrong.err.find("is not this store's"), std::string::npos) << wrong.err;
    auto none = agentfs(command, true);
    EXPECT_NE(none.err.find("is encrypted; give --key-file"), std::string::npos) << none.err;
  }
  agentfs({"format", place_ / "plain"});
  auto unexpected = run({"list", place_ / "plain"}, true);
  EXPECT_NE(unexpected.err.find("is not encrypted"), std::string::npos) << unexpected.err;
  auto without = agentfs({"format", place_ / "third", "--encrypt"}, true);
  EXPECT_NE(without.err.find("go together"), std::string::npos) << without.err;
}

TEST_F(Encrypted, ANewKeyTakesTheOldOnesPlaceUnderARunningMount) {
  run({"format", store_, "--encrypt"});
  std::string fresh = place_ / "fresh";
  {
    Mount mount(store_, with({}, key_));
    ASSERT_TRUE(base::write_file(mount / "before", "old key").ok());
    run({"rekey", store_, "--new-key-file", fresh});
    ASSERT_TRUE(base::write_file(mount / "after", "still mounted").ok());
  }
  EXPECT_NE(run({"list", store_}, true).err.find("is not this store's"), std::string::npos);
  key_ = fresh;
  Mount mount(store_, with({}, key_));
  EXPECT_EQ(base::read_file(mount / "before").value_or(""), "old key");
  EXPECT_EQ(base::read_file(mount / "after").value_or(""), "still mounted");
}

TEST_F(Encrypted, DamageIsFound) {
  for (const char* part : {"packs", "log"}) {
    std::string store = place_ / (std::string("damaged-") + part);
    run({"format", store, "--encrypt"});
    {
      Mount mount(store, with({}, key_));
      live(mount.path());
      if (std::string(part) == "log") mount.kill();
    }
    if (std::string(part) == "packs") {
      run({"snapshot", store, "main@good"});
      run({"gc", store});
    }
    ASSERT_EQ(run({"fsck", store}, true).exit_code, 0);
    damage(store + "/" + part);
    auto checked = run({"fsck", store}, true);
    EXPECT_NE(checked.exit_code, 0) << part << ": " << checked.out << checked.err;
  }
}

TEST_F(Encrypted, ADatabaseShowsNothingEither) {
  std::string why;
  PostgresServer* postgres = shared_postgres(why);
  if (postgres == nullptr) GTEST_SKIP() << why;
  std::string engine = postgres->new_store();
  run({"format", place_ / "one", "--engine", engine, "--blobs", place_ / "blobs", "--encrypt"});
  std::string token = place_ / "token";
  ASSERT_TRUE(base::write_file(token, run({"token", place_ / "one"}).out).ok());
  {
    Served served(place_ / "one", with({}, key_));
    Mount mount(served.address(), {"--token-file", token});
    live(mount.path());
    EXPECT_EQ(shown_in(place_.path()), "");
  }
  ASSERT_TRUE(base::remove_tree(place_ / "one").ok());
  Served second(place_ / "two", with({"--engine", engine}, key_));
  {
    Mount mount(second.address(), {"--token-file", token});
    EXPECT_EQ(base::read_file(mount / (kSecrets[3] + "/" + kSecrets[0] + "7")).value_or(""),
              kSecrets[1] + "7");
  }
  second.stop();
  EXPECT_EQ(shown_in(place_.path()), "");
  EXPECT_EQ(shown_in(postgres->folder()), "");
  run({"fsck", place_ / "two"});
}

}  // namespace
}  // namespace fs::testing
