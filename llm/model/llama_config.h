// Shape of a llama-style decoder, from GGUF metadata. Errors name the key that is missing or wrong.
#pragma once

#include "llm/formats/gguf.h"
#include "llm/model/rope_scaling.h"

namespace llm {

struct LlamaConfig {
  i32 vocab = 0;
  i32 hidden = 0;
  i32 layers = 0;
  i32 heads = 0;
  i32 kv_heads = 0;
  i32 head_dim = 0;
  i32 rope_dim = 0;  // the first rope_dim values of a head turn
  i32 ffn = 0;
  i32 context = 0;
  f32 eps = 1e-5f;
  f64 rope_base = 10000;
  RopeScaling rope_scaling;  // divisors are a tensor, read with the weights
  // Neighbours (2i, 2i+1) turn together; otherwise i and i + rope_dim / 2.
  bool rope_interleaved = true;
};

// Architectures llama, qwen2 and qwen3.
base::Result<LlamaConfig> llama_config(const Gguf& gguf);

}  // namespace llm
