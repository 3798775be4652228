// agentfs-models [--quick] [--only N] [--trace]: explores every model, then every mutant of it, and
// prints the table. Exit 0 when all invariants hold and every model kills at least three mutants.
#include "fs/models/registry.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using fs::models::Entry;
using fs::models::Report;

namespace {

void print_trace(const Report& report) {
  std::printf("    %s:\n", report.broken.c_str());
  for (const std::string& label : report.trace) std::printf("      %s\n", label.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  u64 states_max = 400'000;
  int only = 0;
  bool trace = false;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) quick = true, states_max = 20'000;
    if (std::strcmp(argv[i], "--trace") == 0) trace = true;
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = std::atoi(argv[++i]);
  }
  std::printf(
      " #  model                          states   depth  invariants  mutants  seconds  code\n");
  u64 states = 0;
  double seconds = 0;
  bool good = true;
  int models = 0;
  for (const Entry& entry : fs::models::all_models()) {
    if (only != 0 && entry.number != only) continue;
    Report report = entry.run(0, states_max);
    size_t killed = 0;
    std::string survivors;
    double took = report.seconds;
    for (size_t i = 0; i < entry.mutants.size(); ++i) {
      Report mutated = entry.run(static_cast<int>(i) + 1, states_max);
      took += mutated.seconds;
      if (!mutated.broken.empty()) {
        ++killed;
        if (trace) {
          std::printf("    mutant '%s':\n", entry.mutants[i].c_str());
          print_trace(mutated);
        }
      } else {
        survivors += " '" + entry.mutants[i] + "'";
      }
    }
    std::printf("%2d  %-28s %8llu%s %6llu  %10zu  %3zu / %zu  %7.2f  %s\n", entry.number,
                entry.name.c_str(), static_cast<unsigned long long>(report.states),
                report.complete ? " " : "+", static_cast<unsigned long long>(report.depth),
                entry.invariants.size(), killed, entry.mutants.size(), took, entry.code.c_str());
    if (!survivors.empty()) std::printf("    survivors:%s\n", survivors.c_str());
    if (!report.broken.empty()) print_trace(report);
    std::fflush(stdout);
    states += report.states;
    seconds += took;
    ++models;
    bool proven = killed >= 3 && killed == entry.mutants.size();
    good = good && report.broken.empty() && (proven || quick);
  }
  std::printf("%d models, %llu states, %.1f s; + marks a bounded search\n", models,
              static_cast<unsigned long long>(states), seconds);
  return good ? 0 : 1;
}
