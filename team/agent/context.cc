#include "team/agent/context.h"

#include <algorithm>

namespace team {
namespace {

constexpr size_t kFreshResults = 4;      // the newest tool results stay whole
constexpr size_t kElideFromBytes = 600;  // shorter ones are not worth a cache miss
constexpr size_t kHandOffCalls = 20;
constexpr size_t kHandOffArgumentBytes = 120;
constexpr size_t kPrefixMessages = 2;  // system and pinned

// Tokens of the next request: the server's last count plus what came since, or the byte estimate,
// whichever is more.
i64 next_input_tokens(const AgentConfig& config, const AgentState& state) {
  ModelRequest request;
  request.messages = state.transcript;
  request.tools = config.tools;
  const i64 estimate = request.input_tokens_estimate();
  if (state.last_input_tokens == 0) return estimate;
  ModelRequest since;
  for (size_t at = state.transcript.size(); at-- > 0;) {
    since.messages.push_back(state.transcript[at]);
    if (state.transcript[at].role == Message::Role::kAssistant) break;
  }
  return std::max(estimate, state.last_input_tokens + since.input_tokens_estimate());
}

bool fits(const AgentConfig& config, const AgentState& state) {
  return next_input_tokens(config, state) + config.output_tokens_max <=
         context_limit(config, state);
}

bool elide_old_results(AgentState& state) {
  size_t seen = 0;
  bool changed = false;
  for (size_t at = state.transcript.size(); at-- > 0;) {
    Message& message = state.transcript[at];
    if (message.role != Message::Role::kTool || ++seen <= kFreshResults) continue;
    if (message.text.size() < kElideFromBytes) continue;
    message.text = "[" + std::to_string(message.text.size()) +
                   " bytes of output left out to save room; call the tool again if you need it]";
    changed = true;
  }
  return changed;
}

std::string cut(std::string text, size_t bytes) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() <= bytes) return text;
  // Not in the middle of a UTF-8 character.
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes) + "...";
}

std::string hand_off(const AgentState& state, const std::string& why) {
  std::string text = "This is a fresh context, because " + why +
                     ". The workspace holds all changes made so far; look at it first.\n";
  if (!state.notes.empty()) {
    text += "Notes you made:\n";
    for (const std::string& note : state.notes) text += "- " + note + "\n";
  }
  std::vector<std::string> tried;
  std::vector<std::pair<std::string, std::string>> calls;  // id, description
  for (const Message& message : state.transcript) {
    for (const ToolCall& call : message.tool_calls) {
      calls.emplace_back(call.id, call.name + " " + cut(call.arguments, kHandOffArgumentBytes));
    }
    if (message.role != Message::Role::kTool) continue;
    for (const auto& [id, description] : calls) {
      if (id == message.tool_call_id) {
        tried.push_back(description + (message.is_error ? "  (failed)" : ""));
      }
    }
  }
  if (!tried.empty()) {
    text += "The last calls, oldest first:\n";
    const size_t from = tried.size() > kHandOffCalls ? tried.size() - kHandOffCalls : 0;
    for (size_t i = from; i < tried.size(); ++i) text += "- " + tried[i] + "\n";
  }
  return text;
}

}  // namespace

i64 context_limit(const AgentConfig& config, const AgentState& state) {
  if (state.context_tokens_max == 0) return config.context_tokens_max;
  return std::min(config.context_tokens_max, state.context_tokens_max);
}

bool needs_relief(const AgentConfig& config, const AgentState& state) {
  // A bare prefix cannot be made smaller; the server has the last word on it.
  return state.transcript.size() > kPrefixMessages + 1 && !fits(config, state);
}

void relieve(const AgentConfig& config, AgentState& state) {
  const bool elided = elide_old_results(state);
  state.last_input_tokens = 0;  // counted text that is gone
  if (elided && fits(config, state)) return;
  reset_context(config, state, "the old one was full");
}

void reset_context(const AgentConfig& config, AgentState& state, const std::string& why) {
  const std::string text = hand_off(state, why);
  state.transcript = {Message::system(config.system_text), Message::user(config.pinned_text),
                      Message::user(text)};
  state.last_input_tokens = 0;
  ++state.resets;
}

}  // namespace team
