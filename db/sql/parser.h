// Parses one SQL statement of SQLite's language into a tree (db/sql/ast.h).
//
// The text is read to the end of the first statement; `tail` says where the next begins. Errors
// carry SQLite's exact text: `near "X": syntax error`, `incomplete input`,
// `unrecognized token: "X"`, and what its parser itself checks. No allocation outside the arena
// unless there is an error. The SQL text must outlive the tree. Thread-compatible.
#pragma once

#include "db/sql/arena.h"
#include "db/sql/ast.h"

#include <string>
#include <string_view>

namespace db::sql {

struct ParseLimits {
  u32 expr_depth = 1000;
  u32 columns = 2000;
  u32 compound_arms = 500;
  u32 variables = 250000;
  u32 function_args = 1000;
  u32 nesting = 1000;  // parentheses, subqueries
};

struct ParamName {
  u32 number = 0;
  std::string_view name;  // with its first character: ":a", "?12"
};

struct Parsed {
  Statement* statement = nullptr;  // null: blank text, only comments, or an error
  u32 tail = 0;                    // offset just past the statement's semicolon
  u32 param_count = 0;             // the highest parameter number
  List<ParamName> params;          // those with a name, each name once
  bool failed = false;
  std::string error;      // SQLite's text
  i32 error_offset = -1;  // byte offset of the token at fault, or -1
};

Parsed parse(std::string_view sql, Arena& arena, const ParseLimits& limits = {});

// Parses a lone expression, e.g. a stored DEFAULT or CHECK text.
struct ParsedExpr {
  Expr* expr = nullptr;
  std::string error;
};
ParsedExpr parse_expr(std::string_view text, Arena& arena, const ParseLimits& limits = {});

}  // namespace db::sql
