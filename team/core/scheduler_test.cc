#include "team/core/scheduler.h"

#include "base/random.h"
#include "team/core/glob.h"
#include "team/core/ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace team {
namespace {

PlanTask task(std::string id, TaskState state, std::vector<std::string> needs = {},
              std::vector<std::string> touches = {}) {
  PlanTask t;
  t.id = std::move(id);
  t.state = state;
  t.needs = std::move(needs);
  t.touches = std::move(touches);
  return t;
}

PlanCapacity capacity(int agents) {
  PlanCapacity out;
  out.agents = agents;
  return out;
}

std::vector<std::string> leased(const std::vector<PlanAction>& actions) {
  std::vector<std::string> out;
  for (const PlanAction& a : actions) {
    if (a.kind == PlanKind::kLease) out.push_back(a.tasks[0]);
  }
  return out;
}

TEST(Glob, MatchesWithinAndAcrossFolders) {
  EXPECT_TRUE(glob_matches("src/*.cc", "src/a.cc"));
  EXPECT_FALSE(glob_matches("src/*.cc", "src/deep/a.cc"));
  EXPECT_TRUE(glob_matches("src/**", "src/deep/a.cc"));
  EXPECT_FALSE(glob_matches("src/?.cc", "src//.cc"));
}

TEST(Glob, OverlapIsFoundExactlyWhenSomePathMatchesBoth) {
  EXPECT_TRUE(globs_overlap("src/*.cc", "src/log.*"));
  EXPECT_TRUE(globs_overlap("**", "src/log.cc"));
  EXPECT_FALSE(globs_overlap("src/*.cc", "src/*.h"));
  EXPECT_FALSE(globs_overlap("src/*", "src/deep/**.cc"));
  EXPECT_TRUE(globs_overlap("src/**/a.cc", "src/x/*.cc"));
}

TEST(Scheduler, StartsNothingBeforeItsNeeds) {
  std::vector<PlanTask> tasks = {task("A", TaskState::kReady),
                                 task("B", TaskState::kBlocked, {"A"})};
  EXPECT_EQ(leased(plan(tasks, 0, {}, 1)), (std::vector<std::string>{"A"}));
}

TEST(Scheduler, KeepsTasksThatTouchTheSameFilesApart) {
  std::vector<PlanTask> tasks = {task("A", TaskState::kReady, {}, {"src/log.cc"}),
                                 task("B", TaskState::kReady, {}, {"src/*.cc"}),
                                 task("C", TaskState::kReady, {}, {"docs/**"})};
  EXPECT_EQ(leased(plan(tasks, 0, capacity(3), 1)).size(), 2u);
}

TEST(Scheduler, PutsTheLongestChainFirst) {
  std::vector<PlanTask> tasks = {task("short", TaskState::kReady), task("long", TaskState::kReady),
                                 task("after", TaskState::kBlocked, {"long"})};
  EXPECT_EQ(leased(plan(tasks, 0, capacity(1), 1)), (std::vector<std::string>{"long"}));
}

TEST(Scheduler, WhatNeedsASplitTaskWaitsForAllItsParts) {
  std::vector<PlanTask> tasks = {task("A", TaskState::kSplit), task("A.1", TaskState::kMerged),
                                 task("A.2", TaskState::kReady),
                                 task("B", TaskState::kBlocked, {"A"})};
  tasks[0].parts = {"A.1", "A.2"};
  ASSERT_TRUE(check_graph(tasks).ok());
  EXPECT_FALSE(is_settled(tasks));
  EXPECT_EQ(leased(plan(tasks, 0, {}, 1)), (std::vector<std::string>{"A.2"}));
  tasks[2].state = TaskState::kMerged;
  EXPECT_EQ(plan(tasks, 0, {}, 1), (std::vector<PlanAction>{{PlanKind::kUnblock, {"B"}}}));
  tasks[2].state = TaskState::kAbandoned;
  EXPECT_TRUE(is_settled(tasks)) << "B can never start";
}

TEST(Ladder, ClimbsWithTheSameFailureAndEndsWithTooManyAttempts) {
  const LadderLimits limits{.attempts_max = 8};
  EXPECT_EQ(next_rung(1, 1, true, limits), Rung::kSameContext);
  EXPECT_EQ(next_rung(2, 2, true, limits), Rung::kFreshContext);
  EXPECT_EQ(next_rung(3, 3, true, limits), Rung::kOtherModel);
  EXPECT_EQ(next_rung(4, 4, true, limits), Rung::kSplit);
  EXPECT_EQ(next_rung(4, 4, false, limits), Rung::kEscalate) << "a part is not split again";
  EXPECT_EQ(next_rung(5, 5, true, limits), Rung::kEscalate);
  EXPECT_EQ(next_rung(1, 8, true, limits), Rung::kEscalate) << "eight different failures";
}

TEST(Scheduler, NamesTheCycle) {
  auto status =
      check_graph({task("A", TaskState::kBlocked, {"B"}), task("B", TaskState::kBlocked, {"A"})});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("cycle"), std::string::npos);
}

// A small world that runs plans on random graphs: attempts take random time, gates fail at random,
// workers die and their leases expire.
class World {
 public:
  World(u64 seed, int agents) : rng_(seed), seed_(seed) {
    capacity_.agents = agents;
    capacity_.gates = 1 + static_cast<int>(rng_.below(2));
    int count = 1 + static_cast<int>(rng_.below(12));
    for (int i = 0; i < count; ++i) {
      PlanTask t = task("T" + std::to_string(i), TaskState::kBlocked);
      for (int j = 0; j < i; ++j) {
        if (rng_.chance(0.2)) t.needs.push_back("T" + std::to_string(j));
      }
      t.touches = {"f" + std::to_string(rng_.below(6)) + ".cc"};
      t.cost = 1 + static_cast<i64>(rng_.below(9));
      t.value = 1 + static_cast<i64>(rng_.below(3));
      tasks_.push_back(t);
    }
  }

  // Runs to the end; returns the number of ticks, or -1 when it did not end.
  int run() {
    for (int tick = 0; tick < 2000; ++tick) {
      now_us_ += 1'000'000;
      auto actions = plan(tasks_, now_us_, capacity_, seed_);
      EXPECT_EQ(actions, plan(tasks_, now_us_, capacity_, seed_)) << "a plan is deterministic";
      for (const PlanAction& action : actions) perform(action);
      check_invariants();
      if (is_settled(tasks_)) return tick;
      if (actions.empty() && !anything_live()) return -1;
      progress();
    }
    return -1;
  }

 private:
  PlanTask& at(const std::string& id) {
    return *std::find_if(tasks_.begin(), tasks_.end(),
                         [&](const PlanTask& t) { return t.id == id; });
  }
  bool merged(const std::string& id) {
    const PlanTask& t = at(id);
    if (t.state != TaskState::kSplit) return t.state == TaskState::kMerged;
    return std::all_of(t.parts.begin(), t.parts.end(),
                       [&](const std::string& part) { return merged(part); });
  }
  // The ladder's fourth rung: others do the work of it.
  void split(const std::string& id) {
    std::vector<std::string> parts;
    for (int i = 0; i < 1 + static_cast<int>(rng_.below(3)); ++i) {
      PlanTask part = at(id);
      part.id = id + "." + std::to_string(i);
      part.state = TaskState::kBlocked;
      if (i > 0 && rng_.chance(0.5)) part.needs.push_back(parts.back());
      parts.push_back(part.id);
      tasks_.push_back(std::move(part));
    }
    at(id).state = TaskState::kSplit;
    at(id).parts = parts;
    EXPECT_TRUE(check_graph(tasks_).ok());
  }

  void perform(const PlanAction& action) {
    for (const std::string& id : action.tasks) {
      PlanTask& t = at(id);
      switch (action.kind) {
        case PlanKind::kExpire:
          ASSERT_EQ(t.state, TaskState::kLeased);
          t.state = TaskState::kReady;
          t.waiting_since_us = now_us_;
          break;
        case PlanKind::kUnblock:
          t.state = TaskState::kReady;
          t.waiting_since_us = now_us_;
          break;
        case PlanKind::kGate:
          t.state = TaskState::kGating;
          break;
        case PlanKind::kMerge:
          t.state = TaskState::kMerged;
          break;
        case PlanKind::kLease:
          ASSERT_EQ(t.state, TaskState::kReady) << "one live lease";
          for (const std::string& need : t.needs) ASSERT_TRUE(merged(need)) << "needs are merged";
          t.state = TaskState::kLeased;
          t.lease_until_us = now_us_ + 5'000'000;
          break;
      }
    }
  }

  void check_invariants() {
    int leases = 0, gating = 0;
    for (const PlanTask& a : tasks_) {
      leases += a.state == TaskState::kLeased;
      gating += a.state == TaskState::kGating;
      for (const PlanTask& b : tasks_) {
        if (&a == &b || !live(a) || !live(b)) continue;
        ASSERT_FALSE(globs_overlap(a.touches[0], b.touches[0])) << a.id << " and " << b.id;
      }
    }
    ASSERT_LE(leases, capacity_.agents);
    ASSERT_LE(gating, capacity_.gates);
  }

  static bool live(const PlanTask& t) {
    return t.state == TaskState::kLeased || t.state == TaskState::kSubmitted ||
           t.state == TaskState::kGating || t.state == TaskState::kQueued;
  }
  bool anything_live() { return std::any_of(tasks_.begin(), tasks_.end(), live); }

  void progress() {
    std::vector<std::string> to_split;
    for (PlanTask& t : tasks_) {
      if (t.state == TaskState::kLeased && rng_.chance(0.4)) t.state = TaskState::kSubmitted;
      if (t.state == TaskState::kGating && rng_.chance(0.6)) {
        if (rng_.chance(0.7)) {
          t.state = TaskState::kQueued;
          t.queue_position = ++queue_;
        } else if (++bounces_[t.id] == 3 && t.id.find('.') == std::string::npos) {
          t.state = TaskState::kBounced;
          to_split.push_back(t.id);
        } else if (bounces_[t.id] > 5) {
          t.state = TaskState::kEscalated;
        } else {
          t.state = TaskState::kReady;
        }
      }
    }
    for (const std::string& id : to_split) split(id);
  }

  base::Rng rng_;
  u64 seed_;
  std::vector<PlanTask> tasks_;
  PlanCapacity capacity_;
  std::map<std::string, int> bounces_;
  i64 now_us_ = 0;
  int queue_ = 0;
};

TEST(Scheduler, KeepsItsPromisesOnThousandsOfRandomGraphs) {
  for (u64 seed = 1; seed <= 3000; ++seed) {
    World world(seed, 1 + static_cast<int>(seed % 4));
    EXPECT_GE(world.run(), 0) << "seed " << seed << " did not end";
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

// Without failures and collisions, more agents never make the end later.
TEST(Scheduler, MoreAgentsAreNeverSlowerOnIndependentTasks) {
  int before = 1 << 20;
  for (int agents = 1; agents <= 8; agents *= 2) {
    std::vector<PlanTask> tasks;
    for (int i = 0; i < 16; ++i) {
      std::string id = "T" + std::to_string(i);
      tasks.push_back(task(id, TaskState::kReady, {}, {id + ".cc"}));
    }
    int ticks = 0;
    while (!is_settled(tasks)) {
      ++ticks;
      for (PlanTask& t : tasks) {
        if (t.state == TaskState::kLeased) t.state = TaskState::kMerged;
      }
      for (const std::string& id : leased(plan(tasks, ticks, capacity(agents), 1))) {
        for (PlanTask& t : tasks) {
          if (t.id != id) continue;
          t.state = TaskState::kLeased;
          t.lease_until_us = 1 << 30;
        }
      }
      ASSERT_LT(ticks, 100);
    }
    EXPECT_LE(ticks, before);
    before = ticks;
  }
}

TEST(Scheduler, AgeingLetsTheLightestTaskStartInTheEnd) {
  PlanTask light = task("light", TaskState::kReady);
  light.cost = 100;
  for (i64 now = 0; now < 100'000'000'000; now += 60'000'000) {
    PlanTask heavy = task("heavy", TaskState::kReady);  // a fresh one each time
    heavy.value = 50;
    heavy.waiting_since_us = now;
    if (leased(plan({light, heavy}, now, capacity(1), 1))[0] == "light") return;
  }
  FAIL() << "starved";
}

}  // namespace
}  // namespace team
