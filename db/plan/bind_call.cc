// Function calls: scalar, aggregate, window.
#include "db/plan/binder.h"

namespace db {
namespace {

const sql::FunctionExpr* find_call(const sql::Expr* expr,
                                   bool (*wanted)(const sql::FunctionExpr&, Session&),
                                   Session& session);

template <class Items>
const sql::FunctionExpr* find_in(const Items& items,
                                 bool (*wanted)(const sql::FunctionExpr&, Session&),
                                 Session& session) {
  for (const sql::Expr* item : items) {
    if (const auto* found = find_call(item, wanted, session); found != nullptr) return found;
  }
  return nullptr;
}

// The first function call below `expr` that is wanted; inner queries are not entered.
const sql::FunctionExpr* find_call(const sql::Expr* expr,
                                   bool (*wanted)(const sql::FunctionExpr&, Session&),
                                   Session& session) {
  if (expr == nullptr) return nullptr;
  auto both = [&](const sql::Expr* a, const sql::Expr* b, const sql::Expr* c = nullptr) {
    const auto* found = find_call(a, wanted, session);
    if (found == nullptr) found = find_call(b, wanted, session);
    return found != nullptr ? found : find_call(c, wanted, session);
  };
  switch (expr->kind) {
    case sql::ExprKind::kUnary:
      return find_call(expr->as<sql::UnaryExpr>()->operand, wanted, session);
    case sql::ExprKind::kBinary:
      return both(expr->as<sql::BinaryExpr>()->left, expr->as<sql::BinaryExpr>()->right);
    case sql::ExprKind::kLike: {
      const auto* like = expr->as<sql::LikeExpr>();
      return both(like->value, like->pattern, like->escape);
    }
    case sql::ExprKind::kBetween: {
      const auto* between = expr->as<sql::BetweenExpr>();
      return both(between->value, between->low, between->high);
    }
    case sql::ExprKind::kIn: {
      const auto* in = expr->as<sql::InExpr>();
      const auto* found = find_call(in->value, wanted, session);
      return found != nullptr ? found : find_in(in->list, wanted, session);
    }
    case sql::ExprKind::kCase: {
      const auto* syntax = expr->as<sql::CaseExpr>();
      const auto* found = both(syntax->base, syntax->otherwise);
      for (const sql::WhenArm& arm : syntax->arms) {
        if (found == nullptr) found = both(arm.when, arm.then);
      }
      return found;
    }
    case sql::ExprKind::kCast:
      return find_call(expr->as<sql::CastExpr>()->value, wanted, session);
    case sql::ExprKind::kCollate:
      return find_call(expr->as<sql::CollateExpr>()->value, wanted, session);
    case sql::ExprKind::kFunction: {
      const auto* call = expr->as<sql::FunctionExpr>();
      if (wanted(*call, session)) return call;
      const auto* found = find_in(call->args, wanted, session);
      if (found == nullptr) found = find_call(call->filter, wanted, session);
      for (const sql::OrderTerm& term : call->order_by) {
        if (found == nullptr) found = find_call(term.expr, wanted, session);
      }
      if (found == nullptr && call->over != nullptr) {
        found = find_in(call->over->partition_by, wanted, session);
        for (const sql::OrderTerm& term : call->over->order_by) {
          if (found == nullptr) found = find_call(term.expr, wanted, session);
        }
      }
      return found;
    }
    case sql::ExprKind::kRow:
      return find_in(expr->as<sql::RowExpr>()->items, wanted, session);
    default:
      return nullptr;
  }
}

std::string upper_name(std::string_view name) {
  return std::string(name);
}

}  // namespace

bool Binder::contains_aggregate(const sql::Expr* expr) {
  return find_call(
             expr,
             [](const sql::FunctionExpr& call, Session& session) {
               if (call.over != nullptr) return false;
               const Function* function =
                   session.functions.find(call.name.text, static_cast<int>(call.args.size()));
               return function != nullptr && function->is_aggregate();
             },
             session_) != nullptr;
}

bool Binder::contains_window(const sql::Expr* expr) {
  return find_call(
             expr, [](const sql::FunctionExpr& call, Session&) { return call.over != nullptr; },
             session_) != nullptr;
}

bool Binder::bind_args(const List<sql::Expr*>& syntax, Scope* scope, List<Expr*>* out) {
  for (const sql::Expr* one : syntax) {
    Expr* arg = bind(one, scope);
    if (arg == nullptr) return false;
    out->push(arena_, arg);
  }
  return true;
}

Expr* Binder::bind_function(const sql::FunctionExpr& call, Scope* scope) {
  std::string_view name = call.name.text;
  int count = static_cast<int>(call.args.size());
  int offset = static_cast<int>(call.span.begin);
  if (count > session_.limit(Limit::kFunctionArg)) {
    fail("too many arguments on function " + std::string(name), offset);
    return nullptr;
  }
  bool known = false;
  const Function* function = session_.functions.find(name, count, &known);
  if (function == nullptr) {
    fail(known ? "wrong number of arguments to function " + std::string(name) + "()"
               : "no such function: " + std::string(name),
         offset);
    return nullptr;
  }
  if (!authorize(31, "", name, "")) return failed() ? nullptr : make_const(Value());
  if (from_schema && function->has(function_flag::kDirectOnly)) {
    fail("unsafe use of " + std::string(name) + "()", offset);
    return nullptr;
  }
  if (call.over != nullptr) return bind_window(call, function, scope);
  if (function->is_aggregate()) {
    if (function->scalar == nullptr && function->is_window_capable() &&
        function->final == nullptr) {
      fail("misuse of window function " + upper_name(name) + "()", offset);
      return nullptr;
    }
    return bind_aggregate(call, function, scope);
  }
  if (call.star) {
    fail("wrong number of arguments to function " + std::string(name) + "()", offset);
    return nullptr;
  }
  if (call.filter != nullptr) {
    fail("FILTER may not be used with non-aggregate " + std::string(name) + "()", offset);
    return nullptr;
  }
  if (!call.order_by.empty()) {
    fail("ORDER BY may not be used with non-aggregate " + std::string(name) + "()", offset);
    return nullptr;
  }
  if (prohibited_place != nullptr && !function->has(function_flag::kDeterministic) &&
      !function->has(function_flag::kSlowChange)) {
    fail("non-deterministic functions prohibited in " + std::string(prohibited_place), offset);
    return nullptr;
  }
  List<Expr*> args;
  if (!bind_args(call.args, scope, &args)) return nullptr;
  if (function->has(function_flag::kBuiltIn)) {
    if (equal_nocase(name, "coalesce") || equal_nocase(name, "ifnull")) {
      auto* node = arena_.make<Expr>();
      node->op = Op::kCoalesce;
      node->args = args;
      inherit_operands(node);
      if (is_constant(node)) {
        for (Expr* arg : args) {
          if (arg->op != Op::kConst) return node;
          if (!arg->constant->is_null()) return make_const(*arg->constant);
        }
        return make_const(Value());
      }
      return node;
    }
    if ((equal_nocase(name, "iif") || equal_nocase(name, "if")) && count >= 2) {
      auto* node = arena_.make<Expr>();
      node->op = Op::kCase;
      for (int i = 0; i + 1 < count; i += 2) {
        node->args.push(arena_, args[static_cast<size_t>(i)]);
        node->args.push(arena_, args[static_cast<size_t>(i) + 1]);
      }
      if (count % 2 == 1) node->right = args.back();
      inherit_operands(node);
      return node;
    }
  }
  return make_function(function, name, args);
}

Expr* Binder::bind_aggregate(const sql::FunctionExpr& call, const Function* function,
                             Scope* scope) {
  std::string name = upper_name(call.name.text);
  int offset = static_cast<int>(call.span.begin);
  // The innermost query that may aggregate here and that the arguments can belong to.
  Scope* owner = scope;
  while (owner != nullptr && (!owner->aggregates_allowed || owner->in_aggregate_args)) {
    bool stays = owner->node == nullptr || owner->parent == nullptr;
    if (stays || owner->in_aggregate_args) {
      owner = nullptr;
      break;
    }
    owner = owner->parent;
  }
  if (owner == nullptr || owner->aggregate == nullptr) {
    fail("misuse of aggregate function " + name + "()", offset);
    return nullptr;
  }
  if (call.distinct && call.args.size() != 1) {
    fail("DISTINCT aggregates must have exactly one argument", offset);
    return nullptr;
  }
  if (call.star && !function->has(function_flag::kCount)) {
    fail("wrong number of arguments to function " + name + "()", offset);
    return nullptr;
  }
  auto* node = arena_.make<AggregateCall>();
  node->function = function;
  node->distinct = call.distinct;
  owner->in_aggregate_args = true;
  bool bound = bind_args(call.args, scope, &node->args);
  if (bound && call.filter != nullptr) {
    node->filter = bind(call.filter, scope);
    bound = node->filter != nullptr;
  }
  for (const sql::OrderTerm& term : call.order_by) {
    if (!bound) break;
    SortKey key;
    key.expr = bind(term.expr, scope);
    bound = key.expr != nullptr;
    if (!bound) break;
    key.descending = term.descending();
    key.nulls_last = key.descending ? term.nulls == sql::NullsOrder::kFirst
                                    : term.nulls == sql::NullsOrder::kLast;
    key.collation = value_collation_or_binary(key.expr);
    node->order.push(arena_, key);
  }
  owner->in_aggregate_args = false;
  if (!bound) return nullptr;
  for (Expr* arg : node->args) {
    const Collation* collation = value_collation(arg);
    if (collation == nullptr) continue;
    node->collation = collation;
    break;
  }
  AggregatePlan& plan = *owner->aggregate;
  AggregateCall* existing = nullptr;
  for (AggregateCall* one : plan.calls) {
    if (one->function != function || one->distinct != node->distinct ||
        one->args.size() != node->args.size() || !one->order.empty() || !node->order.empty() ||
        !same_expr(one->filter, node->filter)) {
      continue;
    }
    bool same = true;
    for (u32 i = 0; i < node->args.size(); ++i) same &= same_expr(one->args[i], node->args[i]);
    if (same) existing = one;
  }
  if (existing == nullptr) {
    node->output = plan.width++;
    if (function->has(function_flag::kMinMax)) {
      plan.min_max = plan.min_max == -1 ? static_cast<int>(plan.calls.size()) : plan.min_max;
    }
    plan.calls.push(arena_, node);
    existing = node;
  }
  Expr* result = make_slot_column(plan.slot, existing->output, nullptr);
  for (const Expr* arg : existing->args) {
    if (!arg->has(expr_flag::kExplicitCollate) || result->collation != nullptr) continue;
    result->collation = value_collation(arg);
    result->flags |= expr_flag::kExplicitCollate;
  }
  if (owner->phase == Phase::kWindow) result = register_window_input(result, owner);
  if (owner != scope) note_outer(result, scope, owner);
  return result;
}

Expr* Binder::register_window_input(Expr* expr, Scope* scope) {
  int at = window_input(expr, scope);
  return make_slot_column(scope->window->slot, at, expr);
}

int Binder::window_input(Expr* expr, Scope* scope) {
  WindowPlan& plan = *scope->window;
  for (u32 i = 0; i < plan.inputs.size(); ++i) {
    if (plan.inputs[i] != nullptr && same_expr(plan.inputs[i], expr)) return static_cast<int>(i);
  }
  plan.inputs.push(arena_, expr);
  return static_cast<int>(plan.inputs.size()) - 1;
}

namespace {

bool same_bound(const FrameBoundPlan& a, const FrameBoundPlan& b) {
  return a.kind == b.kind && same_expr(a.offset, b.offset);
}

bool same_group(const WindowGroup& a, const WindowGroup& b) {
  if (a.unit != b.unit || a.exclude != b.exclude || !same_bound(a.start, b.start) ||
      !same_bound(a.end, b.end) || a.partition.size() != b.partition.size() ||
      a.order.size() != b.order.size()) {
    return false;
  }
  for (u32 i = 0; i < a.partition.size(); ++i) {
    if (a.partition[i] != b.partition[i]) return false;
  }
  for (u32 i = 0; i < a.order.size(); ++i) {
    if (a.order[i].column != b.order[i].column || a.order[i].descending != b.order[i].descending ||
        a.order[i].nulls_last != b.order[i].nulls_last) {
      return false;
    }
  }
  return true;
}

const sql::WindowSpec* named_window(Scope* scope, std::string_view name) {
  if (scope->windows == nullptr) return nullptr;
  for (const sql::WindowSpec* spec : *scope->windows) {
    if (equal_nocase(spec->name.text, name)) return spec;
  }
  return nullptr;
}

}  // namespace

WindowGroup* Binder::window_group(const sql::WindowSpec* spec, Scope* scope,
                                  const Function* function) {
  if (spec->is_reference) {
    const sql::WindowSpec* named = named_window(scope, spec->name.text);
    if (named == nullptr) {
      fail("no such window: " + std::string(spec->name.text));
      return nullptr;
    }
    return window_group(named, scope, function);
  }
  const sql::WindowSpec* base = nullptr;
  if (spec->base.present()) {
    base = named_window(scope, spec->base.text);
    if (base == nullptr) {
      fail("no such window: " + std::string(spec->base.text));
      return nullptr;
    }
    const char* what = !spec->partition_by.empty()                          ? "PARTITION clause"
                       : !base->order_by.empty() && !spec->order_by.empty() ? "ORDER BY clause"
                       : base->has_frame                                    ? "frame specification"
                                                                            : nullptr;
    if (what != nullptr) {
      fail("cannot override " + std::string(what) + " of window: " + std::string(spec->base.text));
      return nullptr;
    }
  }
  auto* group = arena_.make<WindowGroup>();
  const auto& partition = base != nullptr ? base->partition_by : spec->partition_by;
  const auto& order = !spec->order_by.empty() || base == nullptr ? spec->order_by : base->order_by;
  for (const sql::Expr* one : partition) {
    Expr* expr = bind(one, scope);
    if (expr == nullptr) return nullptr;
    group->partition.push(arena_, window_input(expr, scope));
    group->partition_collations.push(arena_, value_collation_or_binary(expr));
  }
  for (const sql::OrderTerm& term : order) {
    Expr* expr = bind(term.expr, scope);
    if (expr == nullptr) return nullptr;
    SortKey key;
    key.column = window_input(expr, scope);
    key.descending = term.descending();
    key.nulls_last = key.descending ? term.nulls == sql::NullsOrder::kFirst
                                    : term.nulls == sql::NullsOrder::kLast;
    key.collation = value_collation_or_binary(expr);
    group->order.push(arena_, key);
  }
  group->unit = spec->unit;
  group->exclude = spec->exclude;
  group->start.kind = spec->has_frame ? spec->start.kind : sql::FrameBoundKind::kUnboundedPreceding;
  group->end.kind = spec->has_frame ? spec->end.kind : sql::FrameBoundKind::kCurrentRow;
  if (spec->has_frame) {
    for (auto [from, to] : {std::pair{&spec->start, &group->start}, {&spec->end, &group->end}}) {
      if (from->offset == nullptr) continue;
      to->offset = bind(from->offset, scope);
      if (to->offset == nullptr) return nullptr;
      if (!is_constant(to->offset)) to->offset = make_const(Value::integer(0));
    }
    if (group->unit == sql::FrameUnit::kRange &&
        (spec->start.offset != nullptr || spec->end.offset != nullptr) &&
        group->order.size() != 1) {
      fail("RANGE with offset PRECEDING/FOLLOWING requires one ORDER BY expression");
      return nullptr;
    }
    if (group->unit == sql::FrameUnit::kGroups && group->order.empty()) {
      fail("GROUPS mode requires an ORDER BY clause");
      return nullptr;
    }
  }
  for (WindowGroup* one : scope->window->groups) {
    if (same_group(*one, *group)) return one;
  }
  scope->window->groups.push(arena_, group);
  return group;
}

Expr* Binder::bind_window(const sql::FunctionExpr& call, const Function* function, Scope* scope) {
  std::string name = upper_name(call.name.text);
  int offset = static_cast<int>(call.span.begin);
  if (!function->is_aggregate()) {
    fail(name + "() may not be used as a window function", offset);
    return nullptr;
  }
  if (call.distinct) {
    fail("DISTINCT is not supported for window functions", offset);
    return nullptr;
  }
  if (scope->window == nullptr || !scope->windows_allowed || scope->phase != Phase::kWindow) {
    fail("misuse of window function " + name + "()", offset);
    return nullptr;
  }
  if (call.filter != nullptr && function->final == nullptr) {
    fail("FILTER clause may only be used with aggregate window functions", offset);
    return nullptr;
  }
  // Arguments are read from the window's input rows.
  scope->phase = scope->aggregate != nullptr ? Phase::kAggregate : Phase::kRow;
  auto* node = arena_.make<WindowCall>();
  node->function = function;
  bool bound = true;
  for (const sql::Expr* one : call.args) {
    Expr* arg = bind(one, scope);
    bound = arg != nullptr;
    if (!bound) break;
    if (node->args.empty()) node->collation = value_collation_or_binary(arg);
    node->args.push(arena_, window_input(arg, scope));
  }
  if (bound && call.filter != nullptr) {
    Expr* filter = bind(call.filter, scope);
    bound = filter != nullptr;
    if (bound) node->filter = window_input(filter, scope);
  }
  WindowGroup* group = bound ? window_group(call.over, scope, function) : nullptr;
  scope->phase = Phase::kWindow;
  if (group == nullptr) return nullptr;
  node->output = scope->window->calls++;
  group->calls.push(arena_, node);
  // Results lie behind the inputs, whose number is not final yet: the slot of results is its own.
  return make_slot_column(scope->window->result_slot, node->output, nullptr);
}

}  // namespace db
