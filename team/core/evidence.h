// What the engine saw when it ran a gate: immutable, written by the engine alone, never by a model.
// It names exactly what was run (tree, command, sandbox profile) and what came out (both numbers of
// the pass rate and the hash of the case list), so it can be checked again by anybody.
// Thread-safe: plain values.
#pragma once

#include "base/json.h"
#include "base/types.h"
#include "team/core/names.h"

#include <string>
#include <utility>
#include <vector>

namespace team {

struct CaseResult {
  std::string id;
  bool pass = false;
  std::string reason;  // "" when passed
};

struct Evidence {
  std::string id;            // "E12", given by the ledger; empty as it comes from the gate runner
  std::string gate;          // gate id
  std::string tree;          // hash of the product tree it ran on
  std::string command_hash;  // SHA-256 of the gate's canonical JSON and its sealed files
  std::string profile_hash;  // SHA-256 of the sandbox profile, weaker profiles included
  Verdict verdict = Verdict::kError;
  i64 numerator = 0;      // cases passed
  i64 denominator = 0;    // cases that had to appear
  std::string list_hash;  // SHA-256 of the sorted case ids that appeared
  std::vector<CaseResult> cases;
  std::vector<std::pair<std::string, f64>> metrics;
  std::string why;  // one sentence when the verdict is not pass
  std::string log;  // what the gate printed, cut in the middle when long
  i64 wall_us = 0;
  i64 cpu_us = 0;
  i64 rss_max_bytes = 0;
  std::string host;  // kernel and processor, for reading measurements
};

base::Json to_json(const Evidence& evidence);  // without `log`, which is stored as a blob
Evidence evidence_from_json(const base::Json& json);

// What an agent may be told: of held-out gates the verdict, category and counts, never the cases.
std::string feedback_for_agent(const Evidence& evidence, Visibility visibility);

}  // namespace team
