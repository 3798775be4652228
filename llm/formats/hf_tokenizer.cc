// tokenizer.json of Hugging Face as GGUF metadata.
#include "llm/formats/hf_folder.h"

#include <optional>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {

constexpr i64 kTokensMax = 1 << 24;
constexpr i32 kNormal = 1;
constexpr i32 kControl = 3;
constexpr i32 kUserDefined = 4;
constexpr i32 kUnused = 5;

Error bad(const std::string& what) {
  return Error(ErrorCode::kCorruption, "tokenizer.json: " + what);
}

struct Vocabulary {
  std::vector<std::string> texts;
  std::vector<i32> types;

  Status put(i64 id, const std::string& text, i32 type) {
    if (id < 0 || id >= kTokensMax) return bad("a token has an impossible id");
    const auto at = static_cast<size_t>(id);
    if (at >= texts.size()) {
      texts.resize(at + 1);
      types.resize(at + 1, kUnused);
    }
    texts[at] = text;
    types[at] = type;
    return {};
  }
};

// The steps of the pre-tokenizer, one after the other.
std::vector<const Json*> steps_of(const Json& pre) {
  if (pre["type"].as_string() != "Sequence") return {&pre};
  std::vector<const Json*> steps;
  for (const Json& step : pre["pretokenizers"].items()) steps.push_back(&step);
  return steps;
}

// GGUF names pre-tokenizers; here they are spelled out. Recognised by what tells them apart: how
// digits are grouped and whether contractions ignore case.
Result<std::string> pre_name(const Json& pre) {
  bool digits = false;
  bool gpt2 = false;
  std::string pattern;
  for (const Json* step : steps_of(pre)) {
    const std::string& type = (*step)["type"].as_string();
    if (type == "Digits" && (*step)["individual_digits"].as_bool()) digits = true;
    if (type == "ByteLevel" && (*step)["use_regex"].as_bool(true)) gpt2 = true;
    if (type == "Split") pattern += (*step)["pattern"]["Regex"].as_string();
  }
  if (gpt2 && pattern.empty()) return std::string(digits ? "smollm" : "gpt-2");
  const bool caseless = pattern.find("(?i:'s|'t|'re|'ve|'m|'ll|'d)") != std::string::npos;
  if (caseless && pattern.find("\\p{N}{1,3}") != std::string::npos) return std::string("llama-bpe");
  if (caseless && pattern.find("|\\p{N}|") != std::string::npos) return std::string("qwen2");
  return Error(ErrorCode::kUnsupported,
               "tokenizer.json splits text in a way that is not supported; known are the ways of "
               "gpt-2, smollm, llama-bpe, glm4 and qwen2");
}

// A merge is "left right" or ["left", "right"].
Result<std::vector<std::string>> merges_of(const Json& model) {
  std::vector<std::string> merges;
  merges.reserve(model["merges"].size());
  for (const Json& merge : model["merges"].items()) {
    if (merge.is_string()) {
      merges.push_back(merge.as_string());
    } else if (merge.size() == 2) {
      merges.push_back(merge[0].as_string() + " " + merge[1].as_string());
    } else {
      return bad("a merge is not a pair");
    }
  }
  return merges;
}

Result<Vocabulary> vocabulary_of(const Json& tokenizer) {
  Vocabulary vocabulary;
  for (const auto& [text, id] : tokenizer["model"]["vocab"].members()) {
    TRY(vocabulary.put(id.as_int(-1), text, kNormal));
  }
  for (const Json& token : tokenizer["added_tokens"].items()) {
    TRY(vocabulary.put(token["id"].as_int(-1), token["content"].as_string(),
                       token["special"].as_bool() ? kControl : kUserDefined));
  }
  if (vocabulary.texts.empty()) return bad("there is no vocabulary");
  for (size_t i = 0; i < vocabulary.texts.size(); ++i) {
    if (vocabulary.types[i] == kUnused) vocabulary.texts[i] = "[PAD" + std::to_string(i) + "]";
  }
  return vocabulary;
}

// A token's text in tokenizer_config.json is a string or an object that holds it.
std::optional<u32> id_of(const Vocabulary& vocabulary, const Json& token) {
  const std::string& text = token.is_object() ? token["content"].as_string() : token.as_string();
  for (size_t i = 0; !text.empty() && i < vocabulary.texts.size(); ++i) {
    if (vocabulary.texts[i] == text) return static_cast<u32>(i);
  }
  return std::nullopt;
}

// Named in tokenizer_config.json, or numbered in config.json (a list: its first).
void put_id(const Vocabulary& vocabulary, const Json& token, const Json& number, const char* key,
            GgufWriter* out) {
  const Json& first = number.is_array() ? number[0] : number;
  std::optional<u32> id = id_of(vocabulary, token);
  if (first.is_integer() && first.as_int() >= 0 &&
      first.as_int() < static_cast<i64>(vocabulary.texts.size())) {
    id = static_cast<u32>(first.as_int());
  }
  if (id) out->set_u32(key, *id);
}

bool puts_bos_first(const Json& tokenizer, const Json& tokenizer_config) {
  const Json& said = tokenizer_config["add_bos_token"];
  if (said.is_bool()) return said.as_bool();
  const Json& post = tokenizer["post_processor"];
  if (post["type"].as_string() != "TemplateProcessing") return false;
  return post["single"][0].has("SpecialToken");
}

}  // namespace

Status put_hf_tokenizer(const Json& tokenizer, const Json& tokenizer_config, const Json& config,
                        GgufWriter* out) {
  const std::string& kind = tokenizer["model"]["type"].as_string();
  if (kind != "BPE" || tokenizer["model"]["byte_fallback"].as_bool(false)) {
    return Error(ErrorCode::kUnsupported, "tokenizer.json holds a tokenizer of type '" + kind +
                                              "'; only byte-level BPE is supported");
  }
  const std::string pre = TRY(pre_name(tokenizer["pre_tokenizer"]));
  const Vocabulary vocabulary = TRY(vocabulary_of(tokenizer));
  const std::vector<std::string> merges = TRY(merges_of(tokenizer["model"]));
  out->set_text("tokenizer.ggml.model", "gpt2");
  // GLM's pattern is llama's; the name matters to other readers of the file.
  const bool glm = config["model_type"].as_string() == "glm_moe_dsa" && pre == "llama-bpe";
  out->set_text("tokenizer.ggml.pre", glm ? "glm4" : pre);
  out->set_texts("tokenizer.ggml.tokens", {vocabulary.texts.begin(), vocabulary.texts.end()});
  out->set_i32s("tokenizer.ggml.token_type", vocabulary.types);
  out->set_texts("tokenizer.ggml.merges", {merges.begin(), merges.end()});
  put_id(vocabulary, tokenizer_config["bos_token"], config["bos_token_id"],
         "tokenizer.ggml.bos_token_id", out);
  put_id(vocabulary, tokenizer_config["eos_token"], config["eos_token_id"],
         "tokenizer.ggml.eos_token_id", out);
  put_id(vocabulary, tokenizer_config["pad_token"], config["pad_token_id"],
         "tokenizer.ggml.padding_token_id", out);
  out->set_bool("tokenizer.ggml.add_bos_token", puts_bos_first(tokenizer, tokenizer_config));
  return {};
}

}  // namespace llm
