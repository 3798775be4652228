#include "team/core/scheduler.h"

#include "base/hash.h"
#include "team/core/glob.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

namespace team {
namespace {

using Index = std::map<std::string, const PlanTask*>;

Index index_of(const std::vector<PlanTask>& tasks) {
  Index index;
  for (const PlanTask& task : tasks) index[task.id] = &task;
  return index;
}

// Merged, or split into parts that all are.
bool landed(const PlanTask& task, const Index& index) {
  if (task.state != TaskState::kSplit) {
    return task.state == TaskState::kMerged || task.state == TaskState::kDone;
  }
  return std::all_of(task.parts.begin(), task.parts.end(), [&](const std::string& id) {
    auto at = index.find(id);
    return at != index.end() && landed(*at->second, index);
  });
}

// Work that owns its files: from the lease until it is merged or thrown back.
bool is_live(TaskState state) {
  return state == TaskState::kLeased || state == TaskState::kSubmitted ||
         state == TaskState::kGating || state == TaskState::kQueued;
}

bool needs_met(const PlanTask& task, const Index& index) {
  return std::all_of(task.needs.begin(), task.needs.end(), [&](const std::string& id) {
    auto at = index.find(id);
    return at != index.end() && landed(*at->second, index);
  });
}

bool collide(const PlanTask& a, const PlanTask& b) {
  for (const std::string& x : a.touches) {
    for (const std::string& y : b.touches) {
      if (globs_overlap(x, y)) return true;
    }
  }
  return false;
}

struct Candidate {
  const PlanTask* task;
  f64 weight;
  u64 tie;
};

std::vector<Candidate> ranked(const std::vector<const PlanTask*>& ready,
                              const std::map<std::string, i64>& paths, i64 now_us,
                              const PlanCapacity& capacity, u64 seed) {
  std::vector<Candidate> out;
  for (const PlanTask* task : ready) {
    f64 weight = static_cast<f64>(paths.at(task->id)) * static_cast<f64>(task->value) /
                 static_cast<f64>(std::max<i64>(1, task->cost));
    f64 waited = static_cast<f64>(std::max<i64>(0, now_us - task->waiting_since_us));
    weight *= 1 + waited / static_cast<f64>(std::max<i64>(1, capacity.ageing_us));
    out.push_back({task, weight, base::xxh3(base::as_bytes(task->id), seed)});
  }
  std::sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
    if (a.weight != b.weight) return a.weight > b.weight;
    if (a.tie != b.tie) return a.tie < b.tie;
    return a.task->id < b.task->id;
  });
  return out;
}

void plan_gates(const std::vector<PlanTask>& tasks, const PlanCapacity& capacity,
                std::vector<PlanAction>& actions) {
  int gating = 0;
  for (const PlanTask& task : tasks) gating += task.state == TaskState::kGating;
  for (const PlanTask& task : tasks) {
    if (task.state != TaskState::kSubmitted || gating >= capacity.gates) continue;
    actions.push_back({PlanKind::kGate, {task.id}});
    ++gating;
  }
}

void plan_merge(const std::vector<PlanTask>& tasks, const PlanCapacity& capacity,
                std::vector<PlanAction>& actions) {
  std::vector<const PlanTask*> queued;
  for (const PlanTask& task : tasks) {
    if (task.state == TaskState::kQueued) queued.push_back(&task);
  }
  if (queued.empty()) return;
  std::sort(queued.begin(), queued.end(), [](const PlanTask* a, const PlanTask* b) {
    return std::tie(a->queue_position, a->id) < std::tie(b->queue_position, b->id);
  });
  PlanAction merge{PlanKind::kMerge, {}};
  for (const PlanTask* task : queued) {
    if (static_cast<int>(merge.tasks.size()) < capacity.merge_stack)
      merge.tasks.push_back(task->id);
  }
  actions.push_back(std::move(merge));
}

void plan_leases(const std::vector<PlanTask>& tasks, i64 now_us, const PlanCapacity& capacity,
                 u64 seed, std::vector<PlanAction>& actions) {
  std::vector<const PlanTask*> live, ready;
  std::map<Role, int> per_role;
  int leased = 0;
  for (const PlanTask& task : tasks) {
    if (is_live(task.state)) live.push_back(&task);
    if (task.state == TaskState::kReady) ready.push_back(&task);
    if (task.state == TaskState::kLeased) {
      ++leased;
      ++per_role[task.role];
    }
  }
  for (const Candidate& candidate : ranked(ready, critical_paths(tasks), now_us, capacity, seed)) {
    const PlanTask& task = *candidate.task;
    if (leased >= capacity.agents) return;
    auto limit = capacity.per_role.find(task.role);
    if (limit != capacity.per_role.end() && per_role[task.role] >= limit->second) continue;
    if (std::any_of(live.begin(), live.end(),
                    [&](const PlanTask* other) { return collide(task, *other); })) {
      continue;
    }
    actions.push_back({PlanKind::kLease, {task.id}});
    live.push_back(&task);
    ++leased;
    ++per_role[task.role];
  }
}

}  // namespace

const char* name_of(PlanKind kind) {
  switch (kind) {
    case PlanKind::kExpire:
      return "expire";
    case PlanKind::kUnblock:
      return "unblock";
    case PlanKind::kGate:
      return "gate";
    case PlanKind::kMerge:
      return "merge";
    case PlanKind::kLease:
      return "lease";
  }
  return "?";
}

std::vector<PlanAction> plan(const std::vector<PlanTask>& tasks, i64 now_us,
                             const PlanCapacity& capacity, u64 seed) {
  std::vector<PlanAction> actions;
  Index index = index_of(tasks);
  for (const PlanTask& task : tasks) {
    if (task.state == TaskState::kLeased && task.lease_until_us <= now_us) {
      actions.push_back({PlanKind::kExpire, {task.id}});
    }
    if (task.state == TaskState::kBlocked && needs_met(task, index)) {
      actions.push_back({PlanKind::kUnblock, {task.id}});
    }
  }
  plan_gates(tasks, capacity, actions);
  plan_merge(tasks, capacity, actions);
  plan_leases(tasks, now_us, capacity, seed, actions);
  return actions;
}

base::Status check_graph(const std::vector<PlanTask>& tasks) {
  using base::Error;
  using base::ErrorCode;
  Index index;
  for (const PlanTask& task : tasks) {
    if (!index.emplace(task.id, &task).second) {
      return Error(ErrorCode::kInvalidArgument, "task " + task.id + " is planned twice");
    }
  }
  std::map<std::string, int> mark;  // 1: on the path, 2: finished
  std::function<base::Status(const PlanTask&)> visit = [&](const PlanTask& task) -> base::Status {
    mark[task.id] = 1;
    std::vector<std::string> waits_for = task.needs;
    waits_for.insert(waits_for.end(), task.parts.begin(), task.parts.end());
    for (const std::string& id : waits_for) {
      auto at = index.find(id);
      if (at == index.end()) {
        return Error(ErrorCode::kInvalidArgument,
                     "task " + task.id + " needs " + id + ", which is not in the plan");
      }
      if (mark[id] == 1) {
        return Error(ErrorCode::kInvalidArgument,
                     "the plan has a cycle through " + task.id + " and " + id);
      }
      if (mark[id] == 0) TRY(visit(*at->second));
    }
    mark[task.id] = 2;
    return {};
  };
  for (const PlanTask& task : tasks) {
    if (mark[task.id] == 0) TRY(visit(task));
  }
  return {};
}

std::map<std::string, i64> critical_paths(const std::vector<PlanTask>& tasks) {
  std::map<std::string, std::vector<const PlanTask*>> dependents;
  for (const PlanTask& task : tasks) {
    for (const std::string& id : task.needs) dependents[id].push_back(&task);
    for (const std::string& id : task.parts) dependents[id].push_back(&task);
  }
  std::map<std::string, i64> length;
  std::function<i64(const PlanTask&)> visit = [&](const PlanTask& task) -> i64 {
    auto found = length.find(task.id);
    if (found != length.end()) return found->second;
    i64 longest = 0;
    for (const PlanTask* next : dependents[task.id]) longest = std::max(longest, visit(*next));
    return length[task.id] = longest + std::max<i64>(1, task.cost);
  };
  for (const PlanTask& task : tasks) visit(task);
  return length;
}

bool is_settled(const std::vector<PlanTask>& tasks) {
  const Index index = index_of(tasks);
  std::set<std::string> hopeless;
  for (bool grew = true; grew;) {
    grew = false;
    for (const PlanTask& task : tasks) {
      if (hopeless.contains(task.id)) continue;
      bool lost = task.state == TaskState::kEscalated || task.state == TaskState::kAbandoned;
      const auto is_hopeless = [&](const std::string& id) { return hopeless.contains(id); };
      if (task.state == TaskState::kBlocked) {
        lost = std::any_of(task.needs.begin(), task.needs.end(), is_hopeless);
      } else if (task.state == TaskState::kSplit) {
        lost = std::any_of(task.parts.begin(), task.parts.end(), is_hopeless);
      }
      if (lost) {
        hopeless.insert(task.id);
        grew = true;
      }
    }
  }
  return std::all_of(tasks.begin(), tasks.end(), [&](const PlanTask& task) {
    return task.state == TaskState::kSplit || landed(task, index) || hopeless.contains(task.id);
  });
}

}  // namespace team
