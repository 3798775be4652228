// Faults that are planned and played on a canary, and what became of them:
//   kill    SIGKILL while `load` runs; it must be back and `after` must print `expect`
//   stop    SIGTERM, then it is started again
//   pause   SIGSTOP for `ms`, then SIGCONT: a machine that hung
//   input   `bytes` to its port
//   disk    its data folder is on a disk that is `mode`: full, failing, slow MS
//   net     `load` reaches it over a connection that is `mode`: delay MS, loss PERCENT, chop,
//           cut BYTES
//   check   nothing; only `after`
// While a disk or a connection is bad `load` runs to its end and must print `load_expect`.
// Errors: kUnavailable when the service does not come back; those of the sandbox.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/ops/service.h"

#include <optional>
#include <string>
#include <vector>

namespace team {

struct Fault {
  std::string id, title, kind;
  std::string bytes;                // input: what is sent to the port
  std::string mode;                 // disk, net: what is wrong with it
  std::vector<std::string> load;    // kill, disk, net: argv that runs while it happens
  std::string load_expect;          // disk, net: what `load` must print; "": anything
  std::vector<std::string> before;  // argv that prepares
  std::vector<std::string> after;   // argv that checks
  std::string expect;               // what `after` must print
  i64 ms = 500;                     // pause: how long
};
// A sentence on what is wrong with the plan of a fault, or "".
std::string flaw_of(const Fault& fault);

struct FaultOutcome {
  std::string broke;  // a sentence, "" when the service survived it
  std::string seen;   // what the check printed
  i64 back_ms = 0;    // until it served again
  std::optional<Crash> crash;
};

base::Result<FaultOutcome> inject(const Sandbox& sandbox, Service& service, const Fault& fault);
base::Json to_json(const Fault& fault, const FaultOutcome& outcome);

}  // namespace team
