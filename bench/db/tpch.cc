// db_tpch: the 22 queries of TPC-H on FleetDB and on SQLite, over one database file.
//
// The file is made once by --theirs (and kept with --database). Every query runs on both engines
// in turn; the figures are medians of CPU time, and all rows are compared. A query that takes the
// slower engine more than two seconds runs once. Ratios above 1 mean that --ours is faster.
#include "base/files.h"
#include "bench/db/tpch_data.h"
#include "bench/db/tpch_queries.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace bench {
namespace {

struct Options {
  std::string ours = "build/release/lib/fleetdb/libsqlite3.so.0";
  std::string theirs = "libsqlite3.so.0";
  std::string database;
  std::string setup;  // run on ours first: pragmas
  std::vector<int> queries;
  int rounds = 5;
  f64 scale = 0.1;
  bool only_ours = false;
};

constexpr const char* kUsage =
    "usage: db_tpch [--ours LIB] [--theirs LIB] [--scale 0.1] [--database FILE] [--rounds N]\n"
    "               [--queries 1,6,17] [--setup SQL] [--only-ours 1]\n"
    "Compares two sqlite3-compatible libraries on TPC-H. --database keeps the data for next "
    "time.\n";

f64 cpu_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<f64>(now.tv_sec) + static_cast<f64>(now.tv_nsec) * 1e-9;
}

f64 median(std::vector<f64> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Answer {
  std::vector<std::string> values;  // column by column, row by row
  std::string problem;
  f64 seconds = 0;
};

Answer ask(Session& session, const std::string& sql) {
  Answer answer;
  const Engine& engine = session.engine();
  f64 start = cpu_seconds();
  sqlite3_stmt* statement = nullptr;
  if (engine.prepare_v2(session.handle(), sql.c_str(), -1, &statement, nullptr) != 0) {
    answer.problem = engine.errmsg(session.handle());
    return answer;
  }
  int columns = engine.column_count(statement);
  int step;
  while ((step = engine.step(statement)) == kRow) {
    for (int i = 0; i < columns; ++i) {
      const unsigned char* text = engine.column_text(statement, i);
      answer.values.push_back(text == nullptr ? "NULL" : reinterpret_cast<const char*>(text));
      // Sums may be added up in another order.
      if (engine.column_type(statement, i) == 2) {
        char digits[40];
        std::snprintf(digits, sizeof digits, "%.10g", engine.column_double(statement, i));
        answer.values.back() = digits;
      }
    }
  }
  if (step != kDone) answer.problem = engine.errmsg(session.handle());
  engine.finalize(statement);
  answer.seconds = cpu_seconds() - start;
  return answer;
}

bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  char* end = nullptr;
  f64 x = std::strtod(a.c_str(), &end);
  if (*end != 0) return false;
  f64 y = std::strtod(b.c_str(), &end);
  return *end == 0 && std::fabs(x - y) <= 1e-8 * std::fabs(x);
}

bool same_rows(const Answer& a, const Answer& b) {
  return a.values.size() == b.values.size() &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), same_value);
}

struct Row {
  f64 ours = 0, theirs = 0;
  std::string problem;
};

Row compare(Session& ours, Session* theirs, const std::string& sql, const Options& options) {
  Row row;
  std::vector<f64> ours_seconds, theirs_seconds;
  for (int round = 0; round <= options.rounds; ++round) {
    Answer a = ask(ours, sql);
    Answer b = theirs != nullptr ? ask(*theirs, sql) : a;
    if (!a.problem.empty()) row.problem = a.problem;
    if (!b.problem.empty()) row.problem = "the other engine: " + b.problem;
    if (row.problem.empty() && !same_rows(a, b)) row.problem = "the engines gave different rows";
    if (!row.problem.empty()) return row;
    bool slow = std::max(a.seconds, b.seconds) > 2;
    if (round == 0 && !slow) continue;  // warms both up
    ours_seconds.push_back(a.seconds);
    theirs_seconds.push_back(b.seconds);
    if (slow) break;
  }
  row.ours = median(ours_seconds);
  row.theirs = median(theirs_seconds);
  return row;
}

std::string query_text(int number, f64 scale) {
  std::string sql = tpch_queries()[static_cast<size_t>(number) - 1];
  size_t at = sql.find(":fraction");
  if (at != std::string::npos) sql.replace(at, 9, std::to_string(0.0001 / scale));
  return sql;
}

int report(Session& ours, Session* theirs, const Options& options) {
  f64 ours_total = 0, theirs_total = 0, logs = 0;
  int compared = 0;
  std::printf("%5s %10s %12s %12s\n", "query", "ratio", "ours ms", "theirs ms");
  for (int number : options.queries) {
    Row row = compare(ours, theirs, query_text(number, options.scale), options);
    if (!row.problem.empty()) {
      std::printf("%5d %10s %s\n", number, "-", row.problem.c_str());
      continue;
    }
    std::printf("%5d %9.2fx %12.2f %12.2f\n", number, row.theirs / row.ours, row.ours * 1e3,
                row.theirs * 1e3);
    std::fflush(stdout);
    ours_total += row.ours;
    theirs_total += row.theirs;
    logs += std::log(row.theirs / row.ours);
    ++compared;
  }
  std::printf("total %9.2fx %12.2f %12.2f\n", theirs_total / ours_total, ours_total * 1e3,
              theirs_total * 1e3);
  std::printf("\n%d of %zu queries agree, geometric mean %.2fx\n", compared, options.queries.size(),
              compared > 0 ? std::exp(logs / compared) : 0);
  return compared == static_cast<int>(options.queries.size()) ? 0 : 1;
}

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; i++) {
    std::string name = argv[i];
    if (name == "--help" || i + 1 == argc) return false;
    std::string value = argv[++i];
    if (name == "--ours") {
      options->ours = value;
    } else if (name == "--theirs") {
      options->theirs = value;
    } else if (name == "--database") {
      options->database = value;
    } else if (name == "--setup") {
      options->setup = value;
    } else if (name == "--scale") {
      options->scale = std::max(0.001, std::atof(value.c_str()));
    } else if (name == "--rounds") {
      options->rounds = std::max(1, std::atoi(value.c_str()));
    } else if (name == "--only-ours") {
      options->only_ours = value != "0";
    } else if (name == "--queries") {
      for (const char* at = value.c_str(); *at != 0; at += std::strspn(at, ",")) {
        options->queries.push_back(std::atoi(at));
        if (options->queries.back() < 1 || options->queries.back() > 22) return false;
        at += std::strcspn(at, ",");
      }
    } else {
      return false;
    }
  }
  if (options->queries.empty()) {
    for (int i = 1; i <= 22; ++i) options->queries.push_back(i);
  }
  return true;
}

int run(Options options) {
  // Theirs first: a name without a slash would find ours if it were loaded already.
  auto theirs = Engine::load(options.theirs);
  auto ours = Engine::load(options.ours);
  for (auto* engine : {&ours, &theirs}) {
    if (engine->ok()) continue;
    std::fprintf(stderr, "db_tpch: %s\n", engine->error().message().c_str());
    return 2;
  }
  if ((*ours)->prepare_v2 == (*theirs)->prepare_v2) {
    std::fprintf(stderr, "db_tpch: both names lead to one library; give two different ones\n");
    return 2;
  }
  base::TempDir dir;
  if (options.database.empty()) options.database = dir / "tpch.db";
  if (::access(options.database.c_str(), F_OK) != 0) {
    Session loader(**theirs, options.database);
    loader.exec("PRAGMA synchronous=OFF; PRAGMA cache_size=-200000");
    load_tpch(loader, options.scale);
    if (loader.failed()) {
      std::fprintf(stderr, "db_tpch: making the data: %s\n", loader.error().c_str());
      return 2;
    }
  }
  Session a(**ours, options.database);
  Session b(**theirs, options.database);
  // Both hold the whole file, so that disk reads do not count.
  for (Session* session : {&a, &b}) session->exec("PRAGMA cache_size=-1000000");
  if (!options.setup.empty()) a.exec(options.setup);
  if (a.failed() || b.failed()) {
    std::fprintf(stderr, "db_tpch: %s%s\n", a.error().c_str(), b.error().c_str());
    return 2;
  }
  std::printf("ours: %s (%s)\ntheirs: %s (%s)\nTPC-H, scale %g, CPU time, median of %d rounds\n\n",
              options.ours.c_str(), (*ours)->libversion(), options.theirs.c_str(),
              (*theirs)->libversion(), options.scale, options.rounds);
  return report(a, options.only_ours ? nullptr : &b, options);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  if (!bench::parse(argc, argv, &options)) {
    std::fputs(bench::kUsage, stderr);
    return argc > 1 && std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  return bench::run(options);
}
