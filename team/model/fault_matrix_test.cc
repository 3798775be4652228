// Everything that can go wrong on the way back from a model, over real HTTP against the script
// server, in both protocols: the outcome, how often it was tried, whether spend is booked, and that
// nothing unusable is taken for a reply.
#include "base/clock.h"
#include "team/model/http_model.h"
#include "team/model/script_server.h"

#include <gtest/gtest.h>

#include <thread>

namespace team {
namespace {

using base::Json;

struct Row {
  const char* name;
  const char* reply;  // of every answer
  CallOutcome outcome;
  int tries;
  bool billed;  // the last try is booked
  bool stream = true;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class Matrix : public ::testing::TestWithParam<std::tuple<ApiKind, Row>> {};

constexpr int kTries = 3;

BackendConfig backend(ApiKind api, const std::string& url) {
  BackendConfig config;
  config.api = api;
  config.url = url + (api == ApiKind::kOpenAiChat ? "/v1" : "");
  config.retry.tries_max = kTries;
  config.stall_timeout_ms = 30'000;
  config.timeout_ms = 60'000;
  return config;
}

ModelRequest question(bool stream) {
  ModelRequest request;
  request.model = "m";
  request.messages = {Message::system("Role: coder"), Message::user("go")};
  request.tools = {{"read", "", *Json::parse(R"({"type":"object"})")}};
  request.stream = stream;
  return request;
}

// Delays are slept on a clock of our own, so that the matrix takes no time.
struct Asked {
  CallResult result;
  i64 slept_ms = 0;
};

Asked ask(ApiKind api, const Json& script, bool stream, int tries = kTries,
          i64 stall_timeout_ms = 30'000) {
  const auto server = ScriptServer::start({}, script).value();
  base::ManualClock clock;
  HttpTransport transport;
  RateGate gate(clock);
  BackendConfig config = backend(api, server->url());
  config.retry.tries_max = tries;
  config.stall_timeout_ms = stall_timeout_ms;
  HttpModel model(config, transport, gate, clock, 7);
  const i64 begin_us = clock.monotonic_us();
  Asked asked;
  asked.result = model.complete(question(stream));
  asked.slept_ms = (clock.monotonic_us() - begin_us) / 1'000;
  return asked;
}

Json always(const char* reply) {
  return Json::object({{"otherwise", *Json::parse(reply)}});
}

#define STATUS(code) R"({"faults": [{"kind": "status", "status": )" #code "}]}"

const Row kRows[] = {
    {"bad_request_400", STATUS(400), CallOutcome::kRejected, 1, false},
    {"unauthorized_401", STATUS(401), CallOutcome::kUnauthorized, 1, false},
    {"forbidden_403", STATUS(403), CallOutcome::kUnauthorized, 1, false},
    {"no_such_model_404", STATUS(404), CallOutcome::kNoSuchModel, 1, false},
    {"timeout_408", STATUS(408), CallOutcome::kTimeout, kTries, false},
    {"conflict_409", STATUS(409), CallOutcome::kRejected, kTries, false},
    {"too_large_413", STATUS(413), CallOutcome::kContextOverflow, 1, false},
    {"rate_limited_429", STATUS(429), CallOutcome::kRateLimited, kTries, false},
    {"server_error_500", STATUS(500), CallOutcome::kServerError, kTries, false},
    {"unavailable_503", STATUS(503), CallOutcome::kServerError, kTries, false},
    {"overloaded_529", STATUS(529), CallOutcome::kServerError, kTries, false},
    {"html_502",
     R"({"faults": [{"kind": "status", "status": 502, "content_type": "text/html",
         "body": "<html><h1>Bad Gateway</h1></html>"}]})",
     CallOutcome::kServerError, kTries, false},
    {"told_not_to_retry",
     R"({"faults": [{"kind": "status", "status": 500, "headers": {"x-should-retry": "false"}}]})",
     CallOutcome::kServerError, 1, false},
    {"absurd_retry_after",
     R"({"faults": [{"kind": "status", "status": 429, "headers": {"Retry-After": "86400"}}]})",
     CallOutcome::kRateLimited, 1, false},
    {"context_overflow_400",
     R"({"faults": [{"kind": "status", "status": 400,
         "message": "prompt is too long: this model's maximum context length is 10 tokens"}]})",
     CallOutcome::kContextOverflow, 1, false},
    {"reset_mid_stream", R"({"text": "one two three four five six seven eight nine ten",
         "faults": [{"kind": "reset", "after": 3}]})",
     CallOutcome::kBroken, kTries, true},
    {"ends_early_politely", R"({"text": "one two three four five six seven",
         "faults": [{"kind": "no_done", "finish": false}]})",
     CallOutcome::kBroken, kTries, true},
    {"error_inside_the_stream", R"({"text": "one two three four five six seven",
         "faults": [{"kind": "error", "after": 3, "message": "engine died"}]})",
     CallOutcome::kServerError, kTries, true},
    {"stream_cut_inside_a_line", R"({"text": "one two three four five six seven",
         "faults": [{"kind": "truncate", "bytes": 100}]})",
     CallOutcome::kBroken, kTries, true},
    {"not_json", R"({"faults": [{"kind": "raw", "body": "all is well"}]})", CallOutcome::kMalformed,
     kTries, true, false},
    {"not_json_in_the_stream",
     R"({"faults": [{"kind": "raw", "content_type": "text/event-stream",
         "body": "data: {oops\n\n"}]})",
     CallOutcome::kMalformed, kTries, true},
    {"another_protocol", R"({"faults": [{"kind": "raw", "body": "{\"hello\": 1}"}]})",
     CallOutcome::kMalformed, kTries, true, false},
    {"truncated_json", R"({"text": "hello", "faults": [{"kind": "truncate", "bytes": 60}]})",
     CallOutcome::kMalformed, kTries, true, false},
    {"empty_body", R"({"faults": [{"kind": "raw", "body": ""}]})", CallOutcome::kMalformed, kTries,
     true, false},
};

INSTANTIATE_TEST_SUITE_P(Faults, Matrix,
                         ::testing::Combine(::testing::Values(ApiKind::kOpenAiChat,
                                                              ApiKind::kAnthropic),
                                            ::testing::ValuesIn(kRows)),
                         [](const auto& info) {
                           return std::string(std::get<1>(info.param).name) +
                                  (std::get<0>(info.param) == ApiKind::kAnthropic ? "_anthropic"
                                                                                  : "_openai");
                         });

TEST_P(Matrix, EndsAsItShould) {
  const auto& [api, row] = GetParam();
  const CallResult result = ask(api, always(row.reply), row.stream).result;
  EXPECT_EQ(result.outcome, row.outcome) << name_of(result.outcome) << ": " << result.error;
  EXPECT_EQ(static_cast<int>(result.tries.size()), row.tries);
  EXPECT_EQ(result.tries.back().maybe_billed, row.billed);
  EXPECT_EQ(result.usage_total().input() > 0, row.billed);
  EXPECT_FALSE(result.error.empty());
}

class Apis : public ::testing::TestWithParam<ApiKind> {};
INSTANTIATE_TEST_SUITE_P(Faults, Apis,
                         ::testing::Values(ApiKind::kOpenAiChat, ApiKind::kAnthropic));

// Faults a client must shrug off: the reply is whole.
TEST_P(Apis, OddButLegalStreamsAreRead) {
  const std::string text = "häłło ☃ wörld, in several pieces of text, please";
  for (const char* faults :
       {R"([{"kind": "split", "bytes": 1}])", R"([{"kind": "split", "bytes": 7}])",
        R"([{"kind": "crlf"}])", R"([{"kind": "crlf"}, {"kind": "split", "bytes": 1}])",
        R"([{"kind": "comments"}])", R"([{"kind": "no_usage"}])"}) {
    Json reply = Json::object({{"text", text}, {"reasoning", "why not"}});
    reply.set("tools", Json::array({Json::object(
                           {{"name", "read"}, {"arguments", Json::object({{"path", "ä.c"}})}})}));
    reply.set("faults", *Json::parse(faults));
    const CallResult result = ask(GetParam(), Json::object({{"otherwise", reply}}), true).result;
    ASSERT_TRUE(result.ok()) << faults << ": " << result.error;
    EXPECT_EQ(result.reply.message.text, text) << faults;
    EXPECT_EQ(result.reply.message.tool_calls.at(0).arguments, "{\"path\":\"ä.c\"}") << faults;
  }
}

TEST_P(Apis, AMissingEndMarkerAfterAFinishReasonIsForgivenWhereTheProtocolSaysItIsDone) {
  const CallResult result =
      ask(GetParam(), always(R"({"text": "hi", "faults": [{"kind": "no_done"}]})"), true).result;
  if (GetParam() == ApiKind::kOpenAiChat) {
    EXPECT_TRUE(result.ok()) << result.error;
  } else {
    EXPECT_EQ(result.outcome, CallOutcome::kBroken);
  }
}

TEST_P(Apis, AStalledStreamAndASlowHeadTimeOutWithWhatCameBooked) {
  CallResult stalled, slow;
  {
    const std::jthread one([&] {
      stalled = ask(GetParam(), always(R"({"text": "one two three four five six seven eight nine",
          "faults": [{"kind": "stall", "after": 3, "ms": 2600}]})"),
                    true, 1, 1'000)
                    .result;
    });
    const std::jthread other([&] {
      slow = ask(GetParam(), always(R"({"text": "x", "delay_ms": 2600})"), false, 1, 1'000).result;
    });
  }
  EXPECT_EQ(stalled.outcome, CallOutcome::kTimeout) << stalled.error;
  EXPECT_TRUE(stalled.tries.back().maybe_billed);
  EXPECT_EQ(slow.outcome, CallOutcome::kTimeout) << slow.error;
  EXPECT_TRUE(slow.tries.back().maybe_billed);
}

TEST_P(Apis, ATransientFailureIsRetriedAndTheWaitTheServerAskedForIsKept) {
  for (const auto& [headers, wait_ms] : std::vector<std::pair<const char*, i64>>{
           {R"({"Retry-After": "3"})", 3'000},
           {R"({"retry-after-ms": "1500", "Retry-After": "9"})", 1'500},
           // 2023-11-14 22:13:40 UTC, 20 s after the manual clock's start
           {R"({"Retry-After": "Tue, 14 Nov 2023 22:13:40 GMT"})", 20'000}}) {
    Json script = *Json::parse(R"({"rules": [{"times": 1, "reply": {"faults": [
        {"kind": "status", "status": 429}]}}], "otherwise": {"text": "ok"}})");
    Json fault =
        Json::object({{"kind", "status"}, {"status", 429}, {"headers", *Json::parse(headers)}});
    Json reply = Json::object({{"faults", Json::array({fault})}});
    script.set("rules", Json::array({Json::object({{"times", 1}, {"reply", reply}})}));
    const Asked asked = ask(GetParam(), script, true);
    EXPECT_TRUE(asked.result.ok()) << asked.result.error;
    EXPECT_EQ(asked.result.tries.size(), 2u);
    EXPECT_EQ(asked.slept_ms, wait_ms) << headers;
  }
}

TEST_P(Apis, WithoutAHintTheBackOffGrowsWithJitterAndStaysBounded) {
  const Asked asked = ask(GetParam(), always(STATUS(500)), true);
  ASSERT_EQ(static_cast<int>(asked.result.tries.size()), kTries);
  const i64 first = asked.result.tries[1].waited_ms, second = asked.result.tries[2].waited_ms;
  EXPECT_GE(first, 250);
  EXPECT_LE(first, 500);
  EXPECT_GE(second, 500);
  EXPECT_LE(second, 1'000);
}

TEST_P(Apis, LyingUsageIsReplacedByAnEstimate) {
  for (const char* usage :
       {R"({"input": -5, "output": 7})", R"({"input": 10, "output": 99999999999})"}) {
    Json reply = Json::object({{"text", "hello"}});
    reply.set("usage", *Json::parse(usage));
    const CallResult result = ask(GetParam(), Json::object({{"otherwise", reply}}), true).result;
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result.reply.usage.estimated);
    EXPECT_GT(result.reply.usage.input(), 0);
    EXPECT_LT(result.reply.usage.output(), 100);
  }
}

TEST_P(Apis, ACallCutOffByTheLengthLimitIsDropped) {
  const CallResult result =
      ask(GetParam(), always(R"({"text": "let me", "stop": "length", "tools": [
          {"name": "read", "arguments": "{\"path\": \"a"}]})"),
          true)
          .result;
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_EQ(result.reply.stop, StopReason::kLength);
  EXPECT_TRUE(result.reply.message.tool_calls.empty());
  EXPECT_FALSE(result.reply.warnings.empty());
}

TEST_P(Apis, InvalidArgumentsReachTheCallerAsTheyWere) {
  const CallResult result =
      ask(GetParam(), always(R"({"tools": [{"name": "read", "arguments": "{\"path\": oops}"}]})"),
          true)
          .result;
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_EQ(result.reply.message.tool_calls.at(0).arguments, "{\"path\": oops}");
}

TEST_P(Apis, CallsWithoutOrWithTheSameIdGetOneEach) {
  const CallResult result =
      ask(GetParam(), always(R"({"tools": [{"name": "read", "id": ""}, {"name": "read", "id": "x"},
                                           {"name": "read", "id": "x"}]})"),
          true)
          .result;
  ASSERT_TRUE(result.ok());
  const std::vector<ToolCall>& calls = result.reply.message.tool_calls;
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_FALSE(calls[0].id.empty());
  EXPECT_NE(calls[0].id, calls[1].id);
  EXPECT_NE(calls[1].id, calls[2].id);
}

TEST_P(Apis, EmptyReasoningOnlyAndRefusedRepliesAreRepliesWithoutCalls) {
  for (const char* reply :
       {R"({})", R"({"reasoning": "hm"})", R"({"text": "no", "stop": "refusal"})",
        R"({"stop": "content_filter"})"}) {
    for (const bool stream : {true, false}) {
      const CallResult result = ask(GetParam(), always(reply), stream).result;
      ASSERT_TRUE(result.ok()) << reply << result.error;
      EXPECT_TRUE(result.reply.message.tool_calls.empty());
    }
  }
  EXPECT_EQ(ask(GetParam(), always(R"({"text": "no", "stop": "refusal"})"), true).result.reply.stop,
            StopReason::kRefusal);
}

TEST_P(Apis, TenMegabytesAreReadAndAReplyWithoutEndIsCut) {
  const CallResult big =
      ask(GetParam(), always(R"({"text": "0123456789", "repeat": 1000000})"), true).result;
  ASSERT_TRUE(big.ok()) << big.error;
  EXPECT_EQ(big.reply.message.text.size(), 10'000'000u);
  const CallResult endless =
      ask(GetParam(), always(R"({"text": "0123456789", "repeat": 4000000})"), false).result;
  EXPECT_EQ(endless.outcome, CallOutcome::kMalformed);
}

TEST_P(Apis, AnotherModelsNameIsReported) {
  const CallResult result =
      ask(GetParam(), always(R"({"text": "x", "model_name": "cheap-1"})"), true).result;
  EXPECT_EQ(result.reply.model, "cheap-1");
}

TEST_P(Apis, RepeatedAndSwappedPiecesNeitherCrashNorPassForABrokenStream) {
  for (const char* faults :
       {R"([{"kind": "duplicate", "after": 3}])", R"([{"kind": "swap", "after": 2}])"}) {
    Json reply = Json::object({{"text", "one two three four five six seven eight nine ten"}});
    reply.set("faults", *Json::parse(faults));
    EXPECT_TRUE(ask(GetParam(), Json::object({{"otherwise", reply}}), true).result.ok());
  }
}

TEST_P(Apis, NobodyThereMeansUnreachableAndNothingBooked) {
  base::ManualClock clock;
  HttpTransport transport;
  RateGate gate(clock);
  for (const char* url : {"http://127.0.0.1:9", "http://no-such-host.invalid"}) {
    HttpModel model(backend(GetParam(), url), transport, gate, clock, 7);
    const CallResult result = model.complete(question(true));
    EXPECT_EQ(result.outcome, CallOutcome::kUnreachable) << result.error;
    EXPECT_EQ(static_cast<int>(result.tries.size()), kTries);
    EXPECT_EQ(result.usage_total(), Usage());
  }
  // A server that speaks no TLS.
  const auto server = ScriptServer::start({}, always("{}")).value();
  HttpModel model(backend(GetParam(), "https://127.0.0.1:" + std::to_string(server->port())),
                  transport, gate, clock, 7);
  EXPECT_EQ(model.complete(question(true)).outcome, CallOutcome::kUnreachable);
}

TEST_P(Apis, TheCallerCanStopAStream) {
  const auto server =
      ScriptServer::start({}, always(R"({"text": "one two three four five six seven eight nine"})"))
          .value();
  base::ManualClock clock;
  HttpTransport transport;
  RateGate gate(clock);
  HttpModel model(backend(GetParam(), server->url()), transport, gate, clock, 7);
  const CallResult result = model.complete(question(true), [](const Delta&) { return false; });
  EXPECT_EQ(result.outcome, CallOutcome::kCancelled);
  EXPECT_EQ(result.tries.size(), 1u);
  EXPECT_TRUE(result.tries[0].maybe_billed);
}

}  // namespace
}  // namespace team
