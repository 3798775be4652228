// Gates are data: what to build, what to start, what to run against it, how to read the answer and
// what counts as passing. Only the engine runs them, outside the product's sandbox, from a clean
// copy of the tree; only the engine's own reading of the result becomes evidence.
//
// A gate file is JSON; unknown keys are refused:
//   {"name": "strings", "kind": "blackbox", "visibility": "held_out",
//    "criteria": ["C2"],
//    "build":   {"argv": ["make", "-s"], "wall_ms": 60000},        in a clean copy at /work
//    "product": {"argv": ["/work/kv", "--port", "7000", "--dir", "/data"],
//                "ready_port": 7000, "ready_ms": 5000},            started before the cases
//    "check":   {"argv": ["bash", "/sealed/strings.sh"], "parser": "tap", "wall_ms": 30000},
//    "cases":   [{"id": "set-get", "argv": ["redis-cli", "-p", "7000", "get", "a"], "input": "",
//                 "expect": "1\n", "expect_exit": 0}],            instead of "check"
//    "sealed":  "tests/held_out",          folder mounted read-only at /sealed in the checker only
//    "manifest": ["strings/set-get", ...], case ids fixed at freeze: missing, skipped or extra ids
//    fail "fault":   {"kind": "kill9", "rounds": 3, ...},               kind fault: see fault.h
//    "limits":  {"memory_mb": 512, "processes": 64}}
// Kinds: build, unit, blackbox, differential, property, fuzz, sanitizer, performance, fault,
// formal. Parsers: exit (one case, exit code 0), tap ("ok 1 - id", "not ok 2 - id"), lines ("PASS
// id", "FAIL id").
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "base/types.h"
#include "team/sandbox/sandbox.h"

#include <memory>
#include <optional>
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
};
const char* name_of(GateKind kind);

enum class GateVerdict {
  kPass,
  kFail,
  kTimeout,  // the product or its test did not end: a failure
  kError,    // the gate itself could not run: neither a pass nor the product's fault
};
const char* name_of(GateVerdict verdict);

struct GateCommand {
  std::vector<std::string> argv;
  std::string cwd = "/work";
  std::string input;
  i64 wall_ms = 60'000;
  std::vector<std::pair<std::string, std::string>> env;
};

struct GateProduct {
  GateCommand command;
  int ready_port = 0;  // connects to 127.0.0.1:port; 0: waits until ready_ms is over or it exits
  i64 ready_ms = 5'000;
};

struct GateCase {
  std::string id;
  GateCommand command;
  std::string expect;                       // standard output, byte for byte
  std::optional<std::string> expect_regex;  // instead
  int expect_exit = 0;
};

struct GateSpec {
  std::string name;
  GateKind kind = GateKind::kBuild;
  bool held_out = false;
  std::vector<std::string> criteria;
  std::optional<GateCommand> build;
  std::optional<GateProduct> product;
  std::optional<GateCommand> check;
  std::string parser = "exit";
  std::vector<GateCase> cases;
  std::string sealed;                 // relative to GateRunner's sealed root
  std::vector<std::string> manifest;  // sorted; empty: whatever ids come (unit gates only)
  base::Json fault;                   // kind kFault
  base::Json measure;                 // kind kPerformance
  SandboxLimits limits;

  // SHA-256 of the canonical file: evidence names it.
  std::string command_hash;

  // Errors: kInvalidArgument names the key.
  static base::Result<GateSpec> parse(const base::Json& json);
  static base::Result<GateSpec> load(const std::string& path);
};

// Written only by GateRunner. Immutable.
struct Evidence {
  std::string gate;
  GateKind kind = GateKind::kBuild;
  bool held_out = false;
  std::string tree_hash;
  std::string command_hash;
  std::string profile_hash;  // of the sandbox
  std::string sandbox_level;
  std::string list_hash;  // of the sorted case ids
  GateVerdict verdict = GateVerdict::kError;
  i64 numerator = 0;    // cases passed
  i64 denominator = 0;  // cases in the manifest
  base::Json metrics;   // kind-specific numbers
  std::string log;      // full text for the record; never shown to agents when held_out
  i64 wall_us = 0;
  i64 cpu_us = 0;
  i64 rss_bytes = 0;

  base::Json to_json() const;
};

struct CaseResult {
  std::string id;
  bool passed = false;
  std::string detail;  // what was expected and what came
  std::string repro;   // the smallest command that shows it
};

struct GateResult {
  Evidence evidence;
  std::vector<CaseResult> cases;  // for the engine; agents get feedback_for_agent()
  // Same failure, same signature: drives the bounce ladder. "" on a pass.
  std::string failure_signature;
};

// What an agent may hear. Visible gates: verdict, counts, first failing case, repro. Held-out
// gates: the gate's name, verdict and counts, nothing else.
std::string feedback_for_agent(const GateSpec& spec, const GateResult& result);

class GateRunner {
 public:
  struct Options {
    std::string sealed_root;   // folder of the sealed tests; never inside a workspace
    std::string scratch_root;  // clean copies are made and removed here
  };
  // `sandbox` outlives the runner.
  GateRunner(const Sandbox& sandbox, Options options);
  // Runs the gate on a clean copy of the tree below `source`. Errors only for misuse (no such
  // folder, bad spec); all that can happen while running is a verdict.
  base::Result<GateResult> run(const GateSpec& spec, const std::string& source) const;

 private:
  const Sandbox& sandbox_;
  Options options_;
};

}  // namespace team
