#include "team/worker/worker_process.h"

#include "base/clock.h"
#include "base/files.h"

#include <gtest/gtest.h>

namespace team {
namespace {

using base::ErrorCode;
using base::Json;

// A worker made of bash: its standard input is the channel, in both directions.
WorkerOptions shell(const std::string& script, i64 lease_ms = 5'000) {
  WorkerOptions options;
  options.argv = {"bash", "-c", script};
  options.log = "/dev/null";
  options.lease_ms = lease_ms;
  return options;
}

// A frame as printf's format.
std::string say(const std::string& json) {
  return "printf '\\x" + std::string("0123456789abcdef").substr(json.size() / 16, 1) +
         std::string("0123456789abcdef").substr(json.size() % 16, 1) +
         "\\0\\0\\0\\0\\0\\0\\0%s' '" + json + "' >&0; ";
}

TEST(WorkerProcess, SaysWhatItHasToSayAndLeaves) {
  const WorkerOptions options = shell(say("{\"say\":\"beat\"}") + say("{\"say\":\"done\"}"));
  auto worker = WorkerProcess::start(options, Json::object({{"do", "x"}}));
  ASSERT_TRUE(worker.ok());
  auto frame = (*worker)->next();
  ASSERT_TRUE(frame.ok()) << frame.error().message();
  EXPECT_EQ(frame->head["say"].as_string(), "done");
  EXPECT_EQ((*worker)->why(), "");
}

TEST(WorkerProcess, OneThatIsKilledIsLostAndTheReasonIsSaid) {
  const WorkerOptions options = shell("kill -9 $$");
  auto worker = WorkerProcess::start(options, Json::object());
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ((*worker)->next().error().code(), ErrorCode::kCancelled);
  EXPECT_EQ((*worker)->why(), "it was ended by signal 9");
}

// Gone, or dead and waiting for somebody to notice.
bool is_dead(const std::string& pid) {
  const std::string stat = base::read_file("/proc/" + pid + "/stat").value_or("");
  return stat.empty() || stat.find(") Z ") != std::string::npos;
}

TEST(WorkerProcess, OneThatIsSilentLosesItsLeaseAndIsKilledWithItsChildren) {
  const base::TempDir folder("fleet-worker-test");
  const WorkerOptions options = shell(
      "sleep 1000 & echo $! > " + folder / "child" + "; " + say("{\"say\":\"beat\"}") + "wait",
      4'000);
  auto worker = WorkerProcess::start(options, Json::object());
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ((*worker)->next().error().code(), ErrorCode::kCancelled);
  EXPECT_EQ((*worker)->why(), "it gave no sign of life for 4000 ms");
  std::string child = base::read_file(folder / "child").value_or("");
  ASSERT_FALSE(child.empty());
  child.pop_back();
  for (int i = 0; i < 200 && !is_dead(child); ++i) base::system_clock().sleep_us(10'000);
  EXPECT_TRUE(is_dead(child)) << child;
}

TEST(WorkerProcess, HeartbeatsRenewTheLease) {
  const std::string beat = say("{\"say\":\"beat\"}") + "sleep 0.4; ";
  std::string script;
  for (int i = 0; i < 5; ++i) script += beat;  // two seconds in all
  const WorkerOptions options = shell(script + say("{\"say\":\"done\"}"), 1'500);
  auto worker = WorkerProcess::start(options, Json::object());
  ASSERT_TRUE(worker.ok());
  EXPECT_TRUE((*worker)->next().ok()) << (*worker)->why();
}

TEST(WorkerProcess, OneThatTalksNonsenseIsLost) {
  const WorkerOptions options = shell("printf 'hello, I am no worker at all' >&0; sleep 1000");
  auto worker = WorkerProcess::start(options, Json::object());
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ((*worker)->next().error().code(), ErrorCode::kCancelled);
}

TEST(WorkerProcess, NoKeyOfTheModelIsInItsEnvironment) {
  ::setenv("FLEET_MODEL_KEY", "secret", 1);
  const WorkerOptions options =
      shell("if [ -n \"$FLEET_MODEL_KEY\" ]; then " + say("{\"say\":\"key\"}") + "else " +
            say("{\"say\":\"none\"}") + "fi");
  auto worker = WorkerProcess::start(options, Json::object());
  ASSERT_TRUE(worker.ok());
  auto frame = (*worker)->next();
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->head["say"].as_string(), "none");
  ::unsetenv("FLEET_MODEL_KEY");
}

TEST(Heartbeat, StopsWhenTheWorkIsStuck) {
  auto [ours, theirs] = *Channel::make_pair();
  Channel left(ours), right(theirs);
  Heartbeat heart(left, 40, 100);
  EXPECT_TRUE(right.receive(1'000).ok());
  while (right.receive(300).ok()) {
  }
  EXPECT_EQ(right.receive(300).error().code(), ErrorCode::kDeadline);
  heart.work();
  EXPECT_TRUE(right.receive(1'000).ok());
}

}  // namespace
}  // namespace team
