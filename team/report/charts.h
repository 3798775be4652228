// The report's pictures as inline SVG. Colours come from the page's style. Thread-safe: pure
// functions.
#pragma once

#include "team/core/run_state.h"
#include "team/report/report.h"

#include <string>
#include <vector>

namespace team {

// Tasks as boxes in columns by depth, needs as lines.
std::string task_graph(const RunState& state);
// Share of criteria that pass, over the run's time.
std::string acceptance_curve(const std::vector<Event>& events);
// One bar cut into the shares of the output tokens.
std::string share_bar(const CostTable& table);
// Estimated gain and its 95 % interval of each experiment, on a symmetric log scale.
std::string interval_chart(const std::vector<const Entity*>& experiments);
// What the monitor of a deployment saw over time.
std::string latency_chart(const base::Json& operation);
std::string memory_chart(const base::Json& operation);

}  // namespace team
