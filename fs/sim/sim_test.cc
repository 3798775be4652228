#include "fs/sim/simulation.h"

#include <gtest/gtest.h>

namespace fs::sim {
namespace {

TEST(Simulation, HoldsEveryPromiseOnTheFirstSeeds) {
  for (u64 seed = 1; seed <= 300; ++seed) {
    Outcome outcome = run({seed});
    ASSERT_TRUE(outcome.ok) << "seed " << seed << ", " << outcome.problem;
  }
}

TEST(Simulation, HoldsEveryPromiseWithLogsInTheEngineAndAnotherMachine) {
  for (u64 seed = 1; seed <= 300; ++seed) {
    Plan plan{seed};
    plan.cluster = true;
    Outcome outcome = run(plan);
    ASSERT_TRUE(outcome.ok) << "seed " << seed << ", " << outcome.problem;
  }
}

TEST(Simulation, HoldsEveryPromiseWithAnEncryptedStore) {
  for (bool cluster : {false, true}) {
    for (u64 seed = 301; seed <= 500; ++seed) {
      Plan plan{seed};
      plan.cluster = cluster;
      plan.encrypted = true;
      Outcome outcome = run(plan);
      ASSERT_TRUE(outcome.ok) << "seed " << seed << ", " << outcome.problem;
    }
  }
}

TEST(Simulation, RepeatsARunFromItsSeed) {
  Outcome one = run({42});
  Outcome two = run({42});
  EXPECT_EQ(one.operations, two.operations);
  EXPECT_EQ(one.crashes, two.crashes);
  EXPECT_EQ(one.problem, two.problem);
}

}  // namespace
}  // namespace fs::sim
