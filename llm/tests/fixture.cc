// Fixtures for parity tests. FILE is a GGUF file or a Hugging Face folder.
//   llm_fixture write KIND FILE TYPE SEED   a small random model: llama, llama-linear, llama-yarn,
//                                           llama-divided, glm or glm-mtp
//   llm_fixture draft TARGET FILE anchor|shifted|part SEED   a small random DSpark draft
//                                           for it; part: it knows part of the tokens
//   llm_fixture logits FILE exact|fast TOKEN...   logits of every token, raw f32
//   llm_fixture trace FILE TOKEN...      the input of every layer [layer][token][hidden], raw f32
//   llm_fixture selected FILE TOKEN...   for each layer, the positions that each token attends to
//   llm_fixture mtp FILE TOKEN...        final states, then logits of the multi-token prediction
//                                        layer, of every token but the last
//   llm_fixture dspark TARGET DRAFT TOKEN...   what the draft reads at every token but the last,
//   then
//                                        [guess][vocab] logits, then [guess] confidences, raw f32
//   llm_fixture tokens FILE              token ids of each input line (JSON strings)
//   llm_fixture blocks TYPE              values of the blocks on standard input, raw f32
//   llm_fixture quantize TYPE            blocks of the values on standard input
#include "base/files.h"
#include "base/json.h"
#include "llm/formats/hf_folder.h"
#include "llm/model/glm.h"
#include "llm/model/llama.h"
#include "llm/model/testing.h"
#include "llm/speculation/dspark.h"
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
  const std::string_view kind = argv[2];
  TinyGlm glm;
  glm.mtp = kind == "glm-mtp";
  TinyLlama llama;
  if (kind == "llama-linear" || kind == "llama-yarn") llama.rope_scaling = kind.substr(6);
  llama.rope_divisors = kind == "llama-divided";
  return base::write_file(argv[3], kind.starts_with("llama") ? random_llama_file(llama, type, seed)
                                                             : random_glm_file(glm, type, seed));
}

std::vector<i32> tokens_from(char** argv) {
  std::vector<i32> tokens;
  for (; *argv != nullptr; ++argv) tokens.push_back(std::atoi(*argv));
  return tokens;
}

void print_floats(const f32* values, size_t count) {
  std::fwrite(values, sizeof(f32), count, stdout);
}

struct Opened {
  std::unique_ptr<Gguf> file;
  Crew crew{2};
  std::unique_ptr<Model> model;
  GlmModel* glm = nullptr;
};

// With `layers` > 0 only the first ones of a GLM.
base::Result<std::unique_ptr<Opened>> open_model(const char* path, Precision precision,
                                                 i32 layers = 0) {
  auto opened = std::make_unique<Opened>();
  opened->file = TRY(open_model_file(path));
  const Gguf& file = *opened->file;
  if (file.text("general.architecture") != "glm-dsa") {
    opened->model = TRY(LlamaModel::load(file, TRY(llama_config(file)), precision, &opened->crew));
    return opened;
  }
  const bool hf = file.text("fleetlm.epsilons") == "hf";
  GlmConfig config = TRY(glm_config(file, hf ? EpsilonProfile::kHf : EpsilonProfile::kGguf));
  if (layers > 0) config.layers = layers;
  auto glm = TRY(GlmModel::load(file, config, precision, &opened->crew));
  opened->glm = glm.get();
  opened->model = std::move(glm);
  return opened;
}

std::vector<f32> run(Model* model, const std::vector<i32>& tokens) {
  const i32 count = static_cast<i32>(tokens.size());
  model->reserve({.pages = count / 16 + 1, .rows = count, .logit_rows = count, .context = count});
  return logits_of(model, tokens, count);
}

base::Status print_logits(char** argv) {
  const bool exact = std::strcmp(argv[3], "exact") == 0;
  const auto opened = TRY(open_model(argv[2], exact ? Precision::kExact : Precision::kFast));
  const auto logits = run(opened->model.get(), tokens_from(argv + 4));
  print_floats(logits.data(), logits.size());
  return {};
}

base::Status print_trace(char** argv) {
  const auto opened = TRY(open_model(argv[2], Precision::kExact));
  Model& model = *opened->model;
  std::vector<i32> layers;
  for (i32 i = 0; i < model.info().layers; ++i) layers.push_back(i);
  model.capture_inputs(layers);
  const auto tokens = tokens_from(argv + 3);
  run(&model, tokens);
  const auto hidden = static_cast<size_t>(model.info().hidden);
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (i32 t = 0; t < static_cast<i32>(tokens.size()); ++t) {
      print_floats(model.captured(t) + layer * hidden, hidden);
    }
  }
  return {};
}

// The model keeps the choice of its last layer only, so it is cut after each in turn.
base::Status print_selected(char** argv) {
  const auto tokens = tokens_from(argv + 3);
  i32 layers = 1;
  for (i32 n = 1; n <= layers; ++n) {
    const auto opened = TRY(open_model(argv[2], Precision::kExact, n));
    if (opened->glm == nullptr) {
      return base::Error(base::ErrorCode::kInvalidArgument, "only a GLM selects positions");
    }
    layers = TRY(glm_config(*opened->file, EpsilonProfile::kGguf)).layers;
    run(opened->model.get(), tokens);
    base::Json line = base::Json::array();
    for (i32 t = 0; t < static_cast<i32>(tokens.size()); ++t) {
      base::Json row = base::Json::array();
      for (i32 position : opened->glm->selected(t)) row.push(position);
      line.push(std::move(row));
    }
    std::puts(line.dump().c_str());
  }
  return {};
}

base::Status print_mtp(char** argv) {
  const auto opened = TRY(open_model(argv[2], Precision::kExact));
  if (opened->glm == nullptr) {
    return base::Error(base::ErrorCode::kInvalidArgument, "only a GLM has such a layer");
  }
  GlmModel& glm = *opened->glm;
  TRY(glm.enable_mtp(*opened->file));
  const auto tokens = tokens_from(argv + 3);
  run(&glm, tokens);
  std::vector<BatchRow> rows;
  std::vector<const f32*> states;
  for (i32 t = 0; t + 1 < static_cast<i32>(tokens.size()); ++t) {
    rows.push_back({tokens[static_cast<size_t>(t + 1)], t, 0, true});
    states.push_back(glm.state(t));
  }
  std::vector<i32> table;
  for (i32 p = 0; p * kPageTokens < static_cast<i32>(tokens.size()); ++p) table.push_back(p);
  glm.forward_mtp(
      {rows.data(), static_cast<i32>(rows.size()), table.data(), static_cast<i32>(table.size())},
      states.data());
  for (const f32* state : states) print_floats(state, static_cast<size_t>(glm.info().hidden));
  for (i32 t = 0; t < static_cast<i32>(rows.size()); ++t) {
    print_floats(glm.logits(t), static_cast<size_t>(glm.info().vocab));
  }
  return {};
}

base::Status write_draft(char** argv) {
  const auto target = TRY(Gguf::open(argv[2]));
  TinyDraft draft;
  draft.sample_from_anchor = std::strcmp(argv[4], "shifted") != 0;
  for (i64 id = 1; std::strcmp(argv[4], "part") == 0 && id < draft.vocab; id += 3) {
    draft.ids.push_back(id);
  }
  draft.embedding = target->find("token_embd.weight");
  return base::write_file(argv[3], random_draft_file(draft, std::strtoull(argv[5], nullptr, 10)));
}

base::Status print_dspark(char** argv) {
  const auto opened = TRY(open_model(argv[2], Precision::kExact));
  Model& model = *opened->model;
  const auto draft = TRY(Gguf::open(argv[3]));
  const DSparkConfig config = TRY(dspark_config(*draft, std::nullopt));
  const auto drafter =
      TRY(DSparkDrafter::load(*draft, config, &model, {.precision = Precision::kExact}));
  const auto tokens = tokens_from(argv + 4);
  const i32 known = static_cast<i32>(tokens.size()) - 1;
  const i32 pages = (known + config.block) / kPageTokens + 1;
  const Capacity capacity{.pages = pages, .rows = known, .context = pages * kPageTokens};
  model.reserve(capacity);
  drafter->reserve(capacity, 1);
  std::vector<BatchRow> rows;
  std::vector<i32> table;
  for (i32 t = 0; t < known; ++t) rows.push_back({tokens[static_cast<size_t>(t)], t, 0, false});
  for (i32 p = 0; p < pages; ++p) table.push_back(p);
  const Step step{rows.data(), known, table.data(), pages};
  model.forward(step);
  drafter->observe(step);
  const size_t width = config.target_layers.size() * static_cast<size_t>(model.info().hidden);
  for (i32 t = 0; t < known; ++t) print_floats(model.captured(t), width);
  SamplingParams greedy;
  greedy.temperature = 0;
  std::vector<i32> guesses(static_cast<size_t>(config.block));
  DraftTask task{0, tokens, &greedy, drafter->longest(), guesses.data(), 0};
  drafter->propose({&task, 1}, table.data(), pages);
  for (i32 n = 0; n < drafter->longest(); ++n) {
    print_floats(drafter->logits(0, n), static_cast<size_t>(model.info().vocab));
  }
  for (i32 n = 0; n < drafter->longest(); ++n) {
    const f32 sure = drafter->confidence_of(0, n);
    print_floats(&sure, 1);
  }
  return {};
}

base::Status print_tokens(char** argv) {
  const auto gguf = TRY(open_model_file(argv[2]));
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
  print_floats(values.data(), values.size());
  return {};
}

base::Status quantize_values(char** argv) {
  const DType type = TRY(parse_dtype(argv[2]));
  const std::string bytes(std::istreambuf_iterator<char>(std::cin), {});
  std::vector<f32> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), values.size() * 4);
  const DTypeInfo& info = info_of(type);
  std::vector<u8> blocks(values.size() / info.block_values * info.block_bytes);
  quantize(type, values, blocks.data());
  std::fwrite(blocks.data(), 1, blocks.size(), stdout);
  return {};
}

}  // namespace
}  // namespace llm

int main(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[1] : "";
  base::Status done = base::Error(base::ErrorCode::kInvalidArgument, "unknown fixture");
  if (what == "write" && argc == 6) done = llm::write_model(argv);
  if (what == "logits" && argc > 4) done = llm::print_logits(argv);
  if (what == "trace" && argc > 3) done = llm::print_trace(argv);
  if (what == "selected" && argc > 3) done = llm::print_selected(argv);
  if (what == "draft" && argc == 6) done = llm::write_draft(argv);
  if (what == "dspark" && argc > 5) done = llm::print_dspark(argv);
  if (what == "mtp" && argc > 3) done = llm::print_mtp(argv);
  if (what == "tokens") done = llm::print_tokens(argv);
  if (what == "blocks") done = llm::print_blocks(argv);
  if (what == "quantize") done = llm::quantize_values(argv);
  if (done.ok()) return 0;
  std::fprintf(stderr, "llm_fixture: %s\n", done.error().message().c_str());
  return 1;
}
