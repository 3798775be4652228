// The bounce ladder: what to do when a task comes back, by how often it failed in the same way.
//   1 same context    go on where the agent was, with what the gates said
//   2 fresh context   start again, do not trust the earlier approach
//   3 other model     the other model of the run, and a stated different hypothesis
//   4 split           the decider cuts the task anew
//   5 escalate        the line stops: the decider says what becomes of it, or asks a person
// Pure; thread-safe.
#pragma once

namespace team {

enum class Rung { kSameContext, kFreshContext, kOtherModel, kSplit, kEscalate };
const char* name_of(Rung rung);

struct LadderLimits {
  int attempts_max = 8;  // of one task, however different its failures are
};

// `same`: failures of this signature, this one included. `attempts`: made so far. A task that was
// itself cut out of another one is not split again.
Rung next_rung(int same, int attempts, bool may_split, const LadderLimits& limits);

}  // namespace team
