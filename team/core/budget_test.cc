#include "team/core/budget.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <limits>

namespace team {
namespace {

TEST(Budget, RefusesAReservationThatAnAncestorHasNoRoomForAndNamesIt) {
  BudgetTree tree;
  tree.set_cap("run", 100);
  tree.set_cap("run/build", 10);
  EXPECT_TRUE(tree.reserve("run/build/coder/T1", 8).ok());
  auto refused = tree.reserve("run/build/coder/T2", 8);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), base::ErrorCode::kLimit);
  EXPECT_NE(refused.error().message().find("run/build"), std::string::npos);
  EXPECT_TRUE(tree.reserve("run/verify", 8).ok());
}

TEST(Budget, GivesBackWhatWasNotUsed) {
  BudgetTree tree;
  tree.set_cap("run", 100);
  ASSERT_TRUE(tree.reserve("run/a", 90).ok());
  tree.settle("run/a", 90, 10);
  EXPECT_EQ(tree.room("run"), 90);
  EXPECT_EQ(tree.at("run").spent, 10);
  EXPECT_EQ(tree.at("run").reserved, 0);
}

TEST(Budget, AScopeWithoutCapsIsUnlimited) {
  BudgetTree tree;
  EXPECT_EQ(tree.room("run/x"), std::numeric_limits<i64>::max());
  EXPECT_FALSE(tree.reserve("run/x", -1).ok());
}

// Random trees and orders: honest calls never take a scope past its cap, reserved and spent are
// never negative, and a parent always holds the sum of its children.
TEST(Budget, NeverPassesACapWhateverTheOrder) {
  for (u64 seed = 1; seed <= 1500; ++seed) {
    base::Rng rng(seed);
    BudgetTree tree;
    tree.set_cap("run", static_cast<i64>(rng.below(2000)));
    for (int i = 0; i < 3; ++i) {
      tree.set_cap("run/s" + std::to_string(i), static_cast<i64>(rng.below(1000)));
    }
    struct Open {
      std::string scope;
      i64 reserved;
    };
    std::vector<Open> open;
    i64 booked = 0;
    for (int step = 0; step < 60; ++step) {
      if (open.empty() || rng.chance(0.55)) {
        std::string scope =
            "run/s" + std::to_string(rng.below(3)) + "/t" + std::to_string(rng.below(4));
        auto amount = static_cast<i64>(rng.below(300));
        if (tree.reserve(scope, amount).ok()) open.push_back({scope, amount});
      } else {
        size_t pick = rng.below(open.size());
        i64 spent = rng.between(0, open[pick].reserved);
        tree.settle(open[pick].scope, open[pick].reserved, spent);
        booked += spent;
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(pick));
      }
      i64 held = 0;
      for (const Open& o : open) held += o.reserved;
      ASSERT_EQ(tree.at("run").spent, booked);
      ASSERT_EQ(tree.at("run").reserved, held);
      for (const auto& [name, scope] : tree.scopes()) {
        ASSERT_GE(scope.reserved, 0);
        if (scope.cap >= 0) ASSERT_LE(scope.reserved + scope.spent, scope.cap) << name;
      }
    }
  }
}

}  // namespace
}  // namespace team
