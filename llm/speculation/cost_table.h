// How many guesses are worth their rows, from what steps have been seen to cost on this machine.
//
// n guesses of which each is right with probability p bring (1 - p^(n+1)) / (1 - p) tokens and cost
// a step of n more rows and a draft; best_length() is the n with the most tokens a second. Costs of
// widths not seen yet lie on the line through their neighbours. A sample far above what its width
// usually takes (somebody else had the processor) hardly counts.
#pragma once

#include "base/types.h"

#include <array>

namespace llm {

class CostTable {
 public:
  static constexpr i32 kWidest = 64;  // rows

  void observe_step(i32 rows, f64 us);
  void observe_draft(f64 us);
  // 0 while no step has been seen.
  f64 step_us(i32 rows) const;
  f64 draft_us() const { return draft_us_; }
  // At most `limit`; `rows` counts what the step computes anyway. 0 until such a step was seen.
  i32 best_length(i32 rows, f64 acceptance, i32 limit) const;

 private:
  std::array<f64, kWidest + 1> us_{};  // 0: not seen
  f64 draft_us_ = 0;
};

// The share of guesses that were right lately, guesses after the first wrong one not counted.
class AcceptanceRate {
 public:
  f64 value() const { return (right_ + 0.8) / (tried_ + 1.0); }
  void observe(i32 accepted, i32 drafted);
  // No guess was made: slowly forget, so that a drafter gets another chance.
  void rest();

 private:
  f64 right_ = 0;
  f64 tried_ = 0;
};

}  // namespace llm
