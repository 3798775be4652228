// Bound expressions: names are resolved to slots, affinities and collations are decided, constants
// are folded. A tree is immutable once built, lives in the statement's arena and may be shared.
//
// A *slot* is a place that holds one current row while the statement runs: a table cursor, a
// materialised row, the output of an aggregation, NEW and OLD of a trigger. Slots are numbered
// across the whole statement, so an inner query reads an outer row simply by its slot.
#pragma once

#include "db/functions/function.h"
#include "db/sql/ast.h"
#include "db/value/value.h"

namespace db {

using sql::Arena;
using sql::List;

struct RowPlan;
struct Expr;

enum class Op : u8 {
  kConst,
  kParam,   // a: number, from 1
  kColumn,  // a: slot, b: column
  kRowid,   // a: slot
  kNegate,
  kPlus,
  kBitNot,
  kNot,
  kIsNull,
  kNotNull,
  kIsTrue,   // x IS TRUE; negated: IS NOT TRUE
  kIsFalse,  // x IS FALSE
  kAnd,
  kOr,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIs,
  kIsNot,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kBitAnd,
  kBitOr,
  kShiftLeft,
  kShiftRight,
  kConcat,
  kBetween,   // args: value, low, high; two comparisons with their own affinities
  kInList,    // left in args
  kInSelect,  // left (or row) in subquery
  kCase,      // left: base or null; args: when, then, ...; right: else or null
  kCast,      // affinity: the target
  kCollate,
  kAffinity,  // what storing in a column does: generated columns
  kFunction,
  kCoalesce,  // args, evaluated until one is not NULL
  kExists,
  kSubquery,  // a: column of its first row
  kRow,       // args; only under comparisons and IN
  kRaise,
};

namespace expr_flag {
inline constexpr u8 kNegated = 1;          // NOT BETWEEN, NOT IN, IS NOT TRUE
inline constexpr u8 kExplicitCollate = 2;  // COLLATE somewhere below
inline constexpr u8 kOuterJoin = 4;        // conjunct of an outer join's ON
inline constexpr u8 kVolatile = 8;         // random(), a user's function: never folded or moved
inline constexpr u8 kHasSubquery = 16;
// What an expression has because one of its operands has it.
inline constexpr u8 kInherited = kExplicitCollate | kVolatile | kHasSubquery;
}  // namespace expr_flag

// A query inside an expression or FROM, shared by all that refer to it.
struct SubqueryNode {
  RowPlan* plan = nullptr;
  int id = 0;               // index of its run-time state
  bool correlated = false;  // reads rows of an enclosing query
  bool is_volatile = false;
  List<Expr*> outer;  // the enclosing rows' columns that it reads
};

struct Expr {
  Op op = Op::kConst;
  Affinity affinity = Affinity::kNone;
  Affinity compare = Affinity::kNone;  // comparisons: what is applied to both sides first
  u8 flags = 0;
  i32 a = 0;
  i32 b = 0;                             // kFunction, kInList: index of the run-time state
  const Collation* collation = nullptr;  // comparisons: the one in force; see value_collation()
  Expr* left = nullptr;
  Expr* right = nullptr;
  List<Expr*> args;
  const Value* constant = nullptr;
  const Function* function = nullptr;
  SubqueryNode* subquery = nullptr;
  std::string_view text;  // RAISE's message, kFunction: its name

  bool has(u8 flag) const { return (flags & flag) != 0; }
};

// The collation that a value brings along (SQLite's rule: a column's own, through CAST and unary
// plus; else the first COLLATE below, left operand first); null: none.
const Collation* value_collation(const Expr* expr);
inline const Collation* value_collation_or_binary(const Expr* expr) {
  const Collation* collation = value_collation(expr);
  return collation != nullptr ? collation : &kBinary;
}

struct SortKey {
  Expr* expr = nullptr;  // null: output column `column`
  int column = 0;
  bool descending = false;
  bool nulls_last = false;  // in key order, see KeyInfo
  const Collation* collation = &kBinary;
};

}  // namespace db
