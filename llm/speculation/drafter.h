// Who guesses the next tokens. The engine verifies every guess with the target, so a drafter can be
// wrong but never changes the output. Drafts race with the target's noise (sampler.h), so
// sampled text can be guessed as well as greedy text.
#pragma once

#include "llm/model/model.h"
#include "llm/speculation/sampler.h"

#include <span>

namespace llm {

struct DraftTask {
  i32 slot = 0;
  std::span<const i32> history;  // all settled tokens; the last one is not computed yet
  const SamplingParams* sampling = nullptr;
  i32 limit = 0;  // at most this many guesses
  i32* tokens = nullptr;
  i32 count = 0;  // out
};

// Single-threaded, used by the engine's thread.
class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual const char* name() const = 0;
  virtual i32 longest() const = 0;
  // Once, before the first propose(); `slots` sequences may ask at once.
  virtual void reserve(const Capacity& capacity, i32 slots) {
    (void)capacity;
    (void)slots;
  }
  // `table` is the page table of the coming step.
  virtual void propose(std::span<DraftTask> tasks, const i32* table, i32 pages_per_slot) = 0;
  // After each step of the target, with the rows it computed.
  virtual void observe(const Step& step) = 0;
};

}  // namespace llm
