#include "db/exec/execution.h"

#include "db/exec/eval.h"
#include "db/exec/table_cursor.h"
#include "db/plan/dml_binder.h"

namespace db {

void Program::fit(Cx& cx) const {
  cx.slots.resize(static_cast<size_t>(slots));
  cx.subqueries.resize(static_cast<size_t>(subqueries));
  cx.calls.resize(static_cast<size_t>(states));
  cx.in_lists.resize(static_cast<size_t>(states));
  cx.recursive_rows.resize(static_cast<size_t>(recursives));
}

void Program::take_counts(const Binder& binder) {
  slots = binder.slot_count();
  subqueries = binder.subquery_count();
  states = binder.state_count();
  recursives = binder.recursive_count();
  kept = binder.kept;
  databases = binder.databases_used;
}

bool compile_into(Binder& binder, Scope* parent, const sql::Statement* statement, RowPlan** select,
                  DmlPlan** dml) {
  DmlBinder changes(binder, parent);
  switch (statement->kind) {
    case sql::StatementKind::kSelect:
      *select = binder.bind_select(statement->as<sql::SelectStatement>()->select, parent, nullptr);
      return *select != nullptr;
    case sql::StatementKind::kInsert:
      *dml = changes.insert(*statement->as<sql::InsertStatement>());
      return *dml != nullptr;
    case sql::StatementKind::kUpdate:
      *dml = changes.update(*statement->as<sql::UpdateStatement>());
      return *dml != nullptr;
    case sql::StatementKind::kDelete:
      *dml = changes.remove(*statement->as<sql::DeleteStatement>());
      return *dml != nullptr;
    default:
      return binder.fail("not a query");
  }
}

namespace {

class SelectExecution : public Execution {
 public:
  SelectExecution(const RowPlan& plan, Cx& cx) : stream_(make_stream(plan, cx)) {}

  int step(Cx& cx) override {
    if (!open_) {
      open_ = true;
      stream_->open(cx);
    }
    if (cx.failed()) return cx.code;
    if (stream_->next(cx)) {
      row_ = stream_->row();
      return rc::kRow;
    }
    return cx.failed() ? cx.code : rc::kDone;
  }

  void close(Cx& cx) override {
    if (open_) stream_->close(cx);
    open_ = false;
  }

 private:
  std::unique_ptr<RowStream> stream_;
  bool open_ = false;
};

}  // namespace

std::unique_ptr<Execution> make_select(const RowPlan& plan, Cx& cx) {
  return std::make_unique<SelectExecution>(plan, cx);
}

}  // namespace db
