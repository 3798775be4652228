#include "base/files.h"
#include "base/hash.h"
#include "base/random.h"
#include "team/core/glob.h"
#include "team/core/stats.h"
#include "team/stages/attempt.h"
#include "team/stages/gating.h"
#include "team/stages/prompts.h"
#include "team/stages/verify.h"

#include <cmath>
#include <cstdio>
#include <optional>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

// Fixed before anything is measured. Ten pairs can reach p = 1/1024.
SamplePlan sample_plan() {
  SamplePlan plan;
  plan.looks = {10, 20, 30};
  plan.alphas = {0.004, 0.003, 0.003};
  plan.effect_min = 0.01;
  return plan;
}

constexpr int kAaPairs = 10;
constexpr f64 kAaAlpha = 0.01;

class Measurement {
 public:
  Measurement(Engine& engine, const std::string& name) : engine_(engine), name_(name) {}

  Result<f64> once(const std::string& folder) {
    const GateSpec* gate = engine_.gate(engine_.spec.interface.benchmark_gate);
    Evidence evidence = TRY(
        engine_.runner.run(*gate, {.product = folder, .sealed = engine_.sealed(), .keep_at = ""}));
    for (const auto& [metric, value] : evidence.metrics) {
      if (metric == engine_.spec.interface.benchmark_metric && value > 0) return value;
    }
    return Error(ErrorCode::kInvalidArgument, "the benchmark printed no " +
                                                  engine_.spec.interface.benchmark_metric + ": " +
                                                  evidence.log.substr(0, 200));
  }

  // One pair, in random order; ln(candidate / baseline), above zero when the candidate is faster.
  Result<f64> pair(const std::string& baseline, const std::string& candidate, base::Rng& rng) {
    f64 a = 0;
    f64 b = 0;
    if (rng.chance(0.5)) {
      a = TRY(once(baseline));
      b = TRY(once(candidate));
    } else {
      b = TRY(once(candidate));
      a = TRY(once(baseline));
    }
    ratios_.push_back(std::log(b / a));
    char text[80];
    std::snprintf(text, sizeof text, "pair %zu  %+.1f %%  (%.0f against %.0f)", ratios_.size(),
                  (b / a - 1) * 100, b, a);
    engine_.watcher.activity(name_, text);
    return ratios_.back();
  }

  const std::vector<f64>& ratios() const { return ratios_; }
  Json ratios_json() const {
    Json out = Json::array();
    for (f64 r : ratios_) out.push(r);
    return out;
  }

 private:
  Engine& engine_;
  std::string name_;
  std::vector<f64> ratios_;
};

// The same program against itself: a machine that sees a difference there is not fit to measure on.
Result<bool> machine_is_fit(Engine& engine, const Built& baseline) {
  Json aa = TRY(
      engine.main.once({.key = "measure.AA",
                        .kind = "perf.measure",
                        .cls = EffectClass::kPure,
                        .request = Json::object({{"tree", baseline.tree}, {"pairs", kAaPairs}})},
                       [&]() -> Result<Json> {
                         Measurement measurement(engine, "A/A");
                         base::Rng rng(engine.config.seed);
                         for (int i = 0; i < kAaPairs; ++i) {
                           TRY(measurement.pair(baseline.folder, baseline.folder, rng));
                         }
                         SignedRank test = signed_rank(measurement.ratios());
                         ShiftEstimate shift = hodges_lehmann(measurement.ratios(), 0.95);
                         return Json::object({{"p_greater", test.p_greater},
                                              {"p_less", test.p_less},
                                              {"shift", shift.shift},
                                              {"low", shift.low},
                                              {"high", shift.high},
                                              {"ratios", measurement.ratios_json()}});
                       }));
  engine.watcher.activity("A/A", "");
  bool fit = aa["p_greater"].as_double() > kAaAlpha / 2 && aa["p_less"].as_double() > kAaAlpha / 2;
  Json body = Json::object({{"id", "AA"}, {"fit", fit}, {"pairs", kAaPairs}});
  body.set("measured", std::move(aa));
  TRY(engine.main.emit("note.aa", std::move(body)));
  return fit;
}

Result<Json> measure(Engine& engine, const std::string& id, const Built& baseline,
                     const Built& candidate) {
  Json measured = TRY(engine.main.once(
      {.key = "measure." + id,
       .kind = "perf.measure",
       .cls = EffectClass::kPure,
       .request = Json::object({{"baseline", baseline.tree}, {"candidate", candidate.tree}})},
      [&]() -> Result<Json> {
        Measurement measurement(engine, id);
        base::Rng rng(base::xxh3(base::as_bytes(id), engine.config.seed));
        std::optional<PerfDecision> decision;
        while (!decision) {
          TRY(measurement.pair(baseline.folder, candidate.folder, rng));
          decision = decide(sample_plan(), measurement.ratios());
        }
        return Json::object({{"verdict", name_of(decision->verdict)},
                             {"why", decision->why},
                             {"pairs", decision->pairs},
                             {"p", decision->p},
                             {"gain", decision->gain},
                             {"low", decision->gain_low},
                             {"high", decision->gain_high},
                             {"ratios", measurement.ratios_json()}});
      }));
  engine.watcher.activity(id, "");
  return measured;
}

struct Candidate {
  HypothesisDoc hypothesis;
  std::string commit;
};

// What a performance attempt may change: the sources, never contracts or documents.
Result<Candidate> ask_for_change(Engine& engine, const std::string& id,
                                 const std::vector<std::string>& tried) {
  AttemptSpec spec;
  spec.task = id;
  spec.role = Role::kCoder;
  spec.stage = Stage::kVerify;
  spec.brief = hypothesis_brief("gate " + engine.spec.interface.benchmark_gate + ", metric " +
                                    engine.spec.interface.benchmark_metric + " (higher is better)",
                                tried);
  spec.commit = engine.head;
  spec.read_only_globs = engine.design.contracts;
  Candidate out;
  AttemptResult result =
      TRY(run_document(engine, spec, 2, [&](const AttemptResult& r) -> base::Status {
        out.hypothesis = TRY(hypothesis_from_json(TRY(read_document(r, "hypothesis.json"))));
        return {};
      }));
  Json made = TRY(engine.main.once(
      {.key = "commit." + id,
       .kind = "change.commit",
       .cls = EffectClass::kExternal,
       .request = Json::object({{"head", engine.head}})},
      [&]() -> Result<Json> {
        base::TempDir staging("fleet-perf");
        TRY(engine.repo.checkout(engine.head, staging.path()));
        std::string raw = TRY(engine.repo.commit(result.workspace, engine.head, "raw"));
        for (const std::string& file : TRY(engine.repo.changed(engine.head, raw))) {
          bool owned = false;
          for (const TaskDoc& task : engine.plan.tasks) {
            for (const std::string& glob : task.touches) owned = owned || glob_matches(glob, file);
          }
          if (!owned) continue;
          TRY(base::write_file(staging / file,
                               TRY(base::read_file(result.workspace + "/" + file))));
        }
        return Json::object({{"commit", TRY(engine.repo.commit(staging.path(), engine.head,
                                                               id + ": " + out.hypothesis.idea))}});
      }));
  out.commit = made["commit"].as_string();
  return out;
}

base::Status reject(Engine& engine, const std::string& id, const std::string& why) {
  return engine.main.emit("experiment.rejected", Json::object({{"id", id}, {"why", why}}));
}

// Correct means: every gate that judges passes.
Result<std::string> first_failure(Engine& engine, const Built& built) {
  for (const GateSpec& gate : engine.gates) {
    if (gate.kind == GateKind::kPerformance) continue;
    Evidence evidence = TRY(run_gate(engine, gate, built.folder, built.tree));
    if (evidence.verdict != Verdict::kPass) return gate.id + " (" + evidence.id + ")";
  }
  return std::string();
}

base::Status run_experiment(Engine& engine, const std::string& id,
                            std::vector<std::string>& tried) {
  Candidate candidate = TRY(ask_for_change(engine, id, tried));
  TRY(engine.main.emit("experiment.hypothesis",
                       Json::object({{"id", id},
                                     {"bottleneck", candidate.hypothesis.bottleneck},
                                     {"idea", candidate.hypothesis.idea},
                                     {"expected_gain", candidate.hypothesis.expected_gain}})));
  Built baseline = TRY(build_commit(engine, engine.head));
  Built built = TRY(build_commit(engine, candidate.commit));
  if (!built.ok) return reject(engine, id, "it does not build (" + built.evidence.id + ")");
  TRY(engine.main.emit("experiment.built", Json::object({{"id", id}, {"tree", built.tree}})));
  std::string failed = TRY(first_failure(engine, built));
  if (!failed.empty()) return reject(engine, id, "it breaks gate " + failed);
  TRY(engine.main.emit("experiment.correct", Json::object({{"id", id}})));
  TRY(engine.main.emit("experiment.measuring", Json::object({{"id", id}})));
  Json measured = TRY(measure(engine, id, baseline, built));
  bool keep = measured["verdict"].as_string() == "keep";
  char text[160];
  std::snprintf(text, sizeof text, "%s: %s (%+.0f %%)", candidate.hypothesis.idea.c_str(),
                keep ? "kept" : "rejected", measured["gain"].as_double() * 100);
  tried.push_back(text);
  if (keep) {
    engine.head = candidate.commit;
    TRY(engine.main.once({.key = "keep." + id,
                          .kind = "change.keep",
                          .cls = EffectClass::kExternal,
                          .request = Json(candidate.commit)},
                         [&]() -> Result<Json> {
                           TRY(engine.repo.move_branch("main", candidate.commit));
                           return Json(true);
                         }));
  }
  Json body = Json::object({{"id", id}});
  for (const auto& [name, value] : measured.members()) body.set(name, value);
  return engine.main.emit(keep ? "experiment.kept" : "experiment.rejected", std::move(body));
}

}  // namespace

base::Status tune(Engine& engine) {
  const ProductInterface& interface = engine.spec.interface;
  if (interface.benchmark_gate.empty() || engine.gate(interface.benchmark_gate) == nullptr)
    return {};
  Built baseline = TRY(build_commit(engine, engine.head));
  if (!TRY(machine_is_fit(engine, baseline))) return {};
  std::vector<std::string> tried;
  for (int n = 1; n <= interface.experiments_max; ++n) {
    TRY(run_experiment(engine, "X" + std::to_string(n), tried));
  }
  return {};
}

}  // namespace team
