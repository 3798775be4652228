// How a model is divided, so that its results do not depend on how many processes share it.
//
// Every sum that crosses processes (over heads, over the columns of a feed-forward, over experts)
// has four leaves with bounds that only the model's shape decides, and is always added up as
// (leaf 0 + leaf 1) + (leaf 2 + leaf 3). One rank holds all leaves, two hold two each, three hold
// 0, 1 and 2 + 3, four hold one each; so every rank hands over exactly one partial sum and the
// bits are the same for all of them.
#pragma once

#include "llm/kernels/crew.h"

#include <array>
#include <numeric>

namespace llm {

inline constexpr i32 kLeaves = 4;

struct Leaves {
  std::array<i32, kLeaves + 1> bound{};

  Share leaf(i32 i) const {
    return {bound[static_cast<size_t>(i)], bound[static_cast<size_t>(i + 1)]};
  }
  // All that the leaves of a rank cover.
  Share of_rank(i32 rank, i32 ranks) const {
    const Share mine = share_of(kLeaves, rank, ranks);
    return {bound[static_cast<size_t>(mine.begin)], bound[static_cast<size_t>(mine.end)]};
  }
};

// `total` items in leaves whose bounds are multiples of `unit`, as equal as that allows.
inline Leaves divide(i32 total, i32 unit) {
  Leaves leaves;
  const i32 units = (total + unit - 1) / unit;
  for (i32 i = 0; i <= kLeaves; ++i) {
    leaves.bound[static_cast<size_t>(i)] =
        std::min(total, share_of(units, i, kLeaves).begin * unit);
  }
  return leaves;
}

// How many items of `size` columns end at a multiple of 32 columns.
inline i32 whole_blocks(i32 size) {
  return 32 / std::gcd(size, 32);
}

}  // namespace llm
