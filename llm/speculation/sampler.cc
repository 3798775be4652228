#include "llm/speculation/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace llm {
namespace {

// A well-mixed 64-bit function of three numbers (finaliser of splitmix64).
u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// In (0, 1], never 0.
f64 noise(u64 stream, i32 token) {
  return static_cast<f64>((mix(stream + static_cast<u64>(token) * 0xd1342543de82ef95u) >> 11) + 1) *
         0x1.0p-53;
}

constexpr f32 kNever = -std::numeric_limits<f32>::infinity();

}  // namespace

Sampler::Sampler(i32 vocab)
    : vocab_(vocab), kernels_(best_kernels()), values_(static_cast<size_t>(vocab)) {
  entries_.reserve(static_cast<size_t>(vocab));
}

void Sampler::change_logits(const SamplingParams& params, std::span<const i32> generated) {
  const auto vocab = static_cast<size_t>(vocab_);
  for (const auto& [token, bias] : params.logit_bias) {
    if (token >= 0 && token < vocab_) values_[static_cast<size_t>(token)] += bias;
  }
  // Presence and repetition count a token once; frequency counts it every time.
  for (size_t i = 0; i < generated.size(); ++i) {
    const auto token = static_cast<size_t>(generated[i]);
    if (token >= vocab) continue;
    values_[token] -= params.frequency_penalty;
    const bool first = std::find(generated.begin(), generated.begin() + static_cast<i64>(i),
                                 generated[i]) == generated.begin() + static_cast<i64>(i);
    if (!first) continue;
    values_[token] -= params.presence_penalty;
    f32& value = values_[token];
    if (params.repetition_penalty != 1.0f) {
      value = value > 0 ? value / params.repetition_penalty : value * params.repetition_penalty;
    }
  }
}

// Fills entries_ with the tokens that top-k, top-p and min-p leave, most probable first when any of
// them is on.
void Sampler::collect(const SamplingParams& params) {
  entries_.clear();
  const f32 top = *std::max_element(values_.begin(), values_.end());
  const bool cut = params.top_k > 0 || params.top_p < 1.0f || params.min_p > 0;
  const auto before = [](const Entry& a, const Entry& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
  };
  if (!cut) {
    for (i32 i = 0; i < vocab_; ++i) {
      if (values_[static_cast<size_t>(i)] > 0)
        entries_.push_back({values_[static_cast<size_t>(i)], i});
    }
    return;
  }
  const auto limit =
      params.top_k > 0 ? static_cast<size_t>(params.top_k) : static_cast<size_t>(vocab_);
  // Candidates above a falling threshold, until they hold enough of the mass or are enough.
  for (f32 floor = top / 1024;; floor /= 1024) {
    entries_.clear();
    const bool all = floor < 1e-30f;
    f64 mass = 0;
    for (i32 i = 0; i < vocab_; ++i) {
      const f32 p = values_[static_cast<size_t>(i)];
      if (p > (all ? 0 : floor)) {
        entries_.push_back({p, i});
        mass += p;
      }
    }
    if (all || mass >= static_cast<f64>(params.top_p) + 1e-6 || entries_.size() >= limit ||
        params.min_p * top > floor) {
      break;
    }
  }
  std::sort(entries_.begin(), entries_.end(), before);
  size_t keep = 0;
  f64 mass = 0;
  while (keep < entries_.size() && keep < limit) {
    if (keep > 0 && (mass >= params.top_p || entries_[keep].probability < params.min_p * top))
      break;
    mass += entries_[keep++].probability;
  }
  entries_.resize(keep);
}

i32 Sampler::sample(const f32* logits, const SamplingParams& params, i64 position,
                    std::span<const i32> generated, std::span<const u64> allowed) {
  if (params.temperature <= 0 && !params.changes_logits() && allowed.empty()) {
    return kernels_.largest(logits, vocab_);
  }
  std::copy(logits, logits + vocab_, values_.begin());
  if (params.changes_logits()) change_logits(params, generated);
  if (!allowed.empty()) {
    for (i32 i = 0; i < vocab_; ++i) {
      if ((allowed[static_cast<size_t>(i / 64)] >> (i % 64) & 1) == 0)
        values_[static_cast<size_t>(i)] = kNever;
    }
  }
  const i32 best = kernels_.largest(values_.data(), vocab_);
  if (params.temperature <= 0 || !std::isfinite(values_[static_cast<size_t>(best)])) return best;
  const f32 inverse = 1.0f / params.temperature;
  for (f32& value : values_) value *= inverse;
  kernels_.softmax(values_.data(), vocab_);
  collect(params);
  const u64 stream = mix(params.seed ^ mix(static_cast<u64>(position)));
  f64 best_rate = -1;
  i32 winner = entries_.empty() ? 0 : entries_[0].token;
  for (const Entry& entry : entries_) {
    const f64 u = noise(stream, entry.token);
    // -log(u) >= 1 - u, so most tokens are out without a logarithm.
    if (entry.probability <= best_rate * (1 - u)) continue;
    const f64 wait = -std::log(u);
    const f64 rate = wait == 0 ? std::numeric_limits<f64>::infinity() : entry.probability / wait;
    if (rate > best_rate) {
      best_rate = rate;
      winner = entry.token;
    }
  }
  return winner;
}

f32 Sampler::logprobs(const f32* logits, i32 token, i32 count, std::vector<Candidate>* best) const {
  const f32 top = *std::max_element(logits, logits + vocab_);
  f64 sum = 0;
  for (i32 i = 0; i < vocab_; ++i) sum += std::exp(static_cast<f64>(logits[i] - top));
  const f64 base = top + std::log(sum);
  std::vector<i32> order(static_cast<size_t>(vocab_));
  for (i32 i = 0; i < vocab_; ++i) order[static_cast<size_t>(i)] = i;
  const auto keep = static_cast<i64>(std::min(count, vocab_));
  std::partial_sort(order.begin(), order.begin() + keep, order.end(), [&](i32 a, i32 b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  best->clear();
  for (i64 i = 0; i < keep; ++i) {
    const i32 id = order[static_cast<size_t>(i)];
    best->push_back({id, static_cast<f32>(logits[id] - base)});
  }
  return static_cast<f32>(logits[token] - base);
}

}  // namespace llm
