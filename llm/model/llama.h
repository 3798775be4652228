// Llama-style decoders: RMSNorm, grouped-query attention with rotary positions, SwiGLU. Also qwen2
// (biases on q, k, v) and qwen3 (norms on the heads of q and k).
//
// A layer is five phases, each ended by one barrier; the two with a sum end with a meeting of all
// processes (decoder.h):
//   norm, quantise, q k v, rotate, store in the cache | attend, quantise | output |
//   residual, norm, quantise, gate, up, silu, quantise | down
// Split over processes, each has some heads, the key-value heads that these read, and some columns
// of the feed-forward.
#pragma once

#include "llm/model/decoder.h"
#include "llm/model/llama_config.h"

namespace llm {

class LlamaModel : public Decoder {
 public:
  // `source` must outlive the model: the embedding table is read from it.
  static base::Result<std::unique_ptr<LlamaModel>> load(const TensorSource& source,
                                                        const LlamaConfig& config,
                                                        Precision precision, Crew* crew);

 private:
  struct Layer {
    std::vector<f32> attention_norm, ffn_norm, q_norm, k_norm, q_bias, k_bias, v_bias;
    PackedMatrix q, k, v, output, gate, up, down;
  };
  LlamaModel(const LlamaConfig& config, Precision precision, Crew* crew);
  base::Status load_weights(const TensorSource& source);
  void divide_work(const TensorSource& source);

  void reserve_layers() override;
  void run_layer(i32 index, i32 thread) override;
  void attention(const Layer& layer, i32 index, i32 thread);
  void project_heads(const Layer& layer, i32 index, const ActRows& x, i32 thread);
  void project_apart(const Layer& layer, i32 index, const ActRows& x, i32 thread);
  void finish_q(const Layer& layer, i32 head, i32 row);
  void finish_k(const Layer& layer, i32 index, i32 head, i32 row, i32 thread);
  void finish_v(const Layer& layer, i32 index, i32 head, i32 row, i32 thread);
  void attend_tiles(i32 index, i32 thread);
  void gate_and_up(const Layer& layer, const ActRows& x, i32 thread);
  u8* key_page(i32 layer, i32 page, i32 head) const;
  u8* value_page(i32 layer, i32 page, i32 head) const;
  i32 heads() const { return heads_.end - heads_.begin; }
  i32 kv_heads() const { return kv_heads_.end - kv_heads_.begin; }
  i32 ffn() const { return ffn_.end - ffn_.begin; }

  const LlamaConfig config_;
  // Of the whole model; then this rank's part. Heads below are numbered within it.
  Leaves head_columns_, ffn_columns_;
  Share heads_{}, kv_heads_{}, ffn_{};
  std::vector<Layer> layers_;

  i64 v_stride_ = 0;        // values of one token in a page
  i64 key_head_bytes_ = 0;  // of one head in a page
  i64 value_head_bytes_ = 0;
  AlignedBytes keys_, values_;  // [layer][page][kv head]
  AlignedArray<f32> q_, k_, v_, gate_, up_;
  i64 scores_stride_ = 0;
  ActRows attended_, hidden_;
  std::vector<AlignedArray<f32>> scores_;  // per thread
  std::vector<AlignedArray<u16>> halves_;  // per thread
};

}  // namespace llm
