#include "llm/model/llama_config.h"

#include <cmath>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr i64 kLargest = 1 << 24;  // beyond any model; keeps products in range

Result<i32> positive(const Gguf& gguf, const std::string& key) {
  const auto value = gguf.integer(key);
  if (!value || *value <= 0 || *value > kLargest) {
    return Error(ErrorCode::kCorruption, "the file has no usable value for " + key);
  }
  return static_cast<i32>(*value);
}

}  // namespace

Result<LlamaConfig> llama_config(const Gguf& gguf) {
  const std::string arch(gguf.text("general.architecture").value_or(""));
  LlamaConfig c;
  c.rope_interleaved = arch == "llama";
  c.hidden = TRY(positive(gguf, arch + ".embedding_length"));
  c.layers = TRY(positive(gguf, arch + ".block_count"));
  c.heads = TRY(positive(gguf, arch + ".attention.head_count"));
  c.ffn = TRY(positive(gguf, arch + ".feed_forward_length"));
  c.context = TRY(positive(gguf, arch + ".context_length"));
  c.kv_heads = static_cast<i32>(gguf.integer(arch + ".attention.head_count_kv").value_or(c.heads));
  c.head_dim =
      static_cast<i32>(gguf.integer(arch + ".attention.key_length").value_or(c.hidden / c.heads));
  c.rope_dim = static_cast<i32>(gguf.integer(arch + ".rope.dimension_count").value_or(c.head_dim));
  c.eps = static_cast<f32>(gguf.number(arch + ".attention.layer_norm_rms_epsilon").value_or(1e-5));
  c.rope_base = gguf.number(arch + ".rope.freq_base").value_or(10000.0);
  const TensorView* embedding = gguf.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return Error(ErrorCode::kCorruption, "the file has no token_embd.weight");
  }
  c.vocab = static_cast<i32>(embedding->rows());
  if (c.kv_heads <= 0 || c.heads % c.kv_heads != 0 || c.head_dim <= 0 || c.head_dim > 4096 ||
      c.rope_dim < 0 || c.rope_dim > c.head_dim || c.rope_dim % 2 != 0 || !(c.eps >= 0) ||
      !(c.rope_base > 1)) {
    return Error(ErrorCode::kCorruption, "the attention sizes of the file do not fit together");
  }
  c.rope_scaling = TRY(rope_scaling(gguf, arch, c.context));
  return c;
}

}  // namespace llm
