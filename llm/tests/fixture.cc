// Fixtures for parity tests.
//   llm_fixture write llama|glm FILE TYPE SEED     a small random model
//   llm_fixture logits FILE exact|fast TOKEN...    logits of every token, raw f32, on standard
//   output llm_fixture tokens FILE                        token ids of each input line (JSON
//   strings) llm_fixture blocks TYPE                        values of the blocks on standard input,
//   raw f32
#include "base/files.h"
#include "base/json.h"
#include "llm/model/glm.h"
#include "llm/model/llama.h"
#include "llm/model/testing.h"
#include "llm/tokenizer/tokenizer.h"

#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>

namespace llm {
namespace {

base::Status write_model(char** argv) {
  const DType type = TRY(parse_dtype(argv[4]));
  const u64 seed = std::strtoull(argv[5], nullptr, 10);
  const bool glm = std::strcmp(argv[2], "glm") == 0;
  return base::write_file(
      argv[3], glm ? random_glm_file({}, type, seed) : random_llama_file({}, type, seed));
}

base::Status print_logits(int argc, char** argv) {
  const auto gguf = TRY(Gguf::open(argv[2]));
  const Precision precision =
      std::strcmp(argv[3], "exact") == 0 ? Precision::kExact : Precision::kFast;
  std::vector<i32> tokens;
  for (int i = 4; i < argc; ++i) tokens.push_back(std::atoi(argv[i]));
  Crew crew(2);
  std::unique_ptr<Model> model;
  if (gguf->text("general.architecture") == "glm-dsa") {
    model =
        TRY(GlmModel::load(*gguf, TRY(glm_config(*gguf, EpsilonProfile::kGguf)), precision, &crew));
  } else {
    model = TRY(LlamaModel::load(*gguf, TRY(llama_config(*gguf)), precision, &crew));
  }
  const i32 count = static_cast<i32>(tokens.size());
  model->reserve({.pages = count / 16 + 1, .rows = count, .logit_rows = count, .context = count});
  const auto logits = logits_of(model.get(), tokens, count);
  std::fwrite(logits.data(), sizeof(f32), logits.size(), stdout);
  return {};
}

base::Status print_tokens(char** argv) {
  const auto gguf = TRY(Gguf::open(argv[2]));
  const auto tokenizer = TRY(Tokenizer::from_gguf(*gguf));
  for (std::string line; std::getline(std::cin, line);) {
    const base::Json text = TRY(base::Json::parse(line));
    base::Json ids = base::Json::array();
    for (TokenId id : tokenizer->encode(text.as_string(), true)) ids.push(id);
    std::puts(ids.dump().c_str());
  }
  return {};
}

base::Status print_blocks(char** argv) {
  const DType type = TRY(parse_dtype(argv[2]));
  const std::string bytes(std::istreambuf_iterator<char>(std::cin), {});
  const DTypeInfo& info = info_of(type);
  std::vector<f32> values(bytes.size() / info.block_bytes * info.block_values);
  dequantize(type, reinterpret_cast<const u8*>(bytes.data()), values);
  std::fwrite(values.data(), sizeof(f32), values.size(), stdout);
  return {};
}

}  // namespace
}  // namespace llm

int main(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[1] : "";
  base::Status done = base::Error(base::ErrorCode::kInvalidArgument, "unknown fixture");
  if (what == "write" && argc == 6) done = llm::write_model(argv);
  if (what == "logits" && argc > 4) done = llm::print_logits(argc, argv);
  if (what == "tokens") done = llm::print_tokens(argv);
  if (what == "blocks") done = llm::print_blocks(argv);
  if (done.ok()) return 0;
  std::fprintf(stderr, "llm_fixture: %s\n", done.error().message().c_str());
  return 1;
}
