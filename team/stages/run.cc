#include "team/stages/run.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "team/gate/gate_runner.h"
#include "team/sandbox/sandbox.h"
#include "team/stages/builder.h"
#include "team/stages/converge.h"
#include "team/stages/run_lock.h"
#include "team/stages/verify.h"
#include "team/stages/worker_gates.h"

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

base::Status begin(Engine& engine, const Json& started) {
  const EngineConfig& config = engine.config;
  TRY(engine.main.emit("run.started", started));
  TRY(engine.main.emit("budget.capped",
                       Json::object({{"scope", "run"}, {"cap", started["cap_nusd"]}})));
  TRY(engine.main.emit(
      "intent.received",
      Json::object(
          {{"id", "intent"}, {"text", config.intent}, {"hash", base::sha256_hex(config.intent)}})));
  return engine.main.emit("intent.frozen", Json::object({{"id", "intent"}}));
}

base::Status stage(Engine& engine, const char* move, const char* id) {
  return engine.main.emit(std::string("stage.") + move, Json::object({{"id", id}}));
}

// The last three stages share the builder: what fails goes back to the same tasks.
Result<bool> build_and_prove(Engine& engine) {
  Builder builder(engine);
  for (const TaskDoc& task : engine.plan.tasks) TRY(builder.propose(task));
  TRY(stage(engine, "done", "plan"));
  TRY(stage(engine, "started", "build"));
  TRY(builder.run(Stage::kBuild));
  for (const TaskDoc& task : engine.plan.tasks) {
    if (builder.merged(task.id)) continue;
    TRY(stage(engine, "failed", "build"));
    return false;
  }
  TRY(stage(engine, "done", "build"));
  TRY(stage(engine, "started", "verify"));
  bool good = TRY(verify(engine, builder)) && TRY(kill_mutants(engine));
  if (good) TRY(tune(engine));
  good = good && TRY(verify(engine, builder));
  TRY(stage(engine, good ? "done" : "failed", "verify"));
  if (!good) return false;
  TRY(stage(engine, "started", "operate"));
  good = TRY(operate(engine, builder));
  if (good) TRY(builder.close_merged());
  TRY(stage(engine, good ? "done" : "failed", "operate"));
  return good;
}

// A budget that was changed in run.json since the run began; on a stream of its own, because the
// main strand says what it said.
base::Status adjust_budget(Ledger& ledger, i64 budget_nusd) {
  if (ledger.state().last_seq() == 0 || ledger.budget().at("run").cap == budget_nusd) return {};
  if (ledger.budget().at("run").cap < 0) return {};  // died before the first cap was set
  i64 ver = static_cast<i64>(TRY(ledger.stream("budget")).size()) + 1;
  Json body = Json::object({{"scope", "run"}, {"cap", budget_nusd}});
  TRY(ledger.append("budget", ver, "human:run.json", {{"budget.capped", std::move(body)}}));
  return {};
}

Result<RunOutcome> all_stages(Engine& engine, const Json& started) {
  TRY(begin(engine, started));
  TRY(converge(engine));
  TRY(design(engine));
  TRY(plan_work(engine));
  RunOutcome outcome;
  bool good = TRY(build_and_prove(engine));
  Unmet unmet = unmet_criteria(engine);
  outcome.unmet = unmet.failing;
  outcome.unjudged = unmet.unjudged;
  outcome.end = good && unmet.empty() ? RunEnd::kMet : RunEnd::kUnmet;
  Json body = Json::object({{"id", engine.config.run}, {"commit", engine.head}});
  body.set("unmet", Json(Json::Array(outcome.unmet.begin(), outcome.unmet.end())));
  body.set("unjudged", Json(Json::Array(outcome.unjudged.begin(), outcome.unjudged.end())));
  TRY(engine.main.emit(outcome.end == RunEnd::kMet ? "run.met" : "run.unmet", std::move(body)));
  return outcome;
}

}  // namespace

Json RunRequest::to_json(const Price& price) {
  return Json::object({{"id", price.id},
                       {"in_nusd", price.in_nusd},
                       {"cached_nusd", price.cached_nusd},
                       {"write_nusd", price.write_nusd},
                       {"out_nusd", price.out_nusd}});
}

Price RunRequest::price_from_json(const Json& json) {
  return {json["id"].as_string(), json["in_nusd"].as_int(), json["cached_nusd"].as_int(),
          json["write_nusd"].as_int(), json["out_nusd"].as_int()};
}

Json RunRequest::to_json() const {
  Json by_model = Json::object();
  for (const auto& [name, its] : prices) by_model.set(name, to_json(its));
  return Json::object({{"id", id},
                       {"intent", intent},
                       {"script", script},
                       {"model", model},
                       {"backend", backend},
                       {"url", url},
                       {"budget_nusd", budget_nusd},
                       {"price", to_json(price)},
                       {"prices", std::move(by_model)},
                       {"other_model", other_model},
                       {"cassette", cassette},
                       {"cassette_mode", cassette_mode},
                       {"agents", agents},
                       {"seed", seed},
                       {"port", port},
                       {"lease_ms", lease_ms},
                       {"api", api},
                       {"started", started}});
}

Result<RunRequest> RunRequest::from_json(const Json& json) {
  RunRequest out;
  for (const auto& [key, value] : json.members()) {
    if (key == "id")
      out.id = value.as_string();
    else if (key == "intent")
      out.intent = value.as_string();
    else if (key == "script")
      out.script = value.as_string();
    else if (key == "model")
      out.model = value.as_string();
    else if (key == "backend")
      out.backend = value.as_string();
    else if (key == "url")
      out.url = value.as_string();
    else if (key == "budget_nusd")
      out.budget_nusd = value.as_int();
    else if (key == "agents")
      out.agents = static_cast<int>(value.as_int(2));
    else if (key == "seed")
      out.seed = static_cast<u64>(value.as_int(1));
    else if (key == "port")
      out.port = static_cast<int>(value.as_int(7379));
    else if (key == "lease_ms")
      out.lease_ms = std::max<i64>(100, value.as_int(20'000));
    else if (key == "api")
      out.api = value.as_string();
    else if (key == "started")
      out.started = value;
    else if (key == "price") {
      out.price = price_from_json(value);
    } else if (key == "prices") {
      for (const auto& [name, its] : value.members()) out.prices[name] = price_from_json(its);
    } else if (key == "other_model") {
      out.other_model = value.as_string();
    } else if (key == "cassette") {
      out.cassette = value.as_string();
    } else if (key == "cassette_mode") {
      out.cassette_mode = value.as_string();
    } else {
      return Error(ErrorCode::kInvalidArgument, "unknown key '" + key + "' ; remove or correct it");
    }
  }
  if (out.intent.empty()) return Error(ErrorCode::kInvalidArgument, "no intent is named");
  return out;
}

base::Status create_run(const std::string& folder, const RunRequest& request) {
  if (base::file_exists(folder + "/run.json")) {
    return Error(ErrorCode::kExists,
                 folder + " holds a run already; resume it or choose another folder");
  }
  TRY(base::make_directories(folder));
  RunRequest complete = request;
  if (complete.started.is_null()) {
    complete.started = Json::object({{"id", request.id},
                                     {"model", request.model},
                                     {"backend", request.backend},
                                     {"recorded", request.is_recorded()},
                                     {"cap_nusd", request.budget_nusd},
                                     {"price", RunRequest::to_json(request.price)}});
  }
  return base::replace_file(folder + "/run.json", complete.to_json().dump_pretty() + "\n");
}

Result<RunRequest> load_run(const std::string& folder) {
  auto text = base::read_file(folder + "/run.json");
  if (!text.ok()) {
    return Error(ErrorCode::kNotFound,
                 "there is no run in " + folder + "; make one with fleet new");
  }
  auto json = Json::parse(*text);
  if (!json.ok()) return std::move(json).error().with(folder + "/run.json");
  return RunRequest::from_json(*json);
}

namespace {

// The last event up to `seq` at which every attempt that was begun has ended.
Result<i64> quiet_point(const Ledger& ledger, i64 seq) {
  i64 quiet = 0;
  int under_way = 0;
  for (const Event& event : TRY(ledger.events())) {
    if (event.seq > seq) break;
    if (kind_of(event) == "attempt") {
      if (event.type == "attempt.created")
        ++under_way;
      else if (event.type != "attempt.running")
        --under_way;
    }
    if (under_way == 0) quiet = event.seq;
  }
  return quiet;
}

}  // namespace

base::Status give_answer(const std::string& folder, const std::string& decision,
                         const std::string& text, bool without) {
  auto lock = TRY(RunLock::take(folder));
  auto ledger = TRY(Ledger::open({.path = folder + "/ledger.db"}));
  const RunState state = ledger->state();
  std::string open;
  for (const Entity* d : state.all("decision")) {
    if (d->state == "open" && state.find("answer", d->id) == nullptr) open += " " + d->id;
  }
  if (state.state_of("decision", decision) != "open") {
    return Error(ErrorCode::kInvalidArgument,
                 "no decision " + decision + " waits for an answer" +
                     (open.empty() ? "; none does" : "; these do:" + open));
  }
  if (state.find("answer", decision) != nullptr) {
    return Error(ErrorCode::kExists,
                 "decision " + decision + " was answered already; go on with: fleet run");
  }
  i64 ver = static_cast<i64>(TRY(ledger->stream("answers")).size()) + 1;
  Json body = Json::object({{"id", decision}, {"text", text}, {"without", without}});
  TRY(ledger->append("answers", ver, "human:cli", {{"answer.given", std::move(body)}}));
  return {};
}

base::Result<i64> fork_run(const std::string& folder, i64 seq, const std::string& target,
                           const RunRequest& request) {
  auto ledger = TRY(Ledger::open({.path = folder + "/ledger.db", .read_only = true}));
  if (seq < 1 || seq > ledger->state().last_seq()) {
    return Error(ErrorCode::kInvalidArgument,
                 "that run has events 1 to " + std::to_string(ledger->state().last_seq()));
  }
  seq = TRY(quiet_point(*ledger, seq));
  TRY(create_run(target, request));
  for (const char* part :
       {"product.git", "sealed", "workspaces", "snapshots", "trees", "artifacts"}) {
    if (!base::is_directory(folder + "/" + part)) continue;
    base::ProcessSpec copy;
    copy.argv = {"cp", "-a", folder + "/" + part, target + "/" + part};
    auto copied = TRY(base::run_process(copy));
    if (!copied.ok()) return Error(ErrorCode::kIo, "copying the run failed: " + copied.err);
  }
  if (base::file_exists(folder + "/spec.json")) {
    TRY(base::write_file(target + "/spec.json", TRY(base::read_file(folder + "/spec.json"))));
  }
  TRY(ledger->fork_to(target + "/ledger.db", seq));
  return seq;
}

namespace {

// A run that began has a ledger: without this check one that was lost would look like a run to
// begin anew, and everything would be paid for twice.
base::Status check_ledger_there(const std::string& folder) {
  if (!base::is_directory(folder + "/product.git")) return {};
  const std::string path = folder + "/ledger.db";
  const bool there = !base::read_file(path).value_or("").empty() ||
                     !base::read_file(path + "-wal").value_or("").empty();
  if (there) return {};
  return Error(ErrorCode::kCorruption, "the run began, but its ledger is gone; restore " + path +
                                           " from a copy, or start a new run");
}

}  // namespace

Result<RunOutcome> execute_run(const RunRequest& request, const RunOptions& options, Model& model,
                               Watcher& watcher) {
  EngineConfig config;
  config.run = request.id;
  config.intent = request.intent;
  config.folder = options.folder;
  config.model = request.model;
  config.backend = request.backend;
  config.recorded = request.is_recorded();
  config.price = request.price;
  config.prices = request.prices;
  config.other_model = request.other_model;
  config.budget_nusd = request.budget_nusd;
  config.capacity.agents = request.agents;
  config.seed = request.seed;
  config.port = request.port;

  std::unique_ptr<RunLock> lock;
  if (!options.replay_only) {
    lock = TRY(RunLock::take(options.folder));
    TRY(check_ledger_there(options.folder));
    TRY(base::remove_tree(options.folder + "/scratch"));  // of one that was killed
  }
  auto ledger = TRY(Ledger::open({.path = options.folder + "/ledger.db",
                                  .run = request.id,
                                  .create = !options.replay_only,
                                  .on_commit = options.on_commit}));
  if (options.on_event) ledger->on_event(options.on_event);
  if (!options.replay_only) TRY(adjust_budget(*ledger, request.budget_nusd));
  auto sandbox = TRY(Sandbox::open({}));
  TRY(base::make_directories(options.folder + "/scratch"));
  WorkerGateRunner runner(*sandbox, {.scratch_root = options.folder + "/scratch"}, options.workers);
  ProductRepo repo = TRY(ProductRepo::open(options.folder + "/product.git"));
  auto main = TRY(Strand::open(*ledger, {.stream = "main", .replay_only = options.replay_only}));
  Engine engine{config, *ledger, *main, model, *sandbox, runner, repo, watcher, options.workers,
                {},     {},      {},    {},    {},       {},     {},   0,       {}};
  return all_stages(engine, request.started);
}

}  // namespace team
