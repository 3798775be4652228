#include "team/agent/machine.h"

#include "base/hash.h"
#include "team/agent/context.h"
#include "team/agent/stuck.h"

#include <algorithm>

namespace team {
namespace {

using base::Json;

constexpr size_t kTreesKept = 8;
constexpr int kOverflowResetsMax = 2;

// The calls of the last reply that have no result yet. Empty once another user turn came after
// them.
std::vector<std::pair<size_t, ToolCall>> pending_calls(const std::vector<Message>& transcript) {
  size_t at = transcript.size();
  std::vector<std::string> answered;
  while (at > 0 && transcript[at - 1].role == Message::Role::kTool) {
    answered.push_back(transcript[--at].tool_call_id);
  }
  std::vector<std::pair<size_t, ToolCall>> pending;
  if (at == 0 || transcript[at - 1].role != Message::Role::kAssistant) return pending;
  const std::vector<ToolCall>& calls = transcript[at - 1].tool_calls;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (std::find(answered.begin(), answered.end(), calls[i].id) == answered.end()) {
      pending.emplace_back(i, calls[i]);
    }
  }
  return pending;
}

bool well_formed(const AgentConfig& config, const ToolCall& call) {
  const bool known = std::any_of(config.tools.begin(), config.tools.end(),
                                 [&](const ToolSpec& tool) { return tool.name == call.name; });
  base::Result<Json> arguments = Json::parse(call.arguments);
  return known && arguments.ok() && arguments->is_object();
}

AgentAction end_action(AttemptEnd end, std::string reason) {
  AgentAction action;
  action.kind = ActionKind::kEnd;
  action.end = end;
  action.reason = std::move(reason);
  return action;
}

ModelRequest request_of(const AgentConfig& config, const AgentState& state) {
  ModelRequest request;
  request.model = config.model;
  request.messages = state.transcript;
  request.tools = config.tools;
  request.output_tokens_max = config.output_tokens_max;
  request.effort = config.effort;
  request.stream = config.stream;
  return request;
}

void finish(AgentState& state, AttemptEnd end, std::string text) {
  state.end = end;
  state.end_text = std::move(text);
  // A transcript with unanswered calls is not one a server accepts; it may be carried on.
  for (const auto& [index, call] : pending_calls(state.transcript)) {
    state.transcript.push_back(Message::tool(call, "Not run: the attempt had ended.", true));
  }
}

void format_error(const AgentConfig& config, AgentState& state, const std::string& advice) {
  if (++state.format_errors >= config.format_errors_max) {
    finish(state, AttemptEnd::kBadFormat,
           std::to_string(state.format_errors) + " malformed replies in a row");
    return;
  }
  if (!advice.empty()) state.transcript.push_back(Message::user(advice));
}

void apply_failed_call(const AgentConfig& config, AgentState& state, const CallResult& call) {
  switch (call.outcome) {
    case CallOutcome::kContextOverflow: {
      // The server knows better than the configuration; what did not fit once will not fit again.
      const i64 tried = request_of(config, state).input_tokens_estimate();
      const i64 limit = context_limit(config, state);
      state.context_tokens_max = std::min(limit, tried) * 3 / 4;
      if (++state.overflow_resets > kOverflowResetsMax) {
        finish(state, AttemptEnd::kModelFailed, "the task does not fit the model: " + call.error);
        return;
      }
      reset_context(config, state, "the model's context was full");
      return;
    }
    case CallOutcome::kCancelled:
      finish(state, AttemptEnd::kCancelled, call.error);
      return;
    default:
      finish(state, AttemptEnd::kModelFailed,
             std::string(name_of(call.outcome)) + ": " + call.error);
  }
}

void apply_reply(const AgentConfig& config, AgentState& state, const ModelReply& reply) {
  ++state.turn;
  state.last_input_tokens = reply.usage.estimated ? 0 : reply.usage.input();
  Message message = reply.message;
  if (message.tool_calls.size() > static_cast<size_t>(config.calls_per_turn_max)) {
    message.tool_calls.resize(static_cast<size_t>(config.calls_per_turn_max));
  }
  const bool has_calls = !message.tool_calls.empty();
  const std::string said = message.text;
  state.transcript.push_back(std::move(message));
  if (has_calls) return;
  if (reply.stop == StopReason::kRefusal || reply.stop == StopReason::kContentFilter) {
    finish(state, AttemptEnd::kRefused, said.empty() ? "the model refused" : said);
  } else if (reply.stop == StopReason::kLength) {
    format_error(config, state,
                 "Your reply was cut off at the length limit before it held a whole tool call. "
                 "Do less in one reply: smaller patches, one file at a time.");
  } else {
    // Whatever the text claims, nothing has happened.
    format_error(
        config, state,
        "Your reply called no tool, so nothing was done. Call a tool now; call submit when "
        "the task is done or give_up when it cannot be done.");
  }
}

void apply_tool(const AgentConfig& config, AgentState& state, const ToolCall& call,
                const ToolResult& result) {
  state.transcript.push_back(Message::tool(call, result.text, result.is_error));
  if (result.end) {
    finish(state, *result.end, result.text);
    return;
  }
  if (well_formed(config, call)) {
    state.format_errors = 0;
  } else {
    format_error(config, state, "");
    if (state.ended()) return;
  }
  if (call.name == "note" && !result.is_error) {
    base::Result<Json> arguments = Json::parse(call.arguments);
    if (arguments.ok()) state.notes.push_back((*arguments)["note"].as_string());
  }
  note_call(state, call, result);
  if (result.mutated && !result.tree_hash.empty()) {
    state.recent_trees.push_back(result.tree_hash);
    if (state.recent_trees.size() > kTreesKept)
      state.recent_trees.erase(state.recent_trees.begin());
  }
  if (!pending_calls(state.transcript).empty()) return;
  const std::string loop = describe_loop(state);
  if (loop.empty()) return;
  forget_loop(state);
  if (state.nudges == 0) {
    ++state.nudges;
    state.transcript.push_back(Message::user(
        "You are going in circles: " + loop +
        ". Stop and think about why it does not work, then do something different; or "
        "call give_up with what you found."));
  } else if (state.resets == 0) {
    reset_context(config, state, loop);
  } else {
    finish(state, AttemptEnd::kStalled, loop);
  }
}

}  // namespace

AgentState first_state(const AgentConfig& config) {
  AgentState state;
  state.transcript = {Message::system(config.system_text), Message::user(config.pinned_text)};
  return state;
}

AgentAction next_action(const AgentConfig& config, const AgentState& state,
                        const AgentSignals& signals) {
  if (state.ended()) return end_action(*state.end, state.end_text);
  if (signals.cancelled) return end_action(AttemptEnd::kCancelled, "the run was cancelled");
  if (signals.budget_out) return end_action(AttemptEnd::kBudgetOut, "the budget is used up");
  AgentAction action;
  if (const auto pending = pending_calls(state.transcript); !pending.empty()) {
    action.kind = ActionKind::kTool;
    action.call = pending.front().second;
    action.id = std::to_string(state.turn) + "." + std::to_string(pending.front().first);
    return action;
  }
  if (state.turn >= config.turns_max) {
    return end_action(AttemptEnd::kTurnLimit,
                      "the limit of " + std::to_string(config.turns_max) + " turns is reached");
  }
  if (needs_relief(config, state)) {
    action.kind = ActionKind::kRelieve;
    action.reason = "the context is nearly full";
    action.id = std::to_string(state.turn) + ".relief";
    return action;
  }
  action.kind = ActionKind::kInfer;
  action.request = request_of(config, state);
  // Failed calls do not count as turns but must not share an id.
  action.id = std::to_string(state.turn + 1);
  if (state.overflow_resets > 0) action.id += "o" + std::to_string(state.overflow_resets);
  return action;
}

void apply(const AgentConfig& config, AgentState& state, const AgentAction& action,
           const AgentResult& result) {
  switch (action.kind) {
    case ActionKind::kEnd:
      if (!state.ended()) finish(state, action.end, action.reason);
      return;
    case ActionKind::kRelieve:
      relieve(config, state);
      return;
    case ActionKind::kInfer:
      state.usage += result.call.usage_total();
      if (result.call.ok()) {
        apply_reply(config, state, result.call.reply);
      } else {
        apply_failed_call(config, state, result.call);
      }
      return;
    case ActionKind::kTool:
      apply_tool(config, state, action.call, result.tool);
      return;
  }
}

}  // namespace team
