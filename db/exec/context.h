// The run-time state of one execution of a plan: slots, parameters, the first error, and the states
// of subqueries, function calls and IN lists.
//
// Evaluation does not return errors: it sets the context's error once and goes on with NULL;
// whoever moves from row to row looks at failed(). Single-threaded.
#pragma once

#include "db/exec/value_set.h"
#include "db/plan/plan.h"

#include <memory>
#include <string>
#include <vector>

namespace db {

class TableCursor;
class RowStream;
class Cx;

// Where a slot's current row is: in an array of values, or under a cursor.
struct Slot {
  Value* row = nullptr;
  const i16* map = nullptr;  // column -> place in `row`; null: the column itself
  TableCursor* cursor = nullptr;
  bool null_row = false;
};

// A materialised result.
struct RowBuffer {
  int width = 0;
  std::vector<Value> values;
  size_t count() const { return width == 0 ? 0 : values.size() / static_cast<size_t>(width); }
  Value* row(size_t index) { return values.data() + index * static_cast<size_t>(width); }
};

struct SubqueryState {
  const SubqueryNode* node = nullptr;
  std::unique_ptr<RowStream> stream;
  bool valid = false;
  bool running = false;
  std::vector<Value> outer;  // the enclosing values that the cached answer belongs to
  std::vector<Value> first;  // scalar: the first row
  bool exists = false;
  std::unique_ptr<RowBuffer> rows;  // FROM
  std::unique_ptr<ValueSet> set;    // IN
  bool set_has_null = false;
  std::unique_ptr<ValueSet> memo;  // scalar, correlated: outer values -> place in memo_rows
  std::vector<Value> memo_rows;

  SubqueryState();
  ~SubqueryState();
  SubqueryState(SubqueryState&&) noexcept;
};

struct InListState {
  std::unique_ptr<ValueSet> set;
  bool has_null = false;
};

class Cx {
 public:
  explicit Cx(Session& session) : session(session) {}
  ~Cx();
  Cx(const Cx&) = delete;
  Cx& operator=(const Cx&) = delete;

  bool failed() const { return code != 0; }
  void fail(int error_code, std::string text) {
    if (code != 0) return;
    code = error_code;
    message = std::move(text);
  }
  void fail(const Error& error) { fail(error.code(), error.message()); }
  void fail(const base::Error& error) { fail(Error(error)); }
  // Between rows: interrupts and the progress handler. False: stop.
  bool tick() {
    if (--countdown > 0) return true;
    return tick_slow();
  }

  SubqueryState& subquery(const SubqueryNode* node);
  FunctionContext& call(const Expr* expr);
  InListState& in_list(const Expr* expr) { return in_lists[static_cast<size_t>(expr->b)]; }
  // For another run of the same plan: uncorrelated answers are computed again.
  void reset();

  Session& session;
  const Value* parameters = nullptr;
  int parameter_count = 0;
  std::vector<Slot> slots;
  std::vector<SubqueryState> subqueries;
  std::vector<std::unique_ptr<FunctionContext>> calls;
  std::vector<InListState> in_lists;
  std::vector<Value*> recursive_rows;  // the working row of each recursive CTE
  int code = 0;
  std::string message;
  sql::ConflictAction raise = sql::ConflictAction::kDefault;  // RAISE: what it asked for
  bool raised_ignore = false;
  int countdown = 1000;
  u64 run = 0;              // counts reset()
  bool keeps_rows = false;  // a subquery's hash table outlives its evaluation
  i64 full_scan_steps = 0, sorts = 0, automatic_indexes = 0;

 private:
  bool tick_slow();
};

}  // namespace db
