// fleetdb-slt: runs sqllogictest scripts against any library with the sqlite3 C API.
#include "base/files.h"
#include "db/slt/suite.h"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

using db::slt::Count;
using db::slt::SuiteOptions;
using db::slt::SuiteReport;

// FleetDB's own library lies beside the program's folder.
std::string default_library(const char* program) {
  std::string folder = program;
  const size_t slash = folder.rfind('/');
  folder = slash == std::string::npos ? "." : folder.substr(0, slash);
  return folder + "/../lib/fleetdb/libsqlite3.so.0";
}

void print_table(const SuiteReport& report) {
  std::printf("%-24s %6s %10s %9s %10s %8s %9s\n", "group", "files", "statements", "queries",
              "passed", "failed", "cpu s");
  const auto row = [](const std::string& name, const Count& count) {
    std::printf("%-24s %6llu %10llu %9llu %10llu %8llu %9.2f\n", name.c_str(),
                static_cast<unsigned long long>(count.files),
                static_cast<unsigned long long>(count.statements),
                static_cast<unsigned long long>(count.queries),
                static_cast<unsigned long long>(count.passed),
                static_cast<unsigned long long>(count.failed),
                static_cast<double>(count.cpu_us) / 1e6);
  };
  for (const auto& [name, count] : report.groups) row(name, count);
  row("total", report.total);
}

void print_failures(const SuiteReport& report) {
  for (const std::string& failure : report.failures) std::printf("\n%s", failure.c_str());
}

int run(const std::vector<std::string>& paths, const SuiteOptions& options,
        const std::string& json_path) {
  base::Result<std::vector<db::slt::ScriptFile>> files = db::slt::find_scripts(paths);
  if (!files.ok()) {
    std::fprintf(stderr, "fleetdb-slt: %s\n", files.error().message().c_str());
    return 2;
  }
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  base::Result<SuiteReport> report =
      db::slt::run_suite(*files, options, [&](size_t done, size_t of, const Count& so_far) {
        if (!terminal) return;
        std::fprintf(stderr, "\r%zu of %zu files, %llu passed, %llu failed ", done, of,
                     static_cast<unsigned long long>(so_far.passed),
                     static_cast<unsigned long long>(so_far.failed));
        if (done == of) std::fprintf(stderr, "\n");
      });
  if (!report.ok()) {
    std::fprintf(stderr, "fleetdb-slt: %s\n", report.error().message().c_str());
    return 2;
  }
  if (!json_path.empty()) {
    base::Status written = base::write_file(json_path, report->to_json().dump_pretty() + "\n");
    if (!written.ok()) {
      std::fprintf(stderr, "fleetdb-slt: %s\n", written.error().message().c_str());
      return 2;
    }
  }
  print_table(*report);
  print_failures(*report);
  std::printf("\nlibrary %s, mode %s%s, %.1f s\n", report->version.c_str(), options.mode.c_str(),
              options.reverse ? ", reversed scans" : "",
              static_cast<double>(report->wall_us) / 1e6);
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(report->total.passed),
              static_cast<unsigned long long>(report->total.failed));
  // A suite in which nothing ran has not passed.
  return report->total.failed == 0 && report->total.passed > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs sqllogictest scripts against a library with the sqlite3 C API.",
               "fleetdb-slt");
  SuiteOptions options;
  options.library = default_library(argv[0]);
  std::vector<std::string> paths;
  std::string json_path;
  app.add_option("paths", paths, "script files, or folders of *.test and *.slt files")->required();
  app.add_option("--library", options.library, "the shared library to test; FleetDB's by default");
  app.add_option("--mode", options.mode, "memory, file or wal")
      ->check(CLI::IsMember({"memory", "file", "wal"}));
  app.add_flag("--reverse", options.reverse, "scan backwards where no order is asked for");
  app.add_option("--pragma", options.pragmas, "SQL to run on each new database");
  app.add_option("--check-with", options.check_library,
                 "another library, which runs integrity_check on each file afterwards");
  app.add_option("--engine", options.engine, "the name for skipif and onlyif");
  app.add_option("--jobs", options.jobs, "worker processes")->check(CLI::Range(1, 256));
  app.add_option("--per-group", options.per_group, "run only this many files of each group");
  app.add_option("--timeout-ms", options.file_timeout_ms, "for one file");
  app.add_option("--json", json_path, "write the report there as JSON");
  app.set_version_flag("--version", "fleetdb-slt 0.1.0");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return run(paths, options, json_path);
}
