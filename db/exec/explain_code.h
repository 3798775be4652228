// EXPLAIN: a plan written out as a program, in the eight columns that SQLite's EXPLAIN has.
//
// The executor runs the plan itself, not this program; the program says in the same words what it
// does: which trees it opens (p1 slot, p2 root page, p3 database), how it positions them, where
// each loop ends (p2), what it filters, and what it hands out. p4 and comment hold expressions as
// SQL. The first instruction jumps to the transactions at the end, as readers of SQLite's EXPLAIN
// expect.
#pragma once

#include "db/plan/dml_plan.h"

#include <string>
#include <vector>

namespace db {

struct CodeLine {
  std::string opcode;
  i64 p1 = 0, p2 = 0, p3 = 0;
  std::string p4;
  std::string comment;
};

// `command`: what a statement that is neither a query nor a row change does, as one instruction.
std::vector<CodeLine> explain_code(const RowPlan* select, const DmlPlan* dml,
                                   std::string_view command, const std::vector<int>& databases,
                                   int write_database);

}  // namespace db
