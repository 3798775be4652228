// Keeps a transcript within the model's context. Order of relief: old tool outputs are elided, then
// the context is reset to the pinned block plus a hand-off made from what is on record. The pinned
// block is never summarised. Pure; thread-safe.
#pragma once

#include "team/agent/machine.h"

#include <string>

namespace team {

i64 context_limit(const AgentConfig& config, const AgentState& state);
bool needs_relief(const AgentConfig& config, const AgentState& state);
void relieve(const AgentConfig& config, AgentState& state);
// A fresh context: prefix, pinned block, hand-off (why, notes, what was tried).
void reset_context(const AgentConfig& config, AgentState& state, const std::string& why);

}  // namespace team
