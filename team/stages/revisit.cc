#include "team/stages/revisit.h"

#include "team/ops/monitor.h"
#include "team/ops/triggers.h"
#include "team/stages/attempt.h"
#include "team/stages/prompts.h"

#include <algorithm>
#include <utility>

namespace team {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

constexpr int kDocumentAttempts = 2;

// On record, so that a resumed run decides on the same numbers.
Result<Measured> measure(Engine& engine, const std::string& deployment, const Json& operation) {
  const EffectIntent intent{.key = "measured." + deployment,
                            .kind = "ops.measured",
                            .cls = EffectClass::kPure,
                            .request = Json(deployment)};
  const Json record = TRY(engine.main.once(intent, [&]() -> Result<Json> {
    Json out = Json::object();
    for (const auto& [metric, value] : measured_from(operation)) out.set(metric, value);
    const auto spent = static_cast<f64>(engine.ledger.state().spent_nusd());
    out.set("cost", spent / 1e9);
    out.set("budget", 100 * spent / static_cast<f64>(engine.config.budget_nusd));
    return out;
  }));
  Measured values;
  for (const auto& [metric, value] : record.members()) values[metric] = value.as_double();
  return values;
}

std::string fires(const std::string& text, const Measured& values) {
  std::optional<Trigger> trigger = parse_trigger(text);
  return trigger ? fired(*trigger, values) : "";
}

std::string task_id(const DecisionDoc& decision) {
  return "T-" + decision.id;
}

base::Status check(const RevisionDoc& revision, const DecisionDoc& decision,
                   const Measured& values) {
  auto bad = [](const std::string& what) { return Error(ErrorCode::kInvalidArgument, what); };
  const auto& options = decision.options;
  if (std::find(options.begin(), options.end(), revision.choice) == options.end()) {
    return bad("the choice must be one of the options, word for word");
  }
  const bool kept = revision.choice == decision.choice;
  if (kept && !revision.task_title.empty()) return bad("a decision that is kept needs no work");
  if (!kept && revision.task_title.empty()) {
    return bad("another choice needs work: {\"title\": ..., \"brief\": ...}");
  }
  if (kept && !fires(revision.trigger, values).empty()) {
    return bad("the trigger '" + revision.trigger +
               "' fires on the same numbers again; name one that does not, or choose otherwise");
  }
  return {};
}

}  // namespace

// An architect who brings nothing usable has let the decision stand.
Result<RevisionDoc> Revisits::ask(const DecisionDoc& decision, const std::string& because,
                                  const Measured& measured) {
  AttemptSpec spec;
  spec.task = decision.id + "-again";
  spec.role = Role::kArchitect;
  spec.stage = Stage::kOperate;
  spec.brief = revision_brief(decision, because, measured);
  spec.commit = engine_.head;
  spec.write_globs = {"decision.json"};
  RevisionDoc said;
  auto asked = run_document(
      engine_, spec, kDocumentAttempts, [&](const AttemptResult& result) -> base::Status {
        said = TRY(revision_from_json(TRY(read_document(result, "decision.json"))));
        return check(said, decision, measured);
      });
  if (asked.ok()) return said;
  if (asked.error().code() != ErrorCode::kConflict) return asked.error();
  RevisionDoc stands;
  stands.choice = decision.choice;
  stands.why = "the architect brought no other decision; before: " + decision.why;
  stands.trigger = decision.trigger;
  return stands;
}

// It must leave every criterion met, so it is gated by all of them.
TaskDoc Revisits::task_for(const DecisionDoc& decision, const RevisionDoc& revision) const {
  TaskDoc task;
  task.id = task_id(decision);
  task.title = revision.task_title;
  task.brief = revision.task_brief + "\nDecided anew: " + decision.question + " Not '" +
               decision.choice + "' any more but '" + revision.choice + "': " + revision.why;
  for (const Criterion& criterion : engine_.spec.criteria) {
    task.covers.push_back(criterion.id);
    for (const std::string& gate : criterion.gates) {
      if (std::find(task.gates.begin(), task.gates.end(), gate) == task.gates.end()) {
        task.gates.push_back(gate);
      }
    }
  }
  for (const TaskDoc& planned : engine_.plan.tasks) {
    task.touches.insert(task.touches.end(), planned.touches.begin(), planned.touches.end());
  }
  return task;
}

base::Status Revisits::reopen(const DecisionDoc& decision, const std::string& because,
                              const std::string& deployment) {
  return engine_.main.emit(
      "decision.revisited",
      Json::object({{"id", decision.id}, {"because", because}, {"deployment", deployment}}));
}

base::Status Revisits::decide(DecisionDoc& decision, const RevisionDoc& said) {
  TRY(engine_.main.emit("decision.decided", Json::object({{"id", decision.id},
                                                          {"choice", said.choice},
                                                          {"was", decision.choice},
                                                          {"why", said.why},
                                                          {"trigger", said.trigger}})));
  decision.choice = said.choice;
  decision.why = said.why;
  decision.trigger = said.trigger;
  return {};
}

Result<std::vector<TaskDoc>> Revisits::after(const std::string& deployment, const Json& operation) {
  const Measured measured = TRY(measure(engine_, deployment, operation));
  std::vector<TaskDoc> tasks;
  for (DecisionDoc& decision : engine_.design.decisions) {
    const std::string because = fires(decision.trigger, measured);
    if (because.empty() || !reopened_.emplace(decision.id, decision).second) continue;
    TRY(reopen(decision, because, deployment));
    const RevisionDoc said = TRY(ask(decision, because, measured));
    if (said.choice != decision.choice) tasks.push_back(task_for(decision, said));
    TRY(decide(decision, said));
  }
  return tasks;
}

base::Status Revisits::withdraw(const TaskDoc& task) {
  for (DecisionDoc& decision : engine_.design.decisions) {
    if (task_id(decision) != task.id) continue;
    const DecisionDoc& before = reopened_.at(decision.id);
    TRY(reopen(decision, task.id + " was given up", ""));
    RevisionDoc said;
    said.choice = before.choice;
    said.why = "nobody could make the product follow the other choice; before: " + before.why;
    said.trigger = before.trigger;
    TRY(decide(decision, said));
  }
  return {};
}

}  // namespace team
