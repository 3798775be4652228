// GLM-5.2 (glm_moe_dsa): multi-head latent attention over the tokens that a lightning indexer
// picks, and a mixture of experts with a bias-corrected sigmoid router.
//
// Attention runs in the absorbed form: the cache holds one vector of latent + rope values per token
// and layer, a head's query is moved into latent space (W_UK), attends there as multi-query
// attention, and its result is moved out again (W_UV). Layers with an indexer choose the top_k
// cached positions of each row; layers without reuse the choice of the last one that has. Ties in
// the choice go to the lower position. Experts of a row are summed in order of their number.
#pragma once

#include "llm/model/glm_config.h"
#include "llm/model/model.h"
#include "llm/model/parts.h"

namespace llm {

class GlmModel : public Model {
 public:
  static base::Result<std::unique_ptr<GlmModel>> load(const TensorSource& source,
                                                      const GlmConfig& config, Precision precision,
                                                      Crew* crew);
  const ModelInfo& info() const override { return info_; }
  void reserve(const Capacity& capacity) override;
  void forward(const Step& step) override;
  const f32* logits(i32 j) const override { return logits_.data() + j * logit_stride_; }
  i32 argmax(i32 j) const override;
  void set_tuning(const StepTuning&) override {}
  void capture_inputs(const std::vector<i32>& layers) override;
  const f32* captured(i32 row) const override;
  void embed(i32 token, f32* out) const override;
  const PackedMatrix& head() const override { return head_; }
  Crew& crew() const override { return crew_; }

  // The positions that row `row` of the last step attended to in the last layer; for tests.
  std::vector<i32> selected(i32 row) const;

 private:
  struct Ffn {
    PackedMatrix gate, up, down;
    bool empty() const { return gate.empty(); }
  };
  struct Layer {
    std::vector<f32> attention_norm, ffn_norm, q_norm, latent_norm;
    PackedMatrix q_a, q_b, kv_a, output;
    std::vector<PackedMatrix> to_latent, from_latent;  // per head: W_UK transposed, W_UV
    bool indexed = false;
    PackedMatrix index_q, index_k, index_weights;
    std::vector<f32> index_norm, index_norm_bias;
    Ffn dense;  // or:
    PackedMatrix router;
    std::vector<f32> router_bias;
    std::vector<Ffn> experts;
    Ffn shared;
  };
  GlmModel(const GlmConfig& config, Precision precision, Crew* crew);
  base::Result<Layer> read_layer(WeightReader* reader, i32 index) const;
  base::Result<Ffn> read_ffn(WeightReader* reader, const std::string& at, const std::string& suffix,
                             i32 index, i32 count, i32 ffn) const;
  void run_rank(i32 rank);
  void norm_rows(const std::vector<f32>& weight, const ActRows& out, i32 rank);
  void project(const Layer& layer, i32 rank);
  void finish_low_rank(const Layer& layer, i32 index, i32 rank);
  void store_index_key(const Layer& layer, i32 index, i32 row);
  void project_queries(const Layer& layer, i32 rank);
  void choose(i32 index, i32 row, i32 rank);
  void attend_heads(const Layer& layer, i32 index, i32 rank);
  void gather(i32 index, i32 row, i32 rank);
  void gated(const Ffn& ffn, const ActView& x, i32 rows, const ActRows& out, i32 out_row, i32 rank);
  void add_output(const PackedMatrix& m, const ActRows& x, i32 rank);
  void dense_ffn(const Layer& layer, i32 rank);
  void sparse_ffn(const Layer& layer, i32 rank);
  void route(const Layer& layer, i32 row);
  void order_by_expert();
  void head_rows(i32 rank);
  u8* cached_row(i32 index, i32 page, i32 lane) const;
  u8* index_row(i32 index, i32 page, i32 lane) const;
  void load_cached(const u8* from, i32 count, f32* to) const;
  void store_cached(const f32* from, i32 count, u8* to) const;
  i32 count() const { return step_->count; }
  const i32* pages_of(i32 row) const {
    return step_->page_table + static_cast<i64>(step_->rows[row].slot) * step_->pages_per_slot;
  }

  const GlmConfig config_;
  const i32 element_;  // bytes of a cached value
  Crew& crew_;
  const Kernels& kernels_;
  ModelInfo info_;
  std::vector<Layer> layers_;
  std::vector<f32> final_norm_;
  PackedMatrix head_;
  const TensorView* embedding_ = nullptr;
  std::vector<i32> index_place_;  // per layer: which indexer cache

  Capacity capacity_;
  AlignedBytes cache_, index_cache_;  // [layer][page][16][values]
  AlignedArray<f32> x_, low_, query_, index_query_, index_key_, index_weight_, partial_, logits_,
      captured_;
  AlignedArray<f32> router_logits_, gate_, up_, expert_out_;
  AlignedArray<i32> selected_, selected_count_, chosen_, expert_row_, expert_begin_, expert_fill_;
  AlignedArray<f32> chosen_weight_;
  i64 logit_stride_ = 0, scores_stride_ = 0;
  ActRows normed_, q_low_, head_in_, head_mid_, attended_, hidden_, expert_in_, expert_hidden_,
      shared_hidden_;
  struct Scratch {
    AlignedArray<f32> keys, values, scores, row, query, latent;
    AlignedArray<i32> order, pages;
  };
  std::vector<Scratch> scratch_;  // per rank
  std::vector<Best> best_;
  std::vector<i32> logit_rows_, capture_layers_;
  i32 logit_count_ = 0;
  RopeAngles angles_;
  const Step* step_ = nullptr;
};

}  // namespace llm
