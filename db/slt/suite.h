// A set of scripts run under one configuration, counted by group. The group of a file is its folder
// below the suite's root, or its own name when it lies in the root.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "base/types.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace db::slt {

struct SuiteOptions {
  std::string library;               // shared object with the sqlite3 C API
  std::string engine = "sqlite";     // for skipif and onlyif
  std::string mode = "memory";       // memory | file | wal
  bool reverse = false;              // PRAGMA reverse_unordered_selects
  std::vector<std::string> pragmas;  // run on each new database
  std::string check_library;         // when set: it runs integrity_check on each file database
  int jobs = 2;
  i64 file_timeout_ms = 600'000;
  size_t per_group = 0;  // 0: all files; else that many of each group, evenly spread
};

struct Count {
  u64 files = 0;
  u64 statements = 0;
  u64 queries = 0;
  u64 passed = 0;
  u64 failed = 0;
  u64 skipped = 0;
  i64 cpu_us = 0;
};

struct SuiteReport {
  std::string version;  // of the library
  std::map<std::string, Count> groups;
  Count total;
  std::vector<std::string> failures;  // one text each: file:line, SQL, both results
  i64 wall_us = 0;
  base::Json to_json() const;
};

struct ScriptFile {
  std::string path;
  std::string group;
  u64 bytes = 0;
};

// All *.test and *.slt files below the given folders, and the files themselves, sorted.
base::Result<std::vector<ScriptFile>> find_scripts(const std::vector<std::string>& paths);

// `progress(done, of, so_far)` is called after each file.
base::Result<SuiteReport> run_suite(
    const std::vector<ScriptFile>& files, const SuiteOptions& options,
    const std::function<void(size_t done, size_t of, const Count& so_far)>& progress);

}  // namespace db::slt
