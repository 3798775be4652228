// GLM-5.2 (glm_moe_dsa): multi-head latent attention over the tokens that a lightning indexer
// picks, and a mixture of experts with a bias-corrected sigmoid router.
//
// Attention runs in the absorbed form: the cache holds one vector of latent + rope values per token
// and layer, a head's query is moved into latent space (W_UK), attends there as multi-query
// attention, and its result is moved out again (W_UV). Layers with an indexer choose the top_k
// cached positions of each row; layers without reuse the choice of the last one that has. Ties in
// the choice go to the lower position. Experts of a row are summed in order of their number, in
// four leaves (leaves.h).
//
// A layer of a narrow step is six phases, eight once a text is longer than top_k:
//   residual, norm, quantise, low-rank products | cache; low-rank norm, queries by head into latent
//   space | (indexer scores | choice) attend, out of latent space | output | residual, norm,
//   router, choice of experts, gate, up | down
// Split over processes, each has some heads, some experts and some columns of the dense and shared
// feed-forwards; the low-rank products, the indexer, the router and the cache are on every rank.
//
// glm.cc loads and reserves, glm_attention.cc, glm_ffn.cc and glm_mtp.cc compute.
#pragma once

#include "llm/model/decoder.h"
#include "llm/model/glm_config.h"
#include "llm/model/rope_scaling.h"

#include <optional>

namespace llm {

class GlmModel : public Decoder {
 public:
  static base::Result<std::unique_ptr<GlmModel>> load(const TensorSource& source,
                                                      const GlmConfig& config, Precision precision,
                                                      Crew* crew);
  // The positions that row `row` of the last step attended to in the last layer; for tests.
  std::vector<i32> selected(i32 row) const;

  // Multi-token prediction: one more layer that reads this model's final state at position p and
  // the token at p + 1 and guesses the token at p + 2. Its cache has kMtpSpare pages beyond those
  // of the capacity, for guesses that are dropped again. In one process only.
  static constexpr i32 kMtpSpare = 256;
  // Reads the layer's weights and keeps the states it needs from now on. REQUIRES: before
  // reserve(). Errors: kNotFound when the model has no such layer.
  base::Status enable_mtp(const TensorSource& source);
  // The state after the final norm of row i of the last forward(), [hidden].
  const f32* state(i32 row) const { return kept_state(row); }
  // Row i of `step` holds the token at position + 1; `states[i]` the state at its position. Logits
  // and argmax are those of the rows that want them, as after forward().
  void forward_mtp(const Step& step, const f32* const* states);
  // A page of the spare ones. REQUIRES: slot < kMtpSpare.
  i32 spare_page(i32 slot) const { return capacity_.pages + slot; }
  // What the layer hands on: its output after its norm, of the j-th row that wanted logits.
  const f32* mtp_state(i32 j) const { return head_input(j); }

 private:
  struct Ffn {
    PackedMatrix gate, up, down;
    bool empty() const { return gate.empty(); }
  };
  struct Layer {
    std::vector<f32> attention_norm, ffn_norm, q_norm, latent_norm;
    PackedMatrix q_a, kv_a, output;
    std::vector<PackedMatrix> query, to_latent, from_latent;  // per head: W_QB, W_UK^T, W_UV
    bool indexed = false;
    PackedMatrix index_q, index_k, index_weights;
    std::vector<f32> index_norm, index_norm_bias;
    Ffn dense;  // or:
    PackedMatrix router;
    std::vector<f32> router_bias;
    std::vector<Ffn> experts;  // of this rank
    Ffn shared;
  };
  // The positions each row attends to, [row][top_k], ascending.
  struct Selection {
    AlignedArray<i32> positions, count;
  };
  // The experts of each row, [row][experts_used], ascending.
  struct Routing {
    AlignedArray<f32> logits, weight;
    AlignedArray<i32> expert;
  };
  struct Scratch {  // of one thread
    AlignedArray<f32> scores, matches, query, index_query, gate, up;
    AlignedArray<i32> order;
    AlignedArray<const u8*> rows;  // chosen cache rows
    ActRows q_low;                 // of a narrow step; so are the next two
    Selection selection;
    Routing routing;
    // Pairs of a row and one of its experts, those of an expert side by side.
    AlignedArray<i32> pair_place, place_row, expert_begin, expert_fill;
  };

  GlmModel(const GlmConfig& config, Precision precision, Crew* crew);
  void divide_work(const TensorSource& source);
  base::Status load_weights(const TensorSource& source);
  base::Result<Layer> read_layer(WeightReader* reader, i32 index) const;
  base::Status read_attention(WeightReader* reader, const std::string& at, Layer* layer) const;
  base::Result<Ffn> read_ffn(WeightReader* reader, const std::string& at, const std::string& suffix,
                             i32 width, Share mine) const;
  base::Result<Ffn> read_expert(WeightReader* reader, const std::string& at, i32 expert) const;
  void reserve_layers() override;
  void reserve_scratch();
  void run_layer(i32 index, i32 thread) override;
  void start_residual(i32 thread) override;

  void attention(const Layer& layer, i32 index, i32 thread);
  void project(const Layer& layer, const ActRows& x, i32 thread);
  const ActRows& low_rank_queries(const Layer& layer, i32 thread);
  void store_latents(const Layer& layer, i32 index, i32 thread);
  void store_index_key(const Layer& layer, i32 index, i32 row);
  void project_queries(const Layer& layer, const ActRows& low, i32 thread);
  void choose(i32 index, i32 thread);
  void score(i32 index, i32 row, Share positions, i32 thread, f32* scores);
  void pick(i32 row, const f32* scores, i32 thread);
  void attend(i32 index, i32 thread);
  void leave_latent_space(const Layer& layer, i32 thread);

  void gated(const Ffn& ffn, const ActView& x, i32 rows, const ActRows& out, i32 out_row,
             i32 thread);
  void sparse_ffn(const Layer& layer, const ActRows& x, i32 thread);
  const Routing& route(const Layer& layer, const ActRows& x, i32 thread);
  void choose_experts(const Layer& layer, const Routing& routing, i32 row) const;
  void order_by_expert(const Routing& routing, i32 thread);
  void add_experts(const Layer& layer, const Routing& routing, i32 thread);
  void expert_leaf(const Layer& layer, const Routing& routing, i32 leaf, i32 thread, f32* out);

  u8* cached_row(i32 index, i32 page, i32 lane) const;
  u8* index_row(i32 index, i32 page, i32 lane) const;
  void store_cached(const f32* from, i32 count, u8* to) const;
  Scratch& scratch(i32 thread) { return scratch_[static_cast<size_t>(thread)]; }
  const Selection& selection(i32 thread) const {
    return narrow() ? scratch_[static_cast<size_t>(thread)].selection : selection_;
  }
  i32 heads() const { return heads_.end - heads_.begin; }
  // Values of one token in the cache, padded with zeros for the kernels.
  i32 cached_stride() const { return (config_.cached() + 7) / 8 * 8; }

  const GlmConfig config_;
  const i32 element_;  // bytes of a cached value
  // Of the whole model; then this rank's part. Heads below are numbered within it.
  Leaves value_columns_, ffn_columns_, shared_columns_, expert_leaves_;
  Share heads_{}, ffn_{}, shared_{}, experts_{};
  std::vector<Layer> layers_;  // with multi-token prediction, its layer is the last
  struct Mtp {
    std::vector<f32> token_norm, state_norm, final_norm;
    PackedMatrix join;  // [token | state] to hidden
    PackedMatrix head;  // empty: the model's own
    ActRows joined;
    AlignedArray<f32> residual;          // [rows][hidden]
    const f32* const* states = nullptr;  // of the pass that runs; null in forward()
  };
  std::optional<Mtp> mtp_;
  std::vector<i32> index_place_;  // per layer: which indexer cache

  AlignedBytes cache_, index_cache_;  // [layer][page][16][values, padded]
  AlignedArray<f32> low_, query_, index_query_, index_key_, index_weight_, index_scores_;
  AlignedArray<f32> expert_out_, shared_out_;
  i64 scores_stride_ = 0;
  ActRows q_low_, head_in_, head_mid_, attended_, hidden_, expert_hidden_, shared_hidden_;
  Selection selection_;
  Routing routing_;
  bool was_narrow_ = false;
  std::vector<Scratch> scratch_;  // per thread
};

}  // namespace llm
