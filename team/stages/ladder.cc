// The upper rungs of the bounce ladder (core/ladder.h): a task is cut anew, and, when nothing
// helps, the line stops and somebody decides what becomes of it. Nobody who writes code decides it.
#include "team/core/ladder.h"

#include "team/stages/builder.h"
#include "team/stages/prompts.h"

#include <utility>

namespace team {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

constexpr int kDocumentAttempts = 2;

}  // namespace

// Without acceptable parts the task goes up to the last rung.
base::Status Builder::split(std::string id) {
  const TaskDoc doc = work(id).doc;
  AttemptSpec spec;
  spec.task = id + "-split";
  spec.role = Role::kDecider;
  spec.stage = Stage::kPlan;
  spec.brief = split_brief(doc, engine_.spec, engine_.design, work(id).feedback);
  spec.commit = engine_.head;
  spec.write_globs = {"plan.json"};
  PlanDoc parts;
  auto cut = run_document(engine_, spec, kDocumentAttempts,
                          [&](const AttemptResult& result) -> base::Status {
                            parts = TRY(plan_from_json(TRY(read_document(result, "plan.json"))));
                            return check_split(doc, parts, engine_.design, engine_.gates);
                          });
  if (!cut.ok()) {
    if (cut.error().code() != ErrorCode::kConflict) return std::move(cut).error();
    return escalate(work(id));
  }
  Json into = Json::array();
  for (const TaskDoc& part : parts.tasks) into.push(part.id);
  TRY(engine_.main.emit("task.split", Json::object({{"id", id}, {"into", into}})));
  for (const TaskDoc& part : parts.tasks) {
    work(id).parts.push_back(part.id);
    TRY(propose(part));
    work(part.id).is_part = true;
  }
  work(id).state = TaskState::kSplit;
  return check_graph(graph());
}

// The decider's word. One that brings none has decided to go on without the task.
Result<EscalationDoc> Builder::ask_decider(const Work& task) {
  AttemptSpec spec;
  spec.task = task.doc.id + "-escalation";
  spec.number = 1 + kDocumentAttempts * (task.escalations - 1);
  spec.role = Role::kDecider;
  spec.stage = Stage::kBuild;
  spec.brief = escalation_brief(task.doc, engine_.spec, task.feedback);
  spec.commit = engine_.head;
  spec.write_globs = {"decision.json"};
  EscalationDoc said;
  auto asked = run_document(
      engine_, spec, kDocumentAttempts, [&](const AttemptResult& result) -> base::Status {
        said = TRY(escalation_from_json(TRY(read_document(result, "decision.json"))));
        return {};
      });
  if (!asked.ok() && asked.error().code() != ErrorCode::kConflict) return asked.error();
  if (!asked.ok()) return EscalationDoc{"without", "", "the decider brought no decision"};
  if (said.choice == "retry" && task.escalations > 1) {
    return EscalationDoc{"without", "", "it was tried once more already"};
  }
  return said;
}

// A person's answer is read from the ledger, where it stays: the same on every replay.
base::Status Builder::ask_person(const std::string& decision, EscalationDoc& said) {
  Json answer;
  engine_.ledger.with_state([&](const RunState& state, const BudgetTree&) {
    if (const Entity* given = state.find("answer", decision)) answer = given->facts;
  });
  if (answer.is_null()) {
    return Error(ErrorCode::kConflict, "the run waits for a person, decision " + decision + ": " +
                                           said.advice + " Answer with: fleet answer " + decision +
                                           " \"what to do\" (or --without), then: fleet run");
  }
  said.choice = answer["without"].as_bool() ? "without" : "retry";
  said.advice = answer["text"].as_string();
  said.why = "a person said so";
  return {};
}

base::Status Builder::escalate(Work& task) {
  task.state = TaskState::kEscalated;
  ++task.escalations;
  const std::string decision = task.doc.id + ".e" + std::to_string(task.escalations);
  TRY(engine_.main.emit("task.escalated",
                        Json::object({{"id", task.doc.id}, {"decision", decision}})));
  EscalationDoc said = TRY(ask_decider(task));
  TRY(engine_.main.emit(
      "decision.open",
      Json::object(
          {{"id", decision},
           {"task", task.doc.id},
           {"question", said.choice == "person" ? said.advice : "what becomes of " + task.doc.id},
           {"options", Json::array({"retry", "without", "person"})}})));
  if (said.choice == "person") TRY(ask_person(decision, said));
  TRY(engine_.main.emit(
      "decision.decided",
      Json::object({{"id", decision},
                    {"choice", said.choice == "retry" ? "once more: " + said.advice
                                                      : "go on without " + task.doc.id},
                    {"why", said.why},
                    {"trigger", "the plan or the criteria change"}})));
  if (said.choice == "without") {
    task.state = TaskState::kAbandoned;
    return engine_.main.emit("task.abandoned", Json::object({{"id", task.doc.id}}));
  }
  task.feedback += "\nBefore you go on: " + said.advice + "\n";
  task.signatures.clear();
  task.attempts_before = task.attempts;
  task.rung = static_cast<int>(Rung::kFreshContext) + 1;
  task.state = TaskState::kReady;
  task.waiting_since_us = tick_ * kTickUs;
  return engine_.main.emit("task.ready", Json::object({{"id", task.doc.id}}));
}

}  // namespace team
