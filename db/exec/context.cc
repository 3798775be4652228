#include "db/exec/context.h"

#include "db/exec/row_stream.h"
#include "db/exec/table_cursor.h"

namespace db {

SubqueryState::SubqueryState() = default;
SubqueryState::~SubqueryState() = default;
SubqueryState::SubqueryState(SubqueryState&&) noexcept = default;

Cx::~Cx() = default;

SubqueryState& Cx::subquery(const SubqueryNode* node) {
  SubqueryState& state = subqueries[static_cast<size_t>(node->id)];
  state.node = node;
  return state;
}

FunctionContext& Cx::call(const Expr* expr) {
  auto& context = calls[static_cast<size_t>(expr->b)];
  if (context == nullptr) {
    context = std::make_unique<FunctionContext>(*expr->function, &session);
    for (const Expr* arg : expr->args) {
      const Collation* collation = value_collation(arg);
      if (collation == nullptr) continue;
      context->set_collation(collation);
      break;
    }
  }
  return *context;
}

void Cx::reset() {
  code = 0;
  message.clear();
  raise = sql::ConflictAction::kDefault;
  raised_ignore = false;
  ++run;
  for (SubqueryState& state : subqueries) {
    if (keeps_rows) state.stream.reset();
    state.valid = false;
    state.memo.reset();
    state.memo_rows.clear();
  }
  keeps_rows = false;
  for (InListState& state : in_lists) {
    state.set.reset();
    state.has_null = false;
  }
}

bool Cx::tick_slow() {
  countdown = 1000;
  if (session.interrupted.load(std::memory_order_relaxed)) {
    fail(rc::kInterrupt, "interrupted");
    return false;
  }
  if (session.hooks.progress && session.hooks.progress_steps > 0) {
    countdown = std::min(1000, session.hooks.progress_steps);
    session.progress_countdown -= countdown;
    if (session.progress_countdown <= 0) {
      session.progress_countdown = session.hooks.progress_steps;
      if (session.hooks.progress()) {
        fail(rc::kInterrupt, "interrupted");
        return false;
      }
    }
  }
  return true;
}

}  // namespace db
