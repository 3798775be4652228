// config.json of Hugging Face as GGUF metadata.
#include "llm/formats/hf_folder.h"

#include <algorithm>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Status;

namespace {

Error unsupported(const std::string& what) {
  return Error(ErrorCode::kUnsupported, "config.json: " + what);
}

// Writes under one architecture's prefix and remembers the first number that is missing.
class Pairs {
 public:
  Pairs(const Json& config, std::string arch, GgufWriter* out)
      : config_(config), arch_(std::move(arch)), out_(*out) {
    out_.set_text("general.architecture", arch_);
    out_.set_text("general.name", config["model_type"].as_string_or("dspark draft"));
  }
  void set(const char* key, i64 value) {
    out_.set_u32(arch_ + "." + key, static_cast<u32>(std::clamp<i64>(value, 0, 1 << 30)));
  }
  void set(const char* key, f64 value) { out_.set_f32(arch_ + "." + key, static_cast<f32>(value)); }
  i64 need(const char* from) {
    const i64 value = config_[from].as_int(-1);
    if (value <= 0 && missing_.empty()) missing_ = from;
    return std::clamp<i64>(value, 1, 1 << 30);
  }
  void copy(const char* key, const char* from) { set(key, need(from)); }
  Status status() const {
    if (missing_.empty()) return {};
    return Error(ErrorCode::kCorruption, "config.json has no usable value for " + missing_);
  }

 private:
  const Json& config_;
  const std::string arch_;
  GgufWriter& out_;
  std::string missing_;
};

void put_attention(const Json& config, Pairs* pairs) {
  const i64 heads = pairs->need("num_attention_heads");
  const i64 dim = config["head_dim"].as_int(pairs->need("hidden_size") / heads);
  pairs->set("attention.head_count", heads);
  pairs->set("attention.head_count_kv", config["num_key_value_heads"].as_int(heads));
  pairs->set("attention.key_length", dim);
  pairs->set("attention.value_length", dim);
  pairs->set("rope.dimension_count", dim);
  pairs->set("attention.layer_norm_rms_epsilon", config["rms_norm_eps"].as_double(1e-5));
}

Status put_decoder(const Json& config, const std::string& arch, GgufWriter* out) {
  const std::string act = config["hidden_act"].as_string_or("silu");
  if (act != "silu") return unsupported("activation '" + act + "' is not supported");
  if (config["sliding_window"].as_int(0) > 0 && config["use_sliding_window"].as_bool(true)) {
    return unsupported("sliding-window attention is not supported");
  }
  Pairs pairs(config, arch, out);
  pairs.copy("context_length", "max_position_embeddings");
  pairs.copy("embedding_length", "hidden_size");
  pairs.copy("block_count", "num_hidden_layers");
  pairs.copy("feed_forward_length", "intermediate_size");
  pairs.copy("vocab_size", "vocab_size");
  put_attention(config, &pairs);
  TRY(put_rope(config, arch, out));
  return pairs.status();
}

Status put_draft(const Json& whole, GgufWriter* out) {
  // speculators nests the decoder's own sizes.
  Json config = whole;
  for (const auto& [key, value] : whole["transformer_layer_config"].members()) {
    if (!config.has(key)) config.set(key, value);
  }
  const Json& layers = config["aux_hidden_state_layer_ids"];
  if (!layers.is_array() || layers.size() == 0) {
    return Error(ErrorCode::kCorruption, "config.json has no aux_hidden_state_layer_ids");
  }
  Pairs pairs(config, "dflash", out);
  pairs.copy("context_length", "max_position_embeddings");
  pairs.copy("embedding_length", "hidden_size");
  pairs.copy("block_count", "num_hidden_layers");
  pairs.copy("feed_forward_length", "intermediate_size");
  pairs.copy("block_size", "block_size");
  put_attention(config, &pairs);
  TRY(check_no_rope_scaling(config));
  TRY(put_rope(config, "dflash", out));
  std::vector<i32> ids;
  for (const Json& layer : layers.items()) ids.push_back(static_cast<i32>(layer.as_int(-1)));
  out->set_i32s("dflash.target_layers", ids);
  if (config["sample_from_anchor"].is_bool()) {
    out->set_bool("dflash.sample_from_anchor", config["sample_from_anchor"].as_bool());
  }
  out->set_u32("tokenizer.ggml.mask_token_id", static_cast<u32>(pairs.need("mask_token_id")));
  return pairs.status();
}

// Which layers have an indexer: named one by one, or by the published rule, or all.
std::vector<bool> indexed_layers(const Json& config, i64 layers) {
  std::vector<bool> full(static_cast<size_t>(layers), true);
  const Json& types = config["indexer_types"];
  const i64 every = config["index_topk_freq"].as_int(1);
  const i64 offset = config["index_skip_topk_offset"].as_int(0);
  for (i64 i = 0; i < layers; ++i) {
    const auto at = static_cast<size_t>(i);
    if (types.is_array()) {
      full[at] = types[at].as_string() != "shared";
    } else if (every > 1) {
      full[at] = std::max<i64>(i - offset + 1, 0) % every == 0;
    }
  }
  return full;
}

Status check_glm(const Json& config) {
  TRY(check_no_rope_scaling(config));
  if (config["n_group"].as_int(1) != 1) return unsupported("expert groups are not supported");
  if (config["scoring_func"].as_string_or("sigmoid") != "sigmoid") {
    return unsupported("the router's scoring_func must be sigmoid");
  }
  for (const char* key : {"rope_interleave", "indexer_rope_interleave"}) {
    if (!config[key].as_bool(true)) return unsupported(std::string(key) + " must be true");
  }
  return {};
}

Status put_glm(const Json& config, bool has_mtp, GgufWriter* out) {
  TRY(check_glm(config));
  Pairs pairs(config, "glm-dsa", out);
  const i64 layers = std::min<i64>(pairs.need("num_hidden_layers"), 4096);
  const i64 latent = pairs.need("kv_lora_rank");
  const i64 rope = pairs.need("qk_rope_head_dim");
  pairs.copy("context_length", "max_position_embeddings");
  pairs.copy("embedding_length", "hidden_size");
  pairs.set("block_count", layers + (has_mtp ? 1 : 0));
  pairs.set("nextn_predict_layers", i64{has_mtp ? 1 : 0});
  pairs.copy("feed_forward_length", "intermediate_size");
  pairs.copy("expert_feed_forward_length", "moe_intermediate_size");
  pairs.copy("expert_count", "n_routed_experts");
  pairs.copy("expert_used_count", "num_experts_per_tok");
  pairs.set("expert_shared_count", config["n_shared_experts"].as_int(0));
  pairs.set("leading_dense_block_count", config["first_k_dense_replace"].as_int(0));
  pairs.set("expert_gating_func", i64{2});
  pairs.copy("vocab_size", "vocab_size");
  pairs.copy("attention.head_count", "num_attention_heads");
  pairs.set("attention.head_count_kv", i64{1});
  pairs.set("attention.key_length", latent + rope);
  pairs.set("attention.value_length", latent);
  pairs.set("attention.key_length_mla", pairs.need("qk_nope_head_dim") + rope);
  pairs.copy("attention.value_length_mla", "v_head_dim");
  pairs.copy("attention.q_lora_rank", "q_lora_rank");
  pairs.set("attention.kv_lora_rank", latent);
  pairs.copy("attention.indexer.head_count", "index_n_heads");
  pairs.copy("attention.indexer.key_length", "index_head_dim");
  pairs.copy("attention.indexer.top_k", "index_topk");
  pairs.set("rope.dimension_count", rope);
  TRY(put_rope(config, "glm-dsa", out));
  pairs.set("attention.layer_norm_rms_epsilon", config["rms_norm_eps"].as_double(1e-5));
  pairs.set("expert_weights_scale", config["routed_scaling_factor"].as_double(1));
  out->set_bool("glm-dsa.expert_weights_norm", config["norm_topk_prob"].as_bool(true));
  out->set_bools("glm-dsa.attention.indexer.types", indexed_layers(config, layers));
  return pairs.status();
}

}  // namespace

Status put_hf_config(const Json& config, bool has_mtp, GgufWriter* out) {
  if (config.has("speculators_model_type") || config.has("aux_hidden_state_layer_ids")) {
    return put_draft(config, out);
  }
  const std::string& type = config["model_type"].as_string();
  if (type == "llama" || type == "mistral") return put_decoder(config, "llama", out);
  if (type == "qwen2" || type == "qwen3") return put_decoder(config, type, out);
  if (type == "glm_moe_dsa") return put_glm(config, has_mtp, out);
  return unsupported("model_type '" + type +
                     "' is not supported; known are llama, mistral, qwen2, qwen3, glm_moe_dsa");
}

}  // namespace llm
