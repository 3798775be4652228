// The documents that roles hand in: spec, critique, design, plan, review, mutants, hypothesis,
// faults. All are JSON files in the workspace of an attempt, read strictly: an unknown key, a
// missing field or an id that points nowhere is an error with a sentence that goes back to the
// author. Thread-safe: plain values, pure functions.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/core/gate_spec.h"
#include "team/core/names.h"
#include "team/core/scheduler.h"
#include "team/ops/faults.h"
#include "team/ops/traffic.h"

#include <string>
#include <vector>

namespace team {

struct Criterion {
  std::string id;
  std::string text;  // "when X, the system shall Y"
  std::vector<std::string> gates;
  Visibility visibility = Visibility::kVisible;
};

struct Assumption {
  std::string id, question, choice;
};

// How the product is built and served: fixed by the spec, so that tests can be written before code.
struct ProductInterface {
  std::vector<std::string> build;  // argv, in the source folder
  std::vector<std::string> serve;  // argv with {product} {data} {port}; empty: nothing to operate
  std::vector<std::string> probe;  // argv with {port}
  std::string probe_expect;        // what the probe must print
  std::vector<Exchange> traffic;   // what users ask; empty: no canary comparison, no latencies
  std::string benchmark_gate;      // "" : no performance loop
  std::string benchmark_metric;    // higher is better
  int experiments_max = 2;
  ServeSpec serve_spec() const { return {serve, probe, probe_expect}; }
};

struct SpecDoc {
  std::string title;
  std::vector<Criterion> criteria;
  std::vector<Assumption> assumptions;
  ProductInterface interface;
};
base::Result<SpecDoc> spec_from_json(const base::Json& json);

struct Finding {
  std::string id, about, severity, text;  // severity: blocking | minor
};
struct CritiqueDoc {
  std::vector<Finding> findings;
  bool veto = false;  // reviews of code only
  int blocking() const;
};
base::Result<CritiqueDoc> critique_from_json(const base::Json& json);

struct DecisionDoc {
  std::string id, question, choice, why, trigger;
  std::vector<std::string> options;
};
struct DesignDoc {
  std::string summary;
  std::vector<DecisionDoc> decisions;
  std::vector<std::string> contracts;  // frozen files
};
base::Result<DesignDoc> design_from_json(const base::Json& json);

struct TaskDoc {
  std::string id, title, brief;
  Role role = Role::kCoder;
  std::vector<std::string> needs, touches, covers, gates;
  i64 value = 1, cost = 1;
};
struct PlanDoc {
  std::vector<TaskDoc> tasks;
};
base::Result<PlanDoc> plan_from_json(const base::Json& json);
// Acyclic, every criterion covered, no task touches a contract, every gate known.
base::Status check_plan(const PlanDoc& plan, const SpecDoc& spec, const DesignDoc& design,
                        const std::vector<GateSpec>& gates);

// The parts of a task that is cut anew: they keep its promises (criteria, gates), have ids that
// begin with its own and a dot, need only each other and what it needed, and touch no contract.
// Their `needs` come back with those of the task added.
base::Status check_split(const TaskDoc& task, PlanDoc& parts, const DesignDoc& design,
                         const std::vector<GateSpec>& gates);

// What becomes of a task at the end of the ladder.
struct EscalationDoc {
  std::string choice;  // retry | without | person
  std::string advice;  // retry: for the next attempt; person: the question
  std::string why;
};
base::Result<EscalationDoc> escalation_from_json(const base::Json& json);

// A decision of the design that production reopened, decided again.
struct RevisionDoc {
  std::string choice, why, trigger;
  std::string task_title, task_brief;  // the work, when the choice is another one
};
base::Result<RevisionDoc> revision_from_json(const base::Json& json);

struct MutantDoc {
  std::string id, criterion, file, search, replace, why;
};
base::Result<std::vector<MutantDoc>> mutants_from_json(const base::Json& json);

struct HypothesisDoc {
  std::string bottleneck, idea;
  std::string function;  // of the profile; "" when none is meant
  f64 expected_gain = 0;
};
base::Result<HypothesisDoc> hypothesis_from_json(const base::Json& json);

base::Result<std::vector<Fault>> faults_from_json(const base::Json& json);

// Every criterion names gates that exist, and every gate that gives evidence names it back.
base::Status check_binding(const SpecDoc& spec, const std::vector<GateSpec>& gates);

}  // namespace team
