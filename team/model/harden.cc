#include "team/model/codec.h"

#include <algorithm>
#include <array>
#include <set>

namespace team {
namespace {

// No call has ever used this many; larger numbers are a server's bug and would empty a budget.
constexpr i64 kTokensAbsurd = 50'000'000;

bool plausible(i64 tokens) {
  return tokens >= 0 && tokens < kTokensAbsurd;
}

// End of the JSON object that starts at the first '{', or npos. Knows strings and escapes, nothing
// else.
size_t object_end(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t at = text.find('{'); at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\')
        ++at;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

void repair_usage(ModelReply& reply, size_t request_bytes) {
  Usage& usage = reply.usage;
  const bool sane = plausible(usage.in_fresh) && plausible(usage.in_cached) &&
                    plausible(usage.in_written) && plausible(usage.out_text) &&
                    plausible(usage.out_reason);
  if (sane) return;
  if (usage != no_usage()) {
    reply.warnings.push_back("the server reported impossible token counts; estimated");
  }
  size_t out = reply.message.text.size();
  for (const ToolCall& call : reply.message.tool_calls) {
    out += call.name.size() + call.arguments.size();
  }
  usage = Usage();
  usage.in_fresh = estimate_tokens(request_bytes);
  usage.out_text = estimate_tokens(out);
  usage.out_reason = estimate_tokens(reply.message.reasoning.size());
  usage.estimated = true;
}

void repair_ids(ModelReply& reply) {
  std::set<std::string> used;
  int index = 0;
  for (ToolCall& call : reply.message.tool_calls) {
    if (call.id.empty() || !used.insert(call.id).second) {
      reply.warnings.push_back(call.id.empty() ? "a tool call had no id"
                                               : "two tool calls had the id " + call.id);
      std::string id;
      do {
        id = "call_fleet_" + std::to_string(index++);
      } while (!used.insert(id).second);
      call.id = id;
    }
  }
}

}  // namespace

bool trim_trailing_noise(std::string& arguments) {
  const size_t first = arguments.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || arguments[first] != '{') return false;
  const size_t end = object_end(arguments);
  if (end == std::string::npos) return false;
  const std::string_view rest = std::string_view(arguments).substr(end);
  const bool only_space = rest.find_first_not_of(" \t\r\n") == std::string_view::npos;
  if (only_space && first == 0) {
    arguments.resize(end);
    return false;
  }
  // Special tokens and closing fences only: real text after the object is the model's mistake to
  // mend.
  const size_t noise = rest.find_first_not_of(" \t\r\n");
  if (!only_space && rest[noise] != '<' && rest[noise] != '`' && rest[noise] != '[') return false;
  arguments = arguments.substr(first, end - first);
  return true;
}

void harden(ModelReply& reply, size_t request_bytes) {
  Message& message = reply.message;
  message.role = Message::Role::kAssistant;
  if (reply.stop == StopReason::kLength && !message.tool_calls.empty()) {
    ToolCall& last = message.tool_calls.back();
    if (!base::Json::parse(last.arguments).ok()) {
      reply.warnings.push_back("the length limit cut the call of " + last.name +
                               " short; it was dropped");
      repair_usage(reply, request_bytes);  // while the dropped text still counts
      message.tool_calls.pop_back();
    }
  }
  for (ToolCall& call : message.tool_calls) {
    if (call.arguments.find_first_not_of(" \t\r\n") == std::string::npos) call.arguments = "{}";
    if (trim_trailing_noise(call.arguments)) {
      reply.warnings.push_back("noise after the arguments of " + call.name + " was cut off");
    }
  }
  repair_ids(reply);
  if (reply.stop == StopReason::kEnd && !message.tool_calls.empty()) {
    reply.stop = StopReason::kToolCalls;
  }
  repair_usage(reply, request_bytes);
}

}  // namespace team
