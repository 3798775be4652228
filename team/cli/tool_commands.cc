// fleet gate run, ledger verify, doctor, script-server, models test: tools that stand on their own.
#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "team/cli/backend.h"
#include "team/cli/commands.h"
#include "team/gate/gate_runner.h"
#include "team/sandbox/sandbox.h"
#include "team/sandbox/workspace.h"
#include "team/stages/gating.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;

std::string absolute(const std::string& path) {
  char resolved[4096];
  return realpath(path.c_str(), resolved) == nullptr ? path : resolved;
}

volatile std::sig_atomic_t g_stop = 0;

// What gates run on: of a git working tree the tracked files, as they are now; else the whole
// folder.
base::Result<std::string> product_of(const std::string& folder, const std::string& scratch) {
  if (!base::file_exists(folder + "/.git") && !base::is_directory(folder + "/.git")) return folder;
  std::string copy = scratch + "/tracked";
  TRY(base::make_directories(copy));
  base::ProcessSpec spec;
  spec.argv = {"bash",
               "-c",
               "cd \"$1\" && git ls-files -z | while IFS= read -r -d '' f; do [ ! -e \"$f\" ] || "
               "printf '%s\\0' \"$f\"; done | xargs -0 cp --parents -p -t \"$2\"",
               "copy",
               folder,
               copy};
  auto copied = TRY(base::run_process(spec));
  if (!copied.ok()) {
    return Error(ErrorCode::kIo, "copying the tracked files failed: " + copied.err);
  }
  return copy;
}

}  // namespace

std::string runs_folder() {
  const char* home = std::getenv("FLEET_HOME");
  return absolute(home == nullptr ? ".fleet" : home) + "/runs";
}

base::Result<std::string> find_run(const std::string& name) {
  if (!name.empty()) {
    for (const std::string& folder : {runs_folder() + "/" + name, name}) {
      if (base::file_exists(folder + "/run.json")) return absolute(folder);
    }
    return Error(ErrorCode::kNotFound, "there is no run '" + name + "' in " + runs_folder());
  }
  std::string newest;
  i64 newest_s = -1;
  auto names = base::list_directory(runs_folder());
  if (names.ok()) {
    for (const std::string& one : *names) {
      struct stat info{};
      std::string folder = runs_folder() + "/" + one;
      if (stat((folder + "/run.json").c_str(), &info) != 0 || info.st_mtime < newest_s) continue;
      newest = folder;
      newest_s = info.st_mtime;
    }
  }
  if (newest.empty()) {
    return Error(ErrorCode::kNotFound,
                 "there is no run yet; make one with fleet run --example kv-server");
  }
  return newest;
}

int exit_code_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kLimit:
      return kExitBudget;
    case ErrorCode::kConflict:
      return kExitPerson;
    case ErrorCode::kCorruption:
      return kExitDamaged;
    default:
      return kExitUnfit;
  }
}

// Runs the gates of any folder on any product: how this repository checks itself.
base::Result<int> command_gate_run(const CommandOptions& options) {
  std::string gates = options.gates.empty() ? options.folder + "/gates" : options.gates;
  std::string sealed = options.sealed.empty() ? gates + "/sealed" : options.sealed;
  if (!base::is_directory(sealed)) sealed.clear();
  std::vector<GateSpec> specs = TRY(load_gate_folder(gates));
  auto sandbox = TRY(Sandbox::open({}));
  base::TempDir scratch("fleet-gates");
  GateRunner runner(*sandbox, {.scratch_root = scratch.path()});
  std::string product = TRY(product_of(absolute(options.folder), scratch.path()));
  bool all = true;
  bool found = false;
  Json out = Json::array();
  for (const GateSpec& spec : specs) {
    if (!options.gate.empty() && spec.id != options.gate) continue;
    found = true;
    Evidence evidence =
        TRY(runner.run(spec, {.product = product, .sealed = sealed, .keep_at = ""}));
    all = all && evidence.verdict == Verdict::kPass;
    if (options.json) {
      out.push(to_json(evidence));
      continue;
    }
    std::printf("%-7s %-20s %lld/%lld  %.1f s  %s\n", name_of(evidence.verdict), spec.id.c_str(),
                static_cast<long long>(evidence.numerator),
                static_cast<long long>(evidence.denominator),
                static_cast<f64>(evidence.wall_us) / 1e6, evidence.why.c_str());
    if (evidence.verdict == Verdict::kPass) continue;
    for (const CaseResult& c : evidence.cases) {
      if (!c.pass) std::printf("        not ok %s  %s\n", c.id.c_str(), c.reason.c_str());
    }
    size_t from = evidence.log.size() > 2000 ? evidence.log.size() - 2000 : 0;
    std::printf("%s\n", evidence.log.substr(from).c_str());
  }
  if (!found) {
    return Error(ErrorCode::kNotFound, options.gate.empty() ? "there are no gates in " + gates
                                                            : "there is no gate " + options.gate);
  }
  if (options.json) std::printf("%s\n", out.dump_pretty().c_str());
  return all ? kExitMet : kExitUnmet;
}

base::Result<int> command_ledger_verify(const CommandOptions& options) {
  std::string folder = TRY(find_run(options.run));
  auto ledger = Ledger::open({.path = folder + "/ledger.db", .read_only = true});
  LedgerReport report;
  std::string state;
  if (ledger.ok()) {
    report = TRY((*ledger)->verify());
    state = base::sha256_hex((*ledger)->state().comparable().dump_canonical());
  } else if (ledger.error().code() == ErrorCode::kCorruption) {
    report.problem = ledger.error().message();
  } else {
    return std::move(ledger).error();
  }
  if (options.json) {
    std::printf("%s\n", Json::object({{"intact", report.intact},
                                      {"events", report.events},
                                      {"blobs", report.blobs},
                                      {"head", report.head},
                                      {"state", state},
                                      {"problem", report.problem}})
                            .dump()
                            .c_str());
  } else if (report.intact) {
    std::printf("intact: %lld events in one chain, %lld blobs, head %s\n",
                static_cast<long long>(report.events), static_cast<long long>(report.blobs),
                report.head.substr(0, 16).c_str());
  } else {
    std::fprintf(stderr, "fleet: the ledger is damaged: %s\n", report.problem.c_str());
  }
  return report.intact ? kExitMet : kExitDamaged;
}

base::Result<int> command_doctor(const CommandOptions& options) {
  bool good = true;
  Json out = Json::array();
  auto tell = [&](const std::string& check, bool held, bool required, const std::string& detail) {
    good = good && (held || !required);
    if (options.json) {
      out.push(Json::object(
          {{"check", check}, {"held", held}, {"required", required}, {"detail", detail}}));
    } else {
      std::printf("%-4s %-44s %s\n",
                  held       ? "ok"
                  : required ? "FAIL"
                             : "weak",
                  check.c_str(), detail.c_str());
    }
  };
  for (const char* name : {"git", "bwrap", "g++"}) {
    auto path = base::find_program(name);
    tell(std::string("the program ") + name, path.has_value(), std::string(name) != "g++",
         path ? *path
              : std::string("install ") + (std::string(name) == "bwrap" ? "bubblewrap" : name));
  }
  for (const SandboxFinding& f : Sandbox::self_test({}))
    tell(f.check, f.held, f.required, f.detail);
  if (options.json) std::printf("%s\n", out.dump_pretty().c_str());
  if (!options.json) {
    std::printf(
        good ? "This machine is fit to run agents and gates.\n"
             : "This machine is not fit: nothing will run here until the above is mended.\n");
  }
  return good ? kExitMet : kExitUnfit;
}

base::Result<int> command_script_server(const CommandOptions& options) {
  Json script = TRY(load_script(options.script));
  auto server = TRY(ScriptServer::start({.port = options.port}, script));
  server->on_served([](const ScriptServer::Served& served) {
    std::fprintf(stderr, "%d %s  %s\n", served.status, served.path.c_str(), served.rule.c_str());
  });
  std::printf("%s\n", server->url().c_str());
  std::fflush(stdout);
  std::signal(SIGINT, [](int) { g_stop = 1; });
  std::signal(SIGTERM, [](int) { g_stop = 1; });
  while (g_stop == 0) base::system_clock().sleep_us(100'000);
  server->stop();
  return kExitMet;
}

base::Result<int> command_models_test(const CommandOptions& options) {
  BackendConfig config;
  config.api = options.api == "anthropic" ? ApiKind::kAnthropic : ApiKind::kOpenAiChat;
  config.url = options.url;
  const char* key = std::getenv("FLEET_MODEL_KEY");
  config.key = key == nullptr ? "" : key;
  bool good = true;
  Json out = Json::array();
  for (const EndpointFinding& f : test_endpoint(config, options.model)) {
    good = good && f.ok;
    if (options.json) {
      out.push(Json::object({{"check", f.check}, {"ok", f.ok}, {"detail", f.detail}}));
    } else {
      std::printf("%-4s %-24s %s\n", f.ok ? "ok" : "FAIL", f.check.c_str(), f.detail.c_str());
    }
  }
  if (options.json) std::printf("%s\n", out.dump_pretty().c_str());
  return good ? kExitMet : kExitUnfit;
}

}  // namespace team
