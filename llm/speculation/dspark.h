// DSpark: a small decoder that reads the target's hidden states and guesses a block of tokens in
// one parallel pass, made coherent by a low-rank Markov bias, with a confidence for each guess.
//
// Context: for every computed position the target's residual at m layers' inputs is concatenated
// and projected, c = RMS(W_fc h). Each draft layer keeps K/V of c in pages that carry the target's
// page numbers, so shared prefixes are shared here too. A round runs the block [last token, mask,
// mask,
// ...] at positions s, s+1, ...; every block row sees all context before s and the whole block.
// Then, slot after slot: logits = head f + W2 W1[previous token], the race of sampler.h, and a cut
// before the first slot whose confidence sigma(w [f; W1[previous]] + b) is below `confidence_min`.
// The cut never looks at the guess it drops, so it cannot bias the output.
//
// A step of the target only leaves its hidden states here; they are projected when the next draft
// is asked for or when no more fit, all at once. So a drafter that nobody asks costs next to
// nothing.
//
// Two layouts: with sample_from_anchor slot k guesses token s+k+1; without, slot k guesses s+k and
// slot 0 is idle. A file that does not say is refused unless the caller decides: the wrong layout
// costs nearly all acceptance.
//
// A draft may know only part of the vocabulary: `d2t` then holds the token id of each of its rows
// of the head and of W2, and the other tokens are never guessed. File: GGUF, architecture `dflash`.
#pragma once

#include "llm/formats/gguf.h"
#include "llm/model/parts.h"
#include "llm/model/rope_scaling.h"
#include "llm/speculation/drafter.h"

#include <memory>
#include <optional>

namespace llm {

struct DSparkConfig {
  i32 hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
  i32 block = 0;
  i32 markov_rank = 0;  // 0: no Markov head
  i32 mask_token = 0;
  bool sample_from_anchor = true;
  f32 eps = 1e-5f;
  f64 rope_base = 10000;
  std::vector<i32> target_layers;  // inputs of these layers
};

// `layout` decides when the file does not say. Errors name the key.
base::Result<DSparkConfig> dspark_config(const Gguf& gguf, std::optional<bool> layout);

class DSparkDrafter : public Drafter {
 public:
  struct Options {
    Precision precision = Precision::kFast;
    f32 confidence_min = 0;  // 0: keep every guess
  };
  // Makes `target` capture what the draft reads. `source` and `target` outlive the drafter.
  static base::Result<std::unique_ptr<DSparkDrafter>> load(const TensorSource& source,
                                                           const DSparkConfig& config,
                                                           Model* target, const Options& options);
  const char* name() const override { return "dspark"; }
  i32 longest() const override {
    return config_.sample_from_anchor ? config_.block : config_.block - 1;
  }
  void reserve(const Capacity& capacity, i32 slots) override;
  void propose(std::span<DraftTask> tasks, const i32* table, i32 pages_per_slot) override;
  void observe(const Step& step) override;
  // What the last propose() made of guess n of a task (not past its limit): the model's vocabulary
  // of logits, bias included, and the confidence. For comparing with others.
  const f32* logits(i32 task, i32 n) const {
    return logits_.data() + row_of(task, n) * head_stride_;
  }
  f32 confidence_of(i32 task, i32 n) const {
    return confidences_[static_cast<size_t>(row_of(task, n))];
  }

 private:
  struct Layer {
    std::vector<f32> attention_norm, ffn_norm, q_norm, k_norm;
    PackedMatrix q, k, v, output, gate, up, down;
  };
  DSparkDrafter(const DSparkConfig& config, Model* target, const Options& options);
  base::Status load_weights(const TensorSource& source);
  base::Status load_ids(const TensorSource& source, WeightReader* reader);
  struct Place {
    i32 page, position;
  };
  void project_pending();
  void project_rank(i32 rank);
  void block_rank(i32 rank);
  void start_rows(i32 rank);
  void block_layer(const Layer& layer, i32 index, i32 rank);
  void attend(i32 index, i32 rank);
  void chain(i32 rank);
  f32* known_logits(i64 row) {
    return (ids_.empty() ? logits_ : known_).data() + row * known_stride_;
  }
  void finish_key(const Layer& layer, i32 row, i32 angle_row);
  void store(i32 index, i32 page, i32 lane, i32 row, i32 rank);
  void copy_tail_page(i32 task);
  void multiply(const PackedMatrix& m, const ActRows& x, i32 rows, f32* out, i32 rank);
  i64 row_of(i32 task, i32 n) const {
    return static_cast<i64>(task) * config_.block + (config_.sample_from_anchor ? 0 : 1) + n;
  }
  f32 confidence(const f32* state, const f32* embedding) const;
  u8* page(AlignedBytes& bytes, i64 head_bytes, i32 index, i32 page, i32 head);

  const DSparkConfig config_;
  const Options options_;
  Model& target_;
  Crew& crew_;
  const Kernels& kernels_;
  const i32 element_;
  std::vector<Layer> layers_;
  PackedMatrix fc_, markov_out_, own_head_;
  std::vector<f32> context_norm_, final_norm_, confidence_weight_;
  f32 confidence_bias_ = 0;
  const TensorView* markov_in_ = nullptr;
  std::vector<i32> ids_;  // token of each row of the head; empty: all, in order
  Sampler sampler_;

  Capacity capacity_;
  i32 slots_ = 0;
  i32 rows_max_ = 0;
  i64 v_stride_ = 0, key_bytes_ = 0, value_bytes_ = 0, head_stride_ = 0, scores_stride_ = 0;
  i32 tail_pages_ = 0;  // scratch pages of one task
  AlignedBytes keys_, values_;
  AlignedArray<f32> x_, q_, k_, v_, gate_, up_, partial_, logits_, bias_;
  AlignedArray<f32> known_;  // logits of ids_ alone
  i64 known_stride_ = 0;
  std::vector<Place> pending_;  // where the first pending_count_ rows of features_ belong
  i32 pending_count_ = 0;
  ActRows features_, context_, normed_, attended_, hidden_, markov_rows_;
  std::vector<f32> confidences_;  // one a row
  std::vector<AlignedArray<f32>> scores_;
  std::vector<AlignedArray<u16>> halves_;
  RopeAngles angles_;
  std::vector<i32> pages_;  // [task][pages], the last ones scratch
  i32 pages_per_task_ = 0;
  std::span<DraftTask> tasks_;
  const i32* table_ = nullptr;
  i32 pages_per_slot_ = 0;
};

}  // namespace llm
