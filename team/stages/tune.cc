#include "base/files.h"
#include "team/core/glob.h"
#include "team/perf/loop.h"
#include "team/stages/attempt.h"
#include "team/stages/gating.h"
#include "team/stages/prompts.h"
#include "team/stages/verify.h"

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

constexpr size_t kProfileLinesForAgents = 8;

// The performance loop's view of a run: the benchmark is a gate, a candidate is a commit, a
// hypothesis is an attempt of a coder, and what is done once is in the ledger.
class TuneHost : public PerfHost {
 public:
  explicit TuneHost(Engine& engine) : engine_(engine) {}

  Result<Json> recorded(const std::string& key, const Json& request,
                        const std::function<Result<Json>()>& act) override {
    Built baseline = TRY(build_commit(engine_, engine_.head));
    Json full = request;
    full.set("baseline", baseline.tree);
    return engine_.main.once(
        {.key = key, .kind = "perf.measure", .cls = EffectClass::kPure, .request = full}, act);
  }
  base::Status event(const std::string& type, Json body) override {
    return engine_.main.emit(type, std::move(body));
  }
  void progress(const std::string& id, const std::string& text) override {
    engine_.watcher.activity(id, text);
  }

  Result<Profile> profile(const std::string& id) override {
    Built built = TRY(build_commit(engine_, engine_.head));
    return profile_gate(engine_, benchmark(), built, id);
  }
  Result<Hypothesis> ask(const std::string& id, const Profile& profile,
                         const std::vector<std::string>& tried) override;
  Result<std::string> check(const std::string& id, const std::string& candidate) override;
  Result<f64> measure(const std::string& candidate) override;
  base::Status keep(const std::string& id, const std::string& candidate) override;

 private:
  const GateSpec& benchmark() const { return *engine_.gate(engine_.spec.interface.benchmark_gate); }
  Result<std::string> commit(const std::string& id, const std::string& workspace,
                             const std::string& idea);

  Engine& engine_;
};

Result<Hypothesis> TuneHost::ask(const std::string& id, const Profile& profile,
                                 const std::vector<std::string>& tried) {
  const ProductInterface& interface = engine_.spec.interface;
  AttemptSpec spec;
  spec.task = id;
  spec.role = Role::kCoder;
  spec.stage = Stage::kVerify;
  spec.brief = hypothesis_brief("gate " + interface.benchmark_gate + ", metric " +
                                    interface.benchmark_metric + " (higher is better)",
                                to_text(profile, kProfileLinesForAgents), tried);
  spec.commit = engine_.head;
  spec.read_only_globs = engine_.design.contracts;
  HypothesisDoc doc;
  AttemptResult result =
      TRY(run_document(engine_, spec, 2, [&](const AttemptResult& r) -> base::Status {
        doc = TRY(hypothesis_from_json(TRY(read_document(r, "hypothesis.json"))));
        return {};
      }));
  std::string candidate = TRY(commit(id, result.workspace, doc.idea));
  return Hypothesis{doc.bottleneck, doc.idea, doc.function, doc.expected_gain, candidate};
}

// What a performance attempt may change: the sources that tasks own, never contracts or documents.
Result<std::string> TuneHost::commit(const std::string& id, const std::string& workspace,
                                     const std::string& idea) {
  auto act = [&]() -> Result<Json> {
    base::TempDir staging("fleet-perf");
    TRY(engine_.repo.checkout(engine_.head, staging.path()));
    std::string raw = TRY(engine_.repo.commit(workspace, engine_.head, "raw"));
    for (const std::string& file : TRY(engine_.repo.changed(engine_.head, raw))) {
      bool owned = false;
      for (const TaskDoc& task : engine_.plan.tasks) {
        for (const std::string& glob : task.touches) owned = owned || glob_matches(glob, file);
      }
      if (!owned) continue;
      TRY(base::write_file(staging / file, TRY(base::read_file(workspace + "/" + file))));
    }
    return Json::object(
        {{"commit", TRY(engine_.repo.commit(staging.path(), engine_.head, id + ": " + idea))}});
  };
  Json made = TRY(engine_.main.once({.key = "commit." + id,
                                     .kind = "change.commit",
                                     .cls = EffectClass::kExternal,
                                     .request = Json::object({{"head", engine_.head}})},
                                    act));
  return made["commit"].as_string();
}

// Correct means: every gate that judges passes.
Result<std::string> TuneHost::check(const std::string& id, const std::string& candidate) {
  Built built = TRY(build_commit(engine_, candidate));
  if (!built.ok) return "it does not build (" + built.evidence.id + ")";
  TRY(engine_.main.emit("experiment.built", Json::object({{"id", id}, {"tree", built.tree}})));
  for (const GateSpec& gate : engine_.gates) {
    if (gate.kind == GateKind::kPerformance) continue;
    Evidence evidence = TRY(run_gate(engine_, gate, built.folder, built.tree));
    if (evidence.verdict != Verdict::kPass) {
      return "it breaks gate " + gate.id + " (" + evidence.id + ")";
    }
  }
  TRY(engine_.main.emit("experiment.correct", Json::object({{"id", id}})));
  return std::string();
}

// Runs inside a recorded measurement, so nothing here is recorded by itself.
Result<f64> TuneHost::measure(const std::string& candidate) {
  Built built = TRY(build_commit(engine_, candidate.empty() ? engine_.head : candidate));
  Evidence evidence = TRY(engine_.runner.run(
      benchmark(), {.product = built.folder, .sealed = engine_.sealed(), .keep_at = ""}));
  const std::string& wanted = engine_.spec.interface.benchmark_metric;
  for (const auto& [metric, value] : evidence.metrics) {
    if (metric == wanted && value > 0) return value;
  }
  return Error(ErrorCode::kInvalidArgument,
               "the benchmark printed no " + wanted + ": " + evidence.log.substr(0, 200));
}

base::Status TuneHost::keep(const std::string& id, const std::string& candidate) {
  engine_.head = candidate;
  auto act = [&]() -> Result<Json> {
    TRY(engine_.repo.move_branch("main", candidate));
    return Json(true);
  };
  TRY(engine_.main.once({.key = "keep." + id,
                         .kind = "change.keep",
                         .cls = EffectClass::kExternal,
                         .request = Json(candidate)},
                        act));
  return {};
}

}  // namespace

base::Status tune(Engine& engine) {
  const ProductInterface& interface = engine.spec.interface;
  if (interface.benchmark_gate.empty() || engine.gate(interface.benchmark_gate) == nullptr)
    return {};
  TuneHost host(engine);
  PerfPlan plan = default_perf_plan();
  plan.experiments_max = interface.experiments_max;
  plan.seed = engine.config.seed;
  return run_experiments(host, plan);
}

}  // namespace team
