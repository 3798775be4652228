// Guesses with the model's own multi-token prediction layer (GLM-5.2 ships one).
//
// The layer's cache entry at position p is made of the target's state at p and the token at p + 1.
// observe() makes those entries whose next token stands in the same or an earlier step, and keeps
// the newest states of each slot; propose() makes the last one, whose token has just been settled,
// and goes on from there with the layer's own output as state, one guess a pass. Entries past the
// settled text are made of guesses: they are made anew before they count. Those that would need a
// page that the engine has not given yet go to a spare page.
#pragma once

#include "llm/model/glm.h"
#include "llm/speculation/drafter.h"

#include <memory>
#include <vector>

namespace llm {

class MtpDrafter : public Drafter {
 public:
  // `target` outlives the drafter. Errors: those of GlmModel::enable_mtp.
  static base::Result<std::unique_ptr<MtpDrafter>> load(const TensorSource& source,
                                                        GlmModel* target);
  const char* name() const override { return "mtp"; }
  i32 longest() const override { return kLongest; }
  void reserve(const Capacity& capacity, i32 slots) override;
  void propose(std::span<DraftTask> tasks, const i32* table, i32 pages_per_slot) override;
  void observe(const Step& step) override;

 private:
  static constexpr i32 kLongest = 5;
  static constexpr i32 kKept = 16;  // states of a slot; more than the rows of a verified draft

  // The newest states of one slot: those of positions [first, first + count). `paired`: the entry
  // that the last settled token completes has been made.
  struct Recent {
    i32 first = 0;
    i32 count = 0;
    bool paired = false;
  };
  explicit MtpDrafter(GlmModel* target) : target_(*target), sampler_(target->info().vocab) {}
  void keep(const Step& step, i32 begin, i32 end);
  void add_row(i32 token, i32 position, i32 slot, bool logits, const f32* state);
  void run(const i32* table, i32 pages_per_slot);
  void guess(std::span<DraftTask> tasks, i32 n);
  // The state before the task's last token, or null when it is not here any more.
  const f32* state_of(const DraftTask& task);
  f32* kept(i32 slot, i32 index) {
    return states_.data() + (static_cast<i64>(slot) * kKept + index) * target_.info().hidden;
  }

  GlmModel& target_;
  Sampler sampler_;
  i32 rows_max_ = 0;
  std::vector<Recent> recent_;  // per slot
  AlignedArray<f32> states_;    // [slot][kKept][hidden]
  AlignedArray<f32> previous_;  // [slot][hidden]: each task's state for its next guess
  std::vector<i32> table_;      // the engine's, with a spare page at the end of each slot's
  std::vector<BatchRow> rows_;
  std::vector<const f32*> row_states_;
};

}  // namespace llm
