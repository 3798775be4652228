#include "db/exec/vector_choice.h"

#include "db/exec/aggregate_state.h"

namespace db {
namespace {

bool is_volatile(const List<Expr*>& exprs) {
  for (const Expr* expr : exprs) {
    if (expr->has(expr_flag::kVolatile)) return true;
  }
  return false;
}

// Batches change when an expression runs; what has effects or moods of its own must not notice.
bool join_fits(const JoinPlan& join) {
  for (const JoinLevel* level : join.levels) {
    if (level->right || is_volatile(level->filters) || is_volatile(level->on)) return false;
    if (level->source->recursive_id >= 0) return false;
    for (const Lookup& lookup : level->path->lookups) {
      if (lookup.value->has(expr_flag::kVolatile)) return false;
    }
  }
  return true;
}

bool aggregate_fits(const AggregatePlan& plan) {
  if (is_volatile(plan.groups) || is_volatile(plan.bare)) return false;
  for (const AggregateCall* call : plan.calls) {
    if (!call->function->has(function_flag::kBuiltIn)) return false;
    if (call->function->has(function_flag::kSubtype) || is_volatile(call->args)) return false;
    if (call->filter != nullptr && call->filter->has(expr_flag::kVolatile)) return false;
    // min() and max() in their general form pick the bare columns' row by position.
    if (fast_kind(*call) == Fast::kNone && call->function->has(function_flag::kMinMax))
      return false;
  }
  return true;
}

// Rows that batches must save work on before they pay for being set up.
constexpr f64 kWorthwhileRows = 500;

}  // namespace

bool vector_fits(const RowPlan& plan, const Cx& cx) {
  Session::Executor mode = cx.session.executor;
  if (mode == Session::Executor::kRow || plan.join == nullptr || plan.join->levels.empty()) {
    return false;
  }
  if (cx.session.encoding != Encoding::kUtf8) return false;  // batches read text as it is stored
  if (!join_fits(*plan.join)) return false;
  if (plan.aggregate != nullptr ? !aggregate_fits(*plan.aggregate) : is_volatile(plan.out)) {
    return false;
  }
  if (mode == Session::Executor::kVector) return true;
  // Without an end that wants all rows, the first ones are wanted soon.
  bool all_rows = plan.aggregate != nullptr || plan.window != nullptr || plan.distinct ||
                  plan.all_wanted || (!plan.order.empty() && !plan.join->ordered);
  if (!all_rows) return false;
  f64 work = 0;
  for (const JoinLevel* level : plan.join->levels) work += level->path->setup;
  return work + plan.join->levels[0]->path->cost >= kWorthwhileRows;
}

bool executor_of(std::string_view name, Session::Executor* out) {
  for (auto one : {Session::Executor::kAuto, Session::Executor::kRow, Session::Executor::kVector}) {
    if (name != executor_name(one)) continue;
    *out = one;
    return true;
  }
  return false;
}

std::string_view executor_name(Session::Executor executor) {
  switch (executor) {
    case Session::Executor::kRow:
      return "row";
    case Session::Executor::kVector:
      return "vector";
    default:
      return "auto";
  }
}

}  // namespace db
