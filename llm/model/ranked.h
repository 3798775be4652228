// A model whose weights are divided among the ranks of a group, seen from rank 0: every call is
// told to the others, who make the same call on their part. Rows and page table travel as
// addresses when they lie in step_memory(), and are copied when not.
#pragma once

#include "llm/model/model.h"

namespace llm {

class RankedModel : public Model {
 public:
  // `own` is rank 0's part; `group` outlives the model.
  RankedModel(std::unique_ptr<Model> own, RankGroup* group);

  const ModelInfo& info() const override { return own_->info(); }
  void reserve(const Capacity& capacity) override;
  void forward(const Step& step) override;
  const f32* logits(i32 j) const override { return own_->logits(j); }
  i32 argmax(i32 j) const override { return own_->argmax(j); }
  void set_tuning(const StepTuning& tuning) override;
  // Rank 0 has the whole residual stream, so this stays here.
  void capture_inputs(const std::vector<i32>& layers) override { own_->capture_inputs(layers); }
  const f32* captured(i32 row) const override { return own_->captured(row); }
  void embed(i32 token, f32* out) const override { own_->embed(token, out); }
  const PackedMatrix& head() const override { return own_->head(); }
  Crew& crew() const override { return own_->crew(); }
  u8* step_memory(u64 bytes) override { return group_.share_alone(bytes); }

 private:
  const void* visible(const void* from, u64 bytes, u8** copy, u64* room);

  std::unique_ptr<Model> own_;
  RankGroup& group_;
  u8* rows_copy_ = nullptr;
  u8* table_copy_ = nullptr;
  u64 rows_room_ = 0;
  u64 table_room_ = 0;
};

// What the other ranks do: rank 0's calls on their part, until the group is dismissed.
void follow_rank_zero(Model* part, RankGroup* group);

}  // namespace llm
