// Shape of a glm_moe_dsa model (GLM-5.2 and kin) from GGUF metadata, architecture `glm-dsa`.
#pragma once

#include "llm/formats/gguf.h"

#include <vector>

namespace llm {

// Whose small constants to reproduce: Hugging Face builds the two low-rank norms with 1e-6 and the
// indexer's LayerNorm with 1e-6; llama.cpp has one epsilon and none for the LayerNorm.
enum class EpsilonProfile { kGguf, kHf };

struct GlmConfig {
  i32 vocab = 0;
  i32 hidden = 0;
  i32 layers = 0;  // without the MTP layer
  i32 mtp_layers = 0;
  i32 context = 0;
  i32 heads = 0;
  i32 q_rank = 0;
  i32 latent = 0;  // kv_lora_rank
  i32 nope = 0;    // of a head's query, the part without position
  i32 rope = 0;    // and the part with it; last
  i32 value = 0;
  i32 dense_layers = 0;
  i32 ffn = 0;
  i32 expert_ffn = 0;
  i32 experts = 0;
  i32 experts_used = 0;
  i32 shared_experts = 0;
  f32 expert_scale = 1;
  bool normalise_experts = true;
  i32 index_heads = 0;
  i32 index_dim = 0;
  i32 index_top_k = 0;
  std::vector<bool> full_indexer;  // per layer; a shared layer uses the last full one's choice
  f64 rope_base = 10000;
  f32 eps = 1e-5f;
  f32 low_rank_eps = 1e-5f;
  f32 index_norm_eps = 0;

  i32 key() const { return nope + rope; }
  i32 cached() const { return latent + rope; }
};

// Errors: kCorruption names what is missing or does not fit.
base::Result<GlmConfig> glm_config(const Gguf& gguf, EpsilonProfile profile);

}  // namespace llm
