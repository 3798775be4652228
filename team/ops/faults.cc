#include "team/ops/faults.h"

#include "base/clock.h"

#include <csignal>

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

}  // namespace

bool is_fault_kind(const std::string& kind) {
  for (const char* known : {"kill", "stop", "pause", "input", "check"}) {
    if (kind == known) return true;
  }
  return false;
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
