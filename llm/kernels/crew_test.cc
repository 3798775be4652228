#include "llm/kernels/crew.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

TEST(Crew, BarriersSeparatePhasesOnEveryRank) {
  for (i32 threads : {1, 2, 3}) {
    Crew crew(threads);
    std::vector<int> first(static_cast<size_t>(threads)), second(static_cast<size_t>(threads));
    for (int round = 1; round <= 50; ++round) {
      auto body = [&](i32 rank) {
        first[static_cast<size_t>(rank)] = round;
        crew.barrier();
        int sum = 0;
        for (int value : first) sum += value;
        second[static_cast<size_t>(rank)] = sum;
      };
      crew.run(body);
      for (int sum : second) ASSERT_EQ(sum, round * threads);
    }
    EXPECT_EQ(crew.counters().runs, 50u);
    EXPECT_EQ(crew.counters().barriers, 100u);
  }
}

TEST(Crew, SharesCoverAllItemsOnceAndDifferByAtMostOne) {
  for (i32 total = 0; total < 40; ++total) {
    for (i32 ranks = 1; ranks < 6; ++ranks) {
      i32 next = 0;
      for (i32 rank = 0; rank < ranks; ++rank) {
        const Share share = share_of(total, rank, ranks);
        EXPECT_EQ(share.begin, next);
        EXPECT_LE(share.end - share.begin, total / ranks + 1);
        next = share.end;
      }
      EXPECT_EQ(next, total);
    }
  }
}

}  // namespace
}  // namespace llm
