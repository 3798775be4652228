// Notices when an agent goes in circles: the same call with the same result again and again (cycles
// of one to three calls), a workspace that swings between two states, edits that change nothing.
// Pure; thread-safe.
#pragma once

#include "team/agent/machine.h"

#include <string>

namespace team {

void note_call(AgentState& state, const ToolCall& call, const ToolResult& result);
// A sentence's middle, "the same run call gave the same result 4 times", or "".
std::string describe_loop(const AgentState& state);
// After the agent was told: counts from here on.
void forget_loop(AgentState& state);

}  // namespace team
