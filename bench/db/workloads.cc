#include "bench/db/workloads.h"

namespace bench {

std::vector<Workload> all_workloads() {
  std::vector<Workload> all;
  add_reads(all);
  add_writes(all);
  add_mixes(all);
  return all;
}

}  // namespace bench
