#include "llm/model/load.h"

#include "llm/formats/hf_folder.h"
#include "llm/model/glm.h"
#include "llm/model/llama.h"

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

std::string base_name(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const size_t slash = path.find_last_of('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  return name;
}

EpsilonProfile epsilon_profile(const Gguf& gguf) {
  return gguf.text("fleetlm.epsilons") == "hf" ? EpsilonProfile::kHf : EpsilonProfile::kGguf;
}

}  // namespace

Result<LoadedModel> load_model(const std::string& path, Precision precision, Crew* crew) {
  LoadedModel loaded;
  loaded.name = base_name(path);
  auto gguf = TRY(open_model_file(path));
  const std::string arch(gguf->text("general.architecture").value_or(""));
  if (arch == "llama" || arch == "qwen2" || arch == "qwen3") {
    const LlamaConfig config = TRY(llama_config(*gguf));
    loaded.model = TRY(LlamaModel::load(*gguf, config, precision, crew));
  } else if (arch == "glm-dsa") {
    const GlmConfig config = TRY(glm_config(*gguf, epsilon_profile(*gguf)));
    loaded.model = TRY(GlmModel::load(*gguf, config, precision, crew));
  } else {
    return Error(
        ErrorCode::kUnsupported,
        "architecture '" + arch + "' is not supported; known are llama, qwen2, qwen3, glm-dsa");
  }
  loaded.tokenizer = TRY(Tokenizer::from_gguf(*gguf));
  if (static_cast<i32>(loaded.tokenizer->size()) > loaded.model->info().vocab) {
    return Error(ErrorCode::kCorruption,
                 "the tokenizer has more tokens than the embedding has rows");
  }
  loaded.chat_template = std::string(gguf->text("tokenizer.chat_template").value_or(""));
  loaded.source = std::move(gguf);
  return loaded;
}

}  // namespace llm
