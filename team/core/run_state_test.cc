#include "team/core/run_state.h"

#include "team/core/machine.h"

#include <gtest/gtest.h>

#include <set>

namespace team {
namespace {

Event event(i64 seq, std::string type, base::Json body) {
  Event e;
  e.seq = seq;
  e.type = std::move(type);
  e.body = std::move(body);
  return e;
}

TEST(Machine, EveryStateCanBeReachedFromNothing) {
  for (const Machine& machine : all_machines()) {
    std::set<std::string_view> reached = {""};
    for (size_t round = 0; round < machine.moves.size(); ++round) {
      for (const Move& move : machine.moves) {
        if (reached.contains(move.from)) reached.insert(move.to);
      }
    }
    for (const Move& move : machine.moves) {
      EXPECT_TRUE(reached.contains(move.from)) << machine.kind << ": " << move.from;
    }
  }
}

TEST(RunState, FoldsMovesAndKeepsTheLatestFacts) {
  RunState state;
  ASSERT_TRUE(
      state.apply(event(1, "task.proposed", base::Json::object({{"id", "T1"}, {"title", "log"}})))
          .ok());
  ASSERT_TRUE(
      state.apply(event(2, "task.ready", base::Json::object({{"id", "T1"}, {"prio", 3}}))).ok());
  const Entity* task = state.find("task", "T1");
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->state, "ready");
  EXPECT_EQ(task->facts["title"].as_string(), "log");
  EXPECT_EQ(task->facts["prio"].as_int(), 3);
}

TEST(RunState, RefusesAMoveTheTableDoesNotList) {
  RunState state;
  ASSERT_TRUE(state.apply(event(1, "criterion.unbound", base::Json::object({{"id", "C1"}}))).ok());
  auto refused = state.apply(event(2, "criterion.passing", base::Json::object({{"id", "C1"}})));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(), "criterion C1 cannot go from unbound to passing");
  EXPECT_EQ(state.state_of("criterion", "C1"), "unbound");
}

TEST(RunState, ACriterionCannotCountBeforeItIsValidated) {
  const Machine* machine = machine_of("criterion");
  for (const Move& move : machine->moves) {
    if (move.to != "passing") continue;
    EXPECT_TRUE(move.from != "" && move.from != "unbound" && move.from != "bound") << move.from;
  }
}

}  // namespace
}  // namespace team
