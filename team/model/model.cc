#include "team/model/model.h"

#include <array>
#include <utility>

namespace team {
namespace {

constexpr size_t kBytesPerToken = 4;

constexpr std::array<std::pair<Message::Role, const char*>, 4> kRoleNames = {{
    {Message::Role::kSystem, "system"},
    {Message::Role::kUser, "user"},
    {Message::Role::kAssistant, "assistant"},
    {Message::Role::kTool, "tool"},
}};

}  // namespace

i64 estimate_tokens(size_t bytes) {
  return static_cast<i64>((bytes + kBytesPerToken - 1) / kBytesPerToken);
}

Message Message::system(std::string text) {
  Message message;
  message.role = Role::kSystem;
  message.text = std::move(text);
  return message;
}

Message Message::user(std::string text) {
  Message message;
  message.text = std::move(text);
  return message;
}

Message Message::tool(const ToolCall& call, std::string text, bool is_error) {
  Message message;
  message.role = Role::kTool;
  message.text = std::move(text);
  message.tool_call_id = call.id;
  message.tool_name = call.name;
  message.is_error = is_error;
  return message;
}

base::Json Message::to_json() const {
  base::Json json = base::Json::object();
  for (const auto& [value, name] : kRoleNames) {
    if (value == role) json.set("role", name);
  }
  json.set("text", text);
  if (!reasoning.empty()) json.set("reasoning", reasoning);
  if (!reasoning_blocks.is_null()) json.set("reasoning_blocks", reasoning_blocks);
  if (!tool_calls.empty()) {
    base::Json calls = base::Json::array();
    for (const ToolCall& call : tool_calls) {
      calls.push(base::Json::object(
          {{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}}));
    }
    json.set("tool_calls", std::move(calls));
  }
  if (role == Role::kTool) {
    json.set("tool_call_id", tool_call_id);
    json.set("tool_name", tool_name);
    if (is_error) json.set("is_error", true);
  }
  return json;
}

base::Result<Message> Message::from_json(const base::Json& json) {
  Message message;
  bool known = false;
  for (const auto& [value, name] : kRoleNames) {
    if (json["role"].as_string() == name) message.role = value, known = true;
  }
  if (!known) {
    return base::Error(base::ErrorCode::kCorruption,
                       "a stored message has the unknown role '" + json["role"].as_string() + "'");
  }
  message.text = json["text"].as_string();
  message.reasoning = json["reasoning"].as_string();
  message.reasoning_blocks = json["reasoning_blocks"];
  for (const base::Json& call : json["tool_calls"].items()) {
    message.tool_calls.push_back(
        {call["id"].as_string(), call["name"].as_string(), call["arguments"].as_string()});
  }
  message.tool_call_id = json["tool_call_id"].as_string();
  message.tool_name = json["tool_name"].as_string();
  message.is_error = json["is_error"].as_bool();
  return message;
}

i64 ModelRequest::input_tokens_estimate() const {
  size_t bytes = 0;
  for (const Message& message : messages) {
    bytes += message.text.size() + message.reasoning.size() + 16;
    if (!message.reasoning_blocks.is_null()) bytes += message.reasoning_blocks.dump().size();
    for (const ToolCall& call : message.tool_calls) {
      bytes += call.name.size() + call.arguments.size() + 16;
    }
  }
  for (const ToolSpec& tool : tools) {
    bytes += tool.name.size() + tool.description.size() + tool.parameters.dump().size();
  }
  return estimate_tokens(bytes);
}

const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::kEnd:
      return "end";
    case StopReason::kToolCalls:
      return "tool_calls";
    case StopReason::kLength:
      return "length";
    case StopReason::kRefusal:
      return "refusal";
    case StopReason::kContentFilter:
      return "content_filter";
    case StopReason::kOther:
      return "other";
  }
  return "other";
}

const char* name_of(CallOutcome outcome) {
  switch (outcome) {
    case CallOutcome::kOk:
      return "ok";
    case CallOutcome::kUnreachable:
      return "unreachable";
    case CallOutcome::kUnauthorized:
      return "unauthorized";
    case CallOutcome::kNoSuchModel:
      return "no such model";
    case CallOutcome::kRejected:
      return "rejected";
    case CallOutcome::kContextOverflow:
      return "context overflow";
    case CallOutcome::kRateLimited:
      return "rate limited";
    case CallOutcome::kServerError:
      return "server error";
    case CallOutcome::kTimeout:
      return "timeout";
    case CallOutcome::kBroken:
      return "broken stream";
    case CallOutcome::kMalformed:
      return "malformed reply";
    case CallOutcome::kCancelled:
      return "cancelled";
    case CallOutcome::kNoRecording:
      return "no recording";
  }
  return "unknown";
}

Usage CallResult::usage_total() const {
  Usage total;
  for (const CallTry& one : tries) total += one.usage;
  return total;
}

}  // namespace team
