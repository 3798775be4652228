// How fast the pairs of a head turn, also for models that were stretched to longer texts than they
// were first trained on.
#pragma once

#include "llm/formats/gguf.h"

#include <vector>

namespace llm {

struct RopeScaling {
  enum class Kind { kNone, kLinear, kYarn };
  Kind kind = Kind::kNone;
  f64 factor = 1;             // how many times longer
  f64 original_context = 0;   // tokens, YaRN alone
  f64 beta_fast = 32;         // YaRN: pairs with more turns than this in the original context stay
  f64 beta_slow = 1;          // YaRN: pairs with fewer turns than this slow down by the factor
  f64 magnitude = 1;          // of cos and sin
  std::vector<f32> divisors;  // of each pair's speed, as Llama 3 has them; empty: 1
};

// From the file's "ARCH.rope.scaling." pairs, `divisors` excepted. Errors name the value.
base::Result<RopeScaling> rope_scaling(const Gguf& gguf, const std::string& arch, f64 context);

// Radians per position of each of the dim / 2 pairs.
std::vector<f64> rope_frequencies(i32 dim, f64 base, const RopeScaling& scaling = {});

}  // namespace llm
