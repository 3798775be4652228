// The API over real HTTP and a small random model: shapes, errors, limits and clean-up. What the
// model says is noise; what the server makes of it is not.
#include "llm/server/server.h"

#include "llm/server/testing.h"

#include <gtest/gtest.h>

#include <thread>

namespace llm {
namespace {

using base::Json;

class ServerTest : public testing::Test, protected TinyServer {};

TEST_F(ServerTest, AnswersChatWithUsageAndIsRepeatableBySeed) {
  const char* body =
      R"({"messages":[{"role":"user","content":"hello"}],"max_tokens":20,"seed":7,"ignore_eos":true})";
  const Json a = post("/v1/chat/completions", body);
  const Json b = post("/v1/chat/completions", body);
  EXPECT_EQ(a["object"].as_string(), "chat.completion");
  EXPECT_EQ(a["choices"][0]["message"]["role"].as_string(), "assistant");
  EXPECT_EQ(a["choices"][0]["finish_reason"].as_string(), "length");
  EXPECT_EQ(a["usage"]["completion_tokens"].as_int(), 20);
  EXPECT_EQ(a["choices"][0]["message"]["content"], b["choices"][0]["message"]["content"]);
  EXPECT_GT(b["usage"]["prompt_tokens_details"]["cached_tokens"].as_int(), 0);
}

TEST_F(ServerTest, StreamedPiecesAddUpToTheWholeAnswer) {
  const Json whole =
      post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":30,"seed":1})");
  const auto streamed =
      send("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":30,"seed":1,"stream":true,
                                 "stream_options":{"include_usage":true}})");
  std::string text;
  Json usage;
  bool done = false;
  base::SseParser parser;
  parser.feed(streamed.body, [&](const base::SseParser::Event& event) {
    if (event.data == "[DONE]") {
      done = true;
      return;
    }
    const Json data = Json::parse(event.data).value();
    text += data["choices"][0]["delta"]["content"].as_string();
    if (data["usage"].is_object()) usage = data["usage"];
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(text, whole["choices"][0]["message"]["content"].as_string());
  EXPECT_EQ(usage["completion_tokens"], whole["usage"]["completion_tokens"]);
}

TEST_F(ServerTest, ASchemaHoldsEvenARandomModel) {
  const Json reply = post("/v1/chat/completions",
                          R"({"messages":[{"role":"user","content":"x"}],"max_tokens":200,"seed":5,
      "response_format":{"type":"json_schema","json_schema":{"name":"p","schema":{"type":"object","properties":{
        "name":{"type":"string","maxLength":8},"ok":{"type":"boolean"}},"required":["name","ok"]}}}})");
  const auto answer = Json::parse(reply["choices"][0]["message"]["content"].as_string());
  ASSERT_TRUE(answer.ok()) << reply.dump();
  EXPECT_TRUE((*answer)["name"].is_string());
  EXPECT_TRUE((*answer)["ok"].is_bool());
}

TEST_F(ServerTest, ARequiredToolIsCalled) {
  const Json reply = post("/v1/chat/completions",
                          R"({"messages":[{"role":"user","content":"x"}],"max_tokens":300,"seed":2,
      "tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"integer"}},
      "required":["a"]}}}],"tool_choice":"required"})");
  const Json& choice = reply["choices"][0];
  EXPECT_EQ(choice["finish_reason"].as_string(), "tool_calls");
  const Json& function = choice["message"]["tool_calls"][0]["function"];
  EXPECT_EQ(function["name"].as_string(), "add");
  EXPECT_TRUE(Json::parse(function["arguments"].as_string()).value()["a"].is_integer());
}

TEST_F(ServerTest, LogprobsAreOfTheReportedTokens) {
  const Json reply =
      post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"x"}],"max_tokens":5,"temperature":0,
      "logprobs":true,"top_logprobs":2,"ignore_eos":true})");
  const Json& content = reply["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 5u);
  std::string text;
  for (const Json& token : content.items()) {
    text += token["token"].as_string();
    EXPECT_EQ(token["top_logprobs"].size(), 2u);
    EXPECT_EQ(token["top_logprobs"][0]["logprob"], token["logprob"]);  // greedy
  }
  EXPECT_EQ(text, reply["choices"][0]["message"]["content"].as_string());
}

TEST_F(ServerTest, CompletionsTakeTextTokensAndSeveralPrompts) {
  const Json reply = post("/v1/completions",
                          R"({"prompt":["ab","cd"],"max_tokens":4,"temperature":0,"echo":true})");
  ASSERT_EQ(reply["choices"].size(), 2u);
  EXPECT_TRUE(reply["choices"][1]["text"].as_string().starts_with("cd"));
  const Json by_ids =
      post("/v1/completions", R"({"prompt":[64,65],"max_tokens":4,"temperature":0})");
  EXPECT_EQ(by_ids["choices"][0]["text"].as_string(),
            reply["choices"][0]["text"].as_string().substr(2));
}

TEST_F(ServerTest, ErrorsSayWhatToDoAndKeepTheirStatus) {
  EXPECT_EQ(send("/v1/chat/completions", "{", "secret").status, 400);
  EXPECT_EQ(send("/v1/chat/completions", R"({"messages":[]})").status, 400);
  EXPECT_EQ(send("/v1/chat/completions",
                 R"({"messages":[{"role":"user","content":"x"}],"temperature":9})")
                .status,
            400);
  EXPECT_EQ(send("/v1/models", "", "wrong").status, 401);
  EXPECT_EQ(send("/nothing", "").status, 404);
  EXPECT_EQ(send("/health", "", "wrong").status, 200);
  const std::string long_text(1100, 'a');
  const Json reply = post("/v1/chat/completions",
                          R"({"messages":[{"role":"user","content":")" + long_text + R"("}]})");
  EXPECT_NE(reply["error"]["message"].as_string().find("context"), std::string::npos);
}

TEST_F(ServerTest, AClientThatLeavesGivesItsPagesBack) {
  for (int i = 0; i < 5; ++i) {
    base::HttpRequest request;
    request.method = "POST";
    request.url = url("/v1/chat/completions");
    request.headers = {{"authorization", "Bearer secret"}};
    request.body =
        R"({"messages":[{"role":"user","content":"x"}],"stream":true,"ignore_eos":true})";
    int pieces = 0;
    const auto cut = base::http_stream(
        request, [](const base::HttpResponse&) {}, [&](std::string_view) { return ++pieces < 4; });
    EXPECT_FALSE(cut.ok());
  }
  for (int i = 0; i < 500 && engine_->stats().running > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.pages_available, stats.pages_total);
  EXPECT_NE(send("/metrics", "").body.find("fleetlm_requests_cancelled_total"), std::string::npos);
}

TEST_F(ServerTest, BodiesBeyondTheLimitAreRefused) {
  const std::string text(70'000, 'a');  // of 64 KiB
  EXPECT_EQ(send("/v1/completions", R"({"prompt":")" + text + R"("})").status, 413);
  EXPECT_EQ(send("/health", "").status, 200);
}

TEST_F(ServerTest, DrainingRefusesNewWorkAndLetsARunningAnswerFinish) {
  base::HttpRequest request;
  request.method = "POST";
  request.url = url("/v1/chat/completions");
  request.headers = {{"authorization", "Bearer secret"}};
  request.body = R"({"messages":[{"role":"user","content":"x"}],"stream":true,"ignore_eos":true,
    "max_tokens":400})";
  std::atomic<bool> started{false};
  std::string text;
  std::thread client([&] {
    const auto whole = base::http_stream(
        request, [](const base::HttpResponse&) {},
        [&](std::string_view piece) {
          text += piece;
          started = true;
          return true;
        });
    EXPECT_TRUE(whole.ok());
  });
  while (!started) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  server_->drain(60'000);
  base::HttpServerRequest late;
  late.method = "POST";
  late.path = "/v1/chat/completions";
  late.headers = {{"authorization", "Bearer secret"}};
  EXPECT_EQ(server_->handle(late).status, 503);
  client.join();
  EXPECT_NE(text.find("\"finish_reason\":\"length\""), std::string::npos);
  EXPECT_TRUE(text.ends_with("data: [DONE]\n\n"));
}

}  // namespace
}  // namespace llm
