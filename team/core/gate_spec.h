// A gate is data: what to run, in which sandbox, how to read the outcome, which cases must appear.
// The engine runs it; agents neither write it nor see its sealed files.
//
// Two shapes:
//   * a command:  `argv` runs in a fresh sandbox with the product at {product} (read-only unless
//                 `writable`), sealed files at {sealed}, an empty private folder at {data}.
//   * a service:  the product's `service.argv` runs in ITS OWN sandbox; `argv` is the checker, in
//                 another one. They share only the folder {socket} (Unix sockets cross network
//                 namespaces) and the checker cannot be touched by the product. The checker drives
//                 the service by control lines on its standard output, each answered by one line
//                 on its standard input ("ok ..." or "error ..."):
//                     @start          start the service, wait until `ready_path` accepts
//                     @kill           SIGKILL to all of it (power cut for the process)
//                     @stop           SIGTERM, then SIGKILL after 5 s
//                     @rss            "ok BYTES", resident memory of the service
//                 The service is already started when the checker begins, unless `manual_start`.
//
// Results come on the checker's standard output. Parser kTap: "ok ID" / "not ok ID reason" lines
// and "metric NAME VALUE"; kExit: one case named after the gate, passed when the exit status is 0.
// Cases named in `manifest` must all appear, exactly once, and no others: else the verdict is fail.
// Thread-safe: plain values.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/core/names.h"

#include <string>
#include <vector>

namespace team {

enum class GateKind {
  kBuild,
  kUnit,
  kBlackBox,
  kDifferential,
  kProperty,
  kFuzz,
  kSanitizer,
  kPerformance,
  kFault,
  kFormal,
  kLint
};
const char* name_of(GateKind kind);
base::Result<GateKind> parse_gate_kind(std::string_view text);

enum class GateParser { kExit, kTap };

struct GateLimits {
  i64 wall_ms = 120'000;
  i64 memory_bytes = i64{2} << 30;
  i64 processes = 256;
  i64 file_bytes = i64{1} << 30;  // largest file
};

struct GateService {
  std::vector<std::string> argv;  // empty: the gate has no service
  std::string ready_path;         // e.g. "{socket}/kv.sock"; ready when it accepts a connection
  i64 ready_timeout_ms = 5'000;
  bool manual_start = false;
};

struct GateSpec {
  std::string id;     // "recovery", unique in its folder
  std::string title;  // one line for people
  GateKind kind = GateKind::kBlackBox;
  std::vector<std::string> criteria;  // ids it gives evidence for
  Visibility visibility = Visibility::kVisible;
  std::string trigger = "merge";  // merge | milestone | release | canary | manual
  std::vector<std::string> argv;
  std::string cwd;        // "" = {product}
  bool writable = false;  // the product folder is a private copy that may be written
  GateService service;
  GateParser parser = GateParser::kTap;
  std::vector<std::string> manifest;  // case ids; empty: whatever appears (at least one)
  GateLimits limits;
};

// A whole gate file. Errors: kInvalidArgument naming the key; unknown keys are errors.
base::Result<GateSpec> gate_from_json(const base::Json& json);
base::Json to_json(const GateSpec& gate);

}  // namespace team
