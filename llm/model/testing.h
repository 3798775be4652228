// Random models for tests: small files in memory and a driver that collects logits.
#pragma once

#include "base/random.h"
#include "llm/formats/gguf_writer.h"
#include "llm/formats/quant.h"
#include "llm/model/model.h"

#include <cmath>
#include <string>
#include <vector>

namespace llm {

// Appends random tensors to a file; owns their bytes until the file is written.
class RandomTensors {
 public:
  RandomTensors(GgufWriter* writer, u64 seed) : writer_(*writer), rng_(seed) {}
  void add(const std::string& name, DType type, std::vector<u64> shape, f32 scale, f32 center = 0) {
    TensorView view;
    view.type = type;
    view.shape = shape;
    std::vector<f32> values(view.values());
    for (f32& v : values) v = center + static_cast<f32>(rng_.unit() * 2 - 1) * scale;
    auto& bytes = bytes_.emplace_back(view.rows() * view.row_bytes());
    quantize(type, values, bytes.data());
    writer_.add_tensor(name, type, std::move(shape), bytes);
  }

 private:
  GgufWriter& writer_;
  base::Rng rng_;
  std::vector<std::vector<u8>> bytes_;
};

struct TinyLlama {
  u32 vocab = 96, hidden = 64, layers = 2, heads = 4, kv_heads = 2, head_dim = 32, ffn = 96;
  std::string drop;  // a tensor to leave out
};

inline std::string random_llama_file(const TinyLlama& s, DType type, u64 seed) {
  GgufWriter writer;
  writer.set_text("general.architecture", "llama");
  writer.set_u32("llama.context_length", 1024);
  writer.set_u32("llama.embedding_length", s.hidden);
  writer.set_u32("llama.block_count", s.layers);
  writer.set_u32("llama.feed_forward_length", s.ffn);
  writer.set_u32("llama.attention.head_count", s.heads);
  writer.set_u32("llama.attention.head_count_kv", s.kv_heads);
  writer.set_u32("llama.attention.key_length", s.head_dim);
  writer.set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  RandomTensors tensors(&writer, seed);
  auto add = [&](const std::string& name, DType t, std::vector<u64> shape, f32 center = 0) {
    const f32 scale = shape.size() == 1 ? 0.3f : 2.0f / std::sqrt(static_cast<f32>(shape.back()));
    if (name != s.drop) tensors.add(name, t, std::move(shape), scale, center);
  };
  add("token_embd.weight", type, {s.vocab, s.hidden});
  add("output_norm.weight", DType::kF32, {s.hidden}, 1);
  for (u32 i = 0; i < s.layers; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    add(at + "attn_norm.weight", DType::kF32, {s.hidden}, 1);
    add(at + "ffn_norm.weight", DType::kF32, {s.hidden}, 1);
    add(at + "attn_q.weight", type, {s.heads * s.head_dim, s.hidden});
    add(at + "attn_k.weight", type, {s.kv_heads * s.head_dim, s.hidden});
    add(at + "attn_v.weight", type, {s.kv_heads * s.head_dim, s.hidden});
    add(at + "attn_output.weight", type, {s.hidden, s.heads * s.head_dim});
    add(at + "ffn_gate.weight", type, {s.ffn, s.hidden});
    add(at + "ffn_up.weight", type, {s.ffn, s.hidden});
    add(at + "ffn_down.weight", type, {s.hidden, s.ffn});
  }
  return writer.to_string();
}

// Feeds the tokens to slot 0 in chunks; the logits of all of them, one after the other.
inline std::vector<f32> logits_of(Model* model, const std::vector<i32>& tokens, i32 chunk) {
  std::vector<i32> table;
  for (i32 p = 0; p * kPageTokens < static_cast<i32>(tokens.size()); ++p) table.push_back(p);
  std::vector<f32> all;
  const i32 count = static_cast<i32>(tokens.size());
  for (i32 from = 0; from < count; from += chunk) {
    std::vector<BatchRow> rows;
    for (i32 t = from; t < std::min(from + chunk, count); ++t) {
      rows.push_back({tokens[static_cast<size_t>(t)], t, 0, true});
    }
    model->forward(
        {rows.data(), static_cast<i32>(rows.size()), table.data(), static_cast<i32>(table.size())});
    for (size_t j = 0; j < rows.size(); ++j) {
      const f32* logits = model->logits(static_cast<i32>(j));
      all.insert(all.end(), logits, logits + model->info().vocab);
    }
  }
  return all;
}

}  // namespace llm
