// `fleet models test URL`: what a back end can do, found out by asking it.
#include "base/clock.h"
#include "base/json.h"
#include "team/model/codec.h"
#include "team/model/http_model.h"

namespace team {
namespace {

struct Probe {
  const BackendConfig& config;
  HttpTransport transport;
  RateGate gate{base::system_clock()};
  HttpModel model{config, transport, gate, base::system_clock(), 1};
  std::string name;
  std::vector<EndpointFinding> findings;

  explicit Probe(const BackendConfig& backend) : config(backend) {}

  void note(std::string check, bool ok, std::string detail) {
    findings.push_back({std::move(check), ok, std::move(detail)});
  }

  ModelRequest question(bool stream) const {
    ModelRequest request;
    request.model = name;
    request.messages = {Message::system("You are a test. Answer with one word."),
                        Message::user("Say hello.")};
    request.output_tokens_max = 512;
    request.stream = stream;
    return request;
  }

  void find_model() {
    base::HttpRequest http;
    http.url = config.url + (config.api == ApiKind::kAnthropic ? "/v1/models" : "/models");
    http.headers = codec_for(config.api).headers(config);
    http.timeout_ms = 20'000;
    base::Result<base::HttpResponse> got = base::http_request(http);
    if (!got.ok()) return note("reachable", false, got.error().message());
    note("reachable", true, config.url);
    base::Result<base::Json> parsed = base::Json::parse(got->body);
    const base::Json& list = parsed.ok() ? (*parsed)["data"] : base::Json();
    std::string names;
    bool listed = false;
    for (const base::Json& item : list.items()) {
      const std::string& id = item["id"].as_string();
      if (name.empty()) name = id;
      listed = listed || id == name;
      names += (names.empty() ? "" : ", ") + id;
    }
    if (got->status == 401 || got->status == 403) {
      note("key accepted", false, classify_http_error(got->status, got->headers, got->body).error);
    } else if (list.size() == 0) {
      note("lists models", false, "no list of models; name one with --model");
    } else {
      note("lists models", listed, listed ? names : name + " is not among " + names);
    }
  }

  void ask(const char* check, bool stream) {
    const CallResult result = model.complete(question(stream));
    if (!result.ok()) return note(check, false, result.error);
    const CallTry& last = result.tries.back();
    note(check, true,
         "first byte after " + std::to_string(last.first_token_ms) + " ms, all after " +
             std::to_string(last.total_ms) + " ms");
    if (!stream) return;
    const Usage& usage = result.reply.usage;
    note("counts tokens", !usage.estimated,
         usage.estimated
             ? "no usage in the stream; budgets would rest on estimates"
             : std::to_string(usage.input()) + " in, " + std::to_string(usage.output()) + " out");
    for (const std::string& warning : result.reply.warnings) note("clean protocol", false, warning);
  }

  void call_tool() {
    ModelRequest request = question(true);
    request.messages = {Message::system("You are a test."),
                        Message::user("Call the tool 'echo' with the text 'hi'.")};
    base::Json text = base::Json::object({{"type", "string"}});
    request.tools = {{"echo", "Repeats a text.",
                      base::Json::object({{"type", "object"},
                                          {"properties", base::Json::object({{"text", text}})},
                                          {"required", base::Json::array({"text"})}})}};
    const CallResult result = model.complete(request);
    if (!result.ok()) return note("calls tools", false, result.error);
    const std::vector<ToolCall>& calls = result.reply.message.tool_calls;
    if (calls.empty()) {
      return note("calls tools", false,
                  "it answered in words instead; coders need a model and server with tool calls");
    }
    base::Result<base::Json> arguments = base::Json::parse(calls[0].arguments);
    note("calls tools", arguments.ok() && calls[0].name == "echo",
         calls[0].name + " " + calls[0].arguments);
  }
};

}  // namespace

std::vector<EndpointFinding> test_endpoint(const BackendConfig& config, const std::string& model) {
  BackendConfig quick = config;
  quick.retry.tries_max = 2;
  quick.stall_timeout_ms = 60'000;
  Probe probe(quick);
  probe.name = model;
  probe.find_model();
  if (!probe.findings[0].ok || probe.name.empty()) return probe.findings;
  probe.ask("answers", false);
  probe.ask("streams", true);
  probe.call_tool();
  return probe.findings;
}

}  // namespace team
