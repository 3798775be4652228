#include "base/random.h"
#include "llm/cli/commands.h"
#include "llm/speculation/ngram.h"

#include <CLI/CLI.hpp>

#include <thread>

namespace llm {

namespace {
constexpr Command kCommands[] = {
    {"chat", run_chat}, {"run", run_run}, {"serve", run_serve}, {"info", run_info}};
}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

void ModelOptions::add_to(CLI::App* app) {
  app->add_option("model", path, "a GGUF file")->required();
  app->add_option("-t,--threads", threads, "threads; 0: one for each processor")
      ->check(CLI::Range(0, 1024));
  app->add_option("-c,--context", context, "tokens of one conversation")
      ->check(CLI::Range(32, 1 << 20));
  app->add_option("--slots", slots, "conversations computed at once")->check(CLI::Range(1, 256));
  app->add_option("--cache-mb", cache_mb, "memory for the key-value cache")
      ->check(CLI::Range(1, 1 << 20));
  app->add_option("--spec", speculation, "who guesses ahead: ngram or none")
      ->check(CLI::IsMember({"ngram", "none"}));
  app->add_option("--draft-max", draft_max, "guesses at once")->check(CLI::Range(1, 15));
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

base::Result<std::unique_ptr<Session>> open_session(const ModelOptions& options) {
  auto session = std::make_unique<Session>();
  const auto processors = static_cast<i32>(std::max(1u, std::thread::hardware_concurrency()));
  session->crew = std::make_unique<Crew>(options.threads > 0 ? options.threads : processors);
  session->loaded = TRY(load_model(
      options.path, options.exact ? Precision::kExact : Precision::kFast, session->crew.get()));
  session->chat = ChatTemplate::detect(session->loaded.chat_template, *session->loaded.tokenizer);
  if (options.speculation == "ngram") {
    session->drafter = std::make_unique<NgramDrafter>(NgramDrafter::Options{});
  }
  EngineOptions engine;
  engine.slots = options.slots;
  engine.context = options.context;
  engine.cache_bytes = static_cast<u64>(options.cache_mb) << 20;
  engine.draft_max = options.draft_max;
  session->engine = TRY(Engine::create(session->loaded.model.get(), session->loaded.tokenizer.get(),
                                       session->drafter.get(), engine));
  return session;
}

int fail(const base::Error& error) {
  std::fprintf(stderr, "fleetlm: %s\n", error.message().c_str());
  return 1;
}

}  // namespace llm
