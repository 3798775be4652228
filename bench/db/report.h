// What came out of a run: the table for people, the JSON for programs.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <string>
#include <vector>

namespace bench {

struct Outcome {
  std::string group, name;
  std::string problem;    // why there is no ratio
  f64 ratio = 0;          // median over the rounds of theirs / ours; above 1: we are faster
  f64 low = 0, high = 0;  // its quartiles
  f64 ours_us = 0, theirs_us = 0;  // medians, an operation
  f64 instructions = 0;            // theirs / ours; 0: no counter
  bool wall = false;               // else CPU time
};

struct RunFacts {
  std::string ours, theirs;  // paths
  std::string our_version, their_version;
  i64 rows = 0;
  int rounds = 0;
  bool counts_instructions = false;
};

f64 geometric_mean(const std::vector<Outcome>& outcomes, const std::string& group = "");

void print_head(const RunFacts& facts);
void print_row(const Outcome& outcome);
// Means by group, losses, errors.
void print_summary(const std::vector<Outcome>& outcomes);
base::Status write_json(const std::string& path, const RunFacts& facts,
                        const std::vector<Outcome>& outcomes);

}  // namespace bench
