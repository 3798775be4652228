// db_bench: FleetDB against SQLite, workload by workload, in one process and one interleaved run.
//
// Every round runs a workload on both engines, one right after the other, and takes the ratio of
// the two times; the answer is the median of the ratios, so that other load on the machine cancels
// out. Times are CPU time of the process, or wall time for workloads that wait for the disk. Both
// engines must see the same rows.
#include "base/files.h"
#include "bench/db/workloads.h"

#include <time.h>

#include <algorithm>
#include <cmath>
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

f64 median(std::vector<f64> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Outcome {
  std::string group, name, problem;
  f64 ratio = 0, ours_us = 0, theirs_us = 0;
};

class Side {
 public:
  Side(const Engine& engine, const Workload& workload, const std::string& path, i64 rows)
      : workload_(workload),
        rows_(rows),
        session_(engine, workload.place == Place::kMemory ? "" : path) {
    if (workload.place == Place::kWalFile) session_.exec("PRAGMA journal_mode=WAL");
    session_.exec("PRAGMA synchronous=OFF");
    workload.setup(session_, rows);
    if (workload.place == Place::kWalFile) session_.exec("PRAGMA synchronous=NORMAL");
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

Outcome compare(const Engine& ours, const Engine& theirs, const Workload& workload,
                const Options& options) {
  Outcome outcome{workload.group, workload.name, "", 0, 0, 0};
  base::TempDir dir;
  Side a(ours, workload, dir / "ours.db", options.rows);
  Side b(theirs, workload, dir / "theirs.db", options.rows);
  std::vector<f64> ratios, ours_us, theirs_us;
  for (int round = 0; round <= options.rounds; round++) {
    f64 first = round % 2 ? b.run() : a.run();
    f64 second = round % 2 ? a.run() : b.run();
    if (round == 0) continue;  // warms both up
    ours_us.push_back(round % 2 ? second : first);
    theirs_us.push_back(round % 2 ? first : second);
    ratios.push_back(theirs_us.back() / ours_us.back());
  }
  if (a.session().failed()) {
    outcome.problem = a.session().error();
  } else if (b.session().failed()) {
    outcome.problem = "the other engine: " + b.session().error();
  } else if (a.session().digest() != b.session().digest()) {
    outcome.problem = "the engines gave different rows";
  }
  outcome.ratio = median(ratios);
  outcome.ours_us = median(ours_us);
  outcome.theirs_us = median(theirs_us);
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

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

base::Status write_json(const std::string& path, const std::vector<Outcome>& outcomes,
                        const Engine& ours, const Engine& theirs, f64 mean) {
  std::string text = "{\"ours\": " + quoted(ours.libversion()) +
                     ", \"theirs\": " + quoted(theirs.libversion()) +
                     ", \"geometric_mean\": " + std::to_string(mean) + ", \"workloads\": [\n";
  for (size_t i = 0; i < outcomes.size(); i++) {
    const Outcome& o = outcomes[i];
    text += "  {\"group\": " + quoted(o.group) + ", \"name\": " + quoted(o.name) +
            ", \"ratio\": " + std::to_string(o.ratio) +
            ", \"ours_us\": " + std::to_string(o.ours_us) +
            ", \"theirs_us\": " + std::to_string(o.theirs_us) +
            ", \"problem\": " + quoted(o.problem) + "}" + (i + 1 < outcomes.size() ? ",\n" : "\n");
  }
  return base::write_file(path, text + "]}\n");
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
  std::printf("ours: %s (%s)\ntheirs: %s (%s)\n%lld rows, median of %d rounds\n\n",
              options.ours.c_str(), (*ours)->libversion(), options.theirs.c_str(),
              (*theirs)->libversion(), static_cast<long long>(options.rows), options.rounds);
  std::printf("%-10s %-36s %8s %12s %12s\n", "group", "workload", "ratio", "ours us/op",
              "theirs us/op");
  std::vector<Outcome> outcomes;
  f64 logs = 0;
  int counted = 0;
  for (const Workload& workload : all_workloads()) {
    if ((workload.group + " " + workload.name).find(options.filter) == std::string::npos) continue;
    outcomes.push_back(compare(**ours, **theirs, workload, options));
    const Outcome& o = outcomes.back();
    if (o.problem.empty()) {
      std::printf("%-10s %-36s %7.2fx %12.2f %12.2f\n", o.group.c_str(), o.name.c_str(), o.ratio,
                  o.ours_us, o.theirs_us);
      logs += std::log(o.ratio);
      counted++;
    } else {
      std::printf("%-10s %-36s %8s %s\n", o.group.c_str(), o.name.c_str(), "-", o.problem.c_str());
    }
    std::fflush(stdout);
  }
  f64 mean = counted > 0 ? std::exp(logs / counted) : 0;
  std::printf("\n%d of %zu workloads compared, geometric mean %.2fx\n", counted, outcomes.size(),
              mean);
  if (!options.json.empty()) {
    base::Status written = write_json(options.json, outcomes, **ours, **theirs, mean);
    if (!written.ok()) {
      std::fprintf(stderr, "db_bench: %s\n", written.error().message().c_str());
      return 2;
    }
  }
  return counted == static_cast<int>(outcomes.size()) ? 0 : 1;
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
