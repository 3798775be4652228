// How EXPLAIN and EXPLAIN QUERY PLAN are printed: a listing in columns and a tree, in every output
// mode, as users of the stock shell know them. Thread-compatible.
#pragma once

#include "db/shell/table.h"

#include <memory>
#include <string>

namespace db::shell {

// For the rows (id, parent, unused, detail) of EXPLAIN QUERY PLAN. Appends to `out`, which must
// outlive it.
std::unique_ptr<Printer> make_plan_printer(std::string& out);

// For the rows (addr, opcode, p1 to p5, comment) of EXPLAIN. Appends to `out`, which must outlive
// it.
std::unique_ptr<Printer> make_program_printer(std::string& out);

}  // namespace db::shell
