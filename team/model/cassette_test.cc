#include "team/model/cassette.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "team/model/http_model.h"
#include "team/model/script_server.h"

#include <gtest/gtest.h>

namespace team {
namespace {

using base::Json;

constexpr const char* kCanary = "canary-7f3a9c-secret";

class CassetteTest : public ::testing::Test {
 protected:
  std::unique_ptr<Cassette> open(CassetteMode mode) {
    base::Result<std::unique_ptr<Cassette>> opened =
        Cassette::open({.path = dir_ / "tape", .mode = mode, .secrets = {kCanary}}, &transport_);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return std::move(opened).value();
  }
  CallResult ask(Cassette& cassette, const std::string& text, bool stream = true) {
    BackendConfig config;
    config.url = (server_ ? server_->url() : "http://127.0.0.1:9") + "/v1";
    config.key = kCanary;
    config.retry.tries_max = 1;
    HttpModel model(config, cassette, gate_, clock_, 1);
    ModelRequest request;
    request.model = "m";
    request.messages = {Message::system("Role: coder"), Message::user(text)};
    request.stream = stream;
    return model.complete(request);
  }
  void serve(const char* script) {
    server_ = ScriptServer::start({}, *Json::parse(script)).value();
  }
  base::TempDir dir_;
  base::ManualClock clock_;
  HttpTransport transport_;
  RateGate gate_{clock_};
  std::unique_ptr<ScriptServer> server_;
};

constexpr const char* kScript = R"({"rules": [
  {"when": {"user": "first"}, "times": 1, "reply": {"text": "one ☃"}},
  {"when": {"user": "first"}, "reply": {"text": "two"}},
  {"when": {"user": "broken"}, "reply": {"text": "a long text that is broken off",
                                         "faults": [{"kind": "reset", "after": 2}]}},
  {"when": {"user": "busy"}, "reply": {"faults": [{"kind": "status", "status": 503}]}}]})";

TEST_F(CassetteTest, ReplaysWhatWasRecordedWithoutAServer) {
  serve(kScript);
  {
    auto tape = open(CassetteMode::kRecord);
    EXPECT_EQ(ask(*tape, "first").reply.message.text, "one ☃");
    EXPECT_EQ(ask(*tape, "first").reply.message.text, "two");
    EXPECT_EQ(ask(*tape, "broken").outcome, CallOutcome::kBroken);
    EXPECT_EQ(ask(*tape, "busy").outcome, CallOutcome::kServerError);
  }
  server_.reset();
  auto tape = open(CassetteMode::kStrict);
  EXPECT_EQ(tape->size(), 4u);
  EXPECT_EQ(ask(*tape, "first").reply.message.text, "one ☃");
  EXPECT_EQ(ask(*tape, "busy").outcome, CallOutcome::kServerError);
  EXPECT_EQ(ask(*tape, "first").reply.message.text, "two");
  EXPECT_EQ(tape->unused(), 1u);
  EXPECT_EQ(ask(*tape, "broken").outcome, CallOutcome::kBroken);
  EXPECT_EQ(tape->unused(), 0u);
}

TEST_F(CassetteTest, AStrictMissShowsWhatDiffers) {
  serve(kScript);
  ask(*open(CassetteMode::kRecord), "first question");
  auto tape = open(CassetteMode::kStrict);
  const CallResult missed = ask(*tape, "first answer");
  EXPECT_EQ(missed.outcome, CallOutcome::kNoRecording);
  EXPECT_EQ(missed.tries.size(), 1u);
  EXPECT_NE(missed.error.find("messages[1].content at byte 6"), std::string::npos) << missed.error;
  ask(*tape, "first question");
  EXPECT_NE(ask(*tape, "first question").error.find("fewer times"), std::string::npos);
}

TEST_F(CassetteTest, AutoRecordsOnlyWhatIsMissing) {
  serve(kScript);
  ask(*open(CassetteMode::kAuto), "first");
  EXPECT_EQ(server_->served().size(), 1u);
  auto tape = open(CassetteMode::kAuto);
  EXPECT_EQ(ask(*tape, "first").reply.message.text, "one ☃");
  EXPECT_EQ(server_->served().size(), 1u);
  EXPECT_EQ(ask(*tape, "first").reply.message.text, "two");
  EXPECT_EQ(server_->served().size(), 2u);
}

TEST_F(CassetteTest, NoSecretReachesTheFile) {
  serve(
      R"({"otherwise": {"text": "your key is canary-7f3a9c-secret and sk-abcdefghijklmnopqrstuv"}})");
  const std::string leaky = std::string("I know ") + kCanary + " and Bearer abcdefghijklmnop1234";
  ask(*open(CassetteMode::kRecord), leaky, false);
  const std::string file = *base::read_file(dir_ / "tape");
  EXPECT_EQ(file.find(kCanary), std::string::npos);
  EXPECT_EQ(file.find("abcdefghijklmnop"), std::string::npos);
  EXPECT_EQ(file.find("authorization"), std::string::npos);
  // The same prompt is found again although its secret is not on file.
  server_.reset();
  EXPECT_TRUE(ask(*open(CassetteMode::kStrict), leaky, false).ok());
}

TEST_F(CassetteTest, DamageNamesItsLine) {
  serve(kScript);
  ask(*open(CassetteMode::kRecord), "first");
  const std::string good = *base::read_file(dir_ / "tape");
  for (const std::string& bad :
       {std::string("{\"v\":1"), std::string("{\"v\":2}"), good.substr(0, good.size() / 2)}) {
    ASSERT_TRUE(base::write_file(dir_ / "tape", good + bad + "\n").ok());
    const auto opened =
        Cassette::open({.path = dir_ / "tape", .mode = CassetteMode::kReplay}, nullptr);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code(), base::ErrorCode::kCorruption);
    EXPECT_NE(opened.error().message().find("line 2"), std::string::npos);
  }
  EXPECT_EQ(Cassette::open({.path = dir_ / "none", .mode = CassetteMode::kStrict}, nullptr)
                .error()
                .code(),
            base::ErrorCode::kNotFound);
}

TEST(Endpoint, FindingsSayWhatABackEndCanDo) {
  const auto server = ScriptServer::start({}, *Json::parse(R"({"rules": [
      {"when": {"user": "Call the tool"}, "reply": {"tools": [{"name": "echo", "arguments": {"text": "hi"}}]}},
      {"reply": {"text": "hello"}}]})"))
                          .value();
  BackendConfig config;
  config.url = server->url() + "/v1";
  for (const EndpointFinding& finding : test_endpoint(config, "")) {
    EXPECT_TRUE(finding.ok) << finding.check << ": " << finding.detail;
  }
  config.url = "http://127.0.0.1:9/v1";
  const std::vector<EndpointFinding> findings = test_endpoint(config, "m");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_FALSE(findings[0].ok);
}

}  // namespace
}  // namespace team
