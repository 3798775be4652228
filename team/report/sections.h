// The report's sections on what came after the code was right: performance experiments, operation,
// decisions. Each is HTML, "" when there is nothing to tell. Thread-safe: pure functions.
#pragma once

#include "team/core/run_state.h"

#include <string>

namespace team {

std::string experiments_section(const RunState& state);
std::string operation_section(const RunState& state);
std::string decisions_section(const RunState& state);

}  // namespace team
