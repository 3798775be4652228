// AgentState as JSON and back.
#include "team/agent/machine.h"

namespace team {
namespace {

base::Json list(const std::vector<std::string>& items) {
  return base::Json(base::Json::Array(items.begin(), items.end()));
}

std::vector<std::string> strings(const base::Json& json) {
  std::vector<std::string> out;
  for (const base::Json& item : json.items()) out.push_back(item.as_string());
  return out;
}

int small(const base::Json& json) {
  return static_cast<int>(json.as_int());
}

}  // namespace

base::Json AgentState::to_json() const {
  base::Json messages = base::Json::array();
  for (const Message& message : transcript) messages.push(message.to_json());
  base::Json json = base::Json::object({{"transcript", std::move(messages)},
                                        {"turn", turn},
                                        {"format_errors", format_errors},
                                        {"idle_edits", mutations_without_change},
                                        {"nudges", nudges},
                                        {"resets", resets},
                                        {"overflow_resets", overflow_resets},
                                        {"context_tokens_max", context_tokens_max},
                                        {"last_input_tokens", last_input_tokens},
                                        {"recent_calls", list(recent_calls)},
                                        {"recent_trees", list(recent_trees)},
                                        {"notes", list(notes)},
                                        {"usage", team::to_json(usage)},
                                        {"end_text", end_text}});
  if (end) json.set("end", name_of(*end));
  return json;
}

base::Result<AgentState> AgentState::from_json(const base::Json& json) {
  AgentState state;
  for (const base::Json& item : json["transcript"].items()) {
    state.transcript.push_back(TRY(Message::from_json(item)));
  }
  state.turn = small(json["turn"]);
  state.format_errors = small(json["format_errors"]);
  state.mutations_without_change = small(json["idle_edits"]);
  state.nudges = small(json["nudges"]);
  state.resets = small(json["resets"]);
  state.overflow_resets = small(json["overflow_resets"]);
  state.context_tokens_max = json["context_tokens_max"].as_int();
  state.last_input_tokens = json["last_input_tokens"].as_int();
  state.recent_calls = strings(json["recent_calls"]);
  state.recent_trees = strings(json["recent_trees"]);
  state.notes = strings(json["notes"]);
  state.usage = usage_from_json(json["usage"]);
  state.end_text = json["end_text"].as_string();
  if (json["end"].is_string()) state.end = TRY(parse_attempt_end(json["end"].as_string()));
  return state;
}

}  // namespace team
