#include "team/agent/toolbox.h"

#include "base/clock.h"
#include "base/files.h"

#include <gtest/gtest.h>

namespace team {
namespace {

using base::Json;

class ToolboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sandbox_ = Sandbox::open({}).value();
    ASSERT_TRUE(base::make_directories(dir_ / "w/src").ok());
    ASSERT_TRUE(base::write_file(dir_ / "w/src/a.c", "int one() {\n  return 1;\n}\n").ok());
    ASSERT_TRUE(base::write_file(dir_ / "w/contract.h", "int one();\n").ok());
    workspace_.emplace(Workspace::open(dir_ / "w").value());
    options_.tools = {"read", "list", "search", "symbols", "patch", "write",  "run",    "start",
                      "poll", "stop", "check",  "note",    "ask",   "submit", "give_up"};
    options_.write_globs = {"src/**"};
    options_.read_only_globs = {"contract.h"};
  }
  Toolbox& box() {
    if (!box_) box_.emplace(*workspace_, *sandbox_, options_);
    return *box_;
  }
  ToolResult call(const std::string& tool, const Json& arguments) {
    return box().run({"c1", tool, arguments.dump()});
  }
  base::TempDir dir_;
  std::unique_ptr<Sandbox> sandbox_;
  std::optional<Workspace> workspace_;
  ToolboxOptions options_;
  std::optional<Toolbox> box_;
};

TEST_F(ToolboxTest, LooksAroundTheWorkspace) {
  EXPECT_EQ(call("list", Json::object()).text, "contract.h\nsrc/a.c\n");
  EXPECT_EQ(call("read", Json::object({{"path", "src/a.c"}, {"from", 2}, {"to", 2}})).text,
            "2\t  return 1;\n[lines 3 to 3 not shown]\n");
  EXPECT_EQ(call("search", Json::object({{"pattern", "ret.rn\\s\\d"}})).text,
            "src/a.c:2:   return 1;\n");
  EXPECT_EQ(call("symbols", Json::object({{"path", "src"}})).text, "src/a.c\n  1\tint one() {\n");
  EXPECT_TRUE(call("read", Json::object({{"path", "none.c"}})).is_error);
  EXPECT_TRUE(call("read", Json::object({{"path", "/etc/passwd"}})).is_error);
  EXPECT_TRUE(call("search", Json::object({{"pattern", "("}})).is_error);
}

TEST_F(ToolboxTest, ChangesOnlyWhatTheTaskMayChange) {
  const ToolResult written =
      call("write", Json::object({{"path", "src/b.c"}, {"content", "int b;\n"}}));
  EXPECT_FALSE(written.is_error);
  EXPECT_TRUE(written.mutated);
  EXPECT_EQ(written.tree_hash, *workspace_->tree_hash());
  EXPECT_TRUE(
      call("write", Json::object({{"path", "contract.h"}, {"content", "int two();\n"}})).is_error);
  EXPECT_TRUE(call("patch", Json::object({{"patch",
                                           "*** Begin Patch\n*** Update File: contract.h\n"
                                           "-int one();\n+int x();\n*** End Patch\n"}}))
                  .is_error);
  EXPECT_TRUE(call("write", Json::object({{"path", "Makefile"}, {"content", "all:\n"}})).is_error);
  const ToolResult ran = call("run", Json::object({{"command", "echo hacked > contract.h; ls"}}));
  EXPECT_NE(ran.text.find("It was put back"), std::string::npos) << ran.text;
  EXPECT_EQ(*workspace_->read("contract.h"), "int one();\n");
}

TEST_F(ToolboxTest, RunsCommandsAndKeepsHeadAndTailOfLongOutput) {
  const ToolResult ran =
      call("run", Json::object({{"command", "cat; pwd; exit 3"}, {"stdin", "in\n"}}));
  EXPECT_EQ(ran.text, "exit status 3\nin\n/work\n");
  options_.result_bytes_max = 200;
  box_.reset();
  const ToolResult loud = call("run", Json::object({{"command", "seq 1000"}}));
  EXPECT_NE(loud.text.find("\n1\n"), std::string::npos);
  EXPECT_NE(loud.text.find("\n1000\n"), std::string::npos);
  EXPECT_LT(loud.text.size(), 320u);
  EXPECT_EQ(loud.full_log.size(), 3893u);
  const ToolResult slow =
      call("run", Json::object({{"command", "echo a; sleep 30"}, {"timeout_s", 1}}));
  EXPECT_TRUE(slow.text.starts_with("timed out after 1 s")) << slow.text;
  EXPECT_TRUE(slow.text.ends_with("a\n"));
}

TEST_F(ToolboxTest, ABackgroundServerCanBeReachedByRun) {
  const std::string server =
      "python3 -c \"import socket; s = socket.create_server(('127.0.0.1', 7001)); print('up', "
      "flush=True)\n"
      "while True: s.accept()[0].sendall(b'pong')\"";
  ASSERT_FALSE(call("start", Json::object({{"command", server}})).is_error);
  std::string seen;
  for (int i = 0; i < 200 && seen.find("up") == std::string::npos; ++i) {
    seen += call("poll", Json::object({{"id", "p1"}})).text;
    base::system_clock().sleep_us(10'000);
  }
  EXPECT_EQ(call("run", Json::object({{"command", "cat < /dev/tcp/127.0.0.1/7001"}})).text,
            "exit status 0\npong");
  EXPECT_FALSE(call("stop", Json::object({{"id", "p1"}})).is_error);
  EXPECT_TRUE(call("poll", Json::object({{"id", "p1"}})).is_error);
}

TEST_F(ToolboxTest, BadCallsAreAnsweredWithWhatIsWrong) {
  EXPECT_NE(box().run({"c", "fly", "{}"}).text.find("The tools are: read, list"),
            std::string::npos);
  EXPECT_NE(box().run({"c", "read", "{\"path\": "}).text.find("not valid JSON"), std::string::npos);
  EXPECT_NE(box().run({"c", "read", "{}"}).text.find("lacks 'path'"), std::string::npos);
  EXPECT_NE(box().run({"c", "read", "{\"path\": 3}"}).text.find("type string"), std::string::npos);
  EXPECT_NE(box().run({"c", "read", "[]"}).text.find("JSON object"), std::string::npos);
}

TEST_F(ToolboxTest, OnlySubmitAndGiveUpEndTheAttempt) {
  EXPECT_EQ(call("submit", Json::object({{"summary", "done"}})).end, AttemptEnd::kSubmitted);
  EXPECT_EQ(call("give_up", Json::object({{"reason", "no"}})).end, AttemptEnd::kGaveUp);
  EXPECT_EQ(call("note", Json::object({{"note", "x"}})).end, std::nullopt);
  EXPECT_TRUE(call("check", Json::object()).is_error);
}

}  // namespace
}  // namespace team
