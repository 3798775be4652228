#include "llm/speculation/cost_table.h"

#include <algorithm>

namespace llm {

namespace {

// Quick to believe in less, slow to believe in more.
void blend(f64 sample, f64* into) {
  if (*into == 0) {
    *into = sample;
    return;
  }
  const f64 bounded = std::min(sample, *into * 2);
  *into += (bounded < *into ? 0.5 : 0.05) * (bounded - *into);
}

}  // namespace

void CostTable::observe_step(i32 rows, f64 us) {
  if (rows >= 1 && rows <= kWidest) blend(us, &us_[static_cast<size_t>(rows)]);
}

void CostTable::observe_draft(f64 us) {
  blend(us, &draft_us_);
}

f64 CostTable::step_us(i32 rows) const {
  rows = std::clamp(rows, 1, kWidest);
  i32 below = rows;
  while (below > 0 && us_[static_cast<size_t>(below)] == 0) --below;
  i32 above = rows;
  while (above <= kWidest && us_[static_cast<size_t>(above)] == 0) ++above;
  if (below == 0 && above > kWidest) return 0;
  // One side alone: as dear as the nearest seen for fewer rows, in proportion for more.
  if (below == 0) return us_[static_cast<size_t>(above)];
  const f64 low = us_[static_cast<size_t>(below)];
  if (above > kWidest) return low * (1 + 0.1 * (rows - below) / below);
  const f64 high = us_[static_cast<size_t>(above)];
  return above == below ? low : low + (high - low) * (rows - below) / (above - below);
}

i32 CostTable::best_length(i32 rows, f64 acceptance, i32 limit) const {
  // A step without guesses is the measure of all others, and costs little to see.
  if (us_[static_cast<size_t>(std::clamp(rows, 1, kWidest))] == 0) return 0;
  const f64 plain = step_us(rows);
  f64 best = 1 / plain;
  i32 length = 0;
  f64 tokens = 1;
  f64 chance = 1;
  for (i32 n = 1; n <= limit; ++n) {
    chance *= acceptance;
    tokens += chance;
    const f64 rate = tokens / (step_us(rows + n) + draft_us_);
    if (rate > best) {
      best = rate;
      length = n;
    }
  }
  return length;
}

void AcceptanceRate::observe(i32 accepted, i32 drafted) {
  constexpr f64 kMemory = 0.9;
  right_ = right_ * kMemory + accepted;
  tried_ = tried_ * kMemory + accepted + (accepted < drafted ? 1 : 0);
}

void AcceptanceRate::rest() {
  constexpr f64 kMemory = 0.98;
  right_ *= kMemory;
  tried_ *= kMemory;
}

}  // namespace llm
