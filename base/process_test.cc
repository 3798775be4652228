#include "base/process.h"

#include "base/clock.h"
#include "base/files.h"

#include <gtest/gtest.h>

#include <csignal>

namespace base {
namespace {

ProcessResult shell(std::string script, i64 timeout_ms = 10'000) {
  return run_process({.argv = {"sh", "-c", std::move(script)}, .timeout_ms = timeout_ms}).value();
}

TEST(Process, CollectsBothStreamsAndTheExitCode) {
  ProcessResult result = shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(result.exit_code, 3);
}

TEST(Process, FeedsInputLargerThanAPipe) {
  std::string input(1 << 20, 'x');
  ProcessSpec spec{.argv = {"wc", "-c"}};
  spec.input = input;
  EXPECT_EQ(std::stol(run_process(spec).value().out), 1 << 20);
}

TEST(Process, TimeOutKillsGrandchildrenAndKeepsTheOutput) {
  const i64 start = system_clock().monotonic_us();
  ProcessResult result = shell("echo before; (sleep 60)& sleep 60", 200);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.out, "before\n");
  EXPECT_LT(system_clock().monotonic_us() - start, 5'000'000);
}

TEST(Process, AnInheritedIgnoredSigchldCostsNoExitCode) {
  ::signal(SIGCHLD, SIG_IGN);
  ProcessSpec spec;
  spec.argv = {"sh", "-c", "exit 3"};
  EXPECT_EQ(run_process(spec)->exit_code, 3);
}

TEST(Process, ASignalIsReported) {
  ProcessResult result = shell("kill -9 $$");
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
}

TEST(Process, WhatAKilledProcessLeftBehindDoesNotHoldUsUp) {
  const i64 start = system_clock().monotonic_us();
  ProcessResult result = shell("echo before; sleep 60 & kill -9 $$", 30'000);
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.out, "before\n");
  EXPECT_LT(system_clock().monotonic_us() - start, 5'000'000);
}

TEST(Process, CutsTheMiddleOfLongOutput) {
  ProcessSpec spec{.argv = {"sh", "-c", "echo first; yes | head -n 100000; echo last"}};
  spec.output_bytes_max = 1000;
  std::string out = run_process(spec).value().out;
  EXPECT_LT(out.size(), 1100u);
  EXPECT_TRUE(out.starts_with("first\n"));
  EXPECT_TRUE(out.ends_with("last\n"));
  EXPECT_NE(out.find("bytes cut out"), std::string::npos);
}

TEST(Process, AMissingProgramIsASentence) {
  Result<ProcessResult> result = run_process({.argv = {"no-such-program-anywhere"}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kNotFound);
}

TEST(Process, AMissingFolderIsAnError) {
  ProcessSpec spec{.argv = {"true"}};
  spec.cwd = "/no/such/folder";
  EXPECT_EQ(run_process(spec).error().code(), ErrorCode::kNotFound);
}

TEST(Process, EnvironmentCanBeReplacedAndExtended) {
  ProcessSpec spec{.argv = {"env"}};
  spec.env.emplace({std::pair<std::string, std::string>("A", "1")});
  spec.extra_env = {{"B", "2"}};
  EXPECT_EQ(run_process(spec).value().out, "A=1\nB=2\n");
}

TEST(Process, ALivingChildDiesWithItsObject) {
  TempDir dir;
  int pid = 0;
  {
    Process process =
        Process::start({.argv = {"sleep", "60"}}, {.stdout_path = dir / "out"}).value();
    pid = process.pid();
    EXPECT_FALSE(process.poll().has_value());
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(Process, WaitReturnsWhatEndedIt) {
  Process process = Process::start({.argv = {"sh", "-c", "exit 4"}}, {}).value();
  EXPECT_EQ(process.wait(5'000)->exit_code, 4);
}

}  // namespace
}  // namespace base
