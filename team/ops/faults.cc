#include "team/ops/faults.h"

#include "base/clock.h"
#include "base/files.h"
#include "team/fault/disk_fault.h"
#include "team/fault/net_fault.h"

#include <csignal>
#include <cstdlib>
#include <initializer_list>

namespace team {
namespace {

using base::Json;

constexpr i64 kLoadBeforeKillUs = 250'000;
constexpr i64 kNoticeUs = 50'000;
constexpr i64 kReplyWaitMs = 300;

std::string first_line(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  const size_t end = line.find_last_not_of("\r ");
  return end == std::string::npos ? "" : line.substr(0, end + 1);
}

base::Status check_after(const Service& service, const Fault& fault, FaultOutcome& outcome) {
  if (fault.after.empty()) return {};
  auto result = TRY(service.client(fault.after));
  outcome.seen = result.out.substr(0, 2000);
  if (result.out.find(fault.expect) == std::string::npos && outcome.broke.empty()) {
    outcome.broke = "afterwards " + fault.after[0] + " printed '" + first_line(result.out) +
                    "', not '" + fault.expect + "'";
  }
  return {};
}

base::Status kill_under_load(const Sandbox& sandbox, Service& service, const Fault& fault,
                             FaultOutcome& outcome) {
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
  return {};
}

base::Status send_input(Service& service, const Fault& fault, FaultOutcome& outcome) {
  auto reply = service.send(fault.bytes, kReplyWaitMs);
  base::system_clock().sleep_us(kNoticeUs);
  outcome.crash = TRY(service.tend());
  if (outcome.crash) {
    outcome.back_ms = service.ready_ms();
    const std::string words = first_line(outcome.crash->last_words);
    outcome.broke =
        "the server died of " + outcome.crash->what() + (words.empty() ? "" : ": " + words);
  } else if (!reply.ok()) {
    outcome.broke = reply.error().message();
  }
  return {};
}

// `load` must go through with what it was promised, and the server must not die of it.
base::Status run_load(Service& service, const Fault& fault, int port, FaultOutcome& outcome) {
  constexpr i64 kLoadMs = 20'000;
  auto result = TRY(service.client(fault.load, kLoadMs, port));
  if (result.out.find(fault.load_expect) == std::string::npos) {
    outcome.broke = "meanwhile " + fault.load[0] + " printed '" + first_line(result.out) +
                    "', not '" + fault.load_expect + "'";
  }
  base::system_clock().sleep_us(kNoticeUs);
  return {};
}

base::Status note_death(Service& service, const char* of, FaultOutcome& outcome) {
  outcome.crash = TRY(service.tend());
  if (!outcome.crash) return {};
  outcome.back_ms = service.ready_ms();
  outcome.broke = std::string("it died of ") + of + ": " + outcome.crash->what();
  return {};
}

base::Status on_bad_disk(Service& service, const Fault& fault, FaultOutcome& outcome) {
  base::TempDir sockets("fleet-disk");
  auto disk = TRY(DiskFault::start(sockets / "disk", "/data"));
  TRY(service.restart_with(disk.get()));
  TRY(disk->obey(fault.mode));
  TRY(run_load(service, fault, 0, outcome));
  TRY(disk->obey("ok"));
  TRY(note_death(service, "a bad disk", outcome));
  return service.restart_with(nullptr);
}

base::Status on_bad_connection(Service& service, const Fault& fault, FaultOutcome& outcome) {
  constexpr u64 kSeed = 1;
  auto net = TRY(NetFault::start({}, {.port = service.port()}, kSeed));
  TRY(net->obey(fault.mode));
  TRY(run_load(service, fault, net->port(), outcome));
  return note_death(service, "a bad connection", outcome);
}

bool has_mode(const Fault& fault, std::initializer_list<const char*> words) {
  for (const std::string word : words) {
    if (fault.mode == word) return true;
    if (word.back() == ' ' && fault.mode.starts_with(word)) {
      return std::atoi(fault.mode.c_str() + word.size()) > 0;
    }
  }
  return false;
}

}  // namespace

std::string flaw_of(const Fault& fault) {
  const std::string name = "fault " + fault.id;
  const bool disk = fault.kind == "disk", net = fault.kind == "net";
  if (disk || net) {
    if (fault.load.empty()) return name + " needs a load that runs while it happens";
    if (disk && !has_mode(fault, {"full", "failing", "slow "})) {
      return name + " has the mode '" + fault.mode + "'; a disk is full, failing or slow MS";
    }
    if (net && !has_mode(fault, {"delay ", "loss ", "chop", "cut "})) {
      return name + " has the mode '" + fault.mode +
             "'; a connection has delay MS, loss PERCENT, chop or cut BYTES";
    }
    return "";
  }
  for (const char* known : {"kill", "stop", "pause", "input", "check"}) {
    if (fault.kind == known) return "";
  }
  return name + " has kind '" + fault.kind + "'; use kill, stop, pause, input, disk, net or check";
}

base::Result<FaultOutcome> inject(const Sandbox& sandbox, Service& service, const Fault& fault) {
  FaultOutcome outcome;
  if (!fault.before.empty()) TRY(service.client(fault.before));
  if (fault.kind == "kill") {
    TRY(kill_under_load(sandbox, service, fault, outcome));
  } else if (fault.kind == "stop") {
    service.stop();
    TRY(service.tend());
    outcome.back_ms = service.ready_ms();
  } else if (fault.kind == "pause") {
    service.signal(SIGSTOP);
    base::system_clock().sleep_us(fault.ms * 1'000);
    service.signal(SIGCONT);
    outcome.crash = TRY(service.tend());
    if (outcome.crash) outcome.broke = "it died after a pause: " + outcome.crash->what();
  } else if (fault.kind == "input") {
    TRY(send_input(service, fault, outcome));
  } else if (fault.kind == "disk") {
    TRY(on_bad_disk(service, fault, outcome));
  } else if (fault.kind == "net") {
    TRY(on_bad_connection(service, fault, outcome));
  }
  TRY(check_after(service, fault, outcome));
  return outcome;
}

Json to_json(const Fault& fault, const FaultOutcome& outcome) {
  Json json = Json::object({{"fault", fault.id},
                            {"kind", fault.kind},
                            {"title", fault.title},
                            {"broke", outcome.broke},
                            {"seen", outcome.seen},
                            {"back_ms", outcome.back_ms}});
  if (outcome.crash) {
    const Crash& crash = *outcome.crash;
    json.set("signal", crash.signal);
    json.set("last_words", crash.last_words);
    json.set("stack", Json(Json::Array(crash.stack.begin(), crash.stack.end())));
    if (!crash.stack_problem.empty()) json.set("stack_problem", crash.stack_problem);
  }
  return json;
}

}  // namespace team
