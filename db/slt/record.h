// The sqllogictest file format, as the public corpus uses it. A file is a list of records separated
// by blank lines; a parsed Script keeps them in order. Lines that start with '#' vanish everywhere,
// also inside SQL and results; one CR before a line end is dropped.
//
//   [skipif NAME | onlyif NAME]...
//   statement ok | statement error        then SQL to the next blank line
//   query TYPES [nosort|rowsort|valuesort [LABEL]]
//                                         then SQL to "----" or a blank line, then one value a line
//   hash-threshold N | halt
//
// Thread-compatible.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <string>
#include <string_view>
#include <vector>

namespace db::slt {

enum class RecordKind { kStatementOk, kStatementError, kQuery, kHashThreshold, kHalt };
enum class SortMode { kNoSort, kRowSort, kValueSort };

struct Record {
  RecordKind kind = RecordKind::kHalt;
  u32 line = 0;       // of the record's keyword, from 1
  bool skip = false;  // a condition leaves it out for the engine the script was parsed for
  std::string sql;
  std::string types;  // one of T, I, R a column
  SortMode sort = SortMode::kNoSort;
  std::string label;
  std::vector<std::string> expected;
  u64 threshold = 0;
};

struct Script {
  std::vector<Record> records;
};

// `engine` is the name that skipif and onlyif are compared with, without case.
// Errors: kInvalidArgument with the line of a record that cannot be understood.
base::Result<Script> parse_script(std::string_view text, std::string_view engine);

}  // namespace db::slt
