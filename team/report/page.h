// The report as HTML: stages, acceptance, task graph, tests, tokens by role, experiments,
// incidents, decisions, the story. Everything is escaped; nothing is loaded from elsewhere; it
// reads well in light and dark and on paper. Thread-safe: pure functions.
#pragma once

#include "team/core/event.h"

#include <string>
#include <string_view>
#include <vector>

namespace team {

std::string render_page(const std::string& run, const std::vector<Event>& events);
// page.css, built into the program.
std::string_view page_style();

}  // namespace team
