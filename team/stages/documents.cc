#include "team/stages/documents.h"

#include "team/core/glob.h"

#include <algorithm>
#include <set>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using Strings = std::vector<std::string>;

Error bad(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

// Reads the members of one object strictly: every key must be asked for.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  std::string need(const char* key) {
    seen_.insert(key);
    if (!json_[key].is_string() || json_[key].as_string().empty()) fail(key, "a text");
    return json_[key].as_string();
  }
  std::string text(const char* key, const char* other = "") {
    seen_.insert(key);
    if (json_.has(key) && !json_[key].is_string()) fail(key, "a text");
    return json_[key].as_string_or(other);
  }
  i64 integer(const char* key, i64 other) {
    seen_.insert(key);
    if (json_.has(key) && !json_[key].is_integer()) fail(key, "a whole number");
    return json_[key].as_int(other);
  }
  f64 number(const char* key) {
    seen_.insert(key);
    return json_[key].as_double();
  }
  bool flag(const char* key) {
    seen_.insert(key);
    return json_[key].as_bool();
  }
  Strings strings(const char* key) {
    Strings out;
    for (const Json& item : list(key)) {
      if (!item.is_string()) fail(key, "a list of texts");
      out.push_back(item.as_string());
    }
    return out;
  }
  const Json::Array& list(const char* key) {
    seen_.insert(key);
    if (json_.has(key) && !json_[key].is_array()) fail(key, "a list");
    return json_[key].items();
  }
  const Json& object(const char* key) {
    seen_.insert(key);
    return json_[key];
  }
  // Call last.
  base::Status status() const {
    if (!problem_.empty()) return bad(problem_);
    if (!json_.is_object()) return bad(where_ + " must be a JSON object");
    for (const auto& [key, value] : json_.members()) {
      if (!seen_.contains(key)) return bad(where_ + " has an unknown key '" + key + "'");
    }
    return {};
  }

 private:
  void fail(const char* key, const char* what) {
    if (problem_.empty()) problem_ = where_ + ": '" + key + "' must be " + what;
  }
  const Json& json_;
  std::string where_;
  std::set<std::string, std::less<>> seen_;
  std::string problem_;
};

// A list of objects, each read strictly by `fill`. `what`: "a task".
template <class T, class Fill>
Result<std::vector<T>> each(const Json::Array& items, const char* what, Fill fill) {
  std::vector<T> out;
  for (const Json& item : items) {
    Reader in(item, what);
    T one = fill(in);
    TRY(in.status());
    out.push_back(std::move(one));
  }
  return out;
}

// A document that is one list and nothing else.
template <class T, class Fill>
Result<std::vector<T>> only_list(const Json& json, const char* file, const char* key,
                                 const char* what, Fill fill) {
  Reader in(json, file);
  const Json::Array& items = in.list(key);
  TRY(in.status());
  return each<T>(items, what, fill);
}

Result<Criterion> criterion_from(const Json& json) {
  Reader in(json, "a criterion");
  Criterion out{in.need("id"), in.need("text"), in.strings("gates")};
  std::string visibility = in.text("visibility", "visible");
  TRY(in.status());
  out.visibility = TRY(parse_visibility(visibility));
  if (out.gates.empty()) return bad("criterion " + out.id + " is bound to no gate");
  return out;
}

Result<ProductInterface> interface_from(const Json& json) {
  Reader in(json, "'interface'");
  ProductInterface out;
  out.build = in.strings("build");
  out.serve = in.strings("serve");
  out.probe = in.strings("probe");
  out.probe_expect = in.text("probe_expect");
  const auto& traffic = in.list("traffic");
  out.benchmark_gate = in.text("benchmark_gate");
  out.benchmark_metric = in.text("benchmark_metric");
  out.experiments_max = static_cast<int>(in.integer("experiments_max", 2));
  TRY(in.status());
  out.traffic = TRY(each<Exchange>(traffic, "an exchange of the traffic", [](Reader& e) {
    return Exchange{e.need("name"), e.need("send"), e.need("expect")};
  }));
  if (out.build.empty()) return bad("'interface' must say how the product is built");
  return out;
}

}  // namespace

Result<SpecDoc> spec_from_json(const Json& json) {
  Reader in(json, "spec.json");
  SpecDoc out;
  out.title = in.need("title");
  const auto& criteria = in.list("criteria");
  const auto& assumptions = in.list("assumptions");
  const Json& interface = in.object("interface");
  in.list("non_goals");
  TRY(in.status());
  std::set<std::string> ids;
  for (const Json& item : criteria) {
    out.criteria.push_back(TRY(criterion_from(item)));
    if (!ids.insert(out.criteria.back().id).second) {
      return bad("criterion " + out.criteria.back().id + " appears twice");
    }
  }
  if (out.criteria.empty()) return bad("spec.json lists no criteria");
  out.assumptions = TRY(each<Assumption>(assumptions, "an assumption", [](Reader& a) {
    return Assumption{a.need("id"), a.need("question"), a.need("choice")};
  }));
  out.interface = TRY(interface_from(interface));
  return out;
}

int CritiqueDoc::blocking() const {
  return static_cast<int>(std::count_if(findings.begin(), findings.end(),
                                        [](const Finding& f) { return f.severity == "blocking"; }));
}

Result<CritiqueDoc> critique_from_json(const Json& json) {
  Reader in(json, "the review");
  CritiqueDoc out;
  const auto& findings = in.list("findings");
  out.veto = in.flag("veto");
  TRY(in.status());
  out.findings = TRY(each<Finding>(findings, "a finding", [](Reader& f) {
    return Finding{f.text("id"), f.text("about"), f.need("severity"), f.need("text")};
  }));
  for (const Finding& finding : out.findings) {
    if (finding.severity != "blocking" && finding.severity != "minor") {
      return bad("the severity of a finding is blocking or minor, not '" + finding.severity + "'");
    }
  }
  return out;
}

Result<DesignDoc> design_from_json(const Json& json) {
  Reader in(json, "design.json");
  DesignDoc out;
  out.summary = in.need("summary");
  out.contracts = in.strings("contracts");
  const auto& decisions = in.list("decisions");
  TRY(in.status());
  out.decisions = TRY(each<DecisionDoc>(decisions, "a decision", [](Reader& d) {
    return DecisionDoc{d.need("id"),  d.need("question"), d.need("choice"),
                       d.need("why"), d.need("trigger"),  d.strings("options")};
  }));
  for (const DecisionDoc& decision : out.decisions) {
    if (decision.options.size() < 2) {
      return bad("decision " + decision.id + " needs two or more options");
    }
  }
  if (out.contracts.empty()) return bad("design.json freezes no contract files");
  return out;
}

Result<PlanDoc> plan_from_json(const Json& json) {
  PlanDoc out;
  out.tasks = TRY(only_list<TaskDoc>(json, "plan.json", "tasks", "a task", [](Reader& t) {
    TaskDoc task;
    task.id = t.need("id");
    task.title = t.need("title");
    task.brief = t.need("brief");
    task.needs = t.strings("needs");
    task.touches = t.strings("touches");
    task.covers = t.strings("covers");
    task.gates = t.strings("gates");
    task.value = t.integer("value", 1);
    task.cost = t.integer("cost", 1);
    return task;
  }));
  for (const TaskDoc& task : out.tasks) {
    if (task.touches.empty()) return bad("task " + task.id + " may touch nothing");
  }
  if (out.tasks.empty()) return bad("plan.json lists no tasks");
  return out;
}

base::Status check_plan(const PlanDoc& plan, const SpecDoc& spec, const DesignDoc& design,
                        const std::vector<GateSpec>& gates) {
  std::vector<PlanTask> graph;
  std::set<std::string> covered, known;
  for (const GateSpec& gate : gates) known.insert(gate.id);
  for (const TaskDoc& task : plan.tasks) {
    PlanTask node;
    node.id = task.id;
    node.needs = task.needs;
    graph.push_back(std::move(node));
    covered.insert(task.covers.begin(), task.covers.end());
    for (const std::string& gate : task.gates) {
      if (!known.contains(gate)) {
        return bad("task " + task.id + " names gate " + gate + ", which does not exist");
      }
    }
    for (const std::string& contract : design.contracts) {
      for (const std::string& glob : task.touches) {
        if (glob_matches(glob, contract)) {
          return bad("task " + task.id + " may touch " + contract + ", which is a frozen contract");
        }
      }
    }
  }
  TRY(check_graph(graph));
  for (const Criterion& criterion : spec.criteria) {
    if (!covered.contains(criterion.id)) {
      return bad("criterion " + criterion.id + " is covered by no task");
    }
  }
  return {};
}

base::Status check_split(const TaskDoc& task, PlanDoc& parts, const DesignDoc& design,
                         const std::vector<GateSpec>& gates) {
  constexpr size_t kPartsMax = 8;
  if (parts.tasks.size() > kPartsMax) return bad("more than eight parts are no help");
  std::set<std::string> ids, covers, own_gates;
  for (const TaskDoc& part : parts.tasks) {
    if (part.id.rfind(task.id + ".", 0) != 0) {
      return bad("the id of part " + part.id + " must begin with " + task.id + ".");
    }
    ids.insert(part.id);
    covers.insert(part.covers.begin(), part.covers.end());
    own_gates.insert(part.gates.begin(), part.gates.end());
  }
  for (const TaskDoc& part : parts.tasks) {
    for (const std::string& need : part.needs) {
      if (!ids.contains(need)) {
        return bad("part " + part.id + " may need other parts only, not " + need + "; what " +
                   task.id + " needed is added by itself");
      }
    }
  }
  for (const std::string& criterion : task.covers) {
    if (!covers.contains(criterion)) return bad("no part covers " + criterion);
  }
  for (const std::string& gate : task.gates) {
    if (!own_gates.contains(gate)) return bad("no part must pass gate " + gate);
  }
  SpecDoc nothing_to_cover;
  TRY(check_plan(parts, nothing_to_cover, design, gates));
  for (TaskDoc& part : parts.tasks) {
    part.needs.insert(part.needs.end(), task.needs.begin(), task.needs.end());
  }
  return {};
}

Result<EscalationDoc> escalation_from_json(const Json& json) {
  Reader in(json, "decision.json");
  EscalationDoc out;
  out.choice = in.need("choice");
  out.advice = in.text("advice");
  out.why = in.need("why");
  TRY(in.status());
  if (out.choice != "retry" && out.choice != "without" && out.choice != "person") {
    return bad("the choice is retry, without or person, not '" + out.choice + "'");
  }
  if (out.choice != "without" && out.advice.empty()) {
    return bad("choice " + out.choice + " needs advice: what to do, or what to ask");
  }
  return out;
}

Result<RevisionDoc> revision_from_json(const Json& json) {
  Reader in(json, "decision.json");
  RevisionDoc out;
  out.choice = in.need("choice");
  out.why = in.need("why");
  out.trigger = in.need("trigger");
  const Json& work = in.object("work");
  TRY(in.status());
  if (work.is_null()) return out;
  Reader task(work, "the work");
  out.task_title = task.need("title");
  out.task_brief = task.need("brief");
  TRY(task.status());
  return out;
}

Result<std::vector<MutantDoc>> mutants_from_json(const Json& json) {
  return only_list<MutantDoc>(json, "mutants.json", "mutants", "a mutant", [](Reader& m) {
    return MutantDoc{m.need("id"),     m.need("criterion"), m.need("file"),
                     m.need("search"), m.text("replace"),   m.need("why")};
  });
}

Result<HypothesisDoc> hypothesis_from_json(const Json& json) {
  Reader in(json, "hypothesis.json");
  HypothesisDoc out{in.need("bottleneck"), in.need("idea"), in.text("function"),
                    in.number("expected_gain")};
  TRY(in.status());
  return out;
}

Result<std::vector<Fault>> faults_from_json(const Json& json) {
  auto faults = TRY(only_list<Fault>(json, "faults.json", "faults", "a fault", [](Reader& f) {
    Fault fault;
    fault.id = f.need("id");
    fault.title = f.need("title");
    fault.kind = f.need("kind");
    fault.bytes = f.text("bytes");
    fault.mode = f.text("mode");
    fault.load = f.strings("load");
    fault.load_expect = f.text("load_expect");
    fault.before = f.strings("before");
    fault.after = f.strings("after");
    fault.expect = f.text("expect");
    fault.ms = f.integer("ms", fault.ms);
    return fault;
  }));
  for (const Fault& fault : faults) {
    if (std::string flaw = flaw_of(fault); !flaw.empty()) return bad(flaw);
  }
  return faults;
}

base::Status check_binding(const SpecDoc& spec, const std::vector<GateSpec>& gates) {
  for (const Criterion& criterion : spec.criteria) {
    for (const std::string& id : criterion.gates) {
      auto gate =
          std::find_if(gates.begin(), gates.end(), [&](const GateSpec& g) { return g.id == id; });
      if (gate == gates.end()) {
        return bad("criterion " + criterion.id + " names gate " + id + ", which does not exist");
      }
      if (std::find(gate->criteria.begin(), gate->criteria.end(), criterion.id) ==
          gate->criteria.end()) {
        return bad("gate " + id + " does not name criterion " + criterion.id + " back");
      }
    }
  }
  return {};
}

}  // namespace team
