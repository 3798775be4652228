// Events told as sentences: one line for what a person wants to know, nothing for the rest. The
// live view, `fleet log` and the report tell the same story. Thread-safe: pure functions.
#pragma once

#include "team/core/event.h"
#include "team/core/run_state.h"

#include <optional>
#include <string>

namespace team {

enum class Tone { kPlain, kStage, kGood, kBad, kWarn, kClaim };

struct StoryLine {
  Tone tone = Tone::kPlain;
  std::string who;  // "T2", "gate kill9", "C3": at most 14 characters
  std::string text;
};

// `state` is the fold up to and with this event. nullopt: not worth a line.
std::optional<StoryLine> tell(const Event& event, const RunState& state);

// What became of a decision that production reopened: "open again", "kept", "changed"; "" for
// others.
std::string revisited_as(const Entity& decision);

// "1520 answers, 0 errors, p50 0.31 ms, ...": what the monitor of a deployment saw, in one line.
std::string format_operation(const base::Json& operation);
std::string format_percent(f64 ratio);  // 0.123 -> "+12 %"

}  // namespace team
