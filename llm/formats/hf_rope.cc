// How config.json stretches rotations for texts longer than a model was first trained on, as GGUF
// says it: pairs for linear and YaRN, a table of divisors for Llama 3's way.
#include "llm/formats/hf_folder.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {

// Newer files say all about rotation in rope_parameters, older ones put the base beside it.
const Json& scaling_of(const Json& config) {
  return config["rope_scaling"].is_object() ? config["rope_scaling"] : config["rope_parameters"];
}

std::string type_of(const Json& scaling) {
  return scaling.has("rope_type") ? scaling["rope_type"].as_string()
                                  : scaling["type"].as_string_or("default");
}

f64 rope_base(const Json& config) {
  const Json& newer = config["rope_parameters"]["rope_theta"];
  return newer.is_number() ? newer.as_double() : config["rope_theta"].as_double(10000);
}

f64 original_context(const Json& config, const Json& scaling) {
  const char* key = "original_max_position_embeddings";
  if (scaling[key].is_number()) return scaling[key].as_double();
  return config[key].as_double(config["max_position_embeddings"].as_double(0));
}

Error unusable(const char* what) {
  return Error(ErrorCode::kCorruption,
               "config.json has no usable value for " + std::string(what) + " of its rope scaling");
}

f64 magnitude(f64 factor, f64 weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

// What cos and sin are multiplied by.
f64 yarn_magnitude(const Json& scaling, f64 factor) {
  if (scaling["attention_factor"].is_number()) return scaling["attention_factor"].as_double();
  const f64 here = scaling["mscale"].as_double(0);
  const f64 all = scaling["mscale_all_dim"].as_double(0);
  if (here != 0 && all != 0) return magnitude(factor, here) / magnitude(factor, all);
  return magnitude(factor, 1);
}

Status put_yarn(const Json& config, const Json& scaling, const std::string& at, f64 factor,
                GgufWriter* out) {
  if (!scaling["truncate"].as_bool(true)) {
    return Error(ErrorCode::kUnsupported, "config.json: YaRN without truncate is not supported");
  }
  const f64 context = original_context(config, scaling);
  if (!(context >= 1 && context <= 1 << 30)) return unusable("original_max_position_embeddings");
  out->set_u32(at + "original_context_length", static_cast<u32>(context));
  out->set_f32(at + "yarn_beta_fast", static_cast<f32>(scaling["beta_fast"].as_double(32)));
  out->set_f32(at + "yarn_beta_slow", static_cast<f32>(scaling["beta_slow"].as_double(1)));
  // GGUF's is on top of the usual growth with the factor.
  out->set_f32(at + "attn_factor",
               static_cast<f32>(yarn_magnitude(scaling, factor) / (1 + 0.1 * std::log(factor))));
  return {};
}

}  // namespace

Status check_no_rope_scaling(const Json& config) {
  const std::string type = type_of(scaling_of(config));
  if (type == "default") return {};
  return Error(ErrorCode::kUnsupported,
               "config.json: rope type '" + type + "' is not supported for this model");
}

Status put_rope(const Json& config, const std::string& arch, GgufWriter* out) {
  out->set_f32(arch + ".rope.freq_base", static_cast<f32>(rope_base(config)));
  const Json& scaling = scaling_of(config);
  const std::string type = type_of(scaling);
  if (type == "default" || type == "llama3") return {};
  if (type != "linear" && type != "yarn") return check_no_rope_scaling(config);
  const std::string at = arch + ".rope.scaling.";
  const f64 factor = scaling["factor"].as_double(0);
  if (!(factor >= 1 && factor <= 1e6)) return unusable("factor");
  out->set_text(at + "type", type);
  out->set_f32(at + "factor", static_cast<f32>(factor));
  return type == "yarn" ? put_yarn(config, scaling, at, factor, out) : Status();
}

// A pair that turns more than `high_freq_factor` times in the original context stays as it is, one
// that turns less than `low_freq_factor` times slows down by the factor; between them it fades.
Result<std::vector<f32>> rope_divisors(const Json& config, i64 pairs) {
  const Json& scaling = scaling_of(config);
  if (type_of(scaling) != "llama3") return std::vector<f32>();
  const f64 factor = scaling["factor"].as_double(0);
  const f64 low = scaling["low_freq_factor"].as_double(0);
  const f64 high = scaling["high_freq_factor"].as_double(0);
  const f64 context = original_context(config, scaling);
  if (!(factor >= 1 && factor <= 1e6)) return unusable("factor");
  if (!(low > 0 && high > low)) return unusable("low_freq_factor and high_freq_factor");
  if (!(context >= 1)) return unusable("original_max_position_embeddings");
  std::vector<f32> divisors;
  const f64 base = rope_base(config);
  for (i64 i = 0; i < pairs; ++i) {
    const f64 speed = std::pow(base, -static_cast<f64>(i) / static_cast<f64>(pairs));
    const f64 turns = context * speed / (2 * std::numbers::pi);
    const f64 kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    divisors.push_back(static_cast<f32>(1 / (kept + (1 - kept) / factor)));
  }
  return divisors;
}

}  // namespace llm
