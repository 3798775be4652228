// agentfs-sim [FIRST [COUNT]] [--cluster] [--encrypted] [-v]: runs seeds FIRST ..
// FIRST+COUNT-1 and prints those that fail. One seed reproduces one run, with every step under -v.
#include "fs/sim/simulation.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  fs::sim::Plan plan;
  u64 numbers[2] = {1, 1000};
  int given = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "-v") == 0)
      plan.verbose = true;
    else if (std::strcmp(argv[i], "--cluster") == 0)
      plan.cluster = true;
    else if (std::strcmp(argv[i], "--encrypted") == 0)
      plan.encrypted = true;
    else if (given < 2)
      numbers[given++] = std::strtoull(argv[i], nullptr, 10);
  }
  u64 failed = 0, operations = 0, crashes = 0, checkpoints = 0, forks = 0;
  for (plan.seed = numbers[0]; plan.seed < numbers[0] + numbers[1]; ++plan.seed) {
    fs::sim::Outcome outcome = fs::sim::run(plan);
    operations += outcome.operations;
    crashes += outcome.crashes;
    checkpoints += outcome.checkpoints;
    forks += outcome.forks;
    if (outcome.ok) continue;
    ++failed;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(plan.seed),
                outcome.problem.c_str());
  }
  std::printf(
      "%llu seeds, %llu operations, %llu crashes, %llu checkpoints, %llu forks: %llu failed\n",
      static_cast<unsigned long long>(numbers[1]), static_cast<unsigned long long>(operations),
      static_cast<unsigned long long>(crashes), static_cast<unsigned long long>(checkpoints),
      static_cast<unsigned long long>(forks), static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}
