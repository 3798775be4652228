#include "team/core/ladder.h"

namespace team {

const char* name_of(Rung rung) {
  switch (rung) {
    case Rung::kSameContext:
      return "same context";
    case Rung::kFreshContext:
      return "fresh context";
    case Rung::kOtherModel:
      return "other model";
    case Rung::kSplit:
      return "split";
    case Rung::kEscalate:
      return "escalate";
  }
  return "?";
}

Rung next_rung(int same, int attempts, bool may_split, const LadderLimits& limits) {
  if (attempts >= limits.attempts_max) return Rung::kEscalate;
  if (same <= 1) return Rung::kSameContext;
  if (same == 2) return Rung::kFreshContext;
  if (same == 3) return Rung::kOtherModel;
  return same == 4 && may_split ? Rung::kSplit : Rung::kEscalate;
}

}  // namespace team
