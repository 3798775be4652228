// Fires the triggers of a table: compiles them at first use, runs their steps with NEW and OLD.
// Single-threaded.
#pragma once

#include "db/exec/execution.h"

namespace db {

class TriggerRunner {
 public:
  TriggerRunner(const Table& table, Cx& cx);
  ~TriggerRunner();

  // Runs the triggers for the event. `changed` (may be null) are the columns that UPDATE sets.
  // False: failed, or RAISE(IGNORE) asked to skip the row (*skip).
  bool fire(sql::TriggerEvent event, sql::TriggerTime time, const Value* old_row,
            const Value* new_row, const List<int>* changed, sql::ConflictAction conflict,
            bool* skip);
  // Compiles all that the change may fire, at any depth, for the errors: SQLite reports them when
  // the statement is prepared. `seen` holds the triggers looked at so far.
  static Status check(Session& session, const DmlPlan& dml, std::vector<const Trigger*>& seen);
  sql::ConflictAction failed_action = sql::ConflictAction::kAbort;

 private:
  struct Compiled;
  bool run(Compiled& compiled, const Value* old_row, const Value* new_row,
           sql::ConflictAction conflict, bool* skip);
  Compiled* compile(std::shared_ptr<Trigger> trigger);

  const Table& table_;
  Cx& outer_;
  std::vector<std::unique_ptr<Compiled>> compiled_;
};

}  // namespace db
