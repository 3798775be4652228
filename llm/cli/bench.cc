// fleetlm bench: what a step costs on this machine, by medians, with the counters that explain it.
// --roofline adds what memory allows; --ablation is in ablation.cc.
#include "base/clock.h"
#include "base/json.h"
#include "llm/cli/ablation.h"
#include "llm/cli/memory_read.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <optional>

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
  bool cpu;  // count processor time, for machines that others use too

  i64 now_us() const { return cpu ? processor_us() : base::system_clock().monotonic_us(); }

  // Milliseconds of one step of `width` rows that starts at `position`.
  f64 step_ms(i32 width, i32 position, i32 logit_rows) {
    std::vector<BatchRow> rows;
    for (i32 i = 0; i < width; ++i) {
      rows.push_back(
          {(i * 7919 + position) % model->info().vocab, position + i, 0, i >= width - logit_rows});
    }
    const i64 start = now_us();
    model->forward({rows.data(), width, table.data(), pages});
    return static_cast<f64>(now_us() - start) / 1000;
  }
};

// What memory allows, read in turn with the steps, so that a busy moment hits all alike.
struct Roofline {
  MemoryReader again, uncached;
  std::vector<f64> again_gb_per_s, uncached_gb_per_s;

  explicit Roofline(Model* model)
      : again(&model->crew(), model->info().step_weight_bytes),
        uncached(&model->crew(), uncached_bytes()) {}
  void measure() {
    uncached_gb_per_s.push_back(uncached.read_gb_per_s());
    again.read_gb_per_s();  // as after a step of the same size
    again_gb_per_s.push_back(again.read_gb_per_s());
  }
  void report(base::Json* out) const {
    const f64 decode = (*out)["decode_read_gb_per_s"].as_double();
    out->set("read_again_limit_gb_per_s", median(again_gb_per_s));
    out->set("memory_read_limit_gb_per_s", median(uncached_gb_per_s));
    out->set("decode_share_of_read_again_limit", decode / median(again_gb_per_s));
    out->set("decode_share_of_memory_limit", decode / median(uncached_gb_per_s));
  }
};

base::Json bench_steps(Model* model, i32 prompt, i32 repeats, bool cpu, Roofline* roofline) {
  const i32 pages = prompt / kPageTokens + 4;
  model->reserve(
      {.pages = pages, .rows = std::max(prompt, 16), .logit_rows = 16, .context = prompt + 32});
  StepBench bench{model, {}, pages, cpu};
  for (i32 p = 0; p < pages; ++p) bench.table.push_back(p);
  bench.step_ms(prompt, 0, 1);
  std::vector<f64> prefill;
  std::vector<std::vector<f64>> widths(4);
  // Interleaved, so that a busy moment hits all alike.
  for (i32 round = 0; round < repeats; ++round) {
    if (roofline != nullptr) roofline->measure();
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
  if (roofline != nullptr) roofline->report(&out);
  return out;
}

}  // namespace

int run_bench(int argc, char** argv) {
  CLI::App app("Measures steps of a model on this machine.", "fleetlm bench");
  ModelOptions model;
  i32 prompt = 256;
  i32 repeats = 7;
  AblationOptions ablation;
  bool ablate = false;
  bool roofline = false;
  bool cpu = false;
  model.add_to(&app);
  app.add_option("--prompt-tokens", prompt, "tokens of the prefill step")
      ->check(CLI::Range(16, 4096));
  app.add_option("--repeats", repeats, "measurements, of which the median counts")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--cpu", cpu, "processor time instead of wall time; meant for --threads 1");
  app.add_flag("--roofline", roofline, "measure how fast memory can be read, too");
  app.add_flag("--ablation", ablate,
               "switch the four optimisations off one by one and on one by one instead");
  app.add_option("--prompts", ablation.prompts_path,
                 "a file with a JSON string a line: the texts that the ablation continues");
  app.add_option("--tokens", ablation.tokens, "longest answer of the ablation")
      ->check(CLI::Range(2, 4096));
  app.add_flag("--json", ablation.json, "the ablation's rows as JSON");
  CLI11_PARSE(app, argc, argv);
  ablation.repeats = repeats;
  ablation.cpu = cpu;
  if (ablate) return run_ablation(model, ablation);
  Session session;
  const base::Status opened = open_model(model, &session);
  if (!opened.ok()) return fail(opened.error());
  Model& m = *session.loaded.model;
  std::optional<Roofline> limits;
  if (roofline) limits.emplace(&m);
  base::Json out = bench_steps(&m, prompt, repeats, cpu, limits ? &*limits : nullptr);
  out.set("kernels", best_kernels().name);
  out.set("ranks", model.ranks);
  out.set("threads_per_rank", m.crew().size());
  out.set("weight_bytes", m.info().weight_bytes);
  std::puts(out.dump_pretty().c_str());
  return 0;
}

}  // namespace llm
