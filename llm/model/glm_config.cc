#include "llm/model/glm_config.h"

#include <algorithm>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

class Reader {
 public:
  explicit Reader(const Gguf& gguf) : gguf_(gguf) {}
  i32 need(const char* key, i64 least = 1) {
    const auto value = gguf_.integer("glm-dsa." + std::string(key));
    if (!value || *value < least || *value > (1 << 24)) {
      if (missing_.empty()) missing_ = key;
      return static_cast<i32>(least);
    }
    return static_cast<i32>(*value);
  }
  i32 want(const char* key, i64 other) {
    const i64 value = gguf_.integer("glm-dsa." + std::string(key)).value_or(other);
    return static_cast<i32>(std::clamp<i64>(value, 0, 1 << 24));
  }
  f64 number(const char* key, f64 other) {
    return gguf_.number("glm-dsa." + std::string(key)).value_or(other);
  }
  const std::string& missing() const { return missing_; }

 private:
  const Gguf& gguf_;
  std::string missing_;
};

// Absent: the published pattern for models with the full context, else an indexer everywhere.
std::vector<bool> indexer_pattern(const Gguf& gguf, const GlmConfig& c) {
  std::vector<bool> full(static_cast<size_t>(c.layers), true);
  const auto* types = gguf.integers("glm-dsa.attention.indexer.types");
  for (i32 i = 0; i < c.layers; ++i) {
    const auto at = static_cast<size_t>(i);
    if (types != nullptr && at < types->size()) {
      full[at] = (*types)[at] != 0;
    } else if (types == nullptr && c.context >= 1 << 20) {
      constexpr i32 kOffset = 3;
      constexpr i32 kEvery = 4;
      full[at] = std::max(i - kOffset + 1, 0) % kEvery == 0;
    }
  }
  return full;
}

}  // namespace

Result<GlmConfig> glm_config(const Gguf& gguf, EpsilonProfile profile) {
  GlmConfig c;
  Reader r(gguf);
  c.hidden = r.need("embedding_length");
  c.mtp_layers = r.want("nextn_predict_layers", 0);
  c.layers = r.need("block_count") - c.mtp_layers;
  c.context = r.need("context_length");
  c.heads = r.need("attention.head_count");
  c.q_rank = r.need("attention.q_lora_rank");
  c.latent = r.need("attention.kv_lora_rank");
  c.rope = r.need("rope.dimension_count");
  c.nope = r.need("attention.key_length_mla") - c.rope;
  c.value = r.need("attention.value_length_mla");
  c.ffn = r.need("feed_forward_length");
  c.dense_layers = r.want("leading_dense_block_count", 0);
  c.expert_ffn = r.need("expert_feed_forward_length");
  c.experts = r.need("expert_count");
  c.experts_used = r.need("expert_used_count");
  c.shared_experts = r.want("expert_shared_count", 0);
  c.expert_scale = static_cast<f32>(r.number("expert_weights_scale", 1));
  c.normalise_experts = gguf.boolean("glm-dsa.expert_weights_norm").value_or(true);
  c.index_heads = r.need("attention.indexer.head_count");
  c.index_dim = r.need("attention.indexer.key_length");
  c.index_top_k = r.need("attention.indexer.top_k");
  c.rope_base = r.number("rope.freq_base", 10000);
  c.eps = static_cast<f32>(r.number("attention.layer_norm_rms_epsilon", 1e-5));
  c.low_rank_eps = profile == EpsilonProfile::kHf ? 1e-6f : c.eps;
  c.index_norm_eps = profile == EpsilonProfile::kHf ? 1e-6f : 0;
  if (!r.missing().empty()) {
    return Error(ErrorCode::kCorruption, "the file has no usable value for glm-dsa." + r.missing());
  }
  const TensorView* embedding = gguf.find("token_embd.weight");
  if (embedding == nullptr)
    return Error(ErrorCode::kCorruption, "the file has no token_embd.weight");
  c.vocab = static_cast<i32>(embedding->rows());
  if (c.layers < 1 || c.nope < 1 || c.rope % 2 != 0 || c.rope > c.index_dim ||
      c.index_dim % 8 != 0 || c.experts_used > c.experts) {
    return Error(ErrorCode::kCorruption, "the sizes in the file's metadata do not fit together");
  }
  c.full_indexer = indexer_pattern(gguf, c);
  if (!c.full_indexer[0]) {
    return Error(ErrorCode::kCorruption, "the first layer has no indexer of its own to share");
  }
  return c;
}

}  // namespace llm
