#include "base/files.h"
#include "base/hash.h"
#include "team/stages/attempt.h"
#include "team/stages/converge.h"
#include "team/stages/prompts.h"

namespace team {
namespace {

using base::Json;
using base::Result;

constexpr int kDocumentAttempts = 3;

Result<std::string> spec_text(const Engine& engine) {
  return base::read_file(engine.path("spec.json"));
}

Json strings(const std::vector<std::string>& list) {
  return Json(Json::Array(list.begin(), list.end()));
}

base::Status record_decisions(Engine& engine) {
  for (const DecisionDoc& d : engine.design.decisions) {
    TRY(engine.main.emit(
        "decision.open",
        Json::object({{"id", d.id}, {"question", d.question}, {"options", strings(d.options)}})));
    TRY(engine.main.emit(
        "decision.decided",
        Json::object(
            {{"id", d.id}, {"choice", d.choice}, {"why", d.why}, {"trigger", d.trigger}})));
  }
  return {};
}

base::Status review_design(Engine& engine, const std::string& spec, const std::string& folder) {
  AttemptSpec review;
  review.task = "design-review";
  review.role = Role::kReviewer;
  review.stage = Stage::kDesign;
  review.brief = design_review_brief(spec);
  review.folder = folder;
  review.write_globs = {"review.json"};
  CritiqueDoc critique;
  TRY(run_document(engine, review, kDocumentAttempts,
                   [&](const AttemptResult& result) -> base::Status {
                     critique = TRY(critique_from_json(TRY(read_document(result, "review.json"))));
                     return {};
                   }));
  Json findings = Json::array();
  for (const Finding& f : critique.findings) {
    findings.push(Json::object({{"about", f.about}, {"severity", f.severity}, {"text", f.text}}));
  }
  return engine.main.emit("design.reviewed", Json::object({{"id", "design"},
                                                           {"findings", std::move(findings)},
                                                           {"blocking", critique.blocking()}}));
}

// The contracts become the first commit; their hashes are what "frozen" means.
base::Status freeze_contracts(Engine& engine, const std::string& workspace) {
  Json frozen = TRY(engine.main.once(
      {.key = "freeze",
       .kind = "design.freeze",
       .cls = EffectClass::kExternal,
       .request = Json("v1")},
      [&]() -> Result<Json> {
        base::TempDir staging("fleet-design");
        Json files = Json::object();
        std::vector<std::string> names = engine.design.contracts;
        if (base::file_exists(workspace + "/AGENTS.md")) names.push_back("AGENTS.md");
        for (const std::string& name : names) {
          std::string content = TRY(base::read_file(workspace + "/" + name));
          std::string to = staging / name;
          TRY(base::make_directories(to.substr(0, to.rfind('/'))));
          TRY(base::write_file(to, content));
          files.set(name, base::sha256_hex(content));
        }
        std::string commit = TRY(engine.repo.commit(staging.path(), "", "Freeze the contracts"));
        TRY(engine.repo.move_branch("main", commit));
        return Json::object({{"commit", commit}, {"files", std::move(files)}});
      }));
  engine.head = frozen["commit"].as_string();
  return engine.main.emit(
      "design.frozen",
      Json::object(
          {{"id", "design"}, {"version", 1}, {"commit", engine.head}, {"files", frozen["files"]}}));
}

}  // namespace

base::Status design(Engine& engine) {
  TRY(engine.main.emit("stage.started", Json::object({{"id", "design"}})));
  std::string spec = TRY(spec_text(engine));
  AttemptSpec attempt;
  attempt.task = "design";
  attempt.role = Role::kArchitect;
  attempt.stage = Stage::kDesign;
  attempt.brief = design_brief(spec);
  AttemptResult drawn = TRY(run_document(
      engine, attempt, kDocumentAttempts, [&](const AttemptResult& result) -> base::Status {
        engine.design = TRY(design_from_json(TRY(read_document(result, "design.json"))));
        for (const std::string& name : engine.design.contracts) {
          if (base::file_exists(result.workspace + "/" + name)) continue;
          return base::Error(base::ErrorCode::kInvalidArgument,
                             "the contract file " + name + " was not written");
        }
        return {};
      }));
  TRY(engine.main.emit("design.draft",
                       Json::object({{"id", "design"}, {"summary", engine.design.summary}})));
  TRY(record_decisions(engine));
  TRY(review_design(engine, spec, drawn.workspace));
  TRY(freeze_contracts(engine, drawn.workspace));
  return engine.main.emit("stage.done", Json::object({{"id", "design"}}));
}

base::Status plan_work(Engine& engine) {
  TRY(engine.main.emit("stage.started", Json::object({{"id", "plan"}})));
  AttemptSpec attempt;
  attempt.task = "plan";
  attempt.role = Role::kDecider;
  attempt.stage = Stage::kPlan;
  attempt.brief = plan_brief(TRY(spec_text(engine)), engine.design, engine.gates);
  attempt.commit = engine.head;
  attempt.write_globs = {"plan.json"};
  TRY(run_document(engine, attempt, kDocumentAttempts,
                   [&](const AttemptResult& result) -> base::Status {
                     engine.plan = TRY(plan_from_json(TRY(read_document(result, "plan.json"))));
                     return check_plan(engine.plan, engine.spec, engine.design, engine.gates);
                   }));
  return {};
}

}  // namespace team
