// The OpenAI wire format: requests in, answers and streamed pieces out. No I/O here.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "llm/engine/engine.h"
#include "llm/engine/grammar.h"
#include "llm/template/chat.h"
#include "llm/template/output_parser.h"

#include <string>
#include <vector>

namespace llm {

// What both endpoints share.
struct ApiRequest {
  GenerateRequest generate;  // prompt, sink and rule are filled in by the server
  bool stream = false;
  bool include_usage = false;
  i32 choices = 1;
  bool want_logprobs = false;
};

struct ChatRequest {
  ApiRequest api;
  std::vector<ChatMessage> messages;
  ChatOptions options;
  base::Json response_format;  // null: free text
  base::Json tool_choice;
};

struct CompletionRequest {
  ApiRequest api;
  std::vector<std::string> prompts;                 // texts, or
  std::vector<std::vector<TokenId>> token_prompts;  // token ids
  bool echo = false;
};

// Errors: kInvalidArgument names the field.
base::Result<ChatRequest> parse_chat_request(const base::Json& body);
base::Result<CompletionRequest> parse_completion_request(const base::Json& body);

// The grammar that a request's response_format or tool_choice calls for. Errors as json_schema.h.
struct Constraint {
  bool present = false;
  bool forces_call = false;
  Grammar grammar;
};
base::Result<Constraint> constraint_of(const ChatRequest& request);

base::Json usage_json(const Usage& usage);
base::Json error_json(std::string_view message, std::string_view type, std::string_view code);
base::Json tool_calls_json(const std::vector<ToolCall>& calls, size_t first_index, bool streamed);
// OpenAI's shape for chat ("content" list) and for completions (parallel lists).
base::Json chat_logprobs_json(const std::vector<TokenReport>& tokens, const Tokenizer& tokenizer);
base::Json completion_logprobs_json(const std::vector<TokenReport>& tokens,
                                    const Tokenizer& tokenizer);

int http_status_of(const base::Error& error);

}  // namespace llm
