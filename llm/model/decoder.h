// What every decoder's step has in common: rows in, a residual stream that sub-layers read normed
// and add to, logits and the best token out. An architecture says what happens in a layer.
//
// The residual and the sums. A sub-layer ends with a sum over all processes (leaves.h). Each
// process leaves its partial sum in memory that all see, everyone meets, and whoever next needs the
// residual adds up the partials in fixed order: sum, residual, RMSNorm and quantising are one pass
// (the fused collective), and one meeting is all it costs. Steps of up to kNarrow rows do that pass
// on every thread, each with a residual of its own, so nobody waits for a norm; wider steps divide
// the rows. Two buffers alternate: by the time one is written again, everyone has met once more.
// With tuning.comm off, the same sum takes the long way: copy, meet, sum, barrier, add, barrier.
//
// Threads: `thread` numbers the crew's threads; all of them call the same things in the same order.
#pragma once

#include "llm/model/leaves.h"
#include "llm/model/model.h"
#include "llm/model/parts.h"

namespace llm {

class Decoder : public Model {
 public:
  const ModelInfo& info() const override { return info_; }
  void reserve(const Capacity& capacity) override;
  void forward(const Step& step) override;
  const f32* logits(i32 j) const override { return logits_ + j * logit_stride_; }
  i32 argmax(i32 j) const override;
  void set_tuning(const StepTuning& tuning) override { tuning_ = tuning; }
  void capture_inputs(const std::vector<i32>& layers) override;
  const f32* captured(i32 row) const override;
  void embed(i32 token, f32* out) const override;
  // Whole on rank 0, where drafts use it too; the part of its rank elsewhere.
  const PackedMatrix& head() const override { return head_; }
  Crew& crew() const override { return crew_; }
  u8* step_memory(u64 bytes) override;

 protected:
  static constexpr i32 kNarrow = 8;

  Decoder(Precision precision, Crew* crew);
  // Embedding, final norm and head; sets what of `info_` they decide.
  base::Status load_ends(WeightReader* reader, i32 vocab, i32 hidden);
  void set_shape(f32 eps, std::vector<f64> rope_frequencies, f64 rope_magnitude = 1);

  virtual void reserve_layers() = 0;
  virtual void run_layer(i32 index, i32 thread) = 0;
  // Writes the residual that the first layer reads, in the rows that this thread may read.
  virtual void start_residual(i32 thread);

  // What a pass over a step goes through: layers [first, end), then a norm and a head.
  struct Pass {
    i32 first, end;
    const std::vector<f32>* norm;
    const PackedMatrix* head;
  };
  void run_pass(const Step& step, const Pass& pass);
  // Keeps what the final norm makes of every row of forward(). REQUIRES: before reserve().
  void keep_states() { keeps_states_ = true; }
  const f32* kept_state(i32 row) const {
    return states_.data() + static_cast<i64>(row) * info_.hidden;
  }
  // What the head read for the j-th row that wanted logits, [hidden].
  const f32* head_input(i32 j) const { return (head_alone_ ? lanes_[0].normed : normed_).row(j); }
  const PackedMatrix& own_head() const { return head_; }
  // The rows of the residual that this thread may read, and one of them.
  Share residual_rows(i32 thread) const {
    return own_residual() ? Share{0, count()} : rows_of(thread);
  }
  f32* residual(i32 row, i32 thread) const;

  // The residual, normed (and quantised), in rows that this thread may read.
  const ActRows& normed(const std::vector<f32>& weight, bool quantise, i32 thread);
  // Adds m x to the residual, summed over processes. `cols`: the leaves of m's columns; the first
  // column held here is that of this rank's first leaf.
  void add_product(const PackedMatrix& m, const Leaves& cols, const ActRows& x, i32 thread);
  // The same for any sum: leaf(i, out) writes columns `cols` of all rows of `out` [rows][hidden].
  template <class F>
  void add_sum(Share cols, i32 thread, F&& leaf);

  Share columns_of(i32 thread) const;  // a thread's share of the hidden columns
  Share rows_of(i32 thread) const { return share_of(count(), thread, crew_.size()); }
  void barrier_unless_fused() {
    if (!tuning_.fusion) crew_.barrier();
  }
  bool narrow() const { return tuning_.fusion && step_->count <= kNarrow; }
  i32 count() const { return step_->count; }
  const i32* pages_of(i32 row) const {
    return step_->page_table + static_cast<i64>(step_->rows[row].slot) * step_->pages_per_slot;
  }
  i32 page_of(i32 row) const { return pages_of(row)[step_->rows[row].position / kPageTokens]; }
  i32 lane_of(i32 row) const { return step_->rows[row].position % kPageTokens; }

  const Precision precision_;
  Crew& crew_;
  const Kernels& kernels_;
  ModelInfo info_;
  StepTuning tuning_;
  Capacity capacity_;
  RopeAngles angles_;
  const Step* step_ = nullptr;

 private:
  // What one thread keeps.
  struct Lane {
    AlignedArray<f32> x;    // residual of a narrow step
    AlignedArray<f32> sum;  // of partials, one row
    ActRows normed;         // of a narrow step
    u32 sums = 0;           // handed over in this step
    bool pending = false;   // the last of them is not in the residual yet
  };

  void run_thread(i32 thread);
  void start_rows(i32 thread);
  void capture(i32 index, i32 thread);
  void head_rows(i32 thread);
  void hand_over(Lane* lane, i32 thread);
  void receive(i32 thread);
  void receive_apart(i32 thread);
  void add_partials(const f32* const* slots, i64 from, i32 n, Lane* lane, f32* into) const;
  void find_partials(u32 which, const f32** slots) const;
  f32* slot(i32 rank, u32 which) const;
  f32* own_slot(const Lane& lane) const {
    return tuning_.comm ? slot(crew_.rank(), lane.sums) : unsent_.data();
  }
  bool own_residual() const { return narrow() && tuning_.comm; }
  void save_states(i32 thread);
  f32* visible_floats(u64 count);

  f32 eps_ = 0;
  std::vector<f64> rope_frequencies_;
  f64 rope_magnitude_ = 1;
  const TensorView* embedding_ = nullptr;
  std::vector<f32> final_norm_;
  PackedMatrix head_;
  Share head_groups_{};  // of this rank, in the whole head

  std::vector<AlignedArray<f32>> visible_;  // by other ranks, when there are any
  AlignedBytes step_memory_;
  std::vector<Lane> lanes_;
  f32* slots_ = nullptr;  // [2][ranks][rows * hidden]
  i64 slot_floats_ = 0;
  AlignedArray<f32> x_;                  // residual of wide steps
  AlignedArray<f32> branch_[2];          // partial leaves of this rank
  AlignedArray<f32> unsent_, received_;  // the long way only
  ActRows normed_;
  f32* logits_ = nullptr;
  i64 logit_stride_ = 0;
  Best* best_ = nullptr;  // [logit rows][all threads]
  std::vector<i32> logit_rows_;
  i32 logit_count_ = 0;
  Pass pass_{};
  bool head_alone_ = false;
  bool keeps_states_ = false;
  AlignedArray<f32> states_;  // [rows][hidden]
  std::vector<i32> capture_layers_;
  AlignedArray<f32> captured_;
};

template <class F>
void Decoder::add_sum(Share cols, i32 thread, F&& leaf) {
  Lane& lane = lanes_[static_cast<size_t>(thread)];
  const Share mine = share_of(kLeaves, crew_.rank(), crew_.ranks());
  const i32 width = cols.end - cols.begin;
  const i64 hidden = info_.hidden;
  const auto add = [&](const f32* from, f32* into) {
    for (i32 row = 0; row < count() && width > 0; ++row) {
      kernels_.add(from + row * hidden + cols.begin, width, into + row * hidden + cols.begin);
    }
  };
  f32* const sum = own_slot(lane);
  f32* pair = sum;  // (0 + 1), then (2 + 3)
  for (i32 i = mine.begin; i < mine.end; ++i) {
    if (i == mine.begin || i == 2) {
      pair = i == mine.begin ? sum : branch_[0].data();
      leaf(i, pair);
    } else {
      leaf(i, branch_[1].data());
      add(branch_[1].data(), pair);
    }
  }
  if (pair != sum) add(pair, sum);
  hand_over(&lane, thread);
}

}  // namespace llm
