// Chooses the next token from logits.
//
// The choice is a race: token i finishes at E_i / p_i, where E_i is exponential noise that depends
// only on (seed, position, i); the first one wins. That samples from p exactly, and it makes the
// outcome a function of logits, seed and position alone: the same whether the row was computed in a
// plain step, as part of a verified draft, or in any batch. A draft that races with the same noise
// agrees with the target as often as their distributions allow.
// Single-threaded; allocates only in its constructor.
#pragma once

#include "base/types.h"
#include "llm/kernels/kernels.h"

#include <span>
#include <vector>

namespace llm {

struct SamplingParams {
  f32 temperature = 1.0f;  // 0: the largest logit
  f32 top_p = 1.0f;
  f32 min_p = 0.0f;
  i32 top_k = 0;  // 0: all
  f32 presence_penalty = 0.0f;
  f32 frequency_penalty = 0.0f;
  f32 repetition_penalty = 1.0f;
  u64 seed = 0;
  std::vector<std::pair<i32, f32>> logit_bias;

  bool changes_logits() const {
    return presence_penalty != 0 || frequency_penalty != 0 || repetition_penalty != 1.0f ||
           !logit_bias.empty();
  }
};

class Sampler {
 public:
  explicit Sampler(i32 vocab);

  // `generated`: what penalties look at. `allowed`: a bit per token, empty for all.
  i32 sample(const f32* logits, const SamplingParams& params, i64 position,
             std::span<const i32> generated, std::span<const u64> allowed);

  struct Candidate {
    i32 token;
    f32 logprob;
  };
  // The `count` best of softmax(logits), best first, and that of `token`. For reports only.
  f32 logprobs(const f32* logits, i32 token, i32 count, std::vector<Candidate>* best) const;

 private:
  void change_logits(const SamplingParams& params, std::span<const i32> generated);
  void collect(const SamplingParams& params);

  struct Entry {
    f32 probability;
    i32 token;
  };
  i32 vocab_;
  const Kernels& kernels_;
  std::vector<f32> values_;
  std::vector<Entry> entries_;
};

}  // namespace llm
