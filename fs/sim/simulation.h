// One run of a whole store under one seed: random programs on workspaces, forks, snapshots,
// checkpoints and collection, on a disk that tears and loses writes and fails, with an engine whose
// answers get lost, and power cuts at any disk operation. The code under it is what ships.
//
// After every crash: each workspace holds exactly one of the states the reference has passed
// through, none older than the last sync; forks and snapshots hold exactly their moment; fsck finds
// nothing. A second kind of run flips bits on the disk: reading may then fail, but never lies.
// With `cluster`, logs live in the engine, and after half of the crashes another machine goes on,
// with an empty folder.
// Single-threaded.
#pragma once

#include "base/types.h"

#include <string>

namespace fs::sim {

struct Outcome {
  bool ok = true;
  std::string problem;  // what went wrong, with the step
  u64 operations = 0;
  u64 crashes = 0;
  u64 checkpoints = 0;
  u64 forks = 0;
};

struct Plan {
  u64 seed = 1;
  u64 steps = 400;
  bool verbose = false;  // prints every step
  bool cluster = false;
  bool encrypted = false;  // the store seals what it writes
};

Outcome run(const Plan& plan);

}  // namespace fs::sim
