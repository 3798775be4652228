// What is measured. A workload prepares its data once a session and then runs the same work several
// times; each run reports how many operations it did.
#pragma once

#include "bench/db/session.h"

#include <functional>
#include <string>
#include <vector>

namespace bench {

enum class Place { kMemory, kRollbackFile, kWalFile };

struct Workload {
  std::string group;
  std::string name;
  Place place = Place::kMemory;
  bool wall = false;  // waiting counts: synced writes, threads
  std::function<void(Session&, i64 scale)> setup;
  std::function<i64(Session&, i64 scale)> run;
};

// `scale` is the number of rows of the main table.
std::vector<Workload> all_workloads();

// The parts of it, one file each.
void add_reads(std::vector<Workload>& all);
void add_writes(std::vector<Workload>& all);
void add_mixes(std::vector<Workload>& all);

}  // namespace bench
