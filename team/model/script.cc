#include "team/model/script.h"

#include <re2/re2.h>

#include <algorithm>

namespace team {
namespace {

using base::Json;

base::Error bad(const std::string& where, const std::string& what) {
  return base::Error(base::ErrorCode::kInvalidArgument, "script, " + where + ": " + what);
}

base::Status known_keys(const Json& json, std::initializer_list<std::string_view> keys,
                        const std::string& where) {
  if (!json.is_object()) return bad(where, "must be an object");
  for (const auto& [key, value] : json.members()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      return bad(where, "unknown key '" + key + "'");
    }
  }
  return {};
}

// True when a line of `text` reads "<key>: <value>".
bool has_line(std::string_view text, std::string_view key, std::string_view value) {
  const std::string line = std::string(key) + ": " + std::string(value);
  for (size_t at = text.find(line); at != std::string_view::npos; at = text.find(line, at + 1)) {
    const size_t end = at + line.size();
    if ((at == 0 || text[at - 1] == '\n') && (end == text.size() || text[end] == '\n')) return true;
  }
  return false;
}

struct When {
  std::string role, task, model, tool;
  std::optional<i64> turn;
  // In the order of the header: system, user, any, tool_result.
  std::vector<std::pair<std::string, std::shared_ptr<const RE2>>> patterns;

  bool matches(const ScriptRequest& request) const {
    if (!role.empty() && !has_line(request.system, "Role", role)) return false;
    if (!task.empty() && !has_line(request.everything, "Task", task)) return false;
    if (!model.empty() && request.model != model) return false;
    if (!tool.empty() && request.last_tool != tool) return false;
    if (turn && *turn != request.turn) return false;
    for (const auto& [key, pattern] : patterns) {
      const std::string& text = key == "system"        ? request.system
                                : key == "user"        ? request.last_user
                                : key == "tool_result" ? request.last_tool_result
                                                       : request.everything;
      if (key == "tool_result" && request.last_tool.empty()) return false;
      if (!RE2::PartialMatch(text, *pattern)) return false;
    }
    return true;
  }
};

base::Result<When> parse_when(const Json& json, const std::string& where) {
  When when;
  if (json.is_null()) return when;
  TRY(known_keys(json,
                 {"role", "task", "turn", "system", "user", "any", "tool", "tool_result", "model"},
                 where + ".when"));
  when.role = json["role"].as_string();
  when.task = json["task"].as_string();
  when.model = json["model"].as_string();
  when.tool = json["tool"].as_string();
  if (json["turn"].is_integer()) when.turn = json["turn"].as_int();
  for (const char* key : {"system", "user", "any", "tool_result"}) {
    if (!json[key].is_string()) continue;
    RE2::Options quiet;
    quiet.set_log_errors(false);
    auto pattern = std::make_shared<const RE2>(json[key].as_string(), quiet);
    if (!pattern->ok()) {
      return bad(where + ".when." + key, "not a regular expression: " + pattern->error());
    }
    when.patterns.emplace_back(key, std::move(pattern));
  }
  return when;
}

base::Result<std::vector<ScriptFault>> parse_faults(const Json& json, const std::string& where) {
  static constexpr std::string_view kKinds[] = {
      "status", "stall", "reset", "no_done",  "no_usage", "error", "duplicate",
      "swap",   "split", "crlf",  "comments", "truncate", "raw"};
  std::vector<ScriptFault> faults;
  for (const Json& item : json.items()) {
    const std::string& kind = item["kind"].as_string();
    if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) {
      return bad(where + ".faults", "unknown kind '" + kind + "'");
    }
    faults.push_back({kind, item});
  }
  return faults;
}

base::Result<ScriptReply> parse_reply(const Json& json, const std::string& where) {
  TRY(known_keys(json,
                 {"text", "reasoning", "repeat", "tools", "usage", "stop", "model_name", "delay_ms",
                  "chunk_delay_ms", "faults"},
                 where + ".reply"));
  ScriptReply reply;
  reply.text = json["text"].as_string();
  reply.reasoning = json["reasoning"].as_string();
  reply.repeat = json["repeat"].as_int(1);
  reply.stop = json["stop"].as_string();
  reply.model_name = json["model_name"].as_string();
  reply.delay_ms = json["delay_ms"].as_int();
  reply.chunk_delay_ms = json["chunk_delay_ms"].as_int();
  for (const Json& tool : json["tools"].items()) {
    TRY(known_keys(tool, {"id", "name", "arguments"}, where + ".reply.tools"));
    const Json& arguments = tool["arguments"];
    // "auto" ids are given at render time, so that two uses of a rule differ.
    reply.tools.push_back({tool["id"].as_string_or("auto"), tool["name"].as_string(),
                           arguments.is_string() ? arguments.as_string()
                           : arguments.is_null() ? "{}"
                                                 : arguments.dump()});
  }
  if (const Json& usage = json["usage"]; usage.is_object()) {
    TRY(known_keys(usage, {"input", "cached", "written", "output", "reasoning"},
                   where + ".reply.usage"));
    Usage counted;
    counted.in_cached = usage["cached"].as_int();
    counted.in_written = usage["written"].as_int();
    counted.in_fresh = usage["input"].as_int() - counted.in_cached - counted.in_written;
    counted.out_reason = usage["reasoning"].as_int();
    counted.out_text = usage["output"].as_int() - counted.out_reason;
    reply.usage = counted;
  }
  reply.faults = TRY(parse_faults(json["faults"], where + ".reply"));
  return reply;
}

std::string text_of(const Json& content) {
  if (content.is_string()) return content.as_string();
  std::string text;
  for (const Json& part : content.items()) {
    const std::string& type = part["type"].as_string();
    if (type == "text" || type.empty()) text += part["text"].as_string() + "\n";
    if (type == "tool_result") text += text_of(part["content"]) + "\n";
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Which tool a result answers, looked up by the id of the call.
void take_openai(const Json& body, ScriptRequest& request) {
  std::map<std::string, std::string> tool_of_id;
  for (const Json& message : body["messages"].items()) {
    const std::string& role = message["role"].as_string();
    const std::string text = text_of(message["content"]);
    request.everything += text + "\n";
    request.last_tool.clear();
    if (role == "system" || role == "developer") request.system += text + "\n";
    if (role == "user") request.last_user = text;
    if (role == "assistant") ++request.turn;
    for (const Json& call : message["tool_calls"].items()) {
      tool_of_id[call["id"].as_string()] = call["function"]["name"].as_string();
    }
    if (role == "tool") {
      request.last_tool = tool_of_id[message["tool_call_id"].as_string()];
      request.last_tool_result = text;
    }
  }
}

void take_anthropic(const Json& body, ScriptRequest& request) {
  std::map<std::string, std::string> tool_of_id;
  request.system = text_of(body["system"]);
  request.everything = request.system + "\n";
  for (const Json& message : body["messages"].items()) {
    request.everything += text_of(message["content"]) + "\n";
    request.last_tool.clear();
    if (message["role"].as_string() == "assistant") ++request.turn;
    if (message["content"].is_string() && message["role"].as_string() == "user") {
      request.last_user = message["content"].as_string();
    }
    for (const Json& block : message["content"].items()) {
      const std::string& type = block["type"].as_string();
      if (type == "tool_use") tool_of_id[block["id"].as_string()] = block["name"].as_string();
      if (type == "tool_result") {
        request.last_tool = tool_of_id[block["tool_use_id"].as_string()];
        request.last_tool_result = text_of(block["content"]);
      }
      if (type == "text" && message["role"].as_string() == "user") {
        request.last_user = block["text"].as_string();
      }
    }
  }
}

}  // namespace

base::Result<ScriptRequest> ScriptRequest::parse(ApiKind api, const Json& body) {
  if (!body["model"].is_string()) {
    return base::Error(base::ErrorCode::kInvalidArgument, "you must provide a model parameter");
  }
  if (!body["messages"].is_array() || body["messages"].size() == 0) {
    return base::Error(base::ErrorCode::kInvalidArgument, "messages: at least one is required");
  }
  ScriptRequest request;
  request.api = api;
  request.model = body["model"].as_string();
  request.stream = body["stream"].as_bool();
  request.stream_usage = body["stream_options"]["include_usage"].as_bool();
  if (api == ApiKind::kAnthropic) {
    if (!body["max_tokens"].is_integer()) {
      return base::Error(base::ErrorCode::kInvalidArgument, "max_tokens: field required");
    }
    take_anthropic(body, request);
  } else {
    take_openai(body, request);
  }
  return request;
}

struct Script::Impl {
  struct Rule {
    std::string name;
    When when;
    ScriptReply reply;
    i64 uses_left = -1;  // negative: no end
  };
  std::string model = "scripted-1";
  std::vector<Rule> rules;
  std::optional<ScriptReply> otherwise;
};

Script::Script(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Script::Script(Script&&) noexcept = default;
Script& Script::operator=(Script&&) noexcept = default;
Script::~Script() = default;

base::Result<Script> Script::parse(const Json& json) {
  TRY(known_keys(json, {"model", "rules", "otherwise"}, "top"));
  auto impl = std::make_unique<Impl>();
  impl->model = json["model"].as_string_or("scripted-1");
  int number = 0;
  for (const Json& item : json["rules"].items()) {
    Impl::Rule rule;
    const std::string where = "rule " + std::to_string(++number);
    TRY(known_keys(item, {"name", "when", "reply", "times"}, where));
    rule.name = item["name"].as_string_or(where);
    rule.when = TRY(parse_when(item["when"], where));
    rule.reply = TRY(parse_reply(item["reply"], where));
    rule.uses_left = item["times"].as_int(-1);
    impl->rules.push_back(std::move(rule));
  }
  if (!json["otherwise"].is_null()) {
    impl->otherwise = TRY(parse_reply(json["otherwise"], "otherwise"));
  }
  return Script(std::move(impl));
}

std::optional<Script::Answer> Script::answer(const ScriptRequest& request) {
  for (Impl::Rule& rule : impl_->rules) {
    if (rule.uses_left == 0 || !rule.when.matches(request)) continue;
    if (rule.uses_left > 0) --rule.uses_left;
    return Answer{rule.name, &rule.reply};
  }
  if (impl_->otherwise) return Answer{"otherwise", &*impl_->otherwise};
  return std::nullopt;
}

const std::string& Script::model() const {
  return impl_->model;
}

}  // namespace team
