// Opens a model file: weights, tokenizer and the text of its chat template, by architecture.
#pragma once

#include "llm/formats/gguf.h"
#include "llm/model/model.h"
#include "llm/tokenizer/tokenizer.h"

#include <memory>
#include <string>

namespace llm {

struct LoadedModel {
  std::unique_ptr<TensorSource> source;
  std::unique_ptr<Tokenizer> tokenizer;
  std::string chat_template;
  std::string name;
  std::unique_ptr<Model> model;
};

// Errors: what the readers say; kUnsupported for an unknown architecture.
base::Result<LoadedModel> load_model(const std::string& path, Precision precision, Crew* crew);

}  // namespace llm
