#include "base/clock.h"
#include "base/files.h"
#include "team/ops/canary.h"
#include "team/ops/faults.h"
#include "team/ops/incidents.h"
#include "team/ops/monitor.h"
#include "team/stages/attempt.h"
#include "team/stages/gating.h"
#include "team/stages/prompts.h"
#include "team/stages/revisit.h"
#include "team/stages/verify.h"

#include <algorithm>
#include <set>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

constexpr int kMendsMax = 4;
constexpr int kRoundsBetweenFaults = 60;  // requests of the traffic, so that the series has a shape

Result<std::vector<Fault>> ask_for_faults(Engine& engine, const std::string& spec_text) {
  AttemptSpec spec;
  spec.task = "faults";
  spec.role = Role::kQa;
  spec.stage = Stage::kOperate;
  spec.brief = faults_brief(spec_text);
  std::vector<Fault> faults;
  TRY(run_document(engine, spec, 3, [&](const AttemptResult& result) -> base::Status {
    faults = TRY(faults_from_json(TRY(read_document(result, "faults.json"))));
    return {};
  }));
  return faults;
}

// What is served next, and beside what.
struct Rollout {
  std::string deployment, artifact;
  std::string current;  // the artefact that served before; "" for the first
};

Service::Options service_options(const Engine& engine, const std::string& artifact,
                                 const std::string& name, int port) {
  return {.spec = engine.spec.interface.serve_spec(),
          .artifact = engine.path("artifacts/" + artifact),
          .data = engine.path("data/" + name),
          .log = engine.path("data-" + name + ".log"),
          .port = port};
}

// The new version beside the one before it, on the same requests. Null when there is nothing to
// compare with, or the older one does not come up any more.
Result<Json> compare(Engine& engine, const Rollout& rollout, Service& canary) {
  const ProductInterface& interface = engine.spec.interface;
  if (rollout.current.empty() || interface.traffic.empty()) return Json();
  std::string name = rollout.deployment + "-current";
  TRY(base::remove_tree(engine.path("data/" + name)));
  Service current(engine.sandbox,
                  service_options(engine, rollout.current, name, engine.config.port + 1));
  if (!current.start().ok()) return Json();
  CanaryPlan plan;
  plan.seed = engine.config.seed;
  auto progress = [&](const std::string& text) {
    engine.watcher.activity(rollout.deployment, "canary: " + text);
  };
  CanaryVerdict verdict = TRY(try_canary(current, canary, interface.traffic, plan, progress));
  Json json = to_json(verdict);
  json.set("against", rollout.current);
  return json;
}

// Traffic for a while. A death that no fault asked for is written down like one that did.
base::Status traffic(Monitor& monitor, Json& faults) {
  for (int i = 0; i < kRoundsBetweenFaults; ++i) {
    std::optional<Crash> crash = TRY(monitor.round());
    if (!crash) continue;
    FaultOutcome outcome;
    outcome.broke = "the server died of " + crash->what() + " under ordinary traffic";
    outcome.crash = std::move(crash);
    Fault ordinary;
    ordinary.id = "traffic";
    ordinary.kind = "traffic";
    ordinary.title = "ordinary traffic";
    faults.push(to_json(ordinary, outcome));
    return {};
  }
  return {};
}

base::Status play_faults(Engine& engine, const Rollout& rollout, Service& service, Monitor& monitor,
                         const std::vector<Fault>& faults, Json& played) {
  for (const Fault& fault : faults) {
    TRY(traffic(monitor, played));
    engine.watcher.activity(rollout.deployment, fault.id + " " + fault.title);
    auto outcome = inject(engine.sandbox, service, fault);
    if (!outcome.ok() && outcome.error().code() == ErrorCode::kUnavailable) {
      FaultOutcome lost{outcome.error().message(), "", 0, std::nullopt};
      played.push(to_json(fault, lost));
      return {};
    }
    played.push(to_json(fault, TRY(std::move(outcome))));
  }
  return traffic(monitor, played);
}

// Serves one artefact from its start to its end: comparison with the version before, traffic,
// faults. One effect, because a process cannot be resumed, only started again.
Result<Json> serve(Engine& engine, const Rollout& rollout, const std::vector<Fault>& faults) {
  EffectIntent intent{
      .key = "serve." + rollout.deployment,
      .kind = "deploy.serve",
      .cls = EffectClass::kExternal,
      .request = Json::object({{"artifact", rollout.artifact}, {"current", rollout.current}})};
  Json served = TRY(engine.main.once(intent, [&]() -> Result<Json> {
    TRY(base::remove_tree(engine.path("data/" + rollout.deployment)));
    Service service(engine.sandbox, service_options(engine, rollout.artifact, rollout.deployment,
                                                    engine.config.port));
    engine.watcher.activity(rollout.deployment, "starting " + rollout.artifact);
    Json out = Json::object();
    if (auto started = service.start(); !started.ok()) {
      out.set("failed", started.error().message());
      return out;
    }
    out.set("ready_ms", service.ready_ms());
    Json verdict = TRY(compare(engine, rollout, service));
    const bool worse = verdict.is_object() && !verdict["promote"].as_bool();
    if (verdict.is_object()) out.set("canary_verdict", std::move(verdict));
    if (worse) return out;
    Monitor monitor(service, engine.spec.interface.traffic);
    Json played = Json::array();
    auto all = play_faults(engine, rollout, service, monitor, faults, played);
    if (!all.ok() && all.error().code() != ErrorCode::kUnavailable) return std::move(all).error();
    out.set("faults", std::move(played));
    out.set("operation", monitor.to_json());
    return out;
  }));
  engine.watcher.activity(rollout.deployment, "");
  return served;
}

CallStack stack_of(const Json& fault) {
  CallStack stack;
  for (const Json& frame : fault["stack"].items()) stack.push_back(frame.as_string());
  return stack;
}

std::string listed(const CallStack& stack) {
  std::string out;
  for (const std::string& frame : stack) out += (out.empty() ? "" : " < ") + frame;
  return out;
}

// What an agent is told about a fault that broke the service.
std::string incident_text(const Json& f, const std::vector<Fault>& faults) {
  std::string text = f["title"].as_string() + ": " + f["broke"].as_string();
  for (const Fault& fault : faults) {
    if (fault.id == f["fault"].as_string() && !fault.bytes.empty()) {
      text += "\nBytes sent: " + base::json_quote(fault.bytes);
    }
  }
  CallStack stack = stack_of(f);
  if (!stack.empty()) text += "\nIn: " + listed(stack);
  return text + "\nLast words: " + f["last_words"].as_string().substr(0, 300);
}

// Plays one version through its life and works on what breaks.
class Operation {
 public:
  Operation(Engine& engine, Builder& builder, std::vector<Fault> faults)
      : engine_(engine), builder_(builder), faults_(std::move(faults)) {}

  // True: the deployment serves and survives. The incidents to work on are in `found`.
  Result<bool> roll_out(const Rollout& rollout, std::vector<Incident>& found);
  Result<bool> mend(const Incident& incident);
  // What its last deployment measured, or null.
  const Json& measured() const { return operation_; }
  void resolved(const Incident& incident) { book_.resolve(incident.id); }

 private:
  base::Status record_faults(const Rollout& rollout, const Json& played,
                             std::vector<Incident>& found);
  void note(const std::string& signature, const std::string& text, std::vector<Incident>& found) {
    if (const Incident* incident = book_.note(signature, text)) found.push_back(*incident);
  }
  base::Status reproduce(const Incident& incident, const std::string& gate_id,
                         const std::string& criterion);
  base::Status take_reproduction(const AttemptResult& result, const std::string& gate_id,
                                 const Built& built);
  Criterion& criterion_of(const Incident& incident);

  Engine& engine_;
  Builder& builder_;
  std::vector<Fault> faults_;
  IncidentBook book_;
  Json operation_;  // of the last deployment
};

Result<bool> Operation::roll_out(const Rollout& rollout, std::vector<Incident>& found) {
  auto move = [&](const char* to, Json body = Json::object()) {
    body.set("id", rollout.deployment);
    return engine_.main.emit(std::string("deployment.") + to, std::move(body));
  };
  TRY(move("planned",
           Json::object(
               {{"artifact", rollout.artifact}, {"canary", true}, {"current", rollout.current}})));
  TRY(move("starting"));
  operation_ = Json();
  Json served = TRY(serve(engine_, rollout, faults_));
  if (served.has("failed")) {
    TRY(move("rolled_back", Json::object({{"why", served["failed"]}})));
    const std::string& why = served["failed"].as_string();
    note(incident_signature("start", {}, why), "it does not start: " + why, found);
    return false;
  }
  TRY(move("probing", Json::object({{"ready_ms", served["ready_ms"]},
                                    {"canary_verdict", served["canary_verdict"]}})));
  const Json& verdict = served["canary_verdict"];
  if (verdict.is_object() && !verdict["promote"].as_bool()) {
    TRY(move("rolled_back", Json::object({{"why", verdict["why"]}})));
    const std::string& why = verdict["why"].as_string();
    note(incident_signature("canary", {}, why),
         "as a canary beside " + rollout.current + " it was worse: " + why, found);
    return false;
  }
  operation_ = served["operation"];
  TRY(move("serving", Json::object({{"operation", operation_}})));
  TRY(record_faults(rollout, served["faults"], found));
  if (found.empty()) return true;
  TRY(move("degraded", Json::object({{"why", found[0].text.substr(0, 200)}})));
  TRY(move("rolled_back"));
  return false;
}

base::Status Operation::record_faults(const Rollout& rollout, const Json& played,
                                      std::vector<Incident>& found) {
  std::set<std::string> told;
  for (const Json& f : played.items()) {
    std::string id = rollout.deployment + "." + f["fault"].as_string();
    if (!told.insert(id).second) continue;  // ordinary traffic may meet a death more than once
    TRY(engine_.main.emit("fault.injected",
                          Json::object({{"id", id}, {"title", f["title"]}, {"kind", f["kind"]}})));
    const std::string& broke = f["broke"].as_string();
    Json after = Json::object({{"id", id}, {"seen", f["seen"]}, {"back_ms", f["back_ms"]}});
    if (!broke.empty()) after.set("broke", broke);
    if (f["stack"].size() > 0) after.set("stack", f["stack"]);
    TRY(engine_.main.emit(broke.empty() ? "fault.survived" : "fault.broke", std::move(after)));
    if (broke.empty()) continue;
    note(incident_signature(f["kind"].as_string(), stack_of(f), broke), incident_text(f, faults_),
         found);
  }
  return {};
}

// A gate that fails on the product as it is: the first thing an incident must deliver.
base::Status Operation::reproduce(const Incident& incident, const std::string& gate_id,
                                  const std::string& criterion) {
  AttemptSpec spec;
  spec.task = gate_id.substr(gate_id.find('-') + 1);
  spec.role = Role::kTester;
  spec.stage = Stage::kOperate;
  spec.brief = reproduction_brief(incident.text, gate_id, criterion);
  Built built = TRY(build_commit(engine_, engine_.head));
  TRY(run_document(engine_, spec, 3, [&](const AttemptResult& result) {
    return take_reproduction(result, gate_id, built);
  }));
  return {};
}

base::Status Operation::take_reproduction(const AttemptResult& result, const std::string& gate_id,
                                          const Built& built) {
  std::vector<GateSpec> gates = TRY(load_gate_folder(result.workspace + "/gates"));
  if (gates.size() != 1 || gates[0].id != gate_id) {
    return Error(ErrorCode::kInvalidArgument, "write exactly one gate, with the id " + gate_id);
  }
  if (!base::is_directory(result.workspace + "/sealed")) {
    return Error(ErrorCode::kInvalidArgument, "the gate's files belong in sealed/");
  }
  for (const std::string& file : TRY(base::list_tree(result.workspace + "/sealed"))) {
    std::string to = engine_.sealed() + "/" + file;
    std::string content = TRY(base::read_file(result.workspace + "/sealed/" + file));
    if (base::file_exists(to) && base::read_file(to).value_or("") != content) {
      return Error(ErrorCode::kInvalidArgument,
                   "sealed/" + file + " exists already; use another name");
    }
    TRY(base::make_directories(to.substr(0, to.rfind('/'))));
    TRY(base::write_file(to, content));
  }
  Evidence evidence = TRY(run_gate(engine_, gates[0], built.folder, built.tree));
  if (evidence.verdict == Verdict::kPass || evidence.verdict == Verdict::kError) {
    return Error(ErrorCode::kInvalidArgument,
                 "the reproduction must fail on the product as it is; the gate said " +
                     std::string(name_of(evidence.verdict)) + " " + evidence.why);
  }
  engine_.gates.push_back(gates[0]);
  return {};
}

// Bad input belongs to the criterion that fuzzing gives evidence for; else to the first one.
Criterion& Operation::criterion_of(const Incident& incident) {
  Criterion* touched = &engine_.spec.criteria.front();
  if (!incident.signature.starts_with("input/")) return *touched;
  for (Criterion& c : engine_.spec.criteria) {
    const GateSpec* gate = engine_.gate(c.gates[0]);
    if (gate != nullptr && gate->kind == GateKind::kFuzz) touched = &c;
  }
  return *touched;
}

// Incident to reproduction, task, fix. True: mended and all criteria pass.
Result<bool> Operation::mend(const Incident& incident) {
  auto move = [&](const char* to, Json body) {
    body.set("id", incident.id);
    return engine_.main.emit(std::string("incident.") + to, std::move(body));
  };
  TRY(move("open", Json::object({{"signature", incident.signature},
                                 {"text", incident.text},
                                 {"opened", incident.opened}})));
  Criterion& touched = criterion_of(incident);
  TRY(move("triaged", Json::object({{"criterion", touched.id}})));
  std::string name =
      incident.opened == 1 ? incident.id : incident.id + "." + std::to_string(incident.opened);
  std::string gate_id = "repro-" + name;
  TRY(reproduce(incident, gate_id, touched.id));
  TaskDoc task;
  task.id = "T-" + name;
  task.title = "Mend incident " + incident.id;
  task.brief = incident.text + "\nThe gate " + gate_id + " reproduces it.";
  task.covers = {touched.id};
  task.gates = {gate_id};
  for (const TaskDoc& planned : engine_.plan.tasks) {
    task.touches.insert(task.touches.end(), planned.touches.begin(), planned.touches.end());
  }
  TRY(move("task_filed", Json::object({{"task", task.id}, {"gate", gate_id}})));
  touched.gates.push_back(gate_id);
  TRY(builder_.propose(task));
  TRY(builder_.run(Stage::kOperate));
  return builder_.merged(task.id) && TRY(verify(engine_, builder_));
}

// Carries changed decisions into the product. False: what was merged does not meet the criteria.
Result<bool> follow(Engine& engine, Builder& builder, Revisits& revisits,
                    const std::vector<TaskDoc>& changes) {
  for (const TaskDoc& task : changes) TRY(builder.propose(task));
  TRY(builder.run(Stage::kOperate));
  const bool good = TRY(verify(engine, builder));
  for (const TaskDoc& task : changes) {
    if (!builder.merged(task.id)) TRY(revisits.withdraw(task));
  }
  return good;
}

base::Status move_artifact(Engine& engine, const Rollout& rollout, const char* to) {
  return engine.main.emit(
      std::string("artifact.") + to,
      Json::object({{"id", rollout.artifact}, {"deployment", rollout.deployment}}));
}

}  // namespace

Result<bool> operate(Engine& engine, Builder& builder) {
  if (engine.spec.interface.serve.empty()) return true;
  std::string spec_text = TRY(base::read_file(engine.path("spec.json")));
  Operation operation(engine, builder, TRY(ask_for_faults(engine, spec_text)));
  Revisits revisits(engine);
  int mends = 0;
  Rollout rollout;
  std::optional<Rollout> released;
  for (int version = 1;; ++version) {
    rollout.artifact = "A" + std::to_string(version);
    rollout.deployment = "D" + std::to_string(version);
    TRY(seal_artifact(engine, rollout.artifact));
    std::vector<Incident> found;
    const bool good = TRY(operation.roll_out(rollout, found));
    const std::vector<TaskDoc> changes =
        TRY(revisits.after(rollout.deployment, operation.measured()));
    TRY(move_artifact(engine, rollout, good ? "released" : "retired"));
    if (good && released) TRY(move_artifact(engine, *released, "retired"));
    if (good) released = rollout;
    if (good && changes.empty()) return true;
    if (!good && found.empty()) return false;  // the same again, and nobody mended it
    for (const Incident& incident : found) {
      if (++mends > kMendsMax || !TRY(operation.mend(incident))) return false;
      TRY(engine.main.emit("incident.resolved",
                           Json::object({{"id", incident.id}, {"commit", engine.head}})));
      operation.resolved(incident);
    }
    const std::string before = engine.head;
    if (!changes.empty() && !TRY(follow(engine, builder, revisits, changes))) return false;
    if (good && engine.head == before) return true;
    rollout.current = released ? released->artifact : rollout.artifact;
  }
}

}  // namespace team
