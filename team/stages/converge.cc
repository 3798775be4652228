#include "team/stages/converge.h"

#include "base/files.h"
#include "team/gate/validate.h"
#include "team/sandbox/workspace.h"
#include "team/stages/attempt.h"
#include "team/stages/gating.h"
#include "team/stages/prompts.h"

namespace team {
namespace {

using base::Json;
using base::Result;

constexpr int kDocumentAttempts = 3;
constexpr int kCritiqueRounds = 3;

Json strings(const std::vector<std::string>& list) {
  return Json(Json::Array(list.begin(), list.end()));
}

Json findings_json(const CritiqueDoc& critique) {
  Json out = Json::array();
  for (const Finding& f : critique.findings) {
    out.push(Json::object({{"about", f.about}, {"severity", f.severity}, {"text", f.text}}));
  }
  return out;
}

struct Draft {
  AttemptResult attempt;
  int next_number = 1;
};

Result<Draft> draft_spec(Engine& engine, int number, std::string brief, const std::string& folder) {
  AttemptSpec spec;
  spec.task = "spec";
  spec.number = number;
  spec.role = Role::kDecider;
  spec.stage = Stage::kConverge;
  spec.brief = std::move(brief);
  spec.folder = folder;
  int used = number - 1;
  Draft draft{TRY(run_document(engine, spec, kDocumentAttempts,
                               [&](const AttemptResult& result) -> base::Status {
                                 ++used;
                                 engine.spec =
                                     TRY(spec_from_json(TRY(read_document(result, "spec.json"))));
                                 return {};
                               })),
              0};
  draft.next_number = used + 1;
  TRY(engine.main.emit(
      "spec.draft", Json::object({{"id", "S1"},
                                  {"title", engine.spec.title},
                                  {"criteria", static_cast<i64>(engine.spec.criteria.size())}})));
  return draft;
}

Result<CritiqueDoc> critique_spec(Engine& engine, int number, const std::string& folder) {
  AttemptSpec spec;
  spec.task = "critique";
  spec.number = number;
  spec.role = Role::kReviewer;
  spec.stage = Stage::kConverge;
  spec.brief = critique_brief(engine.config.intent);
  spec.folder = folder;
  spec.write_globs = {"review.json"};
  CritiqueDoc critique;
  TRY(run_document(engine, spec, 1, [&](const AttemptResult& result) -> base::Status {
    critique = TRY(critique_from_json(TRY(read_document(result, "review.json"))));
    return {};
  }));
  TRY(engine.main.emit("spec.critiqued", Json::object({{"id", "S1"},
                                                       {"findings", findings_json(critique)},
                                                       {"blocking", critique.blocking()}})));
  return critique;
}

// Draft, attack, revise, until nothing blocking is left.
Result<std::string> agree_on_spec(Engine& engine) {
  Draft draft = TRY(draft_spec(engine, 1, spec_brief(engine.config.intent), ""));
  for (int round = 1; round <= kCritiqueRounds; ++round) {
    CritiqueDoc critique = TRY(critique_spec(engine, round, draft.attempt.workspace));
    if (critique.blocking() == 0 || round == kCritiqueRounds) break;
    draft = TRY(draft_spec(engine, draft.next_number,
                           spec_revision_brief(engine.config.intent, critique),
                           draft.attempt.workspace));
  }
  for (const Assumption& a : engine.spec.assumptions) {
    TRY(engine.main.emit(
        "assumption.made",
        Json::object({{"id", a.id}, {"question", a.question}, {"choice", a.choice}})));
  }
  for (const Criterion& c : engine.spec.criteria) {
    TRY(engine.main.emit(
        "criterion.unbound",
        Json::object({{"id", c.id}, {"text", c.text}, {"visibility", name_of(c.visibility)}})));
  }
  return base::read_file(draft.attempt.workspace + "/spec.json");
}

// A program that is there and does nothing: every path that a gate starts exists and exits with 0.
base::Status make_do_nothing(const std::string& folder, const std::vector<GateSpec>& gates) {
  TRY(base::remove_tree(folder));
  TRY(base::make_directories(folder));
  const std::string prefix = "{product}/";
  for (const GateSpec& gate : gates) {
    if (gate.service.argv.empty() || gate.service.argv[0].rfind(prefix, 0) != 0) continue;
    std::string path = folder + "/" + gate.service.argv[0].substr(prefix.size());
    TRY(base::make_directories(path.substr(0, path.rfind('/'))));
    TRY(base::write_file(path, "#!/bin/sh\nexit 0\n"));
    base::ProcessSpec chmod;
    chmod.argv = {"chmod", "755", path};
    TRY(base::run_process(chmod));
  }
  return {};
}

// One effect a gate: what it says about programs that must not pass.
Result<Json> validate_one(Engine& engine, const GateSpec& gate, const std::string& sealed,
                          const std::string& do_nothing) {
  EffectIntent intent{.key = "validate." + gate.id,
                      .kind = "gate.validate",
                      .cls = EffectClass::kPure,
                      .request = to_json(gate)};
  if (!engine.main.replaying()) engine.watcher.activity("validate " + gate.id, "must fail here");
  Json json = TRY(engine.main.once(intent, [&]() -> Result<Json> {
    Validation validation =
        TRY(validate_gate(engine.runner, gate, sealed,
                          {{.name = "do-nothing", .source = do_nothing, .must_pass = false}}));
    Json checks = Json::array();
    for (const ValidationFinding& f : validation.findings) {
      checks.push(Json::object({{"on", f.name},
                                {"as_expected", f.as_expected},
                                {"verdict", name_of(f.evidence.verdict)},
                                {"num", f.evidence.numerator},
                                {"denom", f.evidence.denominator},
                                {"detail", f.detail}}));
    }
    return Json::object({{"valid", validation.valid}, {"checks", std::move(checks)}});
  }));
  engine.watcher.activity("validate " + gate.id, "");
  return json;
}

// Gates as handed in: well-formed, bound both ways, and failing on what does nothing.
base::Status accept_gates(Engine& engine, const AttemptResult& result, Json& validations) {
  std::vector<GateSpec> gates = TRY(load_gate_folder(result.workspace + "/gates"));
  TRY(check_binding(engine.spec, gates));
  std::string sealed = result.workspace + "/sealed";
  TRY(base::make_directories(sealed));
  std::string do_nothing = engine.path("validation/do-nothing");
  TRY(make_do_nothing(do_nothing, gates));
  validations = Json::object();
  for (const GateSpec& gate : gates) {
    if (gate.kind == GateKind::kPerformance) continue;  // measures, does not judge
    Json one = TRY(validate_one(engine, gate, sealed, do_nothing));
    if (!one["valid"].as_bool()) {
      return base::Error(base::ErrorCode::kInvalidArgument,
                         "gate " + gate.id + " cannot fail: " + one["checks"].dump());
    }
    validations.set(gate.id, std::move(one));
  }
  engine.gates = std::move(gates);
  return {};
}

base::Status bind_criteria(Engine& engine, const Json& validations) {
  for (const Criterion& c : engine.spec.criteria) {
    TRY(engine.main.emit("criterion.bound",
                         Json::object({{"id", c.id}, {"gates", strings(c.gates)}})));
    Json checks = Json::array();
    i64 denominator = 0;
    for (const std::string& id : c.gates) {
      denominator += static_cast<i64>(engine.gate(id)->manifest.size());
      for (const Json& check : validations[id]["checks"].items()) {
        Json named =
            Json::object({{"gate", id}, {"on", check["on"]}, {"verdict", check["verdict"]}});
        checks.push(std::move(named));
      }
    }
    TRY(engine.main.emit(
        "criterion.validated",
        Json::object({{"id", c.id}, {"denominator", denominator}, {"checks", std::move(checks)}})));
  }
  return {};
}

}  // namespace

base::Status converge(Engine& engine) {
  TRY(engine.main.emit("stage.started", Json::object({{"id", "converge"}})));
  std::string spec_text = TRY(agree_on_spec(engine));
  TRY(base::write_file(engine.path("spec.json"), spec_text));

  AttemptSpec oracle;
  oracle.task = "oracle";
  oracle.role = Role::kTester;
  oracle.stage = Stage::kConverge;
  oracle.brief = oracle_brief(engine.spec, spec_text);
  Json validations;
  AttemptResult written =
      TRY(run_document(engine, oracle, kDocumentAttempts, [&](const AttemptResult& result) {
        return accept_gates(engine, result, validations);
      }));
  TRY(bind_criteria(engine, validations));

  // Sealed: a copy no agent is ever given, named by its content.
  Json sealed = TRY(engine.main.once(
      {.key = "seal", .kind = "gates.seal", .cls = EffectClass::kPure, .request = Json("sealed")},
      [&]() -> Result<Json> {
        TRY(base::remove_tree(engine.sealed()));
        Workspace copy =
            TRY(Workspace::fork_directory(written.workspace + "/sealed", engine.sealed()));
        return Json::object({{"tree", TRY(copy.tree_hash())}});
      }));
  TRY(engine.main.emit("spec.frozen",
                       Json::object({{"id", "S1"},
                                     {"version", 1},
                                     {"text", spec_text},
                                     {"sealed", sealed["tree"]},
                                     {"gates", static_cast<i64>(engine.gates.size())}})));
  return engine.main.emit("stage.done", Json::object({{"id", "converge"}}));
}

}  // namespace team
