// fleetlm bench: what a step costs on this machine, by medians, with the counters that explain it.
// --ablation prints leave-one-out and the cumulative staircase of the switches.
#include "base/clock.h"
#include "base/json.h"
#include "llm/cli/commands.h"
#include "llm/speculation/ngram.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <thread>

namespace llm {
namespace {

f64 median(std::vector<f64> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct StepBench {
  Model* model;
  std::vector<i32> table;
  i32 pages;

  // Milliseconds of one step of `width` rows that starts at `position`.
  f64 step_ms(i32 width, i32 position, i32 logit_rows) {
    std::vector<BatchRow> rows;
    for (i32 i = 0; i < width; ++i) {
      rows.push_back(
          {(i * 7919 + position) % model->info().vocab, position + i, 0, i >= width - logit_rows});
    }
    const i64 start = base::system_clock().monotonic_us();
    model->forward({rows.data(), width, table.data(), pages});
    return static_cast<f64>(base::system_clock().monotonic_us() - start) / 1000;
  }
};

base::Json bench_steps(Model* model, i32 prompt, i32 repeats) {
  const i32 pages = prompt / kPageTokens + 4;
  model->reserve(
      {.pages = pages, .rows = std::max(prompt, 16), .logit_rows = 16, .context = prompt + 32});
  StepBench bench{model, {}, pages};
  for (i32 p = 0; p < pages; ++p) bench.table.push_back(p);
  bench.step_ms(prompt, 0, 1);
  std::vector<f64> prefill;
  std::vector<std::vector<f64>> widths(4);
  for (i32 round = 0; round < repeats;
       ++round) {  // interleaved, so that a busy moment hits all alike
    prefill.push_back(bench.step_ms(prompt, 0, 1));
    for (size_t w = 0; w < widths.size(); ++w)
      widths[w].push_back(bench.step_ms(1 << w, prompt, 1 << w));
  }
  base::Json out = base::Json::object();
  out.set("prefill_tokens_per_s", prompt / median(prefill) * 1000);
  const f64 one = median(widths[0]);
  out.set("decode_tokens_per_s", 1000 / one);
  out.set("decode_read_gb_per_s", static_cast<f64>(model->info().step_weight_bytes) / one / 1e6);
  for (size_t w = 0; w < widths.size(); ++w) {
    out.set("ms_at_width_" + std::to_string(1 << w), median(widths[w]));
    out.set("steps_at_width_" + std::to_string(1 << w), median(widths[w]) / one);
  }
  return out;
}

struct Variant {
  const char* name;
  bool fusion, plan, speculation;
};

base::Json run_variant(const ModelOptions& options, const Variant& v, const std::string& prompt,
                       i32 tokens) {
  ModelOptions chosen = options;
  chosen.speculation = v.speculation ? "ngram" : "none";
  chosen.rebuild_step = !v.plan;
  chosen.fusion = v.fusion;
  auto session = open_session(chosen).value();
  GenerateRequest request;
  request.prompt = session->loaded.tokenizer->encode(prompt, true);
  request.max_tokens = tokens;
  request.sampling.temperature = 0;
  request.ignore_stop_tokens = true;
  i64 first = 0;
  i64 last = 0;
  Usage usage;
  request.sink = [&](Chunk&& chunk) {
    last = base::system_clock().monotonic_us();
    if (first == 0) first = last;
    usage = chunk.usage;
  };
  CHECK(session->engine->submit(std::move(request)).ok());
  const u64 barriers = session->crew->counters().barriers;
  session->engine->run();
  const EngineStats s = session->engine->stats();
  base::Json out = base::Json::object({{"variant", v.name}});
  out.set("tokens_per_s", usage.completion_tokens / (static_cast<f64>(last - first) / 1e6));
  out.set("steps", s.steps);
  out.set("tokens_per_step", static_cast<f64>(s.generated) / static_cast<f64>(s.steps));
  out.set("accepted", s.accepted);
  out.set("drafted", s.drafted);
  out.set("barriers_per_step", static_cast<f64>(session->crew->counters().barriers - barriers) /
                                   static_cast<f64>(s.steps));
  out.set("metadata_bytes_per_step",
          static_cast<f64>(s.metadata_bytes) / static_cast<f64>(s.steps));
  return out;
}

constexpr Variant kVariants[] = {
    {"all on", true, true, true},
    {"without fusion", false, true, true},
    {"without step plan", true, false, true},
    {"without speculation", true, true, false},
    {"none", false, false, false},
    {"fusion", true, false, false},
    {"fusion + step plan", true, true, false},
};

}  // namespace

int run_bench(int argc, char** argv) {
  CLI::App app("Measures steps of a model on this machine.", "fleetlm bench");
  ModelOptions model;
  i32 prompt = 256;
  i32 repeats = 7;
  i32 tokens = 128;
  bool ablation = false;
  std::string text =
      "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n\ndef mul(a, b):\n";
  model.add_to(&app);
  app.add_option("--prompt-tokens", prompt, "tokens of the prefill step")
      ->check(CLI::Range(16, 4096));
  app.add_option("--repeats", repeats, "measurements, of which the median counts")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--ablation", ablation, "compare the engine's optimisations instead");
  app.add_option("--text", text, "what the ablation continues");
  app.add_option("--tokens", tokens, "how far")->check(CLI::Range(2, 4096));
  CLI11_PARSE(app, argc, argv);
  if (ablation) {
    for (const Variant& v : kVariants)
      std::puts(run_variant(model, v, text, tokens).dump().c_str());
    return 0;
  }
  const i32 threads =
      model.threads > 0 ? model.threads : static_cast<i32>(std::thread::hardware_concurrency());
  Crew crew(std::max(threads, 1));
  auto loaded = load_model(model.path, model.exact ? Precision::kExact : Precision::kFast, &crew);
  if (!loaded.ok()) return fail(loaded.error());
  base::Json out = bench_steps(loaded->model.get(), prompt, repeats);
  out.set("kernels", best_kernels().name);
  out.set("threads", crew.size());
  out.set("weight_bytes", loaded->model->info().weight_bytes);
  std::puts(out.dump_pretty().c_str());
  return 0;
}

}  // namespace llm
