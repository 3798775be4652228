// Llama-style decoders: RMSNorm, grouped-query attention with rotary positions, SwiGLU. Also qwen2
// (biases on q, k, v) and qwen3 (norms on the heads of q and k).
//
// A layer is five phases, each ended by one barrier:
//   norm, quantise, q k v, rotate, store in the cache | attend, quantise | output, residual |
//   norm, quantise, gate, up, silu, quantise | down, residual
// Steps of few rows repeat norm and quantise on every rank instead of waiting for each other.
#pragma once

#include "llm/model/llama_config.h"
#include "llm/model/model.h"
#include "llm/model/parts.h"

namespace llm {

class LlamaModel : public Model {
 public:
  // `source` must outlive the model: the embedding table is read from it.
  static base::Result<std::unique_ptr<LlamaModel>> load(const TensorSource& source,
                                                        const LlamaConfig& config,
                                                        Precision precision, Crew* crew);

  const ModelInfo& info() const override { return info_; }
  void reserve(const Capacity& capacity) override;
  void forward(const Step& step) override;
  const f32* logits(i32 j) const override { return logits_.data() + j * logit_stride_; }
  i32 argmax(i32 j) const override;
  void set_tuning(const StepTuning& tuning) override { tuning_ = tuning; }
  void capture_inputs(const std::vector<i32>& layers) override;
  const f32* captured(i32 row) const override;
  void embed(i32 token, f32* out) const override;
  const PackedMatrix& head() const override { return head_; }
  Crew& crew() const override { return crew_; }

 private:
  struct Layer {
    std::vector<f32> attention_norm, ffn_norm, q_norm, k_norm, q_bias, k_bias, v_bias;
    PackedMatrix q, k, v, output, gate, up, down;
  };
  LlamaModel(const LlamaConfig& config, Precision precision, Crew* crew);
  base::Status load_weights(const TensorSource& source);

  void run_rank(i32 rank);
  void embed_rows(i32 rank);
  void attention(const Layer& layer, i32 index, i32 rank);
  void project_heads(const Layer& layer, i32 index, const ActRows& x, i32 rank);
  void project_apart(const Layer& layer, i32 index, const ActRows& x, i32 rank);
  void finish_q(const Layer& layer, i32 head, i32 row);
  void finish_k(const Layer& layer, i32 index, i32 head, i32 row, i32 rank);
  void finish_v(const Layer& layer, i32 index, i32 head, i32 row, i32 rank);
  void attend_tiles(i32 index, i32 rank);
  void feed_forward(const Layer& layer, i32 rank);
  void gate_and_up(const Layer& layer, const ActRows& x, i32 rank);
  void project_residual(const PackedMatrix& m, const ActRows& x, i32 rank);
  void head_rows(i32 rank);
  // RMSNorm of the residual into rows that this rank may read, quantised if `matrix` is.
  const ActRows& normed(const std::vector<f32>& weight, const PackedMatrix& matrix, i32 rank);
  void barrier_unless_fused() {
    if (!tuning_.fusion) crew_.barrier();
  }
  bool narrow() const { return tuning_.fusion && step_->count <= kNarrow; }
  i32 page_of(i32 row) const;
  u8* key_page(i32 layer, i32 page, i32 head) const;
  u8* value_page(i32 layer, i32 page, i32 head) const;

  static constexpr i32 kNarrow = 8;
  const LlamaConfig config_;
  const Precision precision_;
  Crew& crew_;
  const Kernels& kernels_;
  ModelInfo info_;
  StepTuning tuning_;
  std::vector<Layer> layers_;
  std::vector<f32> final_norm_;
  PackedMatrix head_;
  const TensorView* embedding_ = nullptr;

  Capacity capacity_;
  i64 v_stride_ = 0;        // values of one token in a page
  i64 key_head_bytes_ = 0;  // of one head in a page
  i64 value_head_bytes_ = 0;
  AlignedBytes keys_, values_;  // [layer][page][kv head]
  AlignedArray<f32> x_, q_, k_, v_, gate_, up_, partial_, logits_, captured_;
  i64 logit_stride_ = 0;
  i64 scores_stride_ = 0;
  ActRows normed_, attended_, hidden_;
  std::vector<ActRows> own_normed_;        // per rank
  std::vector<AlignedArray<f32>> scores_;  // per rank
  std::vector<AlignedArray<u16>> halves_;  // per rank
  std::vector<Best> best_;                 // [logit rows][ranks]
  std::vector<i32> logit_rows_;
  i32 logit_count_ = 0;
  std::vector<i32> capture_layers_;
  RopeAngles angles_;
  const Step* step_ = nullptr;
};

}  // namespace llm
