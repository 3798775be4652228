#include "team/sandbox/sandbox.h"

#include "base/clock.h"
#include "base/files.h"
#include "team/sandbox/cgroup.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>

namespace team {
namespace {

std::unique_ptr<Sandbox> open_sandbox() {
  base::Result<std::unique_ptr<Sandbox>> opened = Sandbox::open({});
  EXPECT_TRUE(opened.ok()) << opened.error().message();
  return std::move(*opened);
}

SandboxSpec bash(std::string script) {
  SandboxSpec spec;
  spec.argv = {"bash", "-c", std::move(script)};
  return spec;
}

TEST(Sandbox, EveryWallHolds) {
  for (const SandboxFinding& finding : Sandbox::self_test({})) {
    EXPECT_TRUE(finding.held) << finding.check << ": " << finding.detail;
  }
}

TEST(Sandbox, FailsClosedWithoutBubblewrap) {
  Sandbox::Options options;
  options.bwrap = "no-such-bwrap";
  EXPECT_EQ(Sandbox::open(options).error().code(), base::ErrorCode::kUnsupported);
  EXPECT_FALSE(Sandbox::self_test(options)[0].held);
}

TEST(Sandbox, AWallThatFallsIsReported) {
  base::TempDir dir;
  // A "bubblewrap" that isolates nothing: runs what comes after the launcher's "--".
  ASSERT_TRUE(
      base::write_file(dir / "bwrap",
                       "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift 3; exec \"$@\"\n")
          .ok());
  ASSERT_EQ(::chmod((dir / "bwrap").c_str(), 0755), 0);
  Sandbox::Options options;
  options.bwrap = dir / "bwrap";
  int fallen = 0;
  for (const SandboxFinding& finding : Sandbox::self_test(options)) fallen += !finding.held;
  EXPECT_GE(fallen, 5);
}

TEST(Sandbox, MountsAreReadOnlyUnlessWritable) {
  const auto sandbox = open_sandbox();
  base::TempDir dir;
  SandboxSpec spec = bash("echo new > /work/a; echo new > /sealed/b; cat /work/a");
  ASSERT_TRUE(base::make_directories(dir / "work").ok());
  ASSERT_TRUE(base::make_directories(dir / "sealed").ok());
  spec.mounts = {{dir / "work", "/work", true}, {dir / "sealed", "/sealed", false}};
  const SandboxResult ran = *sandbox->run(spec);
  EXPECT_EQ(ran.out, "new\n");
  EXPECT_EQ(*base::read_file(dir / "work/a"), "new\n");
  EXPECT_FALSE(base::file_exists(dir / "sealed/b"));
}

TEST(Sandbox, ATimeoutEndsEvenProcessesThatLeftTheSessionAndKeepsTheOutput) {
  const auto sandbox = open_sandbox();
  SandboxSpec spec = bash("echo before; setsid sleep 300 & sleep 300");
  spec.limits.wall_ms = 300;
  const SandboxResult ran = *sandbox->run(spec);
  EXPECT_TRUE(ran.timed_out);
  EXPECT_EQ(ran.out, "before\n");
  EXPECT_LT(ran.wall_us, 5'000'000);
}

TEST(Sandbox, OutOfMemoryIsToldFromOtherDeaths) {
  const auto sandbox = open_sandbox();
  SandboxSpec spec = bash("head -c 200M /dev/zero | tail -c 190M > /dev/null");
  spec.limits.memory_bytes = i64{48} << 20;
  const SandboxResult ran = *sandbox->run(spec);
  EXPECT_FALSE(ran.ok() && ran.out_of_memory_kills == 0);
  // Without control groups the limit is each process's own, and its allocation fails instead.
  if (Cgroup::make(1 << 20, 1) != nullptr) EXPECT_GE(ran.out_of_memory_kills, 1);
}

// Lines of /proc/PID/cmdline that hold `word`.
int processes_with(const std::string& word) {
  int count = 0;
  for (const std::string& name : *base::list_directory("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    count +=
        base::read_file("/proc/" + name + "/cmdline").value_or("").find(word) != std::string::npos;
  }
  return count;
}

TEST(Sandbox, KillingUsLeavesNoProcessBehind) {
  const std::string mark =
      "73" + std::to_string(::getpid());  // seconds to sleep; seen in command lines
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nor must a failure here leave the child behind
    const auto sandbox = open_sandbox();
    const auto network = sandbox->make_network().value();
    SandboxSpec spec = bash("setsid sleep " + mark + " & sleep " + mark);
    spec.network = network.get();
    const SandboxProcess running = sandbox->start(spec, {.output_path = "/dev/null"}).value();
    ::pause();
    ::_exit(0);
  }
  const auto wait_for = [&](auto done) {
    for (int i = 0; i < 500 && !done(); ++i) base::system_clock().sleep_us(10'000);
  };
  wait_for([&] { return processes_with("sleep" + std::string(1, '\0') + mark) >= 2; });
  ASSERT_GE(processes_with("sleep" + std::string(1, '\0') + mark), 2);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  wait_for([&] { return processes_with(mark) == 0; });
  EXPECT_EQ(processes_with(mark), 0);
  const auto again = open_sandbox();  // sweeps the control groups of the dead
  for (const char* folder : {"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"}) {
    for (const std::string& name : base::list_directory(folder).value_or({})) {
      EXPECT_FALSE(name.starts_with("fleet-" + std::to_string(child) + "-")) << name;
    }
  }
}

TEST(Sandbox, TwoSandboxesShareANetworkAndNothingElse) {
  const auto sandbox = open_sandbox();
  const auto network = sandbox->make_network().value();
  base::TempDir dir;
  SandboxSpec server;
  server.argv = {"python3", "-c",
                 "import socket\n"
                 "s = socket.create_server(('127.0.0.1', 7000))\n"
                 "print('up', flush=True)\n"
                 "c, _ = s.accept(); c.sendall(b'hello'); c.close()\n"};
  server.network = network.get();
  SandboxProcess running = sandbox->start(server, {.output_path = dir / "log"}).value();
  while (base::read_file(dir / "log").value_or("") != "up\n" && !running.poll()) {
    base::system_clock().sleep_us(5'000);
  }
  SandboxSpec client = bash("cat < /dev/tcp/127.0.0.1/7000; ls /proc | grep -c '^[0-9]'");
  client.network = network.get();
  const SandboxResult ran = *sandbox->run(client);
  EXPECT_TRUE(ran.out.starts_with("hello")) << ran.err << *base::read_file(dir / "log");
  EXPECT_LT(std::atoi(ran.out.c_str() + 5), 6);
}

TEST(Sandbox, KillEndsAllOfItAndStopReachesTheProgram) {
  const auto sandbox = open_sandbox();
  base::TempDir dir;
  SandboxSpec spec = bash("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.02; done");
  const auto up = [&](const std::string& log) {
    while (base::read_file(log).value_or("") != "up\n") base::system_clock().sleep_us(5'000);
  };
  SandboxProcess polite = sandbox->start(spec, {.output_path = dir / "polite"}).value();
  up(dir / "polite");
  EXPECT_GT(polite.rss_bytes(), 100'000);
  EXPECT_EQ(polite.stop(5'000)->exit_code, 3);
  EXPECT_EQ(*base::read_file(dir / "polite"), "up\nbye\n");
  SandboxProcess killed = sandbox->start(spec, {.output_path = dir / "killed"}).value();
  up(dir / "killed");
  EXPECT_NE(killed.kill()->exit_code, 0);
}

}  // namespace
}  // namespace team
