// The plan of a query as plain data: what the executor builds its operators from. Nodes live in
// the statement's arena. A RowPlan produces rows of `width` values; a JoinPlan positions slots.
#pragma once

#include "db/catalog/session.h"
#include "db/plan/expr.h"

namespace db {

// How a FROM item is read.
enum class PathKind : u8 {
  kScan,        // table or, with `index`, index from end to end
  kRowidEqual,  // lookup[0]
  kRowidRange,
  kIndexSeek,  // equality on a prefix, then maybe a range
  kMultiOr,    // union of the branches' rows
  kRows,       // the rows of a subquery, in turn
  kHash,       // rows of the item with keys equal to `lookup`; no keys: all rows, filtered once
  kVirtual,    // a virtual table or table-valued function
};

struct Bound {
  Expr* value = nullptr;
  bool inclusive = true;
};

// One equality of an index prefix or rowid: a value, or IN's list or query.
struct Lookup {
  Expr* value = nullptr;  // col = value, or the whole IN expression when `is_in`
  Expr* key = nullptr;    // kHash: the item's own side
  Expr* term = nullptr;   // the conjunct it came from
  const Collation* collation = &kBinary;
  Affinity affinity = Affinity::kNone;  // applied to the value before the search
  bool is_in = false;
  bool is_null_safe = false;  // IS: NULL finds NULL
};

struct AccessPath {
  PathKind kind = PathKind::kScan;
  bool reverse = false;
  bool one_row = false;  // at most one row
  const Index* index = nullptr;
  List<Lookup> lookups;
  Bound low, high;  // of the column behind the prefix, in index order
  Affinity range_affinity = Affinity::kNone;
  bool skip_null = false;      // range with only an upper bound: NULLs sort first and do not count
  List<AccessPath*> branches;  // kMultiOr
  List<Expr*> build_filters;   // kHash: what the item's rows must pass alone
  bool kept = false;           // kHash: the build reads no enclosing row and serves every start
  f64 cost = 0, rows = 0, setup = 0;
  u64 prerequisites = 0;   // sources that must come before
  List<Expr*> consumed;    // conjuncts that the path itself makes true
  int virtual_number = 0;  // kVirtual: best_index's answer
  std::string_view virtual_text;
  List<Expr*> virtual_args;
  bool virtual_ordered = false;
};

enum class SourceKind : u8 { kTable, kRows, kVirtual };

// Where the rows of a FROM item come from.
struct SourcePlan {
  SourceKind kind = SourceKind::kTable;
  int slot = 0;
  const Table* table = nullptr;
  int database = 0;
  RowPlan* rows = nullptr;         // kRows
  SubqueryNode* shared = nullptr;  // kRows: several items read one materialised result (CTE)
  bool materialized = false;       // kRows: computed once and kept, never run as a coroutine
  bool correlated = false;         // kRows: reads earlier items or enclosing rows
  int width = 0;
  std::string_view name;  // for EXPLAIN QUERY PLAN
  int recursive_id = -1;  // kRows: the working table of a recursive CTE
  List<int> used;         // columns that the query reads
};

struct JoinLevel {
  SourcePlan* source = nullptr;
  AccessPath* path = nullptr;
  bool left = false;    // rows of earlier levels stay even without a match
  bool right = false;   // RIGHT and FULL: unmatched rows of this level come at the end
  List<Expr*> on;       // left/right: decides about a match
  List<Expr*> filters;  // the rest of WHERE that can be decided here
};

struct JoinPlan {
  List<JoinLevel*> levels;
  List<Expr*> constant_filters;  // decided once, before the first row
  bool ordered = false;          // rows come in the order that ORDER BY asks for
  bool grouped = false;          // rows come in GROUP BY order
  int one_row_levels = 0;
};

struct AggregateCall {
  const Function* function = nullptr;
  List<Expr*> args;
  Expr* filter = nullptr;
  bool distinct = false;
  List<SortKey> order;  // f(x ORDER BY y)
  const Collation* collation = &kBinary;
  int output = 0;
};

// Output row of an aggregation: groups first; calls and bare columns say where they are.
struct AggregatePlan {
  int slot = 0;
  List<Expr*> groups;
  List<const Collation*> group_collations;
  List<AggregateCall*> calls;
  List<Expr*> bare;
  List<int> bare_outputs;
  int width = 0;
  int min_max = -1;  // the one min() or max() call that picks the row for bare columns
  bool sorted_input = false;
  bool count_only = false;  // just count(*) of a whole table
  List<bool> group_descending;
};

struct FrameBoundPlan {
  sql::FrameBoundKind kind = sql::FrameBoundKind::kCurrentRow;
  Expr* offset = nullptr;
};

struct WindowCall {
  const Function* function = nullptr;
  List<int> args;  // columns of the window's input row
  int filter = -1;
  const Collation* collation = &kBinary;
  int output = 0;
};

// One window definition and the calls over it. Input columns are in `WindowPlan::inputs`.
struct WindowGroup {
  List<int> partition;
  List<const Collation*> partition_collations;
  List<SortKey> order;  // columns of the input row
  sql::FrameUnit unit = sql::FrameUnit::kRange;
  FrameBoundPlan start, end;
  sql::FrameExclude exclude = sql::FrameExclude::kNoOthers;
  List<WindowCall*> calls;
};

// Two slots: the input row, and one column per call.
struct WindowPlan {
  int slot = 0;
  int result_slot = 0;
  List<Expr*> inputs;
  List<WindowGroup*> groups;
  int calls = 0;
};

enum class RowKind : u8 { kCore, kValues, kCompound, kRecursive };

struct RowColumn {
  std::string_view name;
  Affinity affinity = Affinity::kNone;
  const Collation* collation = nullptr;
  bool explicit_collation = false;
  std::string_view declared_type;
  std::string_view database, table, origin;  // where it comes from, or empty
  const Expr* expr = nullptr;
};

struct RowPlan {
  RowKind kind = RowKind::kCore;
  int width = 0;  // visible columns
  List<RowColumn> columns;
  // Sorting and cutting, over the whole (compound) result.
  List<SortKey> order;  // over the output row, hidden columns included
  Expr* limit = nullptr;
  Expr* offset = nullptr;
  // kCore
  JoinPlan* join = nullptr;  // null: no FROM
  AggregatePlan* aggregate = nullptr;
  Expr* having = nullptr;
  WindowPlan* window = nullptr;
  List<Expr*> out;  // visible, then hidden sort keys
  bool distinct = false;
  bool all_wanted = false;  // every row is read before the first one is used
  // kValues
  List<List<Expr*>> rows;
  // kCompound
  List<RowPlan*> arms;
  List<sql::CompoundOp> ops;  // ops[i] joins arms[i] to what is before; ops[0] is kNone
  // kRecursive: arms[0..first_recursive) start, the rest run over the working row
  int first_recursive = 0;
  int working_slot = 0;
  int recursive_id = -1;
  bool recursive_union_all = true;
  f64 estimated_rows = 0;
  u64 outer_slots_used = 0;
};

}  // namespace db
