#include "team/stages/gating.h"

#include "base/files.h"
#include "base/hash.h"
#include "team/perf/sampler.h"

#include <algorithm>
#include <functional>
#include <set>

namespace team {

using base::Json;
using base::Result;

const GateSpec* Engine::gate(const std::string& id) const {
  auto at = std::find_if(gates.begin(), gates.end(), [&](const GateSpec& g) { return g.id == id; });
  return at == gates.end() ? nullptr : &*at;
}

base::Status Engine::judge(const std::string& criterion, bool pass, const Evidence& by) {
  std::string& state = judged[criterion];
  bool was_good = state == "passing" || state == "regressed";
  state = pass ? "passing" : was_good ? "regressed" : "failing";
  return main.emit("criterion." + state, Json::object({{"id", criterion},
                                                       {"evidence", by.id},
                                                       {"gate", by.gate},
                                                       {"num", by.numerator},
                                                       {"denom", by.denominator}}));
}

namespace {

// Runs it as a recorded effect; the log goes to a blob.
Result<Json> gate_effect(Engine& engine, const GateSpec& gate, const GateInput& input,
                         const std::string& tree,
                         const std::function<base::Status()>& prepare = {}) {
  EffectIntent intent{.key = "gate." + gate.id,
                      .kind = "gate.run",
                      .cls = EffectClass::kPure,
                      .request = Json::object({{"gate", to_json(gate)}, {"tree", tree}})};
  if (!engine.main.replaying()) engine.watcher.activity("gate " + gate.id, "running");
  Json json = TRY(engine.main.once(intent, [&]() -> Result<Json> {
    if (prepare) TRY(prepare());
    Evidence evidence = TRY(engine.runner.run(gate, input, [&](std::string_view line) {
      engine.watcher.activity("gate " + gate.id, std::string(line.substr(0, 60)));
    }));
    evidence.tree = tree;
    Json out = to_json(evidence);
    out.set("log_blob", TRY(engine.ledger.put_blob(evidence.log)));
    return out;
  }));
  engine.watcher.activity("gate " + gate.id, "");
  return json;
}

Result<Evidence> record(Engine& engine, const GateSpec& gate, Json json) {
  json.set("id", "E" + std::to_string(++engine.evidence_count));
  json.set("kind", name_of(gate.kind));
  json.set("visibility", name_of(gate.visibility));
  Evidence evidence = evidence_from_json(json);
  TRY(engine.main.emit("evidence.recorded", std::move(json)));
  return evidence;
}

}  // namespace

Result<Evidence> run_gate(Engine& engine, const GateSpec& gate, const std::string& folder,
                          const std::string& tree) {
  std::string key = gate.id + "@" + tree;
  auto known = engine.evidence.find(key);
  if (known != engine.evidence.end()) return known->second;
  Json json = TRY(gate_effect(engine, gate,
                              {.product = folder, .sealed = engine.sealed(), .keep_at = ""}, tree));
  Evidence evidence = TRY(record(engine, gate, std::move(json)));
  // A gate that could not be run says nothing: it may be tried again.
  if (evidence.verdict != Verdict::kError) engine.evidence[key] = evidence;
  return evidence;
}

Result<Profile> profile_gate(Engine& engine, const GateSpec& gate, const Built& built,
                             const std::string& id) {
  auto act = [&]() -> Result<Json> {
    Sampler sampler;
    Evidence evidence = TRY(engine.runner.run(
        gate, {.product = built.folder, .sealed = engine.sealed(), .keep_at = ""}));
    Profile profile = sampler.stop();
    evidence.tree = built.tree;
    Json out = to_json(evidence);
    out.set("profile", to_json(profile));
    std::string log = to_text(profile, kProfileEntriesMax) + evidence.log;
    out.set("log_blob", TRY(engine.ledger.put_blob(log)));
    return out;
  };
  engine.watcher.activity(id, "profiling under gate " + gate.id);
  EffectIntent intent{.key = "profile." + id,
                      .kind = "perf.profile",
                      .cls = EffectClass::kPure,
                      .request = Json::object({{"gate", to_json(gate)}, {"tree", built.tree}})};
  Json json = TRY(engine.main.once(intent, act));
  engine.watcher.activity(id, "");
  Profile profile = profile_from_json(json["profile"]);
  TRY(record(engine, gate, std::move(json)));
  return profile;
}

GateSpec build_gate(const ProductInterface& interface) {
  GateSpec gate;
  gate.id = "build";
  gate.title = "builds from clean sources";
  gate.kind = GateKind::kBuild;
  gate.argv = interface.build;
  gate.writable = true;
  gate.parser = GateParser::kExit;
  return gate;
}

Result<Built> build_commit(Engine& engine, const std::string& commit) {
  Built built;
  built.commit = commit;
  built.tree = TRY(engine.repo.tree(commit));
  auto known = engine.built.find(built.tree);
  if (known != engine.built.end()) return known->second;
  std::string sources = engine.path("trees/" + built.tree.substr(0, 12) + ".src");
  built.folder = engine.path("trees/" + built.tree.substr(0, 12));
  GateSpec gate = build_gate(engine.spec.interface);
  auto prepare = [&]() -> base::Status {
    TRY(base::remove_tree(sources));
    TRY(base::remove_tree(built.folder));
    return engine.repo.checkout(commit, sources);
  };
  Json json =
      TRY(gate_effect(engine, gate, {.product = sources, .sealed = "", .keep_at = built.folder},
                      built.tree, prepare));
  built.evidence = TRY(record(engine, gate, std::move(json)));
  built.ok = built.evidence.verdict == Verdict::kPass;
  TRY(base::remove_tree(sources));
  if (built.evidence.verdict != Verdict::kError) engine.built[built.tree] = built;
  return built;
}

Result<std::vector<Evidence>> run_gates(Engine& engine, const Built& built,
                                        const std::vector<std::string>& gates) {
  std::vector<Evidence> out;
  for (const std::string& id : gates) {
    const GateSpec* gate = engine.gate(id);
    if (gate == nullptr) {
      return base::Error(base::ErrorCode::kInternal, "gate " + id + " vanished");
    }
    out.push_back(TRY(run_gate(engine, *gate, built.folder, built.tree)));
  }
  return out;
}

Result<std::vector<GateSpec>> load_gate_folder(const std::string& folder) {
  std::vector<GateSpec> gates;
  std::set<std::string> ids;
  auto names = base::list_directory(folder);
  if (!names.ok()) {
    return base::Error(base::ErrorCode::kInvalidArgument,
                       "there is no folder of gates at " + folder);
  }
  for (const std::string& name : *names) {
    if (name.size() < 5 || name.substr(name.size() - 5) != ".json") continue;
    std::string text = TRY(base::read_file(folder + "/" + name));
    auto json = Json::parse(text);
    if (!json.ok()) return std::move(json).error().with("gates/" + name);
    auto gate = gate_from_json(*json);
    if (!gate.ok()) return std::move(gate).error().with("gates/" + name);
    if (!ids.insert(gate->id).second) {
      return base::Error(base::ErrorCode::kInvalidArgument, "gate " + gate->id + " appears twice");
    }
    gates.push_back(std::move(*gate));
  }
  return gates;
}

}  // namespace team
