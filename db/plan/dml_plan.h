// INSERT, UPDATE and DELETE as data. A row in memory is all columns of the table, generated ones
// too, then the rowid.
#pragma once

#include "db/plan/plan.h"

namespace db {

struct IndexWrite {
  const Index* index = nullptr;
  List<Expr*> exprs;      // per index column: the expression, or null for a plain column
  Expr* where = nullptr;  // partial
};

struct GeneratedWrite {
  int column = 0;
  Expr* value = nullptr;
};

// All that writing a row of a table needs; expressions read the row in `slot`.
struct WritePlan {
  const Table* table = nullptr;
  int database = 0;
  int slot = 0;
  List<GeneratedWrite> generated;  // in an order in which each can be computed
  List<Expr*> checks;
  List<std::string_view> check_names;
  List<IndexWrite> indexes;
  bool has_insert_triggers = false, has_update_triggers = false, has_delete_triggers = false;
};

struct UpsertPlan {
  const Index* index = nullptr;  // null with any_target unset: the rowid
  bool any_target = false;
  bool do_nothing = false;
  List<int> columns;
  List<Expr*> values;  // read the old row in `old_slot` and `excluded`
  Expr* where = nullptr;
};

struct DmlPlan {
  sql::StatementKind kind = sql::StatementKind::kInsert;
  WritePlan* write = nullptr;
  sql::ConflictAction conflict = sql::ConflictAction::kDefault;
  // kInsert
  RowPlan* source = nullptr;  // null: DEFAULT VALUES
  // May the source see rows that this statement has put in? Then they are collected first.
  bool source_reads_target = true;
  List<int> targets;     // where each source column goes; kRowid
  List<Expr*> defaults;  // per column, null: NULL
  List<UpsertPlan*> upserts;
  int excluded_slot = -1;
  // kUpdate, kDelete: rows to change, as rowid or primary key, then the new values when `early`
  RowPlan* scan = nullptr;
  int target_slot = 0;
  bool one_row = false;  // at most one row
  List<int> columns;     // kUpdate: what is set; kRowid
  List<Expr*> values;
  bool early = false;        // values come with the scan (UPDATE ... FROM)
  bool whole_table = false;  // DELETE without WHERE
  // RETURNING
  bool has_returning = false;
  int returning_slot = -1;
  List<Expr*> returning;
  List<RowColumn> returning_columns;
  bool is_view = false;  // INSTEAD OF triggers do the work
};

}  // namespace db
