#include "db/exec/eval.h"

#include "db/exec/subquery.h"
#include "db/exec/table_cursor.h"
#include "db/plan/fold.h"

namespace db {
namespace {

void read_column(const Expr* expr, Cx& cx, Value& out) {
  Slot& slot = cx.slots[static_cast<size_t>(expr->a)];
  if (slot.null_row) {
    out.set_null();
  } else if (slot.row != nullptr) {
    out = slot.row[slot.map != nullptr ? slot.map[expr->b] : expr->b];
  } else {
    slot.cursor->column(expr->b, out, cx);
  }
}

void read_rowid(const Expr* expr, Cx& cx, Value& out) {
  Slot& slot = cx.slots[static_cast<size_t>(expr->a)];
  if (slot.null_row) {
    out.set_null();
  } else if (slot.row != nullptr) {
    out = slot.row[slot.map != nullptr ? slot.map[expr->b] : expr->b];
  } else {
    out.set_integer(slot.cursor->rowid());
  }
}

// Operands that need no computation are used where they are.
const Value& operand(const Expr* expr, Cx& cx, Value& scratch) {
  if (expr->op == Op::kConst) return *expr->constant;
  if (expr->op == Op::kParam && expr->a <= cx.parameter_count) return cx.parameters[expr->a - 1];
  if (expr->op == Op::kColumn) {
    const Slot& slot = cx.slots[static_cast<size_t>(expr->a)];
    if (slot.row != nullptr && !slot.null_row) {
      return slot.row[slot.map != nullptr ? slot.map[expr->b] : expr->b];
    }
  }
  eval(expr, cx, scratch);
  return scratch;
}

int eval_comparison(const Expr* expr, Cx& cx) {
  Value left_scratch;
  Value right_scratch;
  const Value& left = operand(expr->left, cx, left_scratch);
  const Value& right = operand(expr->right, cx, right_scratch);
  return evaluate_comparison(expr->op, left, right, expr->compare, expr->collation);
}

void set_truth(int truth, Value& out) {
  if (truth < 0) {
    out.set_null();
  } else {
    out.set_integer(truth);
  }
}

void call_function(const Expr* expr, std::span<Value> args, Cx& cx, Value& out) {
  for (u32 i = 0; i < args.size(); ++i) eval(expr->args[i], cx, args[i]);
  if (cx.failed()) {
    out.set_null();
    return;
  }
  FunctionContext& context = cx.call(expr);
  expr->function->scalar(context, args);
  if (context.error_code() != 0) {
    cx.fail(context.error_code(), context.error_message());
    context.clear_error();
    out.set_null();
    return;
  }
  context.result.keep();  // an argument's bytes may go with the arguments
  out = std::move(context.result);
}

void eval_function(const Expr* expr, Cx& cx, Value& out) {
  const u32 count = expr->args.size();
  if (count <= 2) {
    Value args[2];
    call_function(expr, {args, count}, cx, out);
  } else if (count <= 6) {
    Value args[6];
    call_function(expr, {args, count}, cx, out);
  } else {
    std::vector<Value> args(count);
    call_function(expr, args, cx, out);
  }
}

void eval_case(const Expr* expr, Cx& cx, Value& out) {
  for (u32 i = 0; i + 1 < expr->args.size(); i += 2) {
    if (eval_truth(expr->args[i], cx) == 1) {
      eval(expr->args[i + 1], cx, out);
      return;
    }
  }
  if (expr->right != nullptr) {
    eval(expr->right, cx, out);
  } else {
    out.set_null();
  }
}

int eval_between(const Expr* expr, Cx& cx) {
  Value value_scratch;
  Value low_scratch;
  Value high_scratch;
  const Value& value = operand(expr->left->left, cx, value_scratch);
  const Value& low = operand(expr->left->right, cx, low_scratch);
  const Value& high = operand(expr->right->right, cx, high_scratch);
  int above = evaluate_comparison(Op::kGe, value, low, expr->left->compare, expr->left->collation);
  int below =
      evaluate_comparison(Op::kLe, value, high, expr->right->compare, expr->right->collation);
  int truth = above == 0 || below == 0 ? 0 : (above < 0 || below < 0 ? -1 : 1);
  return truth >= 0 && expr->has(expr_flag::kNegated) ? 1 - truth : truth;
}

bool is_plain(const Expr* expr) {
  return expr->op == Op::kConst;
}

int eval_in_list(const Expr* expr, Cx& cx) {
  Value value;
  eval(expr->left, cx, value);
  if (expr->compare >= Affinity::kText) {
    // The list's items take the left side's affinity; a column has it already, a cast may not.
    apply_comparison_affinity_one(expr->compare, value);
  }
  InListState& state = cx.in_list(expr);
  int negated = expr->has(expr_flag::kNegated) ? 1 : 0;
  if (state.set == nullptr && expr->args.size() > 4) {
    bool constant = true;
    for (const Expr* item : expr->args) constant &= is_plain(item) || item->op == Op::kParam;
    if (constant) {
      state.set = std::make_unique<ValueSet>(1, &expr->collation);
      for (const Expr* item : expr->args) {
        Value one;
        eval(item, cx, one);
        if (one.is_null()) {
          state.has_null = true;
          continue;
        }
        apply_comparison_affinity_one(expr->compare, one);
        bool is_new = false;
        state.set->insert(&one, &is_new);
      }
    }
  }
  if (state.set != nullptr) {
    if (value.is_null()) return -1;
    if (state.set->find(&value) != ValueSet::kNone) return 1 - negated;
    return state.has_null ? -1 : negated;
  }
  bool has_null = value.is_null();
  for (const Expr* item : expr->args) {
    Value one;
    eval(item, cx, one);
    if (one.is_null() || value.is_null()) {
      has_null = true;
      continue;
    }
    apply_comparison_affinity_one(expr->compare, one);
    if (compare(value, one, expr->collation) == 0) return 1 - negated;
  }
  return has_null ? -1 : negated;
}

void eval_raise(const Expr* expr, Cx& cx, Value& out) {
  out.set_null();
  auto action = static_cast<sql::ConflictAction>(expr->a);
  if (cx.failed()) return;
  cx.raise = action;
  if (action == sql::ConflictAction::kIgnore) {
    cx.raised_ignore = true;
    cx.fail(rc::kConstraintTrigger, "");
    return;
  }
  Value text;
  if (expr->left != nullptr) eval(expr->left, cx, text);
  cx.fail(rc::kConstraintTrigger, text.to_text());
}

}  // namespace

void apply_comparison_affinity_one(Affinity affinity, Value& value) {
  if (affinity >= Affinity::kNumeric) {
    apply_numeric_affinity(value);
  } else if (affinity == Affinity::kText) {
    apply_affinity(value, Affinity::kText);
  }
}

int eval_truth(const Expr* expr, Cx& cx) {
  switch (expr->op) {
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
    case Op::kIs:
    case Op::kIsNot:
      return eval_comparison(expr, cx);
    case Op::kAnd: {
      int left = eval_truth(expr->left, cx);
      if (left == 0) return 0;
      int right = eval_truth(expr->right, cx);
      return right == 0 ? 0 : (left < 0 || right < 0 ? -1 : 1);
    }
    case Op::kOr: {
      int left = eval_truth(expr->left, cx);
      if (left == 1) return 1;
      int right = eval_truth(expr->right, cx);
      return right == 1 ? 1 : (left < 0 || right < 0 ? -1 : 0);
    }
    case Op::kNot: {
      int truth = eval_truth(expr->left, cx);
      return truth < 0 ? -1 : 1 - truth;
    }
    case Op::kIsNull:
    case Op::kNotNull: {
      Value scratch;
      return operand(expr->left, cx, scratch).is_null() == (expr->op == Op::kIsNull);
    }
    case Op::kBetween:
      return eval_between(expr, cx);
    case Op::kInList:
      return eval_in_list(expr, cx);
    case Op::kInSelect:
      return eval_in_select(expr, cx);
    case Op::kExists:
      return eval_exists(expr, cx);
    default: {
      Value scratch;
      return operand(expr, cx, scratch).to_truth();
    }
  }
}

void eval(const Expr* expr, Cx& cx, Value& out) {
  // tidy: long-function, one case per operator
  switch (expr->op) {
    case Op::kConst:
      out = *expr->constant;
      return;
    case Op::kParam:
      if (expr->a <= cx.parameter_count) {
        out = cx.parameters[expr->a - 1];
      } else {
        out.set_null();
      }
      return;
    case Op::kColumn:
      read_column(expr, cx, out);
      return;
    case Op::kRowid:
      read_rowid(expr, cx, out);
      return;
    case Op::kNegate: {
      Value scratch;
      evaluate_negate(operand(expr->left, cx, scratch), out);
      return;
    }
    case Op::kPlus:
    case Op::kCollate:
      eval(expr->left, cx, out);
      return;
    case Op::kAffinity:
      eval(expr->left, cx, out);
      apply_affinity(out, expr->affinity);
      return;
    case Op::kBitNot: {
      Value scratch;
      const Value& value = operand(expr->left, cx, scratch);
      if (value.is_null()) {
        out.set_null();
      } else {
        out.set_integer(~value.to_integer());
      }
      return;
    }
    case Op::kIsTrue:
    case Op::kIsFalse: {
      Value scratch;
      const Value& value = operand(expr->left, cx, scratch);
      out.set_integer(evaluate_truth_test(expr->op, expr->has(expr_flag::kNegated), value));
      return;
    }
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kModulo:
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kShiftLeft:
    case Op::kShiftRight: {
      Value left_scratch;
      Value right_scratch;
      const Value& left = operand(expr->left, cx, left_scratch);
      const Value& right = operand(expr->right, cx, right_scratch);
      evaluate_arithmetic(expr->op, left, right, out);
      return;
    }
    case Op::kConcat: {
      Value left_scratch;
      Value right_scratch;
      const Value& left = operand(expr->left, cx, left_scratch);
      const Value& right = operand(expr->right, cx, right_scratch);
      if (left.has_bytes() && right.has_bytes() &&
          left.bytes().size() + right.bytes().size() >
              static_cast<u64>(cx.session.limit(Limit::kLength))) {
        cx.fail(rc::kTooBig, "string or blob too big");
        out.set_null();
        return;
      }
      evaluate_concat(left, right, out);
      return;
    }
    case Op::kCase:
      eval_case(expr, cx, out);
      return;
    case Op::kCast:
      eval(expr->left, cx, out);
      cast_value(out, expr->affinity);
      return;
    case Op::kCoalesce:
      for (const Expr* arg : expr->args) {
        eval(arg, cx, out);
        if (!out.is_null()) return;
      }
      return;
    case Op::kFunction:
      eval_function(expr, cx, out);
      return;
    case Op::kSubquery:
      eval_scalar_subquery(expr, cx, out);
      return;
    case Op::kRaise:
      eval_raise(expr, cx, out);
      return;
    case Op::kRow:
      out.set_null();
      return;
    default:
      set_truth(eval_truth(expr, cx), out);
      return;
  }
}

}  // namespace db
