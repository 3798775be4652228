// Takes a model's answer apart while it streams: reasoning before </think>, content, and tool calls
// between <tool_call> and </tool_call>. Pieces may end anywhere, even inside a marker: what could
// still become a marker is held back until it is decided. A call is given out whole, once it is
// closed. Single-threaded.
#pragma once

#include "base/json.h"
#include "llm/template/chat.h"

#include <string>
#include <string_view>
#include <vector>

namespace llm {

class OutputParser {
 public:
  struct Options {
    ChatStyle style = ChatStyle::kChatMl;
    bool starts_in_reasoning = false;
    base::Json tools;  // null or OpenAI's array; without tools, call markers are content
  };
  struct Delta {
    std::string content;
    std::string reasoning;
    std::vector<ToolCall> calls;
    bool empty() const { return content.empty() && reasoning.empty() && calls.empty(); }
  };
  explicit OutputParser(Options options);

  Delta feed(std::string_view piece);
  // Gives out what was held back; an unclosed call becomes a call if it parses, else content.
  Delta finish();
  size_t calls_seen() const { return calls_seen_; }

 private:
  enum class State { kReasoning, kContent, kCall };
  void advance(Delta* delta, bool at_end);
  bool take_until(std::string_view marker, bool at_end, std::string* out);
  bool parse_call(std::string_view body, ToolCall* call) const;
  bool parse_json_call(std::string_view body, ToolCall* call) const;
  bool parse_glm_call(std::string_view body, ToolCall* call) const;

  Options options_;
  State state_;
  std::string pending_;
  bool content_started_ = false;
  size_t calls_seen_ = 0;
};

// The value that a declared parameter schema makes of raw text: strings stay raw even when they
// look like JSON, everything else is parsed and falls back to a string.
base::Json typed_argument(const base::Json& schema, std::string_view raw);

}  // namespace llm
