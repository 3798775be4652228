// Which GGUF tensor each safetensors tensor becomes.
#include "llm/formats/hf_folder.h"

#include <charconv>
#include <map>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Status;

namespace {

struct Names {
  std::string_view hf, gguf;
};

// Whole names, without a leading "model.".
constexpr Names kTop[] = {
    {"embed_tokens.weight", "token_embd.weight"},
    {"lm_head.weight", "output.weight"},
    {"norm.weight", "output_norm.weight"},
    {"fc.weight", "fc.weight"},
    {"hidden_norm.weight", "enc.output_norm.weight"},
    {"markov_head.markov_w1.weight", "markov_w1.weight"},
    {"markov_head.markov_w2.weight", "markov_w2.weight"},
    {"confidence_head.proj.weight", "conf_proj.weight"},
    {"confidence_head.proj.bias", "conf_proj.bias"},
};

// Below "layers.N.", without ".weight" or ".bias".
constexpr Names kLayer[] = {
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.indexer.wq_b", "indexer.attn_q_b"},
    {"self_attn.indexer.wk", "indexer.attn_k"},
    {"self_attn.indexer.weights_proj", "indexer.proj"},
    {"self_attn.indexer.k_norm", "indexer.k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"enorm", "nextn.enorm"},
    {"hnorm", "nextn.hnorm"},
    {"eh_proj", "nextn.eh_proj"},
    {"shared_head.norm", "nextn.shared_head_norm"},
    {"shared_head.head", "nextn.shared_head_head"},
    {"embed_tokens", "nextn.embed_tokens"},
};

template <size_t N>
std::string_view lookup(const Names (&table)[N], std::string_view name) {
  for (const Names& names : table) {
    if (names.hf == name) return names.gguf;
  }
  return {};
}

// Not weights of their own.
bool is_aside(std::string_view name) {
  return name.ends_with("weight_scale_inv") || name.ends_with("inv_freq") || name == "t2d" ||
         name == "d2t";  // the last in add_draft_ids()
}

// Takes a number and the dot after it off the front.
bool take_number(std::string_view* text, u64* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc() || end == text->data() + text->size() || *end != '.') return false;
  if (*number >= 1 << 16) return false;
  text->remove_prefix(static_cast<size_t>(end + 1 - text->data()));
  return true;
}

u64 count_of(const Json& config, const char* key, i64 other) {
  const i64 value = config[key].as_int(other);
  return value > 0 && value < 1 << 24 ? static_cast<u64>(value) : 0;
}

}  // namespace

// Walks through the stored tensors once. Experts that are stored one by one are gathered first and
// stacked at the end.
struct HfFolder::Mapper {
  HfFolder& folder;
  const Json& config;
  bool rotary;  // llama: reorder the rows of q and k
  bool tied;
  u64 heads, head_dim, nope, value, latent, experts;
  std::map<std::string, std::vector<Part>> stacks;

  Part whole(const TensorView& tensor) const {
    // "x.weight" has its scales in "x.weight_scale_inv".
    return {&tensor, folder.weights_->find(tensor.name + "_scale_inv"), 0, tensor.rows()};
  }

  Status plain(std::string name, const TensorView& tensor) {
    return folder.add(std::move(name), tensor.shape, {Shape::kRows, {whole(tensor)}, 0});
  }

  Status map(const TensorView& tensor) {
    std::string_view name = tensor.name;
    if (is_aside(name)) return {};
    if (name.starts_with("model.")) name.remove_prefix(6);
    if (tied && name == "lm_head.weight") return {};
    if (const auto top = lookup(kTop, name); !top.empty()) return plain(std::string(top), tensor);
    u64 layer = 0;
    if (name.starts_with("layers.")) {
      name.remove_prefix(7);
      if (take_number(&name, &layer)) return map_layer(layer, name, tensor);
    }
    return unknown(tensor);
  }

  static Status unknown(const TensorView& tensor) {
    return Error(ErrorCode::kUnsupported,
                 "tensor " + tensor.name + " is of no kind that is known here");
  }

  Status map_layer(u64 layer, std::string_view name, const TensorView& tensor) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    if (name == "mlp.gate.e_score_correction_bias") return plain(at + "exp_probs_b.bias", tensor);
    if (name == "self_attn.kv_b_proj.weight") return split_kv(at, tensor);
    if (name.starts_with("mlp.experts.")) return map_expert(at, name.substr(12), tensor);
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return unknown(tensor);
    const std::string_view stem = name.substr(0, dot);
    const std::string_view leaf = name.substr(dot + 1);
    const auto known = lookup(kLayer, stem);
    if (known.empty() || (leaf != "weight" && leaf != "bias")) return unknown(tensor);
    const std::string to = at + std::string(known) + "." + std::string(leaf);
    if (!rotary || (known != "attn_q" && known != "attn_k")) return plain(to, tensor);
    if (leaf == "bias") {
      return Error(ErrorCode::kUnsupported, "biases of llama's q and k are not supported");
    }
    if (head_dim == 0 || head_dim % 2 != 0 || tensor.rows() % head_dim != 0) {
      return Error(ErrorCode::kCorruption, "tensor " + tensor.name + " is not made of whole heads");
    }
    return folder.add(to, tensor.shape, {Shape::kRotary, {whole(tensor)}, head_dim});
  }

  // Each head's rows: `nope` of keys, then `value` of values.
  Status split_kv(const std::string& at, const TensorView& tensor) {
    if (heads == 0 || nope == 0 || value == 0 || tensor.rows() != heads * (nope + value)) {
      return Error(ErrorCode::kCorruption,
                   "tensor " + tensor.name + " is " + tensor.shape_text() +
                       ", which does not fit the head sizes in config.json");
    }
    Recipe keys{Shape::kTransposed, {}, nope};
    Recipe values{Shape::kRows, {}, 0};
    for (u64 head = 0; head < heads; ++head) {
      Part part = whole(tensor);
      part.first = head * (nope + value);
      part.count = nope;
      keys.parts.push_back(part);
      part.first += nope;
      part.count = value;
      values.parts.push_back(part);
    }
    const u64 width = tensor.columns();
    TRY(folder.add(at + "attn_k_b.weight", {heads, width, nope}, std::move(keys)));
    return folder.add(at + "attn_v_b.weight", {heads, value, width}, std::move(values));
  }

  Status map_expert(const std::string& at, std::string_view name, const TensorView& tensor) {
    if (name == "gate_up_proj" || name == "down_proj") return map_fused(at, name, tensor);
    u64 expert = 0;
    if (!take_number(&name, &expert) || expert >= experts) return unknown(tensor);
    const char* to = name == "gate_proj.weight"   ? "ffn_gate_exps.weight"
                     : name == "up_proj.weight"   ? "ffn_up_exps.weight"
                     : name == "down_proj.weight" ? "ffn_down_exps.weight"
                                                  : nullptr;
    if (to == nullptr) return unknown(tensor);
    auto& stack = stacks[at + to];
    stack.resize(experts);
    stack[expert] = whole(tensor);
    return {};
  }

  // [experts, 2 * inner, hidden] with the gates first, and [experts, hidden, inner].
  Status map_fused(const std::string& at, std::string_view name, const TensorView& tensor) {
    if (tensor.shape.size() != 3 || tensor.shape[0] != experts || tensor.shape[1] % 2 != 0) {
      return unknown(tensor);
    }
    if (name == "down_proj") return plain(at + "ffn_down_exps.weight", tensor);
    const u64 inner = tensor.shape[1] / 2;
    for (const bool up : {false, true}) {
      Recipe recipe;
      for (u64 expert = 0; expert < experts; ++expert) {
        Part part = whole(tensor);
        part.first = (expert * 2 + (up ? 1 : 0)) * inner;
        part.count = inner;
        recipe.parts.push_back(part);
      }
      TRY(folder.add(at + (up ? "ffn_up_exps.weight" : "ffn_gate_exps.weight"),
                     {experts, inner, tensor.shape[2]}, std::move(recipe)));
    }
    return {};
  }

  Status finish() {
    for (auto& [name, parts] : stacks) {
      for (const Part& part : parts) {
        if (part.weight == nullptr || part.count != parts[0].weight->rows()) {
          return Error(ErrorCode::kCorruption, "an expert is missing or misshapen for " + name);
        }
      }
      const u64 height = parts[0].count;
      const u64 width = parts[0].weight->columns();
      TRY(folder.add(name, {experts, height, width}, {Shape::kRows, std::move(parts), 0}));
    }
    return {};
  }
};

Status HfFolder::map_tensors(const Json& config) {
  const u64 heads = count_of(config, "num_attention_heads", 0);
  const i64 hidden = config["hidden_size"].as_int();
  const std::string& type = config["model_type"].as_string();
  const bool draft = text("general.architecture") == "dflash";
  Mapper mapper{*this,
                config,
                !draft && (type == "llama" || type == "mistral"),
                config["tie_word_embeddings"].as_bool(false),
                heads,
                count_of(config, "head_dim", heads == 0 ? 0 : hidden / static_cast<i64>(heads)),
                count_of(config, "qk_nope_head_dim", 0),
                count_of(config, "v_head_dim", 0),
                count_of(config, "kv_lora_rank", 0),
                count_of(config, "n_routed_experts", 0),
                {}};
  recipes_.reserve(weights_->tensors().size());
  for (const TensorView& tensor : weights_->tensors()) TRY(mapper.map(tensor));
  return mapper.finish();
}

}  // namespace llm
