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
  std::string drop;            // a tensor to leave out
  std::string rope_scaling;    // linear or yarn, by 4
  bool rope_divisors = false;  // rope_freqs.weight, between 1 and 4
};

inline std::string random_llama_file(const TinyLlama& s, DType type, u64 seed) {
  GgufWriter writer;
  writer.set_text("general.architecture", "llama");
  writer.set_text("tokenizer.ggml.model", "none");
  writer.set_u32("llama.vocab_size", s.vocab);
  writer.set_u32("llama.rope.dimension_count", s.head_dim);
  writer.set_u32("llama.context_length", 1024);
  writer.set_u32("llama.embedding_length", s.hidden);
  writer.set_u32("llama.block_count", s.layers);
  writer.set_u32("llama.feed_forward_length", s.ffn);
  writer.set_u32("llama.attention.head_count", s.heads);
  writer.set_u32("llama.attention.head_count_kv", s.kv_heads);
  writer.set_u32("llama.attention.key_length", s.head_dim);
  writer.set_u32("llama.attention.value_length", s.head_dim);
  writer.set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  if (!s.rope_scaling.empty()) {
    writer.set_text("llama.rope.scaling.type", s.rope_scaling);
    writer.set_f32("llama.rope.scaling.factor", 4);
    writer.set_u32("llama.rope.scaling.original_context_length", 256);
  }
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
  if (s.rope_divisors) tensors.add("rope_freqs.weight", DType::kF32, {s.head_dim / 2}, 1.5f, 2.5f);
  return writer.to_string();
}

// Every size differs from every other, so that a transposed weight cannot go unnoticed.
struct TinyGlm {
  u32 vocab = 320, hidden = 64, layers = 6, dense_layers = 1, heads = 4, q_rank = 48, latent = 32;
  u32 nope = 24, rope = 32, value = 20, experts = 8, experts_used = 2, expert_ffn = 32, ffn = 96;
  u32 index_heads = 16, index_dim = 64, index_top_k = 8;
  std::vector<bool> full_indexer = {true, true, false, false, true, false};
  bool mtp = false;
};

inline std::string random_glm_file(const TinyGlm& s, DType type, u64 seed) {
  GgufWriter writer;
  const auto set = [&](const char* key, u32 value) {
    writer.set_u32("glm-dsa." + std::string(key), value);
  };
  writer.set_text("general.architecture", "glm-dsa");
  writer.set_text("tokenizer.ggml.model", "none");
  set("vocab_size", s.vocab);
  set("context_length", 512);
  set("embedding_length", s.hidden);
  set("block_count", s.layers + (s.mtp ? 1 : 0));
  set("nextn_predict_layers", s.mtp ? 1 : 0);
  set("feed_forward_length", s.ffn);
  set("expert_feed_forward_length", s.expert_ffn);
  set("expert_count", s.experts);
  set("expert_used_count", s.experts_used);
  set("expert_shared_count", 1);
  set("expert_gating_func", 2);
  set("leading_dense_block_count", s.dense_layers);
  set("attention.head_count", s.heads);
  set("attention.head_count_kv", 1);
  set("attention.key_length", s.latent + s.rope);
  set("attention.value_length", s.latent);
  set("attention.key_length_mla", s.nope + s.rope);
  set("attention.value_length_mla", s.value);
  set("attention.q_lora_rank", s.q_rank);
  set("attention.kv_lora_rank", s.latent);
  set("rope.dimension_count", s.rope);
  set("attention.indexer.head_count", s.index_heads);
  set("attention.indexer.key_length", s.index_dim);
  set("attention.indexer.top_k", s.index_top_k);
  writer.set_bools("glm-dsa.attention.indexer.types", s.full_indexer);
  writer.set_bool("glm-dsa.expert_weights_norm", true);
  writer.set_f32("glm-dsa.expert_weights_scale", 2.5f);
  writer.set_f32("glm-dsa.rope.freq_base", 10000.0f);
  writer.set_f32("glm-dsa.attention.layer_norm_rms_epsilon", 1e-5f);
  RandomTensors tensors(&writer, seed);
  auto matrix = [&](const std::string& name, std::vector<u64> shape) {
    const f32 scale = 1.7f / std::sqrt(static_cast<f32>(shape.back()));
    const DType fits = shape.back() % info_of(type).block_values == 0 ? type : DType::kF32;
    tensors.add(name, fits, std::move(shape), scale);
  };
  auto norm = [&](const std::string& name, u64 width) {
    tensors.add(name, DType::kF32, {width}, 0.3f, 1);
  };
  matrix("token_embd.weight", {s.vocab, s.hidden});
  matrix("output.weight", {s.vocab, s.hidden});
  norm("output_norm.weight", s.hidden);
  for (u32 i = 0; i < s.layers + (s.mtp ? 1 : 0); ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    if (i == s.layers) {
      norm(at + "nextn.enorm.weight", s.hidden);
      norm(at + "nextn.hnorm.weight", s.hidden);
      norm(at + "nextn.shared_head_norm.weight", s.hidden);
      matrix(at + "nextn.eh_proj.weight", {s.hidden, 2 * s.hidden});
    }
    norm(at + "attn_norm.weight", s.hidden);
    norm(at + "ffn_norm.weight", s.hidden);
    matrix(at + "attn_q_a.weight", {s.q_rank, s.hidden});
    norm(at + "attn_q_a_norm.weight", s.q_rank);
    matrix(at + "attn_q_b.weight", {s.heads * (s.nope + s.rope), s.q_rank});
    matrix(at + "attn_kv_a_mqa.weight", {s.latent + s.rope, s.hidden});
    norm(at + "attn_kv_a_norm.weight", s.latent);
    matrix(at + "attn_k_b.weight", {s.heads, s.latent, s.nope});
    matrix(at + "attn_v_b.weight", {s.heads, s.value, s.latent});
    matrix(at + "attn_output.weight", {s.hidden, s.heads * s.value});
    if (i == s.layers || s.full_indexer[i]) {
      matrix(at + "indexer.attn_q_b.weight", {s.index_heads * s.index_dim, s.q_rank});
      matrix(at + "indexer.attn_k.weight", {s.index_dim, s.hidden});
      tensors.add(at + "indexer.proj.weight", DType::kF32, {s.index_heads, s.hidden}, 0.3f);
      norm(at + "indexer.k_norm.weight", s.index_dim);
      tensors.add(at + "indexer.k_norm.bias", DType::kF32, {s.index_dim}, 0.2f);
    }
    if (i < s.dense_layers) {
      matrix(at + "ffn_gate.weight", {s.ffn, s.hidden});
      matrix(at + "ffn_up.weight", {s.ffn, s.hidden});
      matrix(at + "ffn_down.weight", {s.hidden, s.ffn});
      continue;
    }
    tensors.add(at + "ffn_gate_inp.weight", DType::kF32, {s.experts, s.hidden}, 0.3f);
    tensors.add(at + "exp_probs_b.bias", DType::kF32, {s.experts}, 0.2f);
    matrix(at + "ffn_gate_exps.weight", {s.experts, s.expert_ffn, s.hidden});
    matrix(at + "ffn_up_exps.weight", {s.experts, s.expert_ffn, s.hidden});
    matrix(at + "ffn_down_exps.weight", {s.experts, s.hidden, s.expert_ffn});
    matrix(at + "ffn_gate_shexp.weight", {s.expert_ffn, s.hidden});
    matrix(at + "ffn_up_shexp.weight", {s.expert_ffn, s.hidden});
    matrix(at + "ffn_down_shexp.weight", {s.hidden, s.expert_ffn});
  }
  return writer.to_string();
}

struct TinyDraft {
  u32 hidden = 64, layers = 2, heads = 4, kv_heads = 2, head_dim = 16, ffn = 96, block = 6,
      rank = 32, vocab = 96;
  std::vector<i32> target_layers = {0, 1};
  bool sample_from_anchor = true;
  const TensorView* embedding = nullptr;  // the target's, for programs that do not share it
  std::vector<i64> ids;                   // a vocabulary of its own, with its own head
};

inline std::string random_draft_file(const TinyDraft& s, u64 seed) {
  GgufWriter writer;
  const auto set = [&](const char* key, u32 value) {
    writer.set_u32("dflash." + std::string(key), value);
  };
  writer.set_text("general.architecture", "dflash");
  writer.set_text("tokenizer.ggml.model", "none");
  set("vocab_size", s.vocab);
  set("context_length", 1024);
  set("embedding_length", s.hidden);
  set("block_count", s.layers);
  set("attention.head_count", s.heads);
  set("attention.head_count_kv", s.kv_heads);
  set("attention.key_length", s.head_dim);
  set("attention.value_length", s.head_dim);
  set("feed_forward_length", s.ffn);
  set("block_size", s.block);
  writer.set_f32("dflash.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.set_i32s("dflash.target_layers", s.target_layers);
  writer.set_bool("dflash.sample_from_anchor", s.sample_from_anchor);
  writer.set_u32("tokenizer.ggml.mask_token_id", 94);
  RandomTensors tensors(&writer, seed);
  auto matrix = [&](const std::string& name, u64 rows, u64 cols) {
    tensors.add(name, DType::kF32, {rows, cols}, 1.7f / std::sqrt(static_cast<f32>(cols)));
  };
  auto norm = [&](const std::string& name, u64 width) {
    tensors.add(name, DType::kF32, {width}, 0.3f, 1);
  };
  if (s.embedding != nullptr) {
    writer.add_tensor("token_embd.weight", s.embedding->type, s.embedding->shape,
                      s.embedding->bytes);
  }
  matrix("fc.weight", s.hidden, s.hidden * s.target_layers.size());
  norm("enc.output_norm.weight", s.hidden);
  norm("output_norm.weight", s.hidden);
  for (u32 i = 0; i < s.layers; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    norm(at + "attn_norm.weight", s.hidden);
    norm(at + "ffn_norm.weight", s.hidden);
    norm(at + "attn_q_norm.weight", s.head_dim);
    norm(at + "attn_k_norm.weight", s.head_dim);
    matrix(at + "attn_q.weight", s.heads * s.head_dim, s.hidden);
    matrix(at + "attn_k.weight", s.kv_heads * s.head_dim, s.hidden);
    matrix(at + "attn_v.weight", s.kv_heads * s.head_dim, s.hidden);
    matrix(at + "attn_output.weight", s.hidden, s.heads * s.head_dim);
    matrix(at + "ffn_gate.weight", s.ffn, s.hidden);
    matrix(at + "ffn_up.weight", s.ffn, s.hidden);
    matrix(at + "ffn_down.weight", s.hidden, s.ffn);
  }
  const u64 known = s.ids.empty() ? s.vocab : s.ids.size();
  matrix("markov_w1.weight", s.vocab, s.rank);
  matrix("markov_w2.weight", known, s.rank);
  const base::ByteView ids(reinterpret_cast<const u8*>(s.ids.data()), s.ids.size() * sizeof(i64));
  if (!s.ids.empty()) {
    matrix("output.weight", known, s.hidden);
    writer.add_tensor("d2t", DType::kI64, {known}, ids);
  }
  tensors.add("conf_proj.weight", DType::kF32, {s.hidden + s.rank}, 0.1f);
  tensors.add("conf_proj.bias", DType::kF32, {1}, 0.1f);
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

// The logits of all tokens when every chunk of `right` tokens is followed by guesses that turn out
// wrong and are overwritten by the next chunk, as speculation does.
inline std::vector<f32> logits_with_rejections(Model* model, const std::vector<i32>& tokens,
                                               i32 right, i32 wrong) {
  std::vector<i32> table;
  const i32 count = static_cast<i32>(tokens.size());
  for (i32 p = 0; p * kPageTokens < count + wrong; ++p) table.push_back(p);
  const i32 vocab = model->info().vocab;
  std::vector<f32> all;
  for (i32 from = 0; from < count; from += right) {
    const i32 kept = std::min(right, count - from);
    std::vector<BatchRow> rows;
    for (i32 t = from; t < from + kept + wrong; ++t) {
      const i32 token = t < from + kept ? tokens[static_cast<size_t>(t)] : (t * 31 + 7) % vocab;
      rows.push_back({token, t, 0, true});
    }
    model->forward(
        {rows.data(), static_cast<i32>(rows.size()), table.data(), static_cast<i32>(table.size())});
    for (i32 j = 0; j < kept; ++j) {
      all.insert(all.end(), model->logits(j), model->logits(j) + vocab);
    }
  }
  return all;
}

}  // namespace llm
