// fleet deploy: serves what a run released, supervised, until it is interrupted. What users would
// ask is asked a few times a second; how that went is written to operation.json of the run while it
// serves (fleet status and fleet perf show it), and at the end held against the triggers of the
// design's decisions: one that fires is open again, as an event in the ledger.
#include "base/clock.h"
#include "base/files.h"
#include "team/cli/commands.h"
#include "team/ledger/ledger.h"
#include "team/ops/monitor.h"
#include "team/report/story.h"
#include "team/stages/run.h"

#include <csignal>
#include <cstdio>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;

constexpr i64 kRoundUs = 100'000;
constexpr i64 kWriteUs = 2'000'000;

volatile std::sig_atomic_t g_stop = 0;

std::string released_artifact(const RunState& state) {
  std::string artifact;
  for (const Entity* a : state.all("artifact")) {
    if (a->state == "released") artifact = a->id;
  }
  return artifact;
}

base::Status write_operation(const std::string& folder, const std::string& artifact,
                             const Monitor& monitor, bool serving) {
  Json out = Json::object({{"artifact", artifact},
                           {"serving", serving},
                           {"at_us", base::system_clock().wall_us()},
                           {"operation", monitor.to_json()}});
  return base::replace_file(folder + "/operation.json", out.dump() + "\n");
}

base::Status revisit_decisions(const std::string& folder, const Json& operation) {
  auto ledger = TRY(Ledger::open({.path = folder + "/ledger.db"}));
  const Measured measured = measured_from(operation);
  for (const Entity* decision : ledger->state().all("decision")) {
    if (decision->state != "decided") continue;
    auto trigger = parse_trigger(decision->facts["trigger"].as_string());
    const std::string why = trigger ? fired(*trigger, measured) : "";
    if (why.empty()) continue;
    const i64 ver = static_cast<i64>(TRY(ledger->stream("deploy")).size()) + 1;
    Json body = Json::object({{"id", decision->id}, {"because", why}, {"deployment", "live"}});
    TRY(ledger->append("deploy", ver, "engine", {{"decision.revisited", std::move(body)}}));
    std::printf("decision %s is open again: %s\n", decision->id.c_str(), why.c_str());
    return revisit_decisions(folder, operation);  // the fold has moved on
  }
  return {};
}

base::Status serve_until_stopped(Service& service, Monitor& monitor, const std::string& folder,
                                 const std::string& artifact) {
  base::Clock& clock = base::system_clock();
  i64 written_us = 0;
  int restarts = service.restarts();
  while (g_stop == 0) {
    auto crash = TRY(monitor.round());
    if (service.restarts() != restarts) {
      restarts = service.restarts();
      std::printf("it died%s and is back after %lld ms\n",
                  crash ? (" of " + crash->what()).c_str() : "",
                  static_cast<long long>(service.ready_ms()));
      std::fflush(stdout);
    }
    if (clock.monotonic_us() - written_us >= kWriteUs) {
      written_us = clock.monotonic_us();
      TRY(write_operation(folder, artifact, monitor, true));
    }
    clock.sleep_us(kRoundUs);
  }
  return {};
}

}  // namespace

base::Result<int> command_deploy(const CommandOptions& options) {
  const std::string folder = TRY(find_run(options.run));
  std::string artifact;
  {
    auto ledger = TRY(Ledger::open({.path = folder + "/ledger.db", .read_only = true}));
    artifact = released_artifact(ledger->state());
  }
  if (artifact.empty()) {
    return Error(ErrorCode::kNotFound, "this run has released nothing; see fleet status");
  }
  const RunRequest request = TRY(load_run(folder));
  auto json = TRY(Json::parse(TRY(base::read_file(folder + "/spec.json"))));
  const SpecDoc spec = TRY(spec_from_json(json));
  auto sandbox = TRY(Sandbox::open({}));
  const int port = options.port > 0 ? options.port : request.port;
  Service service(*sandbox, {.spec = spec.interface.serve_spec(),
                             .artifact = folder + "/artifacts/" + artifact,
                             .data = folder + "/data/live",
                             .log = folder + "/data-live.log",
                             .port = port});
  std::signal(SIGINT, [](int) { g_stop = 1; });
  std::signal(SIGTERM, [](int) { g_stop = 1; });
  TRY(service.start());
  std::printf("%s serves on 127.0.0.1:%d (data in %s/data/live); stop it with Ctrl-C\n",
              artifact.c_str(), port, folder.c_str());
  std::fflush(stdout);
  Monitor monitor(service, spec.interface.traffic);
  const base::Status served = serve_until_stopped(service, monitor, folder, artifact);
  TRY(write_operation(folder, artifact, monitor, false));
  service.stop();
  if (!spec.interface.traffic.empty()) {
    std::printf("%s\n", format_operation(monitor.to_json()).c_str());
  }
  TRY(revisit_decisions(folder, monitor.to_json()));
  TRY(served);
  return kExitMet;
}

}  // namespace team
