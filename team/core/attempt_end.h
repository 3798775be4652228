// How an agent's attempt at a task ended: exactly one reason. The end of an attempt is not the end
// of its task: the engine's gates decide what the work is worth. Thread-safe: plain values.
#pragma once

#include "base/result.h"
#include "team/core/usage.h"

#include <string>

namespace team {

enum class AttemptEnd {
  kSubmitted,  // the agent called `submit`
  kGaveUp,     // the agent called `give_up`
  kStalled,    // the stuck detector's ladder ran out
  kBadFormat,  // three malformed replies in a row
  kTurnLimit,
  kBudgetOut,    // the reservation was refused
  kRefused,      // the model refused
  kModelFailed,  // the back end failed for good
  kCancelled,
};
const char* name_of(AttemptEnd end);
base::Result<AttemptEnd> parse_attempt_end(std::string_view text);

}  // namespace team
