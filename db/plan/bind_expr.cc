// Expressions but for names, functions and subqueries.
#include "db/plan/binder.h"

namespace db {

Expr* Binder::bind(const sql::Expr* expr, Scope* scope) {
  if (failed() || expr == nullptr) return nullptr;
  switch (expr->kind) {
    case sql::ExprKind::kLiteral:
      return bind_literal(*expr->as<sql::LiteralExpr>());
    case sql::ExprKind::kColumn:
      return bind_column(*expr->as<sql::ColumnExpr>(), scope);
    case sql::ExprKind::kParam: {
      if (prohibited_place != nullptr) {
        fail("parameters prohibited in " + std::string(prohibited_place),
             static_cast<int>(expr->span.begin));
        return nullptr;
      }
      if (from_schema) return make_const(Value());
      auto* param = arena_.make<Expr>();
      param->op = Op::kParam;
      param->a = static_cast<i32>(expr->as<sql::ParamExpr>()->number);
      return param;
    }
    case sql::ExprKind::kUnary:
      return bind_unary(*expr->as<sql::UnaryExpr>(), scope);
    case sql::ExprKind::kBinary:
      return bind_binary(*expr->as<sql::BinaryExpr>(), scope);
    case sql::ExprKind::kLike:
      return bind_like(*expr->as<sql::LikeExpr>(), scope);
    case sql::ExprKind::kBetween:
      return bind_between(*expr->as<sql::BetweenExpr>(), scope);
    case sql::ExprKind::kIn:
      return bind_in(*expr->as<sql::InExpr>(), scope);
    case sql::ExprKind::kCase:
      return bind_case(*expr->as<sql::CaseExpr>(), scope);
    case sql::ExprKind::kCast: {
      const auto* cast = expr->as<sql::CastExpr>();
      return make_cast(bind(cast->value, scope), affinity_of_type(cast->type));
    }
    case sql::ExprKind::kCollate: {
      const auto* collate = expr->as<sql::CollateExpr>();
      Expr* value = bind(collate->value, scope);
      if (value == nullptr) return nullptr;
      auto* node = arena_.make<Expr>();
      node->op = Op::kCollate;
      node->left = value;
      node->affinity = value->affinity;
      node->flags = static_cast<u8>(value->flags | expr_flag::kExplicitCollate);
      node->collation = session_.collation(collate->collation.text);
      if (node->collation == nullptr) {
        fail(rc::kErrorMissingCollation,
             "no such collation sequence: " + std::string(collate->collation.text));
        return nullptr;
      }
      return node;
    }
    case sql::ExprKind::kFunction:
      return bind_function(*expr->as<sql::FunctionExpr>(), scope);
    case sql::ExprKind::kExists:
      return bind_subquery(expr->as<sql::ExistsExpr>()->select, scope, Op::kExists);
    case sql::ExprKind::kSubquery:
      return bind_subquery(expr->as<sql::SubqueryExpr>()->select, scope, Op::kSubquery);
    case sql::ExprKind::kRow:
      if (expr->as<sql::RowExpr>()->items.size() == 1) {
        return bind(expr->as<sql::RowExpr>()->items[0], scope);
      }
      fail("row value misused");
      return nullptr;
    case sql::ExprKind::kRaise: {
      const auto* raise = expr->as<sql::RaiseExpr>();
      if (!in_trigger) {
        fail("RAISE() may only be used within a trigger-program");
        return nullptr;
      }
      auto* node = arena_.make<Expr>();
      node->op = Op::kRaise;
      node->a = static_cast<i32>(raise->action);
      node->flags = expr_flag::kVolatile;
      if (raise->message != nullptr) {
        node->left = bind(raise->message, scope);
        if (node->left == nullptr) return nullptr;
      }
      return node;
    }
  }
  return nullptr;
}

Expr* Binder::bind_literal(const sql::LiteralExpr& literal) {
  switch (literal.type) {
    case sql::LiteralType::kNull:
      return make_const(Value());
    case sql::LiteralType::kInteger:
      return make_const(Value::integer(literal.integer));
    case sql::LiteralType::kReal:
      return make_const(Value::real(literal.real));
    case sql::LiteralType::kText:
      return make_const(Value::borrowed_text(literal.text));
    case sql::LiteralType::kBlob:
      return make_const(Value::borrowed_blob(literal.text));
  }
  return nullptr;
}

Expr* Binder::bind_unary(const sql::UnaryExpr& unary, Scope* scope) {
  if (unary.op == sql::UnaryOp::kNegate) {
    // 9223372036854775808 alone is a real; with the sign it is the smallest integer.
    if (const auto* literal = unary.operand->is<sql::LiteralExpr>();
        literal != nullptr && literal->type == sql::LiteralType::kReal &&
        literal->text == "9223372036854775808") {
      return make_const(Value::integer(INT64_MIN));
    }
  }
  if ((unary.op == sql::UnaryOp::kIsNull || unary.op == sql::UnaryOp::kNotNull) &&
      row_width(unary.operand) > 1) {
    fail("row value misused");
    return nullptr;
  }
  Expr* operand = bind(unary.operand, scope);
  switch (unary.op) {
    case sql::UnaryOp::kNegate:
      return make_unary(Op::kNegate, operand);
    case sql::UnaryOp::kPlus:
      return make_unary(Op::kPlus, operand);
    case sql::UnaryOp::kBitNot:
      return make_unary(Op::kBitNot, operand);
    case sql::UnaryOp::kNot:
      return make_unary(Op::kNot, operand);
    case sql::UnaryOp::kIsNull:
      return make_unary(Op::kIsNull, operand);
    case sql::UnaryOp::kNotNull:
      return make_unary(Op::kNotNull, operand);
  }
  return nullptr;
}

namespace {

Op op_of(sql::BinaryOp op) {
  switch (op) {
    case sql::BinaryOp::kOr:
      return Op::kOr;
    case sql::BinaryOp::kAnd:
      return Op::kAnd;
    case sql::BinaryOp::kEq:
      return Op::kEq;
    case sql::BinaryOp::kNe:
      return Op::kNe;
    case sql::BinaryOp::kIs:
      return Op::kIs;
    case sql::BinaryOp::kIsNot:
      return Op::kIsNot;
    case sql::BinaryOp::kLt:
      return Op::kLt;
    case sql::BinaryOp::kLe:
      return Op::kLe;
    case sql::BinaryOp::kGt:
      return Op::kGt;
    case sql::BinaryOp::kGe:
      return Op::kGe;
    case sql::BinaryOp::kBitAnd:
      return Op::kBitAnd;
    case sql::BinaryOp::kBitOr:
      return Op::kBitOr;
    case sql::BinaryOp::kShiftLeft:
      return Op::kShiftLeft;
    case sql::BinaryOp::kShiftRight:
      return Op::kShiftRight;
    case sql::BinaryOp::kAdd:
      return Op::kAdd;
    case sql::BinaryOp::kSubtract:
      return Op::kSubtract;
    case sql::BinaryOp::kMultiply:
      return Op::kMultiply;
    case sql::BinaryOp::kDivide:
      return Op::kDivide;
    case sql::BinaryOp::kModulo:
      return Op::kModulo;
    case sql::BinaryOp::kConcat:
      return Op::kConcat;
    case sql::BinaryOp::kArrow:
    case sql::BinaryOp::kDoubleArrow:
      break;
  }
  return Op::kFunction;
}

bool is_comparison(Op op) {
  return op >= Op::kEq && op <= Op::kIsNot;
}

// TRUE or FALSE as a bare word: 1, 0, else -1.
int truth_word(const sql::Expr* expr) {
  const auto* column = expr->is<sql::ColumnExpr>();
  if (column == nullptr || column->table.present() || column->column.quote != sql::Quote::kNone) {
    return -1;
  }
  if (equal_nocase(column->column.text, "true")) return 1;
  return equal_nocase(column->column.text, "false") ? 0 : -1;
}

}  // namespace

Expr* Binder::bind_binary(const sql::BinaryExpr& binary, Scope* scope) {
  Op op = op_of(binary.op);
  if (op == Op::kFunction) {
    List<Expr*> args;
    Expr* left = bind(binary.left, scope);
    Expr* right = bind(binary.right, scope);
    if (left == nullptr || right == nullptr) return nullptr;
    args.push(arena_, left);
    args.push(arena_, right);
    const char* name = binary.op == sql::BinaryOp::kArrow ? "->" : "->>";
    const Function* function = session_.functions.find(name, 2);
    if (function == nullptr) {
      fail(std::string("no such function: ") + name);
      return nullptr;
    }
    return make_function(function, name, args);
  }
  if (is_comparison(op) && (row_width(binary.left) > 1 || row_width(binary.right) > 1)) {
    return bind_row_comparison(op, binary, scope);
  }
  Expr* left = bind(binary.left, scope);
  if (left == nullptr) return nullptr;
  if (op == Op::kIs || op == Op::kIsNot) {
    if (int word = truth_word(binary.right); word >= 0) {
      bool failed_lookup = false;
      const auto& syntax = *binary.right->as<sql::ColumnExpr>();
      Expr* column = lookup({}, {}, syntax.column.text, scope, syntax, &failed_lookup);
      if (failed_lookup) return nullptr;
      if (column == nullptr) {
        auto* test = arena_.make<Expr>();
        test->op = word == 1 ? Op::kIsTrue : Op::kIsFalse;
        test->left = left;
        test->flags = static_cast<u8>((left->flags & expr_flag::kInherited) |
                                      (op == Op::kIsNot ? expr_flag::kNegated : 0));
        return fold(test);
      }
    }
  }
  Expr* right = bind(binary.right, scope);
  if (right == nullptr) return nullptr;
  if (op == Op::kIs && right->op == Op::kConst && right->constant->is_null()) {
    return make_unary(Op::kIsNull, left);
  }
  if (op == Op::kIsNot && right->op == Op::kConst && right->constant->is_null()) {
    return make_unary(Op::kNotNull, left);
  }
  return is_comparison(op) ? make_comparison(op, left, right) : make_binary(op, left, right);
}

int Binder::row_width(const sql::Expr* expr) {
  if (const auto* row = expr->is<sql::RowExpr>()) return static_cast<int>(row->items.size());
  if (const auto* subquery = expr->is<sql::SubqueryExpr>()) {
    const sql::SelectCore* core = subquery->select->arms[0].core;
    if (core->is_values) return static_cast<int>(core->rows[0]->items.size());
    for (const sql::ResultColumn& column : core->columns) {
      if (column.kind != sql::ResultKind::kExpr) return 1;  // a lone *: counted after binding
    }
    return static_cast<int>(core->columns.size());
  }
  return 1;
}

bool Binder::row_items(const sql::Expr* expr, Scope* scope, std::vector<Expr*>* out) {
  if (const auto* row = expr->is<sql::RowExpr>()) {
    for (const sql::Expr* item : row->items) {
      out->push_back(bind(item, scope));
      if (out->back() == nullptr) return false;
    }
    return true;
  }
  if (const auto* subquery = expr->is<sql::SubqueryExpr>()) {
    Expr* first = bind_subquery(subquery->select, scope, Op::kRow);
    if (first == nullptr) return false;
    for (int i = 0; i < first->subquery->plan->width; ++i) {
      out->push_back(row_column(first->subquery, i));
    }
    return true;
  }
  out->push_back(bind(expr, scope));
  return out->back() != nullptr;
}

// (a, b) < (c, d) is a < c OR (a = c AND b < d); equality is the conjunction.
Expr* Binder::bind_row_comparison(Op op, const sql::BinaryExpr& binary, Scope* scope) {
  std::vector<Expr*> left;
  std::vector<Expr*> right;
  if (!row_items(binary.left, scope, &left) || !row_items(binary.right, scope, &right)) {
    return nullptr;
  }
  if (left.size() != right.size()) {
    fail("row value misused");
    return nullptr;
  }
  size_t last = left.size() - 1;
  if (op == Op::kEq || op == Op::kIs || op == Op::kNe || op == Op::kIsNot) {
    bool equal = op == Op::kEq || op == Op::kIs;
    Expr* all = nullptr;
    for (size_t i = 0; i <= last; ++i) {
      Expr* one = make_comparison(op, left[i], right[i]);
      if (all == nullptr) {
        all = one;
      } else {
        all = make_binary(equal ? Op::kAnd : Op::kOr, all, one);
      }
    }
    return all;
  }
  Op strict = op == Op::kLe ? Op::kLt : op == Op::kGe ? Op::kGt : op;
  Expr* all = make_comparison(op, left[last], right[last]);
  for (size_t i = last; i-- > 0;) {
    Expr* tie = make_binary(Op::kAnd, make_comparison(Op::kEq, left[i], right[i]), all);
    all = make_binary(Op::kOr, make_comparison(strict, left[i], right[i]), tie);
  }
  return all;
}

Expr* Binder::bind_between(const sql::BetweenExpr& between, Scope* scope) {
  if (row_width(between.value) > 1) {
    std::vector<Expr*> value;
    auto* low = arena_.make<sql::BinaryExpr>();
    low->op = sql::BinaryOp::kGe;
    low->left = between.value;
    low->right = between.low;
    auto* high = arena_.make<sql::BinaryExpr>();
    high->op = sql::BinaryOp::kLe;
    high->left = between.value;
    high->right = between.high;
    Expr* both = make_binary(Op::kAnd, bind_binary(*low, scope), bind_binary(*high, scope));
    return between.negated ? make_unary(Op::kNot, both) : both;
  }
  Expr* value = bind(between.value, scope);
  Expr* low = bind(between.low, scope);
  Expr* high = bind(between.high, scope);
  if (value == nullptr || low == nullptr || high == nullptr) return nullptr;
  Expr* above = make_comparison(Op::kGe, value, low);
  Expr* below = make_comparison(Op::kLe, value, high);
  if (above->op == Op::kConst || below->op == Op::kConst || value->op == Op::kColumn ||
      value->op == Op::kRowid) {
    Expr* both = make_binary(Op::kAnd, above, below);
    return between.negated ? make_unary(Op::kNot, both) : both;
  }
  auto* node = arena_.make<Expr>();
  node->op = Op::kBetween;
  node->left = above;  // holds affinity and collation of each side
  node->right = below;
  node->flags = static_cast<u8>(above->flags | below->flags);
  node->flags &= expr_flag::kInherited;
  if (between.negated) node->flags |= expr_flag::kNegated;
  return node;
}

Expr* Binder::bind_case(const sql::CaseExpr& syntax, Scope* scope) {
  auto* node = arena_.make<Expr>();
  node->op = Op::kCase;
  Expr* base = nullptr;
  if (syntax.base != nullptr) {
    base = bind(syntax.base, scope);
    if (base == nullptr) return nullptr;
  }
  for (const sql::WhenArm& arm : syntax.arms) {
    Expr* when = bind(arm.when, scope);
    Expr* then = bind(arm.then, scope);
    if (when == nullptr || then == nullptr) return nullptr;
    if (base != nullptr) when = make_comparison(Op::kEq, base, when);
    node->args.push(arena_, when);
    node->args.push(arena_, then);
  }
  if (syntax.otherwise != nullptr) {
    node->right = bind(syntax.otherwise, scope);
    if (node->right == nullptr) return nullptr;
  }
  inherit_operands(node);
  // A constant condition decides at once.
  while (node->args.size() > 0 && node->args[0]->op == Op::kConst) {
    if (node->args[0]->constant->to_truth() == 1) {
      node->right = node->args[1];
      node->args = {};
      break;
    }
    List<Expr*> rest;
    for (u32 i = 2; i < node->args.size(); ++i) rest.push(arena_, node->args[i]);
    node->args = rest;
  }
  if (node->args.empty() && (node->right == nullptr || node->right->op == Op::kConst)) {
    Expr* constant = make_const(node->right == nullptr ? Value() : *node->right->constant);
    constant->flags = node->flags;
    constant->collation = node->collation;
    return constant;
  }
  return node;
}

Expr* Binder::bind_like(const sql::LikeExpr& like, Scope* scope) {
  static constexpr const char* kNames[] = {"like", "glob", "regexp", "match"};
  const char* name = kNames[static_cast<int>(like.op)];
  List<Expr*> args;
  for (const sql::Expr* syntax : {like.pattern, like.value, like.escape}) {
    if (syntax == nullptr) continue;
    Expr* arg = bind(syntax, scope);
    if (arg == nullptr) return nullptr;
    args.push(arena_, arg);
  }
  const Function* function = session_.functions.find(name, static_cast<int>(args.size()));
  if (function == nullptr || function->scalar == nullptr) {
    static constexpr const char* kUpper[] = {"LIKE", "GLOB", "REGEXP", "MATCH"};
    fail(like.op == sql::LikeOp::kMatch
             ? std::string("unable to use function MATCH in the requested context")
             : std::string("no such function: ") + kUpper[static_cast<int>(like.op)]);
    return nullptr;
  }
  Expr* call = make_function(function, name, args);
  return like.negated ? make_unary(Op::kNot, call) : call;
}

}  // namespace db
