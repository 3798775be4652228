#include "db/slt/suite.h"

#include "base/clock.h"
#include "base/files.h"
#include "db/slt/pool.h"
#include "db/slt/script_run.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace db::slt {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

constexpr size_t kFailuresShown = 20;
constexpr size_t kLinesShown = 12;

u64 size_of(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<u64>(info.st_size) : 0;
}

std::vector<ScriptFile> evenly(const std::vector<ScriptFile>& files, size_t per_group) {
  std::map<std::string, std::vector<ScriptFile>> groups;
  for (const ScriptFile& file : files) groups[file.group].push_back(file);
  std::vector<ScriptFile> chosen;
  for (const auto& [group, members] : groups) {
    const size_t count = std::min(per_group, members.size());
    for (size_t i = 0; i < count; ++i) chosen.push_back(members[i * members.size() / count]);
  }
  return chosen;
}

void append_lines(std::string& text, const char* title, const std::vector<std::string>& lines) {
  text += std::string("  ") + title + ":";
  for (size_t i = 0; i < lines.size() && i < kLinesShown; ++i) text += " " + lines[i] + " |";
  if (lines.size() > kLinesShown)
    text += " and " + std::to_string(lines.size() - kLinesShown) + " more";
  if (lines.empty()) text += " nothing";
  text += '\n';
}

std::string text_of(const std::string& path, const Failure& failure) {
  std::string text = path + ":" + std::to_string(failure.line) + ": " + failure.why + "\n";
  text += "  " + failure.sql + "\n";
  append_lines(text, "expected", failure.expected);
  append_lines(text, "got", failure.got);
  return text;
}

RunOptions run_options_for(const SuiteOptions& options, const std::string& folder) {
  RunOptions run;
  if (options.mode != "memory") {
    run.database = folder + "/test.db";
    run.pragmas = {"PRAGMA synchronous=OFF"};
    if (options.mode == "wal") run.pragmas.push_back("PRAGMA journal_mode=WAL");
  }
  if (options.reverse) run.pragmas.push_back("PRAGMA reverse_unordered_selects=1");
  run.pragmas.insert(run.pragmas.end(), options.pragmas.begin(), options.pragmas.end());
  return run;
}

// Empty when the other engine finds the file sound.
std::string integrity_fault(const std::string& library_path, const std::string& database) {
  Result<std::unique_ptr<Library>> library = Library::load(library_path);
  if (!library.ok()) return library.error().message();
  const Library::Calls& calls = library.value()->calls();
  void* db = nullptr;
  std::string answer;
  const auto keep = [](void* text, int, char** values, char**) {
    *static_cast<std::string*>(text) += std::string(values[0]) + "\n";
    return 0;
  };
  if (calls.open(database.c_str(), &db) != kOk ||
      calls.exec(db, "PRAGMA integrity_check", keep, &answer, nullptr) != kOk) {
    answer = calls.errmsg(db);
  }
  calls.close(db);
  return answer == "ok\n" ? "" : answer;
}

Json report_to_json(const RunReport& report, const std::string& path) {
  Json failures = Json::array();
  for (const Failure& failure : report.failures) failures.push(text_of(path, failure));
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) { return i64{time.tv_sec} * 1'000'000 + time.tv_usec; };
  return Json::object({{"statements", report.statements},
                       {"queries", report.queries},
                       {"passed", report.passed},
                       {"failed", report.failed},
                       {"skipped", report.skipped},
                       {"cpu_us", us(usage.ru_utime) + us(usage.ru_stime)},
                       {"failures", failures}});
}

Json failed_whole(const std::string& path, const std::string& why) {
  return Json::object({{"failed", 1}, {"failures", Json::array({path + ": " + why + "\n"})}});
}

// In the child process.
Json run_file(const ScriptFile& file, const SuiteOptions& options) {
  Result<std::string> text = base::read_file(file.path);
  if (!text.ok()) return failed_whole(file.path, text.error().message());
  Result<Script> script = parse_script(*text, options.engine);
  if (!script.ok()) return failed_whole(file.path, script.error().message());
  Result<std::unique_ptr<Library>> library = Library::load(options.library);
  if (!library.ok()) return failed_whole(file.path, library.error().message());
  base::TempDir folder("fleetdb-slt");
  const RunOptions run = run_options_for(options, folder.path());
  Result<RunReport> report = run_script(**library, *script, run);
  if (!report.ok()) return failed_whole(file.path, report.error().message());
  if (!options.check_library.empty() && options.mode != "memory") {
    const std::string fault = integrity_fault(options.check_library, run.database);
    if (!fault.empty()) return failed_whole(file.path, "integrity_check afterwards: " + fault);
  }
  return report_to_json(*report, file.path);
}

void add(Count& count, const Json& result) {
  count.files += 1;
  count.statements += static_cast<u64>(result["statements"].as_int());
  count.queries += static_cast<u64>(result["queries"].as_int());
  count.passed += static_cast<u64>(result["passed"].as_int());
  count.failed += static_cast<u64>(result["failed"].as_int());
  count.skipped += static_cast<u64>(result["skipped"].as_int());
  count.cpu_us += result["cpu_us"].as_int();
}

Json result_of(const ScriptFile& file, const JobEnd& end) {
  if (end.timed_out) return failed_whole(file.path, "took too long and was killed");
  if (end.signal != 0) {
    return failed_whole(file.path, std::string("the engine crashed: ") + ::strsignal(end.signal));
  }
  Result<Json> parsed = Json::parse(end.output);
  return parsed.ok() ? *parsed : failed_whole(file.path, "the engine ended the process");
}

}  // namespace

Result<std::vector<ScriptFile>> find_scripts(const std::vector<std::string>& paths) {
  std::vector<ScriptFile> files;
  for (const std::string& path : paths) {
    if (!base::is_directory(path)) {
      if (!base::file_exists(path))
        return Error(ErrorCode::kNotFound, path + ": no such file or folder");
      files.push_back({path, path.substr(path.rfind('/') + 1), size_of(path)});
      continue;
    }
    for (const std::string& name : TRY(base::list_tree(path))) {
      if (!name.ends_with(".test") && !name.ends_with(".slt")) continue;
      // "index/between/10/a.test" counts for "index/between".
      const size_t first = name.find('/');
      const size_t second = first == std::string::npos ? first : name.find('/', first + 1);
      std::string group = first == std::string::npos    ? name.substr(0, name.rfind('.'))
                          : second == std::string::npos ? name.substr(0, first)
                                                        : name.substr(0, second);
      files.push_back({path + "/" + name, std::move(group), size_of(path + "/" + name)});
    }
  }
  return files;
}

Result<SuiteReport> run_suite(const std::vector<ScriptFile>& all, const SuiteOptions& options,
                              const std::function<void(size_t, size_t, const Count&)>& progress) {
  SuiteReport report;
  {
    std::unique_ptr<Library> library = TRY(Library::load(options.library));
    report.version = library->calls().libversion();
  }
  const std::vector<ScriptFile> files =
      options.per_group > 0 ? evenly(all, options.per_group) : all;
  std::vector<size_t> order(files.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  // The longest first, so that no worker is left alone with one at the end.
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return files[a].bytes > files[b].bytes; });
  const i64 start_us = base::system_clock().monotonic_us();
  size_t finished = 0;
  run_jobs(
      order, options.jobs, options.file_timeout_ms,
      [&](size_t index) { return run_file(files[index], options).dump(); },
      [&](size_t index, const JobEnd& end) {
        const Json result = result_of(files[index], end);
        add(report.groups[files[index].group], result);
        add(report.total, result);
        for (const Json& failure : result["failures"].items()) {
          if (report.failures.size() < kFailuresShown)
            report.failures.push_back(failure.as_string());
        }
        progress(++finished, files.size(), report.total);
      });
  report.wall_us = base::system_clock().monotonic_us() - start_us;
  return report;
}

Json SuiteReport::to_json() const {
  const auto json_of = [](const Count& count) {
    return Json::object({{"files", count.files},
                         {"statements", count.statements},
                         {"queries", count.queries},
                         {"passed", count.passed},
                         {"failed", count.failed},
                         {"skipped", count.skipped},
                         {"cpu_us", count.cpu_us}});
  };
  Json by_group = Json::object();
  for (const auto& [name, count] : groups) by_group.set(name, json_of(count));
  Json shown = Json::array();
  for (const std::string& failure : failures) shown.push(failure);
  return Json::object({{"version", version},
                       {"wall_us", wall_us},
                       {"total", json_of(total)},
                       {"groups", by_group},
                       {"failures", shown}});
}

}  // namespace db::slt
