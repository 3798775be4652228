#include "llm/template/output_parser.h"

namespace llm {

using base::Json;

namespace {

constexpr std::string_view kThinkOpen = "<think>";
constexpr std::string_view kThinkClose = "</think>";
constexpr std::string_view kCallOpen = "<tool_call>";
constexpr std::string_view kCallClose = "</tool_call>";

// Length of the longest end of `text` that begins `marker` without completing it.
size_t partial_tail(std::string_view text, std::string_view marker) {
  const size_t longest = std::min(text.size(), marker.size() - 1);
  for (size_t n = longest; n > 0; --n) {
    if (text.substr(text.size() - n) == marker.substr(0, n)) return n;
  }
  return 0;
}

std::string_view trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t\r\n");
  if (from == std::string_view::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

const Json& function_of(const Json& tool) {
  return tool.has("function") ? tool["function"] : tool;
}

}  // namespace

OutputParser::OutputParser(Options options)
    : options_(std::move(options)),
      state_(options_.starts_in_reasoning ? State::kReasoning : State::kContent) {}

OutputParser::Delta OutputParser::feed(std::string_view piece) {
  pending_ += piece;
  Delta delta;
  advance(&delta, false);
  return delta;
}

OutputParser::Delta OutputParser::finish() {
  Delta delta;
  advance(&delta, true);
  return delta;
}

// Moves text before `marker` to *out. True: the marker was there and is gone.
bool OutputParser::take_until(std::string_view marker, bool at_end, std::string* out) {
  const size_t at = pending_.find(marker);
  if (at != std::string::npos) {
    *out += pending_.substr(0, at);
    pending_.erase(0, at + marker.size());
    return true;
  }
  const size_t held = at_end ? 0 : partial_tail(pending_, marker);
  *out += pending_.substr(0, pending_.size() - held);
  pending_.erase(0, pending_.size() - held);
  return false;
}

void OutputParser::advance(Delta* delta, bool at_end) {
  const bool calls = options_.tools.is_array() && options_.tools.size() > 0;
  while (true) {
    if (state_ == State::kReasoning) {
      if (!take_until(kThinkClose, at_end, &delta->reasoning)) return;
      state_ = State::kContent;
    } else if (state_ == State::kContent) {
      if (!content_started_) {
        // An answer may open its reasoning itself.
        const std::string_view start = trimmed(pending_);
        if (start.starts_with(kThinkOpen)) {
          pending_.erase(0, pending_.find(kThinkOpen) + kThinkOpen.size());
          state_ = State::kReasoning;
          content_started_ = true;
          continue;
        }
        if (!at_end && kThinkOpen.starts_with(start)) return;  // undecided, or only blanks so far
        content_started_ = true;
      }
      if (!calls) {
        delta->content += pending_;
        pending_.clear();
        return;
      }
      if (!take_until(kCallOpen, at_end, &delta->content)) return;
      state_ = State::kCall;
    } else {
      const size_t close = pending_.find(kCallClose);
      if (close == std::string::npos && !at_end) return;
      const std::string body = pending_.substr(0, close);
      pending_.erase(0, close == std::string::npos ? pending_.size() : close + kCallClose.size());
      ToolCall call;
      if (parse_call(body, &call)) {
        call.id = "call_" + std::to_string(calls_seen_++);
        delta->calls.push_back(std::move(call));
      } else {
        delta->content += std::string(kCallOpen) + body;
      }
      state_ = State::kContent;
      if (close == std::string::npos) return;
    }
  }
}

bool OutputParser::parse_call(std::string_view body, ToolCall* call) const {
  return options_.style == ChatStyle::kGlm
             ? parse_glm_call(body, call) || parse_json_call(body, call)
             : parse_json_call(body, call);
}

bool OutputParser::parse_json_call(std::string_view body, ToolCall* call) const {
  const auto parsed = Json::parse(trimmed(body));
  if (!parsed.ok() || !(*parsed)["name"].is_string()) return false;
  call->name = (*parsed)["name"].as_string();
  const Json& arguments = (*parsed)["arguments"];
  call->arguments = arguments.is_object() ? arguments.dump() : "{}";
  return true;
}

// name<arg_key>k</arg_key><arg_value>v</arg_value>...
bool OutputParser::parse_glm_call(std::string_view body, ToolCall* call) const {
  constexpr std::string_view kKey = "<arg_key>", kKeyEnd = "</arg_key>";
  constexpr std::string_view kValue = "<arg_value>", kValueEnd = "</arg_value>";
  size_t at = body.find(kKey);
  call->name = std::string(trimmed(body.substr(0, at)));
  if (call->name.empty() || call->name.find_first_of("{}<>\"") != std::string::npos) return false;
  const Json* properties = nullptr;
  for (const Json& tool : options_.tools.items()) {
    if (function_of(tool)["name"].as_string() == call->name) {
      properties = &function_of(tool)["parameters"]["properties"];
    }
  }
  Json arguments = Json::object();
  while (at != std::string_view::npos) {
    const size_t key_end = body.find(kKeyEnd, at);
    if (key_end == std::string_view::npos) return false;
    const std::string key(body.substr(at + kKey.size(), key_end - at - kKey.size()));
    const size_t value = body.find(kValue, key_end);
    const size_t value_end = body.find(kValueEnd, value);
    if (value == std::string_view::npos || value_end == std::string_view::npos) return false;
    const std::string_view raw =
        body.substr(value + kValue.size(), value_end - value - kValue.size());
    arguments.set(key, typed_argument(properties == nullptr ? Json() : (*properties)[key], raw));
    at = body.find(kKey, value_end);
  }
  call->arguments = arguments.dump();
  return true;
}

Json typed_argument(const Json& schema, std::string_view raw) {
  if (schema["type"].as_string() == "string") return Json(raw);
  auto parsed = Json::parse(raw);
  return parsed.ok() ? std::move(parsed).value() : Json(raw);
}

}  // namespace llm
