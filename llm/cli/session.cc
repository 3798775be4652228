#include "base/log.h"
#include "base/random.h"
#include "llm/cli/commands.h"
#include "llm/formats/hf_folder.h"
#include "llm/model/glm.h"
#include "llm/model/ranked.h"
#include "llm/speculation/dspark.h"
#include "llm/speculation/mtp.h"
#include "llm/speculation/ngram.h"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <map>
#include <thread>

namespace llm {

namespace {
constexpr Command kCommands[] = {
    {"chat", run_chat},   {"run", run_run},           {"serve", run_serve},     {"info", run_info},
    {"bench", run_bench}, {"quantize", run_quantize}, {"convert", run_convert}, {"pull", run_pull}};
}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

void ModelOptions::add_to(CLI::App* app) {
  app->add_option("model", path, "a GGUF file or a Hugging Face folder")->required();
  app->add_option("-t,--threads", threads, "threads; 0: one for each processor")
      ->check(CLI::Range(0, 1024));
  app->add_option("--ranks", ranks,
                  "processes that share the weights; the threads are divided among them")
      ->check(CLI::Range(1, RankGroup::kRanksMax));
  app->add_option("-c,--context", context, "tokens of one conversation")
      ->check(CLI::Range(32, 1 << 20));
  app->add_option("--slots", slots, "conversations computed at once")->check(CLI::Range(1, 256));
  app->add_option("--cache-mb", cache_mb, "memory for the key-value cache")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--spec", speculation, "who guesses ahead: ngram, dspark, mtp or none")
      ->check(CLI::IsMember({"ngram", "dspark", "mtp", "none"}));
  app->add_option("--draft", draft_path,
                  "the DSpark draft, a GGUF file or a folder; implies --spec dspark");
  app->add_option("--draft-layout", draft_layout, "anchor or shifted, when the draft does not say")
      ->check(CLI::IsMember({"anchor", "shifted"}));
  app->add_option("--confidence-min", confidence_min,
                  "cut a draft where its confidence falls below this")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--draft-max", draft_max, "guesses at once")->check(CLI::Range(1, 15));
  app->add_option("--adapt-drafts", adapt_drafts,
                  "as many guesses as have paid off lately; off: always --draft-max")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, bool>{{"on", true}, {"off", false}}));
  app->add_option("--fusion", fusion, "few phases a layer; off: one for each operation")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, bool>{{"on", true}, {"off", false}}));
  app->add_option("--comm", comm, "sum, residual and norm in one pass; off: each apart")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, bool>{{"on", true}, {"off", false}}));
  app->add_flag("--rebuild-step", rebuild_step, "build and copy every table anew each step");
  app->add_flag("--exact", exact, "32-bit floats everywhere: slow, for comparisons");
}

void SamplingOptions::add_to(CLI::App* app) {
  app->add_option("--temperature", temperature, "0: always the likeliest token")
      ->check(CLI::Range(0.0, 5.0));
  app->add_option("--top-p", top_p, "keep the likeliest tokens that hold this mass")
      ->check(CLI::Range(0.0, 1.0));
  app->add_option("--top-k", top_k, "keep this many tokens; 0: all")->check(CLI::Range(0, 1 << 20));
  app->add_option("--seed", seed, "makes sampling repeatable; 0: a new one each time");
  app->add_option("-n,--max-tokens", max_tokens, "longest answer")->check(CLI::Range(1, 1 << 20));
}

SamplingParams SamplingOptions::params() const {
  SamplingParams params;
  params.temperature = temperature;
  params.top_p = top_p;
  params.top_k = top_k;
  params.seed = seed != 0 ? seed : base::random_seed();
  return params;
}

namespace {

base::Status open_draft(const ModelOptions& options, Session* session) {
  session->draft_file = TRY(open_model_file(options.draft_path));
  std::optional<bool> layout;
  if (!options.draft_layout.empty()) layout = options.draft_layout == "anchor";
  const DSparkConfig config = TRY(dspark_config(*session->draft_file, layout));
  DSparkDrafter::Options draft;
  draft.precision = options.exact ? Precision::kExact : Precision::kFast;
  draft.confidence_min = options.confidence_min;
  session->drafter =
      TRY(DSparkDrafter::load(*session->draft_file, config, session->loaded.model.get(), draft));
  base::log_info(
      "draft", "dspark",
      {{"block", config.block}, {"layout", config.sample_from_anchor ? "anchor" : "shifted"}});
  return {};
}

base::Status open_mtp(Session* session) {
  auto* glm = dynamic_cast<GlmModel*>(session->loaded.model.get());
  if (glm == nullptr) {
    return base::Error(base::ErrorCode::kInvalidArgument,
                       "--spec mtp needs a GLM-5.2 model, in one process (--ranks 1)");
  }
  session->drafter = TRY(MtpDrafter::load(*session->loaded.source, glm));
  return {};
}

// A rank other than 0: computes its part until it is dismissed.
[[noreturn]] void follow(const base::Result<LoadedModel>& loaded, RankGroup* group) {
  if (loaded.ok()) {
    follow_rank_zero(loaded.value().model.get(), group);
  } else {
    // Rank 0 has met the same error and says so; a message means that it has not.
    u64 message = 0;
    if (group->receive(&message, 0)) ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

base::Status open_model(const ModelOptions& options, Session* session) {
  const auto processors = static_cast<i32>(std::max(1u, std::thread::hardware_concurrency()));
  const i32 threads = options.threads > 0 ? options.threads : processors;
  if (options.ranks > 1) session->group = TRY(RankGroup::start(options.ranks, "fleetlm"));
  RankGroup* const group = session->group.get();
  session->crew = std::make_unique<Crew>(std::max(1, threads / options.ranks), group);
  auto loaded = load_model(options.path, options.exact ? Precision::kExact : Precision::kFast,
                           session->crew.get());
  if (group != nullptr && group->rank() != 0) follow(loaded, group);
  session->loaded = TRY(std::move(loaded));
  if (group != nullptr) {
    session->loaded.model = std::make_unique<RankedModel>(std::move(session->loaded.model), group);
  }
  return {};
}

base::Result<std::unique_ptr<Session>> open_session(const ModelOptions& options) {
  auto session = std::make_unique<Session>();
  TRY(open_model(options, session.get()));
  session->chat = ChatTemplate::detect(session->loaded.chat_template, *session->loaded.tokenizer);
  if (!options.draft_path.empty() || options.speculation == "dspark") {
    TRY(open_draft(options, session.get()));
  } else if (options.speculation == "mtp") {
    TRY(open_mtp(session.get()));
  } else if (options.speculation == "ngram") {
    session->drafter = std::make_unique<NgramDrafter>(NgramDrafter::Options{});
  }
  EngineOptions engine;
  engine.slots = options.slots;
  engine.context = options.context;
  engine.cache_bytes = static_cast<u64>(options.cache_mb) << 20;
  engine.draft_max = options.draft_max;
  engine.adapt_drafts = options.adapt_drafts;
  engine.rebuild_step = options.rebuild_step;
  engine.prefix_cache = options.prefix_cache;
  engine.tuning.fusion = options.fusion;
  engine.tuning.comm = options.comm;
  session->engine = TRY(Engine::create(session->loaded.model.get(), session->loaded.tokenizer.get(),
                                       session->drafter.get(), engine));
  return session;
}

int fail(const base::Error& error) {
  std::fprintf(stderr, "fleetlm: %s\n", error.message().c_str());
  return 1;
}

}  // namespace llm
