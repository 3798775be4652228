// Runs one script against one database through the C API and says what passed. How values are
// rendered, sorted and hashed decides what "equal" means; see script_run.cc for the rules.
// Single-threaded; one run per process at a time is how fleetdb-slt uses it.
#pragma once

#include "base/result.h"
#include "db/slt/library.h"
#include "db/slt/record.h"

#include <string>
#include <vector>

namespace db::slt {

struct Failure {
  u32 line = 0;
  std::string sql;
  std::string why;  // one sentence
  std::vector<std::string> expected;
  std::vector<std::string> got;
};

struct RunReport {
  u64 statements = 0;
  u64 queries = 0;
  u64 passed = 0;
  u64 failed = 0;
  u64 skipped = 0;
  std::vector<Failure> failures;  // the first few
};

struct RunOptions {
  std::string database = ":memory:";
  std::vector<std::string> pragmas;  // run before the first record
  size_t failures_kept = 1;
};

// Errors: kIo when the database does not open or a pragma fails.
base::Result<RunReport> run_script(const Library& library, const Script& script,
                                   const RunOptions& options);

}  // namespace db::slt
