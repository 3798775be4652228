#include "db/plan/fold.h"

#include <cmath>
#include <limits>

namespace db {
namespace {

// The number that an operand of arithmetic stands for: integer when it looks like one.
struct Number {
  bool integer;
  i64 i;
  f64 r;
};

Number number_of(const Value& value) {
  switch (value.type()) {
    case Type::kInteger:
      return {true, value.raw_integer(), 0};
    case Type::kReal:
      return {false, 0, value.raw_real()};
    default: {
      ParsedNumber parsed = parse_number(value.bytes());
      if (parsed.type == Type::kReal) return {false, 0, parsed.real};
      return {true, parsed.integer, 0};
    }
  }
}

bool integer_arithmetic(Op op, i64 a, i64 b, Value& out) {
  i64 result = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return false;
      break;
    case Op::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return false;
      break;
    case Op::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return false;
      break;
    case Op::kDivide:
      if (b == 0) {
        out.set_null();
        return true;
      }
      if (a == std::numeric_limits<i64>::min() && b == -1) return false;
      result = a / b;
      break;
    default:  // kModulo
      if (b == 0) {
        out.set_null();
        return true;
      }
      result = b == -1 ? 0 : a % b;
      break;
  }
  out.set_integer(result);
  return true;
}

void shift(i64 value, i64 count, Value& out) {
  if (count == 0) {
    out.set_integer(value);
  } else if (count > 0) {
    out.set_integer(count >= 64 ? 0 : static_cast<i64>(static_cast<u64>(value) << count));
  } else {
    i64 right = count <= -64 ? 64 : -count;
    out.set_integer(right >= 64 ? (value < 0 ? -1 : 0) : value >> right);
  }
}

}  // namespace

void evaluate_arithmetic(Op op, const Value& left, const Value& right, Value& out) {
  if (left.is_null() || right.is_null()) {
    out.set_null();
    return;
  }
  switch (op) {
    case Op::kBitAnd:
      out.set_integer(left.to_integer() & right.to_integer());
      return;
    case Op::kBitOr:
      out.set_integer(left.to_integer() | right.to_integer());
      return;
    case Op::kShiftLeft:
      shift(left.to_integer(), right.to_integer(), out);
      return;
    case Op::kShiftRight: {
      i64 count = right.to_integer();
      shift(left.to_integer(), count == std::numeric_limits<i64>::min() ? 64 : -count, out);
      return;
    }
    default:
      break;
  }
  Number a = number_of(left);
  Number b = number_of(right);
  if (a.integer && b.integer && integer_arithmetic(op, a.i, b.i, out)) return;
  f64 x = a.integer ? static_cast<f64>(a.i) : a.r;
  f64 y = b.integer ? static_cast<f64>(b.i) : b.r;
  switch (op) {
    case Op::kAdd:
      out.set_real(x + y);
      return;
    case Op::kSubtract:
      out.set_real(x - y);
      return;
    case Op::kMultiply:
      out.set_real(x * y);
      return;
    case Op::kDivide:
      if (y == 0) {
        out.set_null();
      } else {
        out.set_real(x / y);
      }
      return;
    default: {
      // Of a text that means a real, SQLite takes the digits in front ('302E35' is 302).
      const i64 ia = left.to_integer();
      const i64 ib = right.to_integer();
      if (ib == 0) {
        out.set_null();
      } else {
        out.set_real(static_cast<f64>(ib == -1 ? 0 : ia % ib));
      }
    }
  }
}

void evaluate_concat(const Value& left, const Value& right, Value& out) {
  if (left.is_null() || right.is_null()) {
    out.set_null();
    return;
  }
  char left_buffer[40];
  char right_buffer[40];
  auto text_of = [](const Value& value, char* buffer) -> std::string_view {
    if (value.has_bytes()) return value.bytes();
    size_t size = value.is_integer() ? format_integer(value.raw_integer(), buffer)
                                     : format_real(value.raw_real(), buffer);
    return {buffer, size};
  };
  std::string_view a = text_of(left, left_buffer);
  std::string_view b = text_of(right, right_buffer);
  Value result = Value::buffer(Type::kText, a.size() + b.size());
  if (!a.empty()) std::memcpy(result.mutable_data(), a.data(), a.size());
  if (!b.empty()) std::memcpy(result.mutable_data() + a.size(), b.data(), b.size());
  out = std::move(result);
}

void evaluate_negate(const Value& operand, Value& out) {
  if (operand.is_null()) {
    out.set_null();
    return;
  }
  Number n = number_of(operand);
  if (!n.integer) {
    out.set_real(-n.r);
  } else if (n.i == std::numeric_limits<i64>::min()) {
    out.set_real(9223372036854775808.0);
  } else {
    out.set_integer(-n.i);
  }
}

bool apply_comparison_affinity(Affinity affinity, const Value& left, const Value& right,
                               Value& left_copy, Value& right_copy) {
  if (affinity >= Affinity::kNumeric) {
    if (!(left.is_text() && may_be_number(left.bytes())) &&
        !(right.is_text() && may_be_number(right.bytes()))) {
      return false;
    }
    left_copy = left;
    right_copy = right;
    apply_numeric_affinity(left_copy);
    apply_numeric_affinity(right_copy);
    return true;
  }
  if (affinity == Affinity::kText &&
      ((left.is_text() && right.is_number()) || (left.is_number() && right.is_text()))) {
    left_copy = left;
    right_copy = right;
    apply_affinity(left_copy, Affinity::kText);
    apply_affinity(right_copy, Affinity::kText);
    return true;
  }
  return false;
}

namespace {

bool decide(Op op, int order) {
  switch (op) {
    case Op::kEq:
    case Op::kIs:
      return order == 0;
    case Op::kNe:
    case Op::kIsNot:
      return order != 0;
    case Op::kLt:
      return order < 0;
    case Op::kLe:
      return order <= 0;
    case Op::kGt:
      return order > 0;
    default:
      return order >= 0;
  }
}

}  // namespace

int evaluate_comparison(Op op, const Value& left, const Value& right, Affinity affinity,
                        const Collation* collation) {
  if (left.is_null() || right.is_null()) {
    if (op == Op::kIs) return left.is_null() && right.is_null();
    if (op == Op::kIsNot) return !(left.is_null() && right.is_null());
    return -1;
  }
  if (left.is_number() && right.is_number()) return decide(op, compare(left, right, collation));
  Value a;
  Value b;
  if (apply_comparison_affinity(affinity, left, right, a, b)) {
    return decide(op, compare(a, b, collation));
  }
  return decide(op, compare(left, right, collation));
}

bool evaluate_truth_test(Op op, bool negated, const Value& operand) {
  int truth = operand.to_truth();
  bool holds = op == Op::kIsTrue ? truth == 1 : truth == 0;
  return holds != negated;
}

namespace {

bool fold_logic(const Expr& expr, Value* out) {
  bool is_and = expr.op == Op::kAnd;
  auto truth_of = [](const Expr* e) { return e->op == Op::kConst ? e->constant->to_truth() : 2; };
  int a = truth_of(expr.left);
  int b = truth_of(expr.right);
  int decisive = is_and ? 0 : 1;
  // A deciding constant decides; but an operand with side effects or errors must still be kept out
  // of it only when it comes first, which SQLite ignores as well.
  if (a == decisive || b == decisive) {
    out->set_integer(decisive);
    return true;
  }
  if (a == 2 || b == 2) return false;
  if (a < 0 || b < 0) {
    out->set_null();
  } else {
    out->set_integer(1 - decisive);
  }
  return true;
}

bool fold_function(const Expr& expr, Session& session, Value* out) {
  if (expr.function->scalar == nullptr || expr.has(expr_flag::kVolatile) ||
      expr.function->has(function_flag::kSlowChange) ||
      !expr.function->has(function_flag::kBuiltIn)) {
    return false;
  }
  if (expr.args.size() > 8) return false;
  std::vector<Value> args;
  for (Expr* arg : expr.args) {
    if (arg->op != Op::kConst) return false;
    args.push_back(*arg->constant);
  }
  FunctionContext context(*expr.function, &session);
  for (Expr* arg : expr.args) {
    const Collation* collation = value_collation(arg);
    if (collation == nullptr) continue;
    context.set_collation(collation);
    break;
  }
  expr.function->scalar(context, args);
  if (context.error_code() != 0 || context.result.subtype() != 0) return false;
  if (context.result.has_bytes() && context.result.bytes().size() > 1000) return false;
  *out = context.result;
  out->keep();
  return true;
}

}  // namespace

bool fold_constant(const Expr& expr, Session& session, Value* out) {
  if (expr.op == Op::kFunction) return fold_function(expr, session, out);
  if (expr.op == Op::kAnd || expr.op == Op::kOr) return fold_logic(expr, out);
  if (expr.left == nullptr || expr.left->op != Op::kConst) return false;
  if (expr.right != nullptr && expr.right->op != Op::kConst) return false;
  const Value& left = *expr.left->constant;
  switch (expr.op) {
    case Op::kNegate:
      evaluate_negate(left, *out);
      return true;
    case Op::kPlus:
      *out = left;
      return true;
    case Op::kBitNot:
      if (left.is_null()) {
        out->set_null();
      } else {
        out->set_integer(~left.to_integer());
      }
      return true;
    case Op::kNot: {
      int truth = left.to_truth();
      if (truth < 0) {
        out->set_null();
      } else {
        out->set_integer(truth == 0);
      }
      return true;
    }
    case Op::kIsNull:
      out->set_integer(left.is_null());
      return true;
    case Op::kNotNull:
      out->set_integer(!left.is_null());
      return true;
    case Op::kIsTrue:
    case Op::kIsFalse:
      out->set_integer(evaluate_truth_test(expr.op, expr.has(expr_flag::kNegated), left));
      return true;
    case Op::kCast:
      *out = left;
      cast_value(*out, expr.affinity);
      return true;
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
    case Op::kIs:
    case Op::kIsNot: {
      if (expr.collation->kind == Collation::Kind::kUser) return false;
      int truth =
          evaluate_comparison(expr.op, left, *expr.right->constant, expr.compare, expr.collation);
      if (truth < 0) {
        out->set_null();
      } else {
        out->set_integer(truth);
      }
      return true;
    }
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kModulo:
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kShiftLeft:
    case Op::kShiftRight:
      evaluate_arithmetic(expr.op, left, *expr.right->constant, *out);
      return true;
    case Op::kConcat:
      evaluate_concat(left, *expr.right->constant, *out);
      return true;
    default:
      return false;
  }
}

}  // namespace db
