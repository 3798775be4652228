#include "team/sandbox/sandbox.h"

#include "base/clock.h"
#include "base/files.h"

#include <gtest/gtest.h>
#include <signal.h>

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
  EXPECT_GE(ran.out_of_memory_kills, 1);
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
