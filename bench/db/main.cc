// db_bench: FleetDB against SQLite, workload by workload, in one process and one interleaved run.
//
// Every round runs a workload on both engines, one right after the other, and takes the ratio of
// the two times; the answer is the median of the ratios, so that other load on the machine cancels
// out. Times are CPU time of the process, or wall time for workloads that wait for the disk. Both
// engines must see the same rows.
#include "base/files.h"
#include "bench/db/counter.h"
#include "bench/db/report.h"
#include "bench/db/workloads.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {
namespace {

struct Options {
  std::string ours = "build/release/lib/fleetdb/libsqlite3.so.0";
  std::string theirs = "libsqlite3.so.0";
  std::string filter;
  std::string json;
  int rounds = 5;
  i64 rows = 50000;
};

constexpr const char* kUsage =
    "usage: db_bench [--ours LIB] [--theirs LIB] [--filter TEXT] [--rounds N] [--rows N] [--json "
    "FILE]\n"
    "Compares two sqlite3-compatible libraries. Ratios above 1 mean that --ours is faster.\n";

f64 seconds(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return static_cast<f64>(now.tv_sec) + static_cast<f64>(now.tv_nsec) * 1e-9;
}

f64 quantile(std::vector<f64> values, f64 where) {
  std::sort(values.begin(), values.end());
  const f64 place = where * static_cast<f64>(values.size() - 1);
  const size_t at = static_cast<size_t>(place);
  const f64 next = values[std::min(at + 1, values.size() - 1)];
  return values[at] + (next - values[at]) * (place - static_cast<f64>(at));
}

class Side {
 public:
  Side(const Engine& engine, const Workload& workload, const std::string& path, i64 rows)
      : workload_(workload),
        rows_(rows),
        session_(engine, workload.place == Place::kMemory ? "" : path) {
    // Data is loaded without syncs; then files have the mode that people use, and what a workload
    // wants otherwise it sets when it runs.
    if (workload.place == Place::kWalFile) session_.exec("PRAGMA journal_mode=WAL");
    session_.exec("PRAGMA synchronous=OFF");
    workload.setup(session_, rows);
    session_.exec(workload.place == Place::kWalFile ? "PRAGMA synchronous=NORMAL"
                                                    : "PRAGMA synchronous=FULL");
  }
  // Microseconds an operation.
  f64 run() {
    clockid_t clock = workload_.wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    f64 start = seconds(clock);
    i64 operations = workload_.run(session_, rows_);
    return (seconds(clock) - start) * 1e6 / static_cast<f64>(operations);
  }
  Session& session() { return session_; }

 private:
  const Workload& workload_;
  i64 rows_;
  Session session_;
};

// One measurement of one side.
struct Sample {
  f64 us = 0;
  f64 instructions = 0;
};

Sample measure(Side& side, const InstructionCounter& counter) {
  const u64 before = counter.now();
  Sample sample;
  sample.us = side.run();
  sample.instructions = static_cast<f64>(counter.now() - before);
  return sample;
}

Outcome compare(const Engine& ours, const Engine& theirs, const Workload& workload,
                const Options& options, const InstructionCounter& counter) {
  Outcome outcome{.group = workload.group, .name = workload.name};
  outcome.wall = workload.wall;
  base::TempDir dir;
  Side a(ours, workload, dir / "ours.db", options.rows);
  Side b(theirs, workload, dir / "theirs.db", options.rows);
  std::vector<f64> ratios, ours_us, theirs_us, instructions;
  for (int round = 0; round <= options.rounds; round++) {
    const bool theirs_first = round % 2 != 0;
    Sample first = measure(theirs_first ? b : a, counter);
    Sample second = measure(theirs_first ? a : b, counter);
    if (round == 0) continue;  // warms both up
    const Sample& mine = theirs_first ? second : first;
    const Sample& other = theirs_first ? first : second;
    ours_us.push_back(mine.us);
    theirs_us.push_back(other.us);
    ratios.push_back(other.us / mine.us);
    if (counter.works()) instructions.push_back(other.instructions / mine.instructions);
  }
  if (a.session().failed()) {
    outcome.problem = a.session().error();
  } else if (b.session().failed()) {
    outcome.problem = "the other engine: " + b.session().error();
  } else if (a.session().digest() != b.session().digest()) {
    outcome.problem = "the engines gave different rows";
  }
  outcome.ratio = quantile(ratios, 0.5);
  outcome.low = quantile(ratios, 0.25);
  outcome.high = quantile(ratios, 0.75);
  outcome.ours_us = quantile(ours_us, 0.5);
  outcome.theirs_us = quantile(theirs_us, 0.5);
  if (!instructions.empty()) outcome.instructions = quantile(instructions, 0.5);
  return outcome;
}

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; i++) {
    std::string name = argv[i];
    if (name == "--help" || i + 1 == argc) return false;
    std::string value = argv[++i];
    if (name == "--ours")
      options->ours = value;
    else if (name == "--theirs")
      options->theirs = value;
    else if (name == "--filter")
      options->filter = value;
    else if (name == "--json")
      options->json = value;
    else if (name == "--rounds")
      options->rounds = std::max(1, std::atoi(value.c_str()));
    else if (name == "--rows")
      options->rows = std::max<i64>(1000, std::atoll(value.c_str()));
    else
      return false;
  }
  return true;
}

int run(const Options& options) {
  // Theirs first: a name without a slash would find ours, which answers to the same name, if it
  // were loaded already.
  auto theirs = Engine::load(options.theirs);
  auto ours = Engine::load(options.ours);
  for (auto* engine : {&ours, &theirs}) {
    if (engine->ok()) continue;
    std::fprintf(stderr, "db_bench: %s\n", engine->error().message().c_str());
    return 2;
  }
  if ((*ours)->prepare_v2 == (*theirs)->prepare_v2) {
    std::fprintf(stderr, "db_bench: both names lead to one library; give two different ones\n");
    return 2;
  }
  const InstructionCounter counter;
  const RunFacts facts{.ours = options.ours,
                       .theirs = options.theirs,
                       .our_version = (*ours)->libversion(),
                       .their_version = (*theirs)->libversion(),
                       .rows = options.rows,
                       .rounds = options.rounds,
                       .counts_instructions = counter.works()};
  print_head(facts);
  std::vector<Outcome> outcomes;
  bool complete = true;
  for (const Workload& workload : all_workloads()) {
    if ((workload.group + " " + workload.name).find(options.filter) == std::string::npos) continue;
    outcomes.push_back(compare(**ours, **theirs, workload, options, counter));
    print_row(outcomes.back());
    complete &= outcomes.back().problem.empty();
  }
  print_summary(outcomes);
  if (!options.json.empty()) {
    base::Status written = write_json(options.json, facts, outcomes);
    if (!written.ok()) {
      std::fprintf(stderr, "db_bench: %s\n", written.error().message().c_str());
      return 2;
    }
  }
  return complete ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  if (!bench::parse(argc, argv, &options)) {
    std::fputs(bench::kUsage, argc > 1 && std::strcmp(argv[1], "--help") == 0 ? stdout : stderr);
    return argc > 1 && std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  return bench::run(options);
}
