#include "llm/model/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Result;

Result<RopeScaling> rope_scaling(const Gguf& gguf, const std::string& arch, f64 context) {
  const std::string at = arch + ".rope.scaling.";
  const std::string type(gguf.text(at + "type").value_or("none"));
  RopeScaling s;
  if (type == "none") return s;
  if (type != "linear" && type != "yarn") {
    return Error(ErrorCode::kUnsupported, "rope scaling '" + type + "' is not supported");
  }
  s.kind = type == "linear" ? RopeScaling::Kind::kLinear : RopeScaling::Kind::kYarn;
  s.factor = gguf.number(at + "factor").value_or(1);
  if (!(s.factor >= 1 && s.factor <= 1e6)) {
    return Error(ErrorCode::kCorruption, "the file has no usable value for " + at + "factor");
  }
  if (s.kind == RopeScaling::Kind::kLinear) return s;
  s.original_context = static_cast<f64>(gguf.integer(at + "original_context_length").value_or(0));
  if (s.original_context <= 0) s.original_context = context;
  s.beta_fast = gguf.number(at + "yarn_beta_fast").value_or(32);
  s.beta_slow = gguf.number(at + "yarn_beta_slow").value_or(1);
  s.magnitude = gguf.number(at + "attn_factor").value_or(1) * (1 + 0.1 * std::log(s.factor));
  if (!(s.beta_slow > 0 && s.beta_fast > s.beta_slow && s.magnitude > 0 && s.magnitude < 100)) {
    return Error(ErrorCode::kCorruption, "the YaRN values of the file do not fit together");
  }
  return s;
}

namespace {

// The pair that makes `turns` full turns within the original context.
f64 pair_of_turns(f64 turns, i32 dim, f64 base, f64 context) {
  return dim * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

}  // namespace

std::vector<f64> rope_frequencies(i32 dim, f64 base, const RopeScaling& s) {
  std::vector<f64> speeds;
  f64 first = 0;
  f64 last = 0;
  if (s.kind == RopeScaling::Kind::kYarn) {
    first = std::max(std::floor(pair_of_turns(s.beta_fast, dim, base, s.original_context)), 0.0);
    last =
        std::min(std::ceil(pair_of_turns(s.beta_slow, dim, base, s.original_context)), dim - 1.0);
  }
  for (i32 i = 0; i < dim / 2; ++i) {
    f64 speed = std::pow(base, -2.0 * i / dim);
    if (!s.divisors.empty()) speed /= static_cast<f64>(s.divisors[static_cast<size_t>(i)]);
    // Which part of the pair slows down; between the bounds it fades in.
    f64 slowed = s.kind == RopeScaling::Kind::kNone ? 0 : 1;
    if (s.kind == RopeScaling::Kind::kYarn) {
      slowed = std::clamp((i - first) / std::max(last - first, 0.001), 0.0, 1.0);
    }
    speeds.push_back(speed * (1 - slowed) + speed / s.factor * slowed);
  }
  return speeds;
}

}  // namespace llm
