// What the rest of the team knows about language models: a request, a reply, a normalised token
// count, and one interface to get from the first to the second. The two wire protocols (OpenAI chat
// completions, Anthropic messages), retries, the rate gate and cassettes live behind it.
//
// Token counts never overlap: input() = fresh + cached + written, output() = text + reasoning.
// OpenAI reports input including cached tokens, Anthropic excluding them; the adapters normalise.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "base/types.h"
#include "team/core/usage.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace team {

// About four bytes a token: good enough to reserve a budget, never to bill when the server counts.
i64 estimate_tokens(size_t bytes);

struct ToolCall {
  std::string id;  // made up as "call_<turn>_<index>" when the model sent none
  std::string name;
  std::string arguments;  // JSON text as the model wrote it, less trailing noise; may be invalid
  bool operator==(const ToolCall&) const = default;
};

struct Message {
  enum class Role { kSystem, kUser, kAssistant, kTool };
  Role role = Role::kUser;
  std::string text;
  // Assistant only. Sent back unchanged: interleaved thinking breaks without it.
  std::string reasoning;        // OpenAI-style servers: reasoning_content / reasoning
  base::Json reasoning_blocks;  // Anthropic: thinking and redacted_thinking blocks, or null
  std::vector<ToolCall> tool_calls;
  // Tool only.
  std::string tool_call_id;
  std::string tool_name;
  bool is_error = false;

  static Message system(std::string text);
  static Message user(std::string text);
  static Message tool(const ToolCall& call, std::string text, bool is_error = false);

  base::Json to_json() const;
  static base::Result<Message> from_json(const base::Json& json);
  bool operator==(const Message&) const = default;
};

struct ToolSpec {
  std::string name;
  std::string description;
  base::Json parameters;  // a JSON schema of type object
};

struct ModelRequest {
  std::string model;
  std::vector<Message> messages;  // system messages first
  std::vector<ToolSpec> tools;    // in a fixed order: they are part of the cached prefix
  bool tool_required = false;     // the reply must call some tool
  i64 output_tokens_max = 8192;
  std::optional<f64> temperature;
  std::string effort;  // "", "low", "medium", "high"
  bool stream = true;

  // For reserving a budget before the call.
  i64 input_tokens_estimate() const;
};

enum class StopReason { kEnd, kToolCalls, kLength, kRefusal, kContentFilter, kOther };
const char* name_of(StopReason reason);

struct ModelReply {
  std::string id;
  std::string model;  // what the server says it ran
  Message message;    // role assistant
  StopReason stop = StopReason::kEnd;
  std::string stop_text;  // as the server wrote it
  Usage usage;
  std::vector<std::string> warnings;  // what had to be repaired or guessed, one sentence each
};

// How a call ended. Everything but kOk carries an error sentence.
enum class CallOutcome {
  kOk,
  kUnreachable,      // no connection, name or TLS: nothing was billed
  kUnauthorized,     // 401, 403
  kNoSuchModel,      // 404
  kRejected,         // another 4xx: the request itself is wrong
  kContextOverflow,  // the prompt does not fit the model
  kRateLimited,      // 429, after the retries
  kServerError,      // 5xx, after the retries
  kTimeout,          // 408, slow head, stalled stream
  kBroken,           // the stream ended early: tokens were spent, the reply is not usable
  kMalformed,        // a 200 that is not the protocol
  kCancelled,
  kNoRecording,  // strict replay met a request that is not on the cassette
};
const char* name_of(CallOutcome outcome);

// One HTTP exchange. A call has one or more; each that may have been billed is booked.
struct CallTry {
  CallOutcome outcome = CallOutcome::kOk;
  int http_status = 0;  // 0: none came
  bool maybe_billed = false;
  Usage usage;  // estimated when the exchange broke off
  i64 first_token_ms = -1;
  i64 total_ms = 0;
  i64 waited_ms = 0;  // before this try: back-off and rate gate
  std::string error;
};

struct CallResult {
  CallOutcome outcome = CallOutcome::kOk;
  ModelReply reply;  // REQUIRES: ok() to be used
  std::string error;
  std::vector<CallTry> tries;
  bool ok() const { return outcome == CallOutcome::kOk; }
  Usage usage_total() const;  // over all tries
};

// A piece of a streamed reply, for progress displays; never the record.
struct Delta {
  std::string_view text;
  std::string_view reasoning;
  std::string_view tool_arguments;
};
// False cancels the call.
using DeltaSink = std::function<bool(const Delta&)>;

// Thread-safe.
class Model {
 public:
  virtual ~Model() = default;
  virtual CallResult complete(const ModelRequest& request, const DeltaSink& on_delta = {}) = 0;
};

}  // namespace team
