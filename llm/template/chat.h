// Conversations: what a client sends, and the prompt text a model was trained on.
//
// Prompts are made of segments: the template's own markers may become special tokens, what people
// and tools wrote never does (tokenizer.h). Templates are native renderers, chosen by looking at
// the template text that the model file carries.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "llm/tokenizer/tokenizer.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // a JSON object, as text
};

struct ChatMessage {
  std::string role;  // system | developer | user | assistant | tool
  std::string content;
  std::string reasoning;
  std::vector<ToolCall> tool_calls;
  std::string tool_call_id;
};

struct ChatOptions {
  base::Json tools;  // OpenAI's array, or null
  bool thinking = true;
  std::string reasoning_effort;  // "high" or anything else
  bool clear_thinking = true;    // drop the reasoning of earlier rounds
};

enum class ChatStyle { kChatMl, kLlama3, kGlm };

struct ChatTemplate {
  ChatStyle style = ChatStyle::kChatMl;
  std::string default_system;  // put first when a conversation has no system message

  // Looks at the markers of the template's text; the tokenizer decides when there is none.
  static ChatTemplate detect(std::string_view text, const Tokenizer& tokenizer);
  // Ends with the opening of the assistant's turn.
  std::vector<TextSegment> render(const std::vector<ChatMessage>& messages,
                                  const ChatOptions& options) const;
  // Whether the rendered prompt leaves the model inside its reasoning.
  bool opens_thinking(const ChatOptions& options) const {
    return style == ChatStyle::kGlm && options.thinking;
  }
};

// From the body of an OpenAI request. Errors: kInvalidArgument names the message.
base::Result<std::vector<ChatMessage>> parse_messages(const base::Json& messages);

}  // namespace llm
