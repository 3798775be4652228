// The scheduler: a pure function from what is, to what should be done next. The shell that calls it
// (stages/build.cc) performs the actions and records them; nothing here waits, sleeps or looks at a
// clock. One (state, seed) gives one plan, so a plan can be replayed and tested on random graphs.
//
// Two gates on parallelism: a task starts only when all it `needs` are merged, and only when no
// live task may touch the same files. Gates and merges are planned before new coding, because
// landing is the true limit. Among ready tasks the order is
//     critical path length x value / expected cost   (+ ageing, so that nothing starves).
// Times: microseconds. Thread-safe: pure functions.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "team/core/names.h"

#include <map>
#include <string>
#include <vector>

namespace team {

enum class TaskState {
  kBlocked,
  kReady,
  kLeased,
  kSubmitted,
  kGating,
  kQueued,
  kMerged,
  kDone,
  kBounced,
  kSplit,  // its `parts` do the work instead
  kEscalated,
  kAbandoned
};

struct PlanTask {
  std::string id;
  Role role = Role::kCoder;
  TaskState state = TaskState::kBlocked;
  std::vector<std::string> needs;
  std::vector<std::string> touches;  // globs
  i64 value = 1;
  i64 cost = 1;  // expected, any one unit for all tasks
  i64 waiting_since_us = 0;
  i64 lease_until_us = 0;          // meaningful while leased
  int queue_position = 0;          // meaningful while queued: merge order
  std::vector<std::string> parts;  // meaningful once split; what needs it waits for all of them
};

struct PlanCapacity {
  int agents = 2;                // live leases at once
  std::map<Role, int> per_role;  // a role without an entry is limited by `agents` alone
  int gates = 1;                 // gatings at once
  int merge_stack = 5;           // most changes tested as one stack
  i64 ageing_us = 60'000'000;    // a task that waited this long doubles its weight
};

enum class PlanKind { kExpire, kUnblock, kGate, kMerge, kLease };
const char* name_of(PlanKind kind);

struct PlanAction {
  PlanKind kind;
  std::vector<std::string> tasks;  // one, except kMerge: the stack in merge order
  bool operator==(const PlanAction& other) const = default;
};

// What to do now, most urgent first. REQUIRES: check_graph(tasks) is ok.
std::vector<PlanAction> plan(const std::vector<PlanTask>& tasks, i64 now_us,
                             const PlanCapacity& capacity, u64 seed);

// Errors: kInvalidArgument for a need or part that does not exist, a task twice, or a cycle
// (named).
base::Status check_graph(const std::vector<PlanTask>& tasks);

// Longest chain of expected cost from each task to the end, itself included.
std::map<std::string, i64> critical_paths(const std::vector<PlanTask>& tasks);

// True when every task is merged, done, split, escalated or abandoned, or can never become ready
// because it needs one that ended without being merged.
bool is_settled(const std::vector<PlanTask>& tasks);

}  // namespace team
