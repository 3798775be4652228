// fleet status, watch, log, spec, plan, why, evidence, diff, cost, perf, incidents: the commands
// that only look. All read the ledger and fold it; none changes anything.
#include "base/clock.h"
#include "base/files.h"
#include "team/cli/commands.h"
#include "team/cli/live_view.h"
#include "team/report/report.h"
#include "team/report/story.h"
#include "team/stages/product_repo.h"
#include "team/stages/run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;

struct Opened {
  std::string folder;
  std::unique_ptr<Ledger> ledger;
  RunState state;
};

base::Result<Opened> open_run(const CommandOptions& options) {
  Opened out;
  out.folder = TRY(find_run(options.run));
  out.ledger = TRY(Ledger::open({.path = out.folder + "/ledger.db", .read_only = true}));
  out.state = out.ledger->state();
  return out;
}

void print_json(const Json& json) {
  std::printf("%s\n", json.dump_pretty().c_str());
}

Json entity_json(const Entity& entity) {
  Json json = Json::object({{"id", entity.id}, {"state", entity.state}});
  for (const auto& [key, value] : entity.facts.members()) json.set(key, value);
  return json;
}

Json entities_json(const RunState& state, const char* kind) {
  Json out = Json::array();
  for (const Entity* entity : state.all(kind)) out.push(entity_json(*entity));
  return out;
}

std::string list(const Json& items) {
  std::string out;
  for (const Json& item : items.items()) out += (out.empty() ? "" : ", ") + item.as_string();
  return out;
}

std::string run_state_word(const RunState& state) {
  auto runs = state.all("run");
  if (runs.empty()) return "not started";
  return runs[0]->state == "started" ? "unfinished; fleet run resumes it" : runs[0]->state;
}

// The entity of that id, whatever its kind.
const Entity* find_any(const RunState& state, const std::string& id) {
  for (const char* kind :
       {"criterion", "task", "attempt", "evidence", "decision", "assumption", "experiment",
        "incident", "artifact", "deployment", "fault", "mutant", "review", "stage", "run"}) {
    if (const Entity* entity = state.find(kind, id)) return entity;
  }
  return nullptr;
}

// What `fleet deploy` wrote last, or null.
Json live_operation(const std::string& folder) {
  auto text = base::read_file(folder + "/operation.json");
  auto json = text.ok() ? Json::parse(*text) : base::Result<Json>(Json());
  return json.ok() ? *json : Json();
}

// How the product serves, what broke, which decisions that reopened.
void print_operation(const Opened& run) {
  for (const Entity* d : run.state.all("deployment")) {
    if (!d->facts.has("operation")) continue;
    std::printf("  %-6s %-11s %s: %s\n", d->id.c_str(), d->state.c_str(),
                d->facts["artifact"].as_string().c_str(),
                format_operation(d->facts["operation"]).c_str());
  }
  if (Json live = live_operation(run.folder); live.is_object()) {
    std::printf("  live   %-11s %s: %s\n", live["serving"].as_bool() ? "serving" : "stopped",
                live["artifact"].as_string().c_str(), format_operation(live["operation"]).c_str());
  }
  for (const Entity* i : run.state.all("incident")) {
    const std::string& text = i->facts["text"].as_string();
    std::printf("  %-6s %-11s %s\n", i->id.c_str(), i->state.c_str(),
                text.substr(0, text.find('\n')).c_str());
  }
  for (const Entity* d : run.state.all("decision")) {
    const std::string now = revisited_as(*d);
    if (now.empty()) continue;
    std::printf("  %-6s %-11s %s %s\n", d->id.c_str(), now.c_str(),
                d->facts["question"].as_string().c_str(), d->facts["because"].as_string().c_str());
  }
}

// A deployment's latencies and memory over time, one line a stretch.
void print_series(const std::string& name, const Json& operation) {
  std::printf("\n%s  %s\n", name.c_str(), format_operation(operation).c_str());
  std::printf("  %8s %8s %7s %9s %9s %9s %8s\n", "time", "answers", "errors", "p50 ms", "p99 ms",
              "memory MB", "restarts");
  for (const Json& p : operation["series"]["points"].items()) {
    std::printf(
        "  %6.2f s %8lld %7lld %9.2f %9.2f %9.1f %8lld\n",
        static_cast<f64>(p["at_ms"].as_int()) / 1e3, static_cast<long long>(p["answers"].as_int()),
        static_cast<long long>(p["errors"].as_int()), static_cast<f64>(p["p50_us"].as_int()) / 1e3,
        static_cast<f64>(p["p99_us"].as_int()) / 1e3, static_cast<f64>(p["rss"].as_int()) / 1e6,
        static_cast<long long>(p["restarts"].as_int()));
  }
}

// Where the time went before the experiment changed something.
void print_profile(const Json& profile) {
  for (size_t i = 0; i < std::min<size_t>(5, profile["entries"].size()); ++i) {
    const Json& e = profile["entries"][i];
    std::printf("    %4.0f %%  %3.0f %%  %s%s%s\n", e["self"].as_double() * 100,
                e["total"].as_double() * 100, e["function"].as_string().c_str(),
                e["path"].as_string().empty() ? "" : "  < ", e["path"].as_string().c_str());
  }
}

void print_experiment(const Entity& x) {
  const Json& f = x.facts;
  std::printf("%s  %s: %s\n", x.id.c_str(), x.state.c_str(), f["idea"].as_string().c_str());
  std::printf("    bottleneck: %s\n", f["bottleneck"].as_string().c_str());
  print_profile(f["profile"]);
  if (!f.has("gain")) {
    std::printf("    %s\n", f["why"].as_string().c_str());
    return;
  }
  std::printf(
      "    gain %s (95 %% interval %s to %s), %lld pairs, p %.2g; %s\n",
      format_percent(f["gain"].as_double()).c_str(), format_percent(f["low"].as_double()).c_str(),
      format_percent(f["high"].as_double()).c_str(), static_cast<long long>(f["pairs"].as_int()),
      f["p"].as_double(), f["why"].as_string().c_str());
}

}  // namespace

base::Result<int> command_status(const CommandOptions& options) {
  Opened run = TRY(open_run(options));
  if (options.json) {
    Json out = Json::object({{"run", run.ledger->run()}, {"state", run_state_word(run.state)}});
    for (const char* kind : {"stage", "criterion", "task", "decision", "experiment", "incident",
                             "artifact", "deployment"}) {
      out.set(kind, entities_json(run.state, kind));
    }
    out.set("live", live_operation(run.folder));
    out.set("spent_nusd", run.state.spent_nusd());
    out.set("events", run.state.last_seq());
    print_json(out);
    return kExitMet;
  }
  std::printf("run     %s   %s\n", run.ledger->run().c_str(), run_state_word(run.state).c_str());
  if (const Entity* intent = run.state.find("intent", "intent")) {
    std::printf("intent  %s\n", intent->facts["text"].as_string().c_str());
  }
  std::string stages;
  for (const Entity* s : run.state.all("stage")) stages += s->id + " " + s->state + "   ";
  std::printf("stages  %s\n", stages.c_str());
  for (const Entity* c : run.state.all("criterion")) {
    std::printf("  %-4s %-10s %s\n", c->id.c_str(), c->state.c_str(),
                c->facts["text"].as_string().c_str());
  }
  for (const Entity* t : run.state.all("task")) {
    std::printf("  %-6s %-10s %s\n", t->id.c_str(), t->state.c_str(),
                t->facts["title"].as_string().c_str());
  }
  print_operation(run);
  std::printf("spent   %s in %zu calls, %lld events in the ledger\n",
              format_usd(run.state.spent_nusd()).c_str(), run.state.usage().size(),
              static_cast<long long>(run.state.last_seq()));
  return kExitMet;
}

base::Result<int> command_log(const CommandOptions& options) {
  Opened run = TRY(open_run(options));
  RunState state;
  for (const Event& event : TRY(run.ledger->events())) {
    TRY(state.apply(event));
    if (options.json) {
      std::printf("%s\n", canonical_event(event, run.ledger->run()).c_str());
    } else if (auto line = tell(event, state)) {
      std::printf("%6lld  %s\n", static_cast<long long>(event.seq),
                  render(*line, false, 200).c_str());
    }
  }
  return kExitMet;
}

// Follows a run that another process drives, until it has ended.
base::Result<int> command_watch(const CommandOptions& options) {
  std::string folder = TRY(find_run(options.run));
  bool colour = isatty(STDOUT_FILENO) != 0;
  RunState state;
  i64 seen = 0;
  while (true) {
    auto ledger = TRY(Ledger::open({.path = folder + "/ledger.db", .read_only = true}));
    for (const Event& event : TRY(ledger->events(seen))) {
      seen = event.seq;
      TRY(state.apply(event));
      if (auto line = tell(event, state)) std::printf("%s\n", render(*line, colour, 110).c_str());
    }
    std::fflush(stdout);
    auto runs = state.all("run");
    if (!runs.empty() && runs[0]->state != "started") {
      return runs[0]->state == "met" ? kExitMet : kExitUnmet;
    }
    base::system_clock().sleep_us(300'000);
  }
}

base::Result<int> command_spec(const CommandOptions& options) {
  Opened run = TRY(open_run(options));
  if (options.json) {
    print_json(Json::object({{"criteria", entities_json(run.state, "criterion")},
                             {"assumptions", entities_json(run.state, "assumption")}}));
    return kExitMet;
  }
  for (const Entity* c : run.state.all("criterion")) {
    std::printf("%s  %s\n    %s, %s, gates: %s, %lld cases\n", c->id.c_str(),
                c->facts["text"].as_string().c_str(), c->state.c_str(),
                c->facts["visibility"].as_string().c_str(), list(c->facts["gates"]).c_str(),
                static_cast<long long>(c->facts["denominator"].as_int()));
  }
  for (const Entity* a : run.state.all("assumption")) {
    std::printf("%s  %s\n    assumed: %s\n", a->id.c_str(),
                a->facts["question"].as_string().c_str(), a->facts["choice"].as_string().c_str());
  }
  return kExitMet;
}

base::Result<int> command_plan(const CommandOptions& options) {
  Opened run = TRY(open_run(options));
  if (options.json) {
    print_json(Json::object({{"tasks", entities_json(run.state, "task")},
                             {"decisions", entities_json(run.state, "decision")}}));
    return kExitMet;
  }
  for (const Entity* t : run.state.all("task")) {
    std::printf("%-6s %-10s %s\n       needs: %s  touches: %s  covers: %s\n", t->id.c_str(),
                t->state.c_str(), t->facts["title"].as_string().c_str(),
                t->facts["needs"].size() ? list(t->facts["needs"]).c_str() : "nothing",
                list(t->facts["touches"]).c_str(), list(t->facts["covers"]).c_str());
  }
  for (const Entity* d : run.state.all("decision")) {
    std::printf("%-6s %s\n       %s, because %s; reopens when %s\n", d->id.c_str(),
                d->facts["question"].as_string().c_str(), d->facts["choice"].as_string().c_str(),
                d->facts["why"].as_string().c_str(), d->facts["trigger"].as_string().c_str());
  }
  return kExitMet;
}

// The chain of events that brought a thing where it is.
base::Result<int> command_why(const CommandOptions& options) {
  Opened run = TRY(open_run(options));
  if (options.id.empty()) return Error(ErrorCode::kInvalidArgument, "say of what: fleet why C3");
  const Entity* entity = find_any(run.state, options.id);
  if (entity == nullptr && options.id == "run") entity = run.state.all("run").front();
  if (entity == nullptr) {
    return Error(ErrorCode::kNotFound, "nothing in this run is called " + options.id);
  }
  if (!options.json)
    std::printf("%s %s: %s\n", entity->kind.c_str(), entity->id.c_str(), entity->state.c_str());
  Json chain = Json::array();
  for (const Event& event : TRY(run.ledger->events())) {
    bool own = kind_of(event) == entity->kind && event.body["id"].as_string() == entity->id;
    // Evidence, reviews and attempts that speak of it.
    const std::string& evidence = entity->facts["evidence"].as_string();
    bool about = event.body["task"].as_string() == entity->id ||
                 event.body["criterion"].as_string() == entity->id ||
                 (!evidence.empty() && event.body["id"].as_string() == evidence);
    if (!own && !(about && kind_of(event) != "usage")) continue;
    if (options.json) {
      chain.push(Json::object({{"seq", event.seq}, {"type", event.type}, {"body", event.body}}));
      continue;
    }
    std::printf("%6lld  %-20s %s\n", static_cast<long long>(event.seq), event.type.c_str(),
                event.body.dump().substr(0, 300).c_str());
  }
  if (options.json) print_json(chain);
  return kExitMet;
}

base::Result<int> command_evidence(const CommandOptions& options) {
  Opened run = TRY(open_run(options));
  const Entity* entity = run.state.find("evidence", options.id);
  if (entity == nullptr) {
    if (!options.id.empty())
      return Error(ErrorCode::kNotFound, "there is no evidence " + options.id);
    for (const Entity* e : run.state.all("evidence")) {
      std::printf("%-5s %-12s %-8s %lld/%lld  tree %s\n", e->id.c_str(),
                  e->facts["gate"].as_string().c_str(), e->facts["verdict"].as_string().c_str(),
                  static_cast<long long>(e->facts["num"].as_int()),
                  static_cast<long long>(e->facts["denom"].as_int()),
                  e->facts["tree"].as_string().substr(0, 12).c_str());
    }
    return kExitMet;
  }
  if (options.json) {
    print_json(entity_json(*entity));
    return kExitMet;
  }
  const Json& f = entity->facts;
  std::printf("evidence %s: gate %s, %s, %lld of %lld cases\n", entity->id.c_str(),
              f["gate"].as_string().c_str(), f["verdict"].as_string().c_str(),
              static_cast<long long>(f["num"].as_int()),
              static_cast<long long>(f["denom"].as_int()));
  std::printf("tree %s\ncommand %s\nsandbox %s\n", f["tree"].as_string().c_str(),
              f["command_hash"].as_string().c_str(), f["profile_hash"].as_string().c_str());
  if (!f["why"].as_string().empty()) std::printf("why %s\n", f["why"].as_string().c_str());
  for (const Json& c : f["cases"].items()) {
    std::printf("  %s %s  %s\n", c["pass"].as_bool() ? "ok    " : "not ok",
                c["id"].as_string().c_str(), c["reason"].as_string().c_str());
  }
  std::string log = TRY(run.ledger->blob(f["log_blob"].as_string()));
  std::printf("--- log\n%s\n", log.c_str());
  return kExitMet;
}

base::Result<int> command_diff(const CommandOptions& options) {
  Opened run = TRY(open_run(options));
  const Entity* task = run.state.find("task", options.id);
  if (task == nullptr) return Error(ErrorCode::kNotFound, "there is no task " + options.id);
  ProductRepo repo = TRY(ProductRepo::open(run.folder + "/product.git"));
  std::string diff =
      TRY(repo.diff(task->facts["base"].as_string(), task->facts["change"].as_string()));
  if (options.json) {
    print_json(Json::object({{"task", options.id}, {"diff", diff}}));
  } else {
    std::printf("%s\n", diff.c_str());
  }
  return kExitMet;
}

base::Result<int> command_cost(const CommandOptions& options) {
  Opened run = TRY(open_run(options));
  CostTable table = TRY(cost_table(run.state, options.by));
  if (options.json) {
    print_json(table.to_json());
    return kExitMet;
  }
  std::printf("%-14s %6s %12s %10s %10s %8s %9s %7s\n", options.by.c_str(), "calls", "input",
              "cached", "output", "share", "cost", "share");
  for (const CostRow& row : table.rows) {
    std::printf("%-14s %6lld %12lld %9.0f%% %10lld %7.1f%% %9s %6.1f%%\n", row.name.c_str(),
                static_cast<long long>(row.calls), static_cast<long long>(row.usage.input()),
                100 * row.cached_share(), static_cast<long long>(row.usage.output()),
                100 * row.output_share, format_usd(row.cost_nusd).c_str(), 100 * row.cost_share);
  }
  return kExitMet;
}

base::Result<int> command_perf(const CommandOptions& options) {
  Opened run = TRY(open_run(options));
  Json live = live_operation(run.folder);
  if (options.json) {
    print_json(Json::object({{"experiments", entities_json(run.state, "experiment")},
                             {"deployments", entities_json(run.state, "deployment")},
                             {"live", live}}));
    return kExitMet;
  }
  for (const Entity* x : run.state.all("experiment")) print_experiment(*x);
  for (const Entity* d : run.state.all("deployment")) {
    if (d->facts.has("operation")) {
      print_series(d->id + " " + d->facts["artifact"].as_string(), d->facts["operation"]);
    }
  }
  if (live.is_object()) print_series("live " + live["artifact"].as_string(), live["operation"]);
  return kExitMet;
}

base::Result<int> command_incidents(const CommandOptions& options) {
  Opened run = TRY(open_run(options));
  if (options.json) {
    print_json(Json::object({{"incidents", entities_json(run.state, "incident")},
                             {"faults", entities_json(run.state, "fault")}}));
    return kExitMet;
  }
  for (const Entity* i : run.state.all("incident")) {
    std::printf("%s  %s\n    %s\n    reproduced by %s, mended by %s\n", i->id.c_str(),
                i->state.c_str(), i->facts["text"].as_string().c_str(),
                i->facts["gate"].as_string().c_str(), i->facts["task"].as_string().c_str());
  }
  for (const Entity* f : run.state.all("fault")) {
    std::printf("%-7s %-9s %s\n", f->id.c_str(), f->state.c_str(),
                f->facts["title"].as_string().c_str());
  }
  return kExitMet;
}

base::Result<int> command_report(const CommandOptions& options) {
  std::string folder = TRY(find_run(options.run));
  TRY(write_report(folder));
  std::printf("%s/report.html\n", folder.c_str());
  return kExitMet;
}

}  // namespace team
