// The API over real HTTP and a small random model: shapes, errors, limits and clean-up. What the
// model says is noise; what the server makes of it is not.
#include "llm/server/server.h"

#include "base/http_client.h"
#include "llm/model/llama.h"
#include "llm/model/testing.h"
#include "llm/tokenizer/unicode.h"

#include <gtest/gtest.h>

#include <thread>

namespace llm {
namespace {

using base::Json;

// Printable ASCII as one token each, and the end of a turn.
std::unique_ptr<Tokenizer> ascii_tokenizer() {
  Tokenizer::Spec spec;
  for (int c = 33; c < 127; ++c) spec.tokens.push_back(std::string(1, static_cast<char>(c)));
  std::string space;
  append_utf8(0x120, &space);
  spec.tokens.push_back(space);
  spec.tokens.push_back("<|im_end|>");
  spec.special.assign(96, false);
  spec.special[95] = true;
  return Tokenizer::create(std::move(spec)).value();
}

class ServerTest : public testing::Test {
 protected:
  ServerTest() : file_(random_llama_file({}, DType::kQ80, 3)), tokenizer_(ascii_tokenizer()) {
    gguf_ = Gguf::parse(base::as_bytes(file_)).value();
    model_ =
        LlamaModel::load(*gguf_, llama_config(*gguf_).value(), Precision::kFast, &crew_).value();
    engine_ = Engine::create(model_.get(), tokenizer_.get(), nullptr, {.slots = 4, .context = 1024})
                  .value();
    loop_ = std::make_unique<EngineLoop>(engine_.get());
    ServerOptions options;
    options.port = 0;
    options.api_key = "secret";
    options.model_name = "tiny";
    server_ = ApiServer::start(options, loop_.get(), tokenizer_.get(), model_.get(), {}).value();
  }
  std::string url(std::string_view path) {
    return "http://127.0.0.1:" + std::to_string(server_->port()) + std::string(path);
  }
  base::HttpResponse send(std::string_view path, std::string_view body,
                          std::string_view key = "secret") {
    base::HttpRequest request;
    request.method = body.empty() ? "GET" : "POST";
    request.url = url(path);
    request.headers = {{"authorization", "Bearer " + std::string(key)},
                       {"content-type", "application/json"}};
    request.body = std::string(body);
    return base::http_request(request).value();
  }
  Json post(std::string_view path, std::string_view body) {
    return Json::parse(send(path, body).body).value();
  }

  std::string file_;
  std::unique_ptr<Gguf> gguf_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Crew crew_{1};
  std::unique_ptr<LlamaModel> model_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EngineLoop> loop_;
  std::unique_ptr<ApiServer> server_;
};

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

TEST_F(ServerTest, DrainingRefusesNewWork) {
  server_->drain(1000);
  base::HttpServerRequest request;
  request.method = "POST";
  request.path = "/v1/chat/completions";
  request.headers = {{"authorization", "Bearer secret"}};
  EXPECT_EQ(server_->handle(request).status, 503);
}

}  // namespace
}  // namespace llm
