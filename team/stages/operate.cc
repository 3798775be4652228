#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "team/sandbox/workspace.h"
#include "team/stages/attempt.h"
#include "team/stages/gating.h"
#include "team/stages/prompts.h"
#include "team/stages/service.h"
#include "team/stages/verify.h"

#include <algorithm>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

constexpr i64 kLoadBeforeKillUs = 250'000;
constexpr int kIncidentsMax = 4;

Result<std::vector<FaultDoc>> ask_for_faults(Engine& engine, const std::string& spec_text) {
  AttemptSpec spec;
  spec.task = "faults";
  spec.role = Role::kQa;
  spec.stage = Stage::kOperate;
  spec.brief = faults_brief(spec_text);
  std::vector<FaultDoc> faults;
  TRY(run_document(engine, spec, 3, [&](const AttemptResult& result) -> base::Status {
    faults = TRY(faults_from_json(TRY(read_document(result, "faults.json"))));
    return {};
  }));
  return faults;
}

// What a fault did. `broke` is a sentence, "" when the service survived it.
struct FaultOutcome {
  std::string broke;
  std::string seen;  // what the check printed
  i64 back_ms = 0;   // until it served again
  std::optional<Crash> crash;
};

std::string first_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  size_t cr = line.find_last_not_of("\r ");
  return cr == std::string::npos ? "" : line.substr(0, cr + 1);
}

base::Status check_after(const Service& service, const FaultDoc& fault, FaultOutcome& outcome) {
  if (fault.after.empty()) return {};
  auto result = TRY(service.client(fault.after));
  outcome.seen = result.out.substr(0, 2000);
  if (result.out.find(fault.expect) == std::string::npos && outcome.broke.empty()) {
    outcome.broke = "afterwards " + fault.after[0] + " printed '" + first_line(result.out) +
                    "', not '" + fault.expect + "'";
  }
  return {};
}

Result<FaultOutcome> inject(const Sandbox& sandbox, Service& service, const FaultDoc& fault) {
  FaultOutcome outcome;
  if (!fault.before.empty()) TRY(service.client(fault.before));
  if (fault.kind == "kill") {
    std::optional<SandboxProcess> load;
    if (!fault.load.empty()) {
      SandboxSpec spec;
      spec.argv = service.expand(fault.load);
      spec.host_network = true;
      load.emplace(TRY(sandbox.start(spec, {.output_path = "/dev/null"})));
      base::system_clock().sleep_us(kLoadBeforeKillUs);
    }
    service.kill_hard();
    TRY(service.tend());
    outcome.back_ms = service.ready_ms();
    if (load) load->kill();
  } else if (fault.kind == "input") {
    auto reply = service.send(fault.bytes, 300);
    base::system_clock().sleep_us(50'000);
    outcome.crash = TRY(service.tend());
    if (outcome.crash) {
      outcome.back_ms = service.ready_ms();
      outcome.broke = "the server died of signal " + std::to_string(outcome.crash->signal) + ": " +
                      first_line(outcome.crash->last_words);
    } else if (!reply.ok()) {
      outcome.broke = reply.error().message();
    }
  }
  TRY(check_after(service, fault, outcome));
  return outcome;
}

Json to_json(const FaultDoc& fault, const FaultOutcome& outcome) {
  Json json = Json::object({{"fault", fault.id},
                            {"kind", fault.kind},
                            {"title", fault.title},
                            {"broke", outcome.broke},
                            {"seen", outcome.seen},
                            {"back_ms", outcome.back_ms}});
  if (outcome.crash) {
    json.set("signal", outcome.crash->signal);
    json.set("last_words", outcome.crash->last_words);
  }
  return json;
}

// Serves one artefact from its start to its end, with the faults in between: one effect, because a
// process cannot be resumed, only started again.
Result<Json> serve(Engine& engine, const std::string& deployment, const std::string& artifact,
                   const std::vector<FaultDoc>& faults) {
  EffectIntent intent{.key = "serve." + deployment,
                      .kind = "deploy.serve",
                      .cls = EffectClass::kExternal,
                      .request = Json::object({{"artifact", artifact}})};
  Json served = TRY(engine.main.once(intent, [&]() -> Result<Json> {
    std::string data = engine.path("data/" + deployment);
    TRY(base::remove_tree(data));
    Service service(engine.sandbox, {.interface = engine.spec.interface,
                                     .artifact = engine.path("artifacts/" + artifact),
                                     .data = data,
                                     .log = engine.path("data-" + deployment + ".log"),
                                     .port = engine.config.port});
    engine.watcher.activity(deployment, "starting " + artifact);
    Json out = Json::object({{"faults", Json::array()}});
    if (auto started = service.start(); !started.ok()) {
      out.set("failed", started.error().message());
      return out;
    }
    out.set("ready_ms", service.ready_ms());
    for (const FaultDoc& fault : faults) {
      engine.watcher.activity(deployment, fault.id + " " + fault.title);
      auto outcome = inject(engine.sandbox, service, fault);
      if (!outcome.ok() && outcome.error().code() == ErrorCode::kUnavailable) {
        FaultOutcome lost{outcome.error().message(), "", 0, std::nullopt};
        out.at("faults").push(to_json(fault, lost));
        break;
      }
      out.at("faults").push(to_json(fault, TRY(std::move(outcome))));
    }
    return out;
  }));
  engine.watcher.activity(deployment, "");
  return served;
}

struct Incident {
  std::string id, signature, text;
};

// Plays the planned faults on a canary of the artefact. What broke, one entry a signature.
Result<std::vector<Incident>> run_canary(Engine& engine, const std::string& deployment,
                                         const std::string& artifact,
                                         const std::vector<FaultDoc>& faults, int& incidents) {
  auto move = [&](const char* to, Json body = Json::object()) {
    body.set("id", deployment);
    return engine.main.emit(std::string("deployment.") + to, std::move(body));
  };
  TRY(move("planned", Json::object({{"artifact", artifact}, {"canary", true}})));
  TRY(move("starting"));
  Json served = TRY(serve(engine, deployment, artifact, faults));
  std::vector<Incident> found;
  if (served.has("failed")) {
    TRY(move("rolled_back", Json::object({{"why", served["failed"]}})));
    found.push_back({"I" + std::to_string(++incidents), "start", served["failed"].as_string()});
    return found;
  }
  TRY(move("probing", Json::object({{"ready_ms", served["ready_ms"]}})));
  TRY(move("serving"));
  for (const Json& f : served["faults"].items()) {
    std::string id = deployment + "." + f["fault"].as_string();
    TRY(engine.main.emit("fault.injected",
                         Json::object({{"id", id}, {"title", f["title"]}, {"kind", f["kind"]}})));
    const std::string& broke = f["broke"].as_string();
    Json after = Json::object({{"id", id}, {"seen", f["seen"]}, {"back_ms", f["back_ms"]}});
    if (!broke.empty()) after.set("broke", broke);
    TRY(engine.main.emit(broke.empty() ? "fault.survived" : "fault.broke", std::move(after)));
    if (broke.empty()) continue;
    std::string signature = f["kind"].as_string() + "/" + broke;
    bool known = std::any_of(found.begin(), found.end(),
                             [&](const Incident& i) { return i.signature == signature; });
    if (known) continue;
    std::string bytes;
    for (const FaultDoc& fault : faults) {
      if (fault.id == f["fault"].as_string() && !fault.bytes.empty()) {
        bytes = "\nBytes sent: " + base::json_quote(fault.bytes);
      }
    }
    found.push_back({"I" + std::to_string(++incidents), signature,
                     f["title"].as_string() + ": " + broke + bytes +
                         "\nLast words: " + f["last_words"].as_string().substr(0, 300)});
  }
  if (!found.empty()) {
    TRY(move("degraded", Json::object({{"why", found[0].text.substr(0, 200)}})));
    TRY(move("rolled_back"));
  }
  return found;
}

// A gate that fails on the product as it is: the first thing an incident must deliver.
Result<std::string> reproduce(Engine& engine, const Incident& incident,
                              const std::string& criterion) {
  std::string gate_id = "repro-" + incident.id;
  AttemptSpec spec;
  spec.task = incident.id;
  spec.role = Role::kTester;
  spec.stage = Stage::kOperate;
  spec.brief = reproduction_brief(incident.text, gate_id, criterion);
  Built built = TRY(build_commit(engine, engine.head));
  TRY(run_document(engine, spec, 3, [&](const AttemptResult& result) -> base::Status {
    std::vector<GateSpec> gates = TRY(load_gate_folder(result.workspace + "/gates"));
    if (gates.size() != 1 || gates[0].id != gate_id) {
      return Error(ErrorCode::kInvalidArgument, "write exactly one gate, with the id " + gate_id);
    }
    if (!base::is_directory(result.workspace + "/sealed")) {
      return Error(ErrorCode::kInvalidArgument, "the gate's files belong in sealed/");
    }
    for (const std::string& file : TRY(base::list_tree(result.workspace + "/sealed"))) {
      std::string to = engine.sealed() + "/" + file;
      std::string content = TRY(base::read_file(result.workspace + "/sealed/" + file));
      if (base::file_exists(to) && base::read_file(to).value_or("") != content) {
        return Error(ErrorCode::kInvalidArgument,
                     "sealed/" + file + " exists already; use another name");
      }
      TRY(base::make_directories(to.substr(0, to.rfind('/'))));
      TRY(base::write_file(to, content));
    }
    Evidence evidence = TRY(run_gate(engine, gates[0], built.folder, built.tree));
    if (evidence.verdict == Verdict::kPass || evidence.verdict == Verdict::kError) {
      return Error(ErrorCode::kInvalidArgument,
                   "the reproduction must fail on the product as it is; the gate said " +
                       std::string(name_of(evidence.verdict)) + " " + evidence.why);
    }
    engine.gates.push_back(gates[0]);
    return {};
  }));
  return gate_id;
}

// Incident to reproduction, task, fix. True: mended and all criteria pass.
Result<bool> mend(Engine& engine, Builder& builder, const Incident& incident) {
  auto move = [&](const char* to, Json body) {
    body.set("id", incident.id);
    return engine.main.emit(std::string("incident.") + to, std::move(body));
  };
  TRY(move("open", Json::object({{"signature", incident.signature}, {"text", incident.text}})));
  // Bad input belongs to the criterion that fuzzing gives evidence for; else to the first one.
  Criterion* touched = &engine.spec.criteria.front();
  bool about_input = incident.signature.rfind("input/", 0) == 0;
  for (Criterion& c : engine.spec.criteria) {
    const GateSpec* gate = engine.gate(c.gates[0]);
    if (about_input && gate != nullptr && gate->kind == GateKind::kFuzz) touched = &c;
  }
  TRY(move("triaged", Json::object({{"criterion", touched->id}})));
  std::string gate_id = TRY(reproduce(engine, incident, touched->id));
  TaskDoc task;
  task.id = "T-" + incident.id;
  task.title = "Mend incident " + incident.id;
  task.brief = incident.text + "\nThe gate " + gate_id + " reproduces it.";
  task.covers = {touched->id};
  task.gates = {gate_id};
  for (const TaskDoc& planned : engine.plan.tasks) {
    task.touches.insert(task.touches.end(), planned.touches.begin(), planned.touches.end());
  }
  TRY(move("task_filed", Json::object({{"task", task.id}, {"gate", gate_id}})));
  touched->gates.push_back(gate_id);
  TRY(builder.propose(task));
  TRY(builder.run(Stage::kOperate));
  return builder.merged(task.id) && TRY(verify(engine, builder));
}

}  // namespace

Result<bool> operate(Engine& engine, Builder& builder) {
  if (engine.spec.interface.serve.empty()) return true;
  std::string spec_text = TRY(base::read_file(engine.path("spec.json")));
  std::vector<FaultDoc> faults = TRY(ask_for_faults(engine, spec_text));
  int incidents = 0;
  for (int version = 1;; ++version) {
    std::string artifact = "A" + std::to_string(version);
    std::string deployment = "D" + std::to_string(version);
    TRY(seal_artifact(engine, artifact));
    std::vector<Incident> found = TRY(run_canary(engine, deployment, artifact, faults, incidents));
    if (found.empty()) {
      TRY(engine.main.emit("artifact.released",
                           Json::object({{"id", artifact}, {"deployment", deployment}})));
      return true;
    }
    TRY(engine.main.emit("artifact.retired", Json::object({{"id", artifact}})));
    for (const Incident& incident : found) {
      if (incidents > kIncidentsMax || !TRY(mend(engine, builder, incident))) return false;
      TRY(engine.main.emit("incident.resolved",
                           Json::object({{"id", incident.id}, {"commit", engine.head}})));
    }
  }
}

}  // namespace team
