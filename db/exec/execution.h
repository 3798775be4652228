// Runs one compiled statement: a query row by row, a change at the first step.
//
// Program is what a statement compiles to; Execution is one run of it in a Cx. The same pair serves
// top-level statements and the steps of triggers. Single-threaded.
#pragma once

#include "db/exec/row_stream.h"
#include "db/plan/binder.h"
#include "db/plan/dml_plan.h"

#include <functional>

namespace db {

struct Program {
  Arena arena{4096};
  RowPlan* select = nullptr;
  DmlPlan* dml = nullptr;
  std::vector<std::shared_ptr<const void>> kept;
  std::vector<int> databases;  // read
  int write_database = -1;
  int slots = 0, subqueries = 0, states = 0, recursives = 0;

  // Sizes a context for this program.
  void fit(Cx& cx) const;
  void take_counts(const Binder& binder);
};

// Compiles SELECT, INSERT, UPDATE or DELETE with a binder that may already have scopes.
bool compile_into(Binder& binder, Scope* parent, const sql::Statement* statement, RowPlan** select,
                  DmlPlan** dml);

class Execution {
 public:
  virtual ~Execution() = default;
  // rc::kRow with row(), rc::kDone, or the code of cx's error.
  virtual int step(Cx& cx) = 0;
  virtual void close(Cx& cx) = 0;
  Value* row() { return row_; }
  // What the failure asks for: kAbort, kFail, kRollback.
  virtual sql::ConflictAction failed_action() const { return sql::ConflictAction::kAbort; }
  sql::ConflictAction conflict_override = sql::ConflictAction::kDefault;
  i64 changes = 0;  // rows changed, without those of triggers

 protected:
  Value* row_ = nullptr;
};

std::unique_ptr<Execution> make_select(const RowPlan& plan, Cx& cx);
std::unique_ptr<Execution> make_dml(const DmlPlan& plan, Cx& cx);
// May the statement leave changes behind when it fails in the middle?
bool needs_statement_savepoint(const DmlPlan& plan, const Session& session);

}  // namespace db
