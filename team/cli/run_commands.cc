// fleet new, run, replay, fork: the commands that do something.
#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "team/cli/backend.h"
#include "team/cli/commands.h"
#include "team/cli/config.h"
#include "team/cli/crash_hooks.h"
#include "team/cli/live_view.h"
#include "team/report/report.h"
#include "team/stages/run.h"
#include "team/stages/worker_main.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;

// "Build a key-value server" -> "build-a-key-value".
std::string slug_of(const std::string& text) {
  std::string out;
  int words = 1;
  for (char c : text) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
    if (letter) {
      out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    } else if (!out.empty() && out.back() != '-') {
      if (++words > 4) break;
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "run" : out;
}

std::string free_name(const std::string& stem) {
  std::string name = stem;
  for (int n = 2; base::file_exists(runs_folder() + "/" + name + "/run.json"); ++n) {
    name = stem + "-" + std::to_string(n);
  }
  return name;
}

base::Result<RunRequest> make_request(const CommandOptions& options) {
  RunRequest request;
  if (!options.example.empty()) {
    request = TRY(load_example(TRY(find_example(options.example))));
  } else {
    request.intent = options.intent;
  }
  if (!options.replay.empty()) {
    TRY(replay_from(request, options.replay, options.strict));
    TRY(apply_config(request, options.config));
    return request;
  }
  if (options.strict) {
    return Error(ErrorCode::kInvalidArgument, "--strict says how to replay: add --replay FILE");
  }
  if (request.intent.empty()) {
    return Error(ErrorCode::kInvalidArgument, "say what to build: fleet new \"one sentence\"");
  }
  TRY(apply_config(request, options.config));
  TRY(apply_environment(request));
  if (request.script.empty() && (request.url.empty() || request.backend != "live")) {
    return Error(ErrorCode::kUnavailable,
                 "no model: set FLEET_MODEL_URL, FLEET_MODEL and FLEET_MODEL_KEY, or url and model "
                 "in fleet.json, or use --example");
  }
  TRY(settle_price(request));
  if (!options.record.empty()) TRY(record_to(request, options.record));
  return request;
}

base::Result<std::string> make_run(const CommandOptions& options) {
  RunRequest request = TRY(make_request(options));
  std::string stem = slug_of(options.example.empty() ? request.intent : options.example);
  std::string name = options.run.empty() ? free_name(stem) : options.run;
  request.id = name.substr(name.rfind('/') + 1);
  std::string folder = name.find('/') == std::string::npos ? runs_folder() + "/" + name : name;
  TRY(create_run(folder, request));
  return folder;
}

// Names each criterion that failed, with its text and the evidence against it.
void print_unmet(const std::string& folder, const RunOutcome& outcome, const char* bold,
                 const char* reset) {
  std::printf("%sNot met.%s\n", bold, reset);
  auto ledger = Ledger::open({.path = folder + "/ledger.db", .read_only = true});
  if (!ledger.ok()) return;
  RunState state = (*ledger)->state();
  for (const std::string& id : outcome.unmet) {
    const Entity* c = state.find("criterion", id);
    if (c == nullptr) continue;
    std::printf("  %s  %s\n", id.c_str(), c->facts["text"].as_string().c_str());
    if (c->facts.has("why")) {
      std::printf("      %s\n", c->facts["why"].as_string().c_str());
      continue;
    }
    std::printf("      gate %s, %lld of %lld cases: fleet evidence %s\n",
                c->facts["gate"].as_string().c_str(),
                static_cast<long long>(c->facts["num"].as_int()),
                static_cast<long long>(c->facts["denom"].as_int()),
                c->facts["evidence"].as_string().c_str());
  }
  std::string unjudged;
  for (const std::string& id : outcome.unjudged) unjudged += " " + id;
  if (!unjudged.empty()) std::printf("  not reached:%s\n", unjudged.c_str());
  if (outcome.unmet.empty() && unjudged.empty()) std::printf("  the product does not serve\n");
}

void print_end(const std::string& folder, const RunRequest& request, const RunOutcome& outcome,
               bool terminal) {
  const char* bold = terminal ? "\033[1m" : "";
  const char* reset = terminal ? "\033[0m" : "";
  std::string name = folder.substr(folder.rfind('/') + 1);
  std::printf("\n");
  if (outcome.end == RunEnd::kMet) {
    std::printf("%sEvery criterion is met.%s\n", bold, reset);
  } else {
    print_unmet(folder, outcome, bold, reset);
  }
  if (request.is_recorded()) {
    std::printf(
        "The model's words were recorded; files, builds, sandboxes, tests, measurements and\n"
        "crashes were real.\n");
  }
  std::printf("  report    %s/report.html\n", folder.c_str());
  std::printf("  cost      fleet cost --run %s\n", name.c_str());
  if (outcome.end == RunEnd::kMet && base::is_directory(folder + "/artifacts")) {
    std::printf("  serve it  fleet deploy --run %s\n", name.c_str());
  }
}

base::Result<int> drive(const std::string& folder, const CommandOptions& options) {
  RunRequest request = TRY(load_run(folder));
  auto backend = TRY(Backend::open(request));
  bool terminal = isatty(STDOUT_FILENO) != 0 && !options.json;
  LiveView view({.terminal = terminal,
                 .quiet = options.quiet || options.json,
                 .words = request.is_recorded() ? "recorded" : request.model,
                 .budget_nusd = request.budget_nusd});
  RunOptions run{.folder = folder,
                 .replay_only = false,
                 .on_commit = commit_hook(),
                 .on_event = [&](const Event& e, const RunState& s) { view.on_event(e, s); },
                 .workers = {.argv = {"/proc/self/exe", "worker"},
                             .log = folder + "/workers.log",
                             .lease_ms = request.lease_ms,
                             .on_work = work_hook()}};
  auto outcome = execute_run(request, run, backend->model(), view);
  view.finish();
  (void)write_report(folder);
  if (!outcome.ok() && outcome.error().code() == ErrorCode::kFull) {
    return Error(ErrorCode::kFull, outcome.error().message() +
                                       "; make room, then go on with: fleet " + "run --run " +
                                       folder.substr(folder.rfind('/') + 1));
  }
  if (!outcome.ok()) return std::move(outcome).error();
  TRY(backend->check_left_overs());
  if (options.json) {
    Json unmet = Json::array();
    for (const std::string& id : outcome->unmet) unmet.push(id);
    for (const std::string& id : outcome->unjudged) unmet.push(id);
    Json out = Json::object({{"run", request.id}, {"met", outcome->end == RunEnd::kMet}});
    out.set("unmet", std::move(unmet));
    out.set("folder", folder);
    std::printf("%s\n", out.dump().c_str());
  } else {
    print_end(folder, request, *outcome, terminal);
  }
  return outcome->end == RunEnd::kMet ? kExitMet : kExitUnmet;
}

}  // namespace

base::Result<int> command_new(const CommandOptions& options) {
  std::string folder = TRY(make_run(options));
  if (options.json) {
    std::printf("%s\n", Json::object({{"folder", folder}}).dump().c_str());
  } else {
    std::printf("%s\nstart it with: fleet run --run %s\n", folder.c_str(),
                folder.substr(folder.rfind('/') + 1).c_str());
  }
  return kExitMet;
}

base::Result<int> command_run(const CommandOptions& options) {
  bool fresh = !options.example.empty() || !options.intent.empty() || !options.replay.empty();
  if (!fresh && !options.record.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 "a recording begins with a new run: name an intent or --example");
  }
  std::string folder = fresh ? TRY(make_run(options)) : TRY(find_run(options.run));
  return drive(folder, options);
}

// Runs the code over the record: every event must come out the same, nothing may be done.
base::Result<int> command_replay(const CommandOptions& options) {
  std::string folder = TRY(find_run(options.run));
  RunRequest request = TRY(load_run(folder));
  class NoModel : public Model {
    CallResult complete(const ModelRequest&, const DeltaSink&) override {
      CallResult result;
      result.outcome = CallOutcome::kNoRecording;
      return result;
    }
  } no_model;
  LiveView view({.terminal = false, .quiet = true, .words = "", .budget_nusd = 0});
  auto outcome = TRY(execute_run(request, {.folder = folder, .replay_only = true}, no_model, view));
  auto ledger = TRY(Ledger::open({.path = folder + "/ledger.db", .read_only = true}));
  i64 events = ledger->state().last_seq();
  if (options.json) {
    std::printf("%s\n", Json::object({{"same", true}, {"events", events}}).dump().c_str());
  } else {
    std::printf("replayed %lld events: every one came out the same\n",
                static_cast<long long>(events));
  }
  return outcome.end == RunEnd::kMet ? kExitMet : kExitUnmet;
}

base::Result<int> command_answer(const CommandOptions& options) {
  if (options.text.empty() == !options.without) {
    return Error(ErrorCode::kInvalidArgument,
                 "say what to do, or --without: fleet answer " + options.id + " \"what to do\"");
  }
  const std::string folder = TRY(find_run(options.run));
  TRY(give_answer(folder, options.id, options.text, options.without));
  if (!options.json) {
    std::printf("noted; go on with: fleet run --run %s\n",
                folder.substr(folder.rfind('/') + 1).c_str());
  } else {
    std::printf("%s\n", Json::object({{"answered", options.id}}).dump().c_str());
  }
  return kExitMet;
}

base::Result<int> command_worker(const CommandOptions&) {
  TRY(worker_main());
  return kExitMet;
}

// RUN@SEQ: a new run that shares the record up to SEQ and goes on from there.
base::Result<int> command_fork(const CommandOptions& options) {
  size_t at = options.id.rfind('@');
  if (at == std::string::npos) {
    return Error(ErrorCode::kInvalidArgument, "say where to fork: fleet fork RUN@SEQ");
  }
  std::string folder = TRY(find_run(options.id.substr(0, at)));
  const char* digits = options.id.c_str() + at + 1;
  char* end = nullptr;
  i64 seq = std::strtoll(digits, &end, 10);
  if (end == digits || *end != '\0') {
    return Error(ErrorCode::kInvalidArgument, "'" + std::string(digits) +
                                                  "' is no event's number; fleet log --json shows "
                                                  "them");
  }
  RunRequest request = TRY(load_run(folder));
  std::string name = free_name(folder.substr(folder.rfind('/') + 1) + "-fork");
  std::string target = runs_folder() + "/" + name;
  TRY(apply_environment(request));
  i64 cut = TRY(fork_run(folder, seq, target, request));
  std::printf("%s\nshares events 1 to %lld; go on with: fleet run --run %s\n", target.c_str(),
              static_cast<long long>(cut), name.c_str());
  return kExitMet;
}

}  // namespace team
