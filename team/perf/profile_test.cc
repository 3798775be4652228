#include "team/perf/profile.h"

#include "base/clock.h"
#include "team/perf/sampler.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace team {
namespace {

TEST(Profile, SharesAreOfTheBusySamplesAndRecursionCountsOnce) {
  const Profile profile = fold({{"leaf", "work", "main", "[libc.so.6]", "_start"},
                                {"leaf", "work", "main"},
                                {"leaf", "work", "work", "main"},
                                {"other", "main"},
                                {"leaf", "main"},
                                {"epoll_wait", "loop", "main"}});
  EXPECT_EQ(profile.samples, 6);
  EXPECT_EQ(profile.waiting, 1);
  ASSERT_NE(profile.find("leaf"), nullptr);
  EXPECT_DOUBLE_EQ(profile.find("leaf")->self, 0.8);
  EXPECT_DOUBLE_EQ(profile.find("work")->total, 0.6);
  EXPECT_DOUBLE_EQ(profile.find("main")->total, 1.0);
  EXPECT_EQ(profile.find("loop"), nullptr);    // it only waited
  EXPECT_EQ(profile.find("_start"), nullptr);  // what calls main says nothing
  EXPECT_EQ(profile.entries[0].function, "leaf");
  EXPECT_EQ(profile.entries[0].path, "work < main");
  EXPECT_EQ(to_json(profile_from_json(to_json(profile))).dump(), to_json(profile).dump());
}

TEST(Profile, AFunctionIsFoundByTheEndOfItsName) {
  const Profile profile = fold({{"__GI___libc_write", "kv::Log::sync"}});
  EXPECT_EQ(profile.find("Log::sync")->function, "kv::Log::sync");
  EXPECT_EQ(profile.find("write")->function, "__GI___libc_write");
  EXPECT_EQ(profile.find("og::sync"), nullptr);
}

TEST(Profile, NothingAtWorkIsSaidToBeSo) {
  EXPECT_FALSE(fold({}).missing.empty());
  EXPECT_FALSE(fold({{"poll", "main"}}).missing.empty());
}

TEST(Profile, TheBoundOfAPartIsAmdahls) {
  EXPECT_DOUBLE_EQ(gain_bound(0.5), 1.0);
  EXPECT_NEAR(gain_bound(0.01), 0.0101, 1e-4);
  EXPECT_GT(gain_bound(1), 1000);
}

TEST(ShortName, KeepsScopesAndDropsParametersTemplatesAndReturnTypes) {
  EXPECT_EQ(short_name("kv::Log::sync(std::vector<int, std::allocator<int> > const&) const"),
            "kv::Log::sync");
  EXPECT_EQ(short_name("void kv::run<int>(int)"), "kv::run");
  EXPECT_EQ(short_name("kv::(anonymous namespace)::Server::run()"), "kv::(anon)::Server::run");
  EXPECT_EQ(short_name("kv::Call::operator()(int)"), "kv::Call::operator()");
  EXPECT_EQ(short_name("main"), "main");
}

volatile unsigned sink = 0;

[[gnu::noinline]] void burn_here() {
  for (unsigned i = 0; i < 40'000; ++i) sink = sink + i;
}
[[gnu::noinline]] void sync_there(int fd) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(pwrite(fd, "x", 1, 0), 1);
    fdatasync(fd);
  }
}

// A real program, taken apart from outside: what it does in a loop is what the profile shows.
TEST(Sampler, SeesTheFunctionsOfAnotherProcess) {
  char path[] = "/tmp/profile-XXXXXX";
  const int fd = mkstemp(path);
  unlink(path);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) {
      burn_here();
      sync_there(fd);
    }
  }
  Sampler sampler({.root_pid = 0, .marker = "/proc", .interval_us = 1'000});
  base::system_clock().sleep_us(700'000);
  const Profile profile = sampler.stop();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(fd);
  if (profile.missing.find("Operation not permitted") != std::string::npos) {
    GTEST_SKIP() << profile.missing;
  }
  ASSERT_EQ(profile.missing, "");
  std::printf("%s", to_text(profile, 6).c_str());
  EXPECT_GT(profile.samples, 30);
  const ProfileEntry* burn = profile.find("burn_here");
  const ProfileEntry* sync = profile.find("sync_there");
  ASSERT_TRUE(burn != nullptr || sync != nullptr);
  EXPECT_GT((burn ? burn->total : 0) + (sync ? sync->total : 0), 0.8);
}

}  // namespace
}  // namespace team
