// Adapters against the script server over real HTTP.
#include "base/clock.h"
#include "team/model/codec.h"
#include "team/model/http_model.h"
#include "team/model/script_server.h"

#include <gtest/gtest.h>

namespace team {
namespace {

using base::Json;

struct Peer {
  std::unique_ptr<ScriptServer> server;
  base::ManualClock clock;
  HttpTransport transport;
  RateGate gate{clock};
  std::unique_ptr<HttpModel> model;

  Peer(const char* script, ApiKind api, std::string key = "") {
    ScriptServer::Options options;
    options.key = key;
    base::Result<std::unique_ptr<ScriptServer>> started =
        ScriptServer::start(options, *Json::parse(script));
    EXPECT_TRUE(started.ok()) << started.error().message();
    server = std::move(*started);
    BackendConfig config;
    config.api = api;
    config.url = server->url() + (api == ApiKind::kOpenAiChat ? "/v1" : "");
    config.key = std::move(key);
    model = std::make_unique<HttpModel>(config, transport, gate, clock, 1);
  }
};

ModelRequest plain_request(bool stream) {
  ModelRequest request;
  request.model = "scripted-1";
  request.messages = {Message::system("Role: coder"), Message::user("build it")};
  request.tools = {{"read", "reads a file", *Json::parse(R"({"type":"object"})")}};
  request.stream = stream;
  return request;
}

class BothApis : public ::testing::TestWithParam<std::tuple<ApiKind, bool>> {
 protected:
  ApiKind api() const { return std::get<0>(GetParam()); }
  bool stream() const { return std::get<1>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Wire, BothApis,
                         ::testing::Combine(::testing::Values(ApiKind::kOpenAiChat,
                                                              ApiKind::kAnthropic),
                                            ::testing::Bool()));

TEST_P(BothApis, TextReasoningAndUsageComeThrough) {
  Peer peer(R"({"rules": [{"when": {"role": "coder", "turn": 0}, "reply": {
      "text": "héllo wörld, this is long enough to come in several pieces", "reasoning": "hm",
      "usage": {"input": 100, "cached": 60, "output": 20, "reasoning": 5}}}]})",
            api());
  const CallResult result = peer.model->complete(plain_request(stream()));
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_EQ(result.reply.message.text,
            "héllo wörld, this is long enough to come in several pieces");
  EXPECT_EQ(result.reply.message.reasoning, "hm");
  EXPECT_EQ(result.reply.stop, StopReason::kEnd);
  EXPECT_EQ(result.reply.usage.in_fresh, 40);
  EXPECT_EQ(result.reply.usage.in_cached, 60);
  EXPECT_EQ(result.reply.usage.output(), 20);
  EXPECT_FALSE(result.reply.usage.estimated);
}

TEST_P(BothApis, ToolCallsComeThroughAndTheirResultsGoBack) {
  Peer peer(R"({"rules": [
      {"when": {"turn": 0}, "reply": {"text": "reading", "tools": [
          {"name": "read", "arguments": {"path": "a.c"}},
          {"name": "read", "arguments": {"path": "b.c"}}]}},
      {"when": {"turn": 1, "tool": "read", "tool_result": "^content of b"},
       "reply": {"text": "done"}}]})",
            api());
  ModelRequest request = plain_request(stream());
  const CallResult first = peer.model->complete(request);
  ASSERT_TRUE(first.ok()) << first.error;
  ASSERT_EQ(first.reply.message.tool_calls.size(), 2u);
  EXPECT_EQ(first.reply.stop, StopReason::kToolCalls);
  EXPECT_EQ(first.reply.message.tool_calls[1].name, "read");
  EXPECT_EQ(
      Json::parse(first.reply.message.tool_calls[1].arguments)->operator[]("path").as_string(),
      "b.c");
  request.messages.push_back(first.reply.message);
  request.messages.push_back(Message::tool(first.reply.message.tool_calls[0], "content of a"));
  request.messages.push_back(Message::tool(first.reply.message.tool_calls[1], "content of b"));
  const CallResult second = peer.model->complete(request);
  ASSERT_TRUE(second.ok()) << second.error;
  EXPECT_EQ(second.reply.message.text, "done");
}

TEST_P(BothApis, ReasoningGoesBackUnchanged) {
  Peer peer(R"({"rules": [{"reply": {"text": "a", "reasoning": "because"}}]})", api());
  ModelRequest request = plain_request(stream());
  const CallResult first = peer.model->complete(request);
  ASSERT_TRUE(first.ok());
  request.messages.push_back(first.reply.message);
  request.messages.push_back(Message::user("go on"));
  ASSERT_TRUE(peer.model->complete(request).ok());
  const Json sent = peer.server->served()[1].request["messages"];
  if (api() == ApiKind::kOpenAiChat) {
    EXPECT_EQ(sent[2]["reasoning_content"].as_string(), "because");
  } else {
    EXPECT_EQ(sent[1]["content"][0]["thinking"].as_string(), "because");
    EXPECT_EQ(sent[1]["content"][0]["signature"].as_string(), "sig-scripted");
  }
}

TEST_P(BothApis, AWrongKeyIsNotRetried) {
  Peer peer(R"({"rules": [{"reply": {"text": "a"}}]})", api(), "right");
  BackendConfig config;
  config.api = api();
  config.url = peer.server->url() + (api() == ApiKind::kOpenAiChat ? "/v1" : "");
  config.key = "wrong";
  HttpModel model(config, peer.transport, peer.gate, peer.clock, 1);
  const CallResult result = model.complete(plain_request(stream()));
  EXPECT_EQ(result.outcome, CallOutcome::kUnauthorized);
  EXPECT_EQ(result.tries.size(), 1u);
  EXPECT_TRUE(peer.model->complete(plain_request(stream())).ok());
}

TEST(AnthropicCodec, MarksTheStablePrefixForTheCache) {
  ModelRequest request = plain_request(true);
  for (int i = 0; i < 3; ++i) {
    Message assistant;
    assistant.role = Message::Role::kAssistant;
    assistant.text = "ok";
    request.messages.push_back(assistant);
    request.messages.push_back(Message::user("next"));
  }
  const Json json = anthropic_codec().encode(request, BackendConfig());
  EXPECT_TRUE(json["system"][0]["cache_control"].is_object());
  EXPECT_TRUE(json["tools"][0]["cache_control"].is_object());
  int marked = 0;
  for (const Json& message : json["messages"].items()) {
    for (const Json& block : message["content"].items())
      marked += block["cache_control"].is_object();
  }
  EXPECT_EQ(marked, 2);
}

TEST(AnthropicCodec, NoTurnIsEmptyAndToolResultsComeFirst) {
  ModelRequest request = plain_request(true);
  Message silent;
  silent.role = Message::Role::kAssistant;
  silent.reasoning = "hm";
  request.messages.push_back(silent);
  request.messages.push_back(Message::user("call a tool"));
  Message calls;
  calls.role = Message::Role::kAssistant;
  calls.tool_calls = {{"c1", "read", "{broken"}};
  request.messages.push_back(calls);
  request.messages.push_back(Message::tool(calls.tool_calls[0], "bad JSON", true));
  request.messages.push_back(Message::user("you are going in circles"));
  const Json turns = anthropic_codec().encode(request, BackendConfig())["messages"];
  ASSERT_EQ(turns.size(), 5u);
  for (size_t i = 0; i < turns.size(); ++i) {
    EXPECT_GT(turns[i]["content"].size(), 0u);
    EXPECT_EQ(turns[i]["role"].as_string(), i % 2 == 0 ? "user" : "assistant");
  }
  EXPECT_TRUE(turns[3]["content"][0]["input"].is_object());
  EXPECT_EQ(turns[4]["content"][0]["type"].as_string(), "tool_result");
  EXPECT_TRUE(turns[4]["content"][0]["is_error"].as_bool());
  EXPECT_EQ(turns[4]["content"][1]["type"].as_string(), "text");
}

TEST(Message, SurvivesStorage) {
  Message message;
  message.role = Message::Role::kAssistant;
  message.text = "t";
  message.reasoning = "r";
  message.reasoning_blocks = Json::array({Json::object({{"type", "thinking"}})});
  message.tool_calls = {{"c1", "read", "{\"path\":1}"}};
  EXPECT_EQ(*Message::from_json(message.to_json()), message);
  EXPECT_FALSE(Message::from_json(Json::object({{"role", "ghost"}})).ok());
}

TEST(Harden, CutsSpecialTokensAfterArgumentsAndKeepsWhatItCannotMend) {
  std::string arguments = "{\"a\": \"}\"}<|im_end|>";
  EXPECT_TRUE(trim_trailing_noise(arguments));
  EXPECT_EQ(arguments, "{\"a\": \"}\"}");
  std::string broken = "{\"a\": ";
  EXPECT_FALSE(trim_trailing_noise(broken));
  EXPECT_EQ(broken, "{\"a\": ");
  std::string two = "{} and then {}";
  EXPECT_FALSE(trim_trailing_noise(two));
}

TEST(RateLimit, HalvesOnThrottleAndGrowsByOneARound) {
  RateLimit limit(4, 32);
  limit.started();
  limit.throttled(0, 1'000);
  EXPECT_EQ(limit.limit(), 2);
  EXPECT_EQ(limit.wait_us(400), 600);
  EXPECT_EQ(limit.wait_us(1'000), 0);
  for (int i = 0; i < 2; ++i) limit.started(), limit.succeeded();
  EXPECT_EQ(limit.limit(), 3);
  for (int i = 0; i < 3; ++i) limit.started();
  EXPECT_LT(limit.wait_us(2'000), 0);
}

}  // namespace
}  // namespace team
