#include "team/core/attempt_end.h"

#include <array>

namespace team {
namespace {
constexpr std::array<const char*, 9> kEnds = {"submitted",  "gave_up",      "stalled",
                                              "bad_format", "turn_limit",   "budget_out",
                                              "refused",    "model_failed", "cancelled"};
}

const char* name_of(AttemptEnd end) {
  return kEnds[static_cast<size_t>(end)];
}

base::Result<AttemptEnd> parse_attempt_end(std::string_view text) {
  for (size_t i = 0; i < kEnds.size(); ++i) {
    if (kEnds[i] == text) return static_cast<AttemptEnd>(i);
  }
  return base::Error(base::ErrorCode::kInvalidArgument,
                     "'" + std::string(text) + "' is not an end of an attempt");
}

}  // namespace team
