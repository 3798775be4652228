// The agent loop as a machine without I/O over state that can be stored after every step. next()
// says what to do, the caller does it (and records intent and result around it), apply() folds the
// result in. Throwing the machine away between any two calls and building it again from
// AgentState's JSON changes nothing; a test does so after every step.
//
//   for (;;) {
//     AgentAction action = next_action(config, state, signals);   // pure
//     ... persist intent ...
//     AgentResult result = perform(action);                       // model call, tool call, or
//     nothing apply(config, state, action, result);                       // pure
//     ... persist state.to_json() ...
//     if (state.ended()) break;
//   }
//
// Order in each step: cancelled > budget > approval > pending tool > stuck > turn limit > context
// relief > infer. All of it is deterministic; there is no clock and no random number in here.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "base/types.h"
#include "team/core/attempt_end.h"
#include "team/model/model.h"

#include <optional>
#include <string>
#include <vector>

namespace team {

// Constant for the whole attempt: with the tools it makes the byte-stable prefix of every request.
struct AgentConfig {
  std::string role;  // "coder"
  std::string model;
  std::string system_text;  // the filled-in role file
  std::string pinned_text;  // task, criteria, constraints, failed approaches; the first user
                            // message, repeated verbatim after every context reset
  std::vector<ToolSpec> tools;
  int turns_max = 60;
  int format_errors_max = 3;  // in a row
  i64 context_tokens_max = 128'000;
  i64 output_tokens_max = 8'192;  // per call
  int calls_per_turn_max = 16;
  bool stream = true;
  std::string effort;
};

struct AgentState {
  std::vector<Message> transcript;  // what the next request will carry
  int turn = 0;                     // model replies so far
  int format_errors = 0;            // in a row
  int mutations_without_change = 0;
  int nudges = 0;
  int resets = 0;
  int overflow_resets = 0;
  i64 context_tokens_max = 0;  // lowered when a server reports an overflow; 0: the config's
  i64 last_input_tokens = 0;   // as the server counted, for the context check
  std::vector<std::string> recent_calls;  // fingerprints of (tool, arguments, result), newest last
  std::vector<std::string> recent_trees;  // tree hashes after mutating calls, newest last
  std::vector<std::string> notes;         // by the note tool; part of a hand-off
  Usage usage;
  std::optional<AttemptEnd> end;
  std::string end_text;  // what was submitted, or why it ended

  bool ended() const { return end.has_value(); }
  base::Json to_json() const;
  static base::Result<AgentState> from_json(const base::Json& json);
};

AgentState first_state(const AgentConfig& config);

// What the outside says at the start of a step.
struct AgentSignals {
  bool cancelled = false;
  bool budget_out = false;
};

enum class ActionKind { kInfer, kTool, kRelieve, kEnd };

struct AgentAction {
  ActionKind kind = ActionKind::kEnd;
  ModelRequest request;                     // kInfer
  ToolCall call;                            // kTool
  AttemptEnd end = AttemptEnd::kCancelled;  // kEnd
  std::string reason;                       // kRelieve, kEnd: a sentence
  // Stable over replays: "<turn>.<index>" for the idempotency key.
  std::string id;
};

struct ToolResult {
  std::string text;  // what the model sees
  bool is_error = false;
  bool mutated = false;           // the tool may have changed the workspace
  std::string tree_hash;          // after it, when mutated
  std::optional<AttemptEnd> end;  // submit and give_up end the attempt
  bool lost = false;  // its sandbox was killed, perhaps: put things back and run it again; not kept
  std::string full_log;  // untruncated output for the record, or ""
};

struct AgentResult {
  CallResult call;  // after kInfer
  ToolResult tool;  // after kTool
};

AgentAction next_action(const AgentConfig& config, const AgentState& state,
                        const AgentSignals& signals);
void apply(const AgentConfig& config, AgentState& state, const AgentAction& action,
           const AgentResult& result);

}  // namespace team
