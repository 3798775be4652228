#include "llm/speculation/cost_table.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

CostTable costs(f64 first, f64 each_more) {
  CostTable table;
  for (i32 rows = 1; rows <= 8; ++rows) table.observe_step(rows, first + each_more * (rows - 1));
  return table;
}

// Else a drafter that never pays would never be found out: only steps of its own width would be
// seen.
TEST(CostTable, NothingIsGuessedUntilAPlainStepWasSeen) {
  CostTable table;
  table.observe_step(8, 1000);
  EXPECT_EQ(table.best_length(1, 0.9, 7), 0);
  table.observe_step(1, 900);
  EXPECT_EQ(table.best_length(1, 0.9, 7), 7);
}

TEST(CostTable, FreeRowsAreAllUsedAndFullyPricedOnesNever) {
  EXPECT_EQ(costs(1000, 0).best_length(1, 0.5, 7), 7);
  EXPECT_EQ(costs(1000, 1000).best_length(1, 0.9, 7), 0);
}

TEST(CostTable, TheLengthIsTheOneWithMostTokensASecond) {
  // By hand, acceptance 0.8, 0.2 steps a row: 1, 1.5, 1.743, 1.845, 1.868, 1.845 ...
  EXPECT_EQ(costs(1000, 200).best_length(1, 0.8, 7), 4);
  // A worse drafter deserves fewer rows.
  EXPECT_EQ(costs(1000, 200).best_length(1, 0.4, 7), 1);
}

TEST(CostTable, ADearDraftIsWorthItOnlyWhenItIsOftenRight) {
  CostTable table = costs(1000, 50);
  table.observe_draft(900);
  EXPECT_EQ(table.best_length(1, 0.3, 7), 0);
  EXPECT_GE(table.best_length(1, 0.9, 7), 6);
}

TEST(CostTable, WidthsBetweenTwoSeenLieOnALine) {
  CostTable table;
  table.observe_step(2, 100);
  table.observe_step(6, 300);
  EXPECT_DOUBLE_EQ(table.step_us(4), 200);
  EXPECT_DOUBLE_EQ(table.step_us(1), 100);
}

TEST(CostTable, OneInterruptedStepHardlyCounts) {
  CostTable table = costs(1000, 0);
  table.observe_step(1, 500'000);
  EXPECT_LT(table.step_us(1), 1060);
  for (int i = 0; i < 5; ++i) table.observe_step(1, 500);
  EXPECT_LT(table.step_us(1), 530);  // better news is believed at once
}

TEST(AcceptanceRate, FollowsTheDrafterAndForgivesAfterARest) {
  AcceptanceRate rate;
  for (int i = 0; i < 20; ++i) rate.observe(7, 7);
  EXPECT_GT(rate.value(), 0.95);
  for (int i = 0; i < 40; ++i) rate.observe(0, 7);
  EXPECT_LT(rate.value(), 0.15);
  for (int i = 0; i < 200; ++i) rate.rest();
  EXPECT_GT(rate.value(), 0.6);
}

}  // namespace
}  // namespace llm
