// When a decision is to be looked at again. A trigger is a sentence for people; one of the form
//     METRIC above|below NUMBER [UNIT]       "p99 above 5 ms", "cost above budget"
// is also watched by the engine: measured values are held against it, and a decision whose trigger
// fires is open again. Metrics and their base units:
//     p50 p99 p999 restart (ms)   memory (MB)   errors (%)   restarts (a count)   answers (a
//     second) cost (USD)   budget (%)
// Units us, ms, s; kB, MB, GB; %, USD are converted. Thread-safe: pure functions.
#pragma once

#include "base/types.h"

#include <map>
#include <optional>
#include <string>

namespace team {

struct Trigger {
  std::string metric;
  bool above = true;
  f64 limit = 0;     // in the metric's base unit
  std::string unit;  // the base unit
};

// nullopt: a sentence for people only.
std::optional<Trigger> parse_trigger(const std::string& text);

using Measured = std::map<std::string, f64>;  // by metric, in base units; absent: not measured

// "p99 was 7.2 ms, above 5 ms"; "" when it does not fire or nothing was measured.
std::string fired(const Trigger& trigger, const Measured& measured);

}  // namespace team
