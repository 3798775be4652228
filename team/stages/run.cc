#include "team/stages/run.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "team/gate/gate_runner.h"
#include "team/sandbox/sandbox.h"
#include "team/stages/builder.h"
#include "team/stages/converge.h"
#include "team/stages/verify.h"
#include "team/stages/worker_gates.h"

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

Json price_json(const Price& price) {
  return Json::object({{"id", price.id},
                       {"in_nusd", price.in_nusd},
                       {"cached_nusd", price.cached_nusd},
                       {"write_nusd", price.write_nusd},
                       {"out_nusd", price.out_nusd}});
}

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

Json RunRequest::to_json() const {
  return Json::object({{"id", id},
                       {"intent", intent},
                       {"script", script},
                       {"model", model},
                       {"backend", backend},
                       {"url", url},
                       {"budget_nusd", budget_nusd},
                       {"price", price_json(price)},
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
      out.price = {value["id"].as_string(), value["in_nusd"].as_int(),
                   value["cached_nusd"].as_int(), value["write_nusd"].as_int(),
                   value["out_nusd"].as_int()};
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
                                     {"recorded", !request.script.empty()},
                                     {"cap_nusd", request.budget_nusd},
                                     {"price", price_json(request.price)}});
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

Result<RunOutcome> execute_run(const RunRequest& request, const RunOptions& options, Model& model,
                               Watcher& watcher) {
  EngineConfig config;
  config.run = request.id;
  config.intent = request.intent;
  config.folder = options.folder;
  config.model = request.model;
  config.backend = request.backend;
  config.recorded = !request.script.empty();
  config.price = request.price;
  config.budget_nusd = request.budget_nusd;
  config.capacity.agents = request.agents;
  config.seed = request.seed;
  config.port = request.port;

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
