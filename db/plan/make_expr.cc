// Builds bound nodes: decides affinity and collation, folds constants.
#include "db/plan/binder.h"
#include "db/plan/fold.h"

#include <new>

namespace db {

bool Binder::fail(int code, std::string message, int offset) {
  if (!error_.has_value()) error_ = Error(code, std::move(message)).at(offset);
  return false;
}

SubqueryNode* Binder::new_subquery() {
  auto* node = arena_.make<SubqueryNode>();
  node->id = subquery_count_++;
  return node;
}

Expr* Binder::make_const(Value value) {
  auto* expr = arena_.make<Expr>();
  if (value.has_bytes()) {
    // The arena outlives every use of the plan, so the constant may borrow from it.
    std::string_view bytes = arena_.copy(value.bytes());
    value.set_borrowed(value.type(), bytes.data(), bytes.size());
  }
  void* at = arena_.allocate(sizeof(Value), alignof(Value));
  expr->constant = new (at) Value(value);
  return expr;
}

Expr* Binder::make_column(int slot, int column, const Column& definition) {
  auto* expr = arena_.make<Expr>();
  expr->op = Op::kColumn;
  expr->a = slot;
  expr->b = column;
  expr->affinity = definition.affinity;
  expr->collation = session_.collation(definition.collation);
  if (expr->collation == nullptr) {
    fail(rc::kErrorMissingCollation, "no such collation sequence: " + definition.collation);
    return nullptr;
  }
  return expr;
}

Expr* Binder::make_rowid(int slot, int width) {
  auto* expr = arena_.make<Expr>();
  expr->op = Op::kRowid;
  expr->a = slot;
  expr->b = width;
  expr->affinity = Affinity::kInteger;
  expr->collation = &kBinary;
  return expr;
}

Expr* Binder::make_slot_column(int slot, int column, const Expr* like) {
  auto* expr = arena_.make<Expr>();
  expr->op = Op::kColumn;
  expr->a = slot;
  expr->b = column;
  if (like != nullptr) {
    expr->affinity = like->affinity;
    expr->collation = value_collation(like);
    expr->flags = like->flags & expr_flag::kExplicitCollate;
  }
  return expr;
}

namespace {

// The operand whose COLLATE counts: the left one, else the first of the list, else the right one.
const Expr* collated_operand(const Expr& expr) {
  if (expr.left != nullptr && expr.left->has(expr_flag::kExplicitCollate)) return expr.left;
  for (const Expr* arg : expr.args) {
    if (arg->has(expr_flag::kExplicitCollate)) return arg;
  }
  return expr.right;
}

}  // namespace

const Collation* value_collation(const Expr* expr) {
  while (expr != nullptr) {
    switch (expr->op) {
      case Op::kColumn:
      case Op::kRowid:
      case Op::kConst:
      case Op::kParam:
      case Op::kCollate:
      case Op::kAffinity:
      case Op::kSubquery:
      case Op::kCase:
      case Op::kCoalesce:
        return expr->collation;
      case Op::kCast:
      case Op::kPlus:
        expr = expr->left;
        break;
      case Op::kRow:
        expr = expr->args[0];
        break;
      default:
        if (!expr->has(expr_flag::kExplicitCollate)) return nullptr;
        expr = collated_operand(*expr);
        break;
    }
  }
  return nullptr;
}

const Collation* comparison_collation(const Expr* left, const Expr* right) {
  if (left->has(expr_flag::kExplicitCollate)) return value_collation_or_binary(left);
  if (right != nullptr && right->has(expr_flag::kExplicitCollate)) {
    return value_collation_or_binary(right);
  }
  const Collation* of_left = value_collation(left);
  return of_left != nullptr || right == nullptr ? value_collation_or_binary(left)
                                                : value_collation_or_binary(right);
}

void Binder::inherit_operands(Expr* expr) {
  for (const Expr* one : {expr->left, expr->right}) {
    if (one != nullptr) expr->flags |= one->flags & expr_flag::kInherited;
  }
  for (const Expr* one : expr->args) expr->flags |= one->flags & expr_flag::kInherited;
  if (expr->has(expr_flag::kExplicitCollate)) {
    expr->collation = value_collation(collated_operand(*expr));
  }
}

Expr* Binder::as_source_column(Expr* expr) {
  bool explicitly = expr->has(expr_flag::kExplicitCollate);
  if (!explicitly && expr->collation != nullptr &&
      (expr->op == Op::kColumn || expr->op == Op::kRowid)) {
    return expr;
  }
  auto* column = arena_.make<Expr>();
  if (expr->op == Op::kConst) {
    *column = *expr;
  } else {
    column->op = Op::kCollate;
    column->left = expr;
    column->affinity = expr->affinity;
    column->flags = expr->flags & expr_flag::kInherited;
  }
  column->flags &= static_cast<u8>(~expr_flag::kExplicitCollate);
  column->collation = value_collation_or_binary(expr);
  return column;
}

Affinity comparison_affinity(Affinity left, Affinity right) {
  if (left != Affinity::kNone && right != Affinity::kNone) {
    return left >= Affinity::kNumeric || right >= Affinity::kNumeric ? Affinity::kNumeric
                                                                     : Affinity::kBlob;
  }
  return left != Affinity::kNone ? left : right;
}

namespace {

u8 inherited_flags(const Expr* expr) {
  return expr == nullptr ? 0 : expr->flags & expr_flag::kInherited;
}

}  // namespace

Expr* Binder::fold(Expr* expr) {
  Value value;
  if (!fold_constant(*expr, session_, &value)) return expr;
  Expr* folded = make_const(std::move(value));
  folded->affinity = expr->affinity;
  folded->collation = value_collation(expr);
  folded->flags = expr->flags;
  return folded;
}

Expr* Binder::make_unary(Op op, Expr* operand) {
  if (operand == nullptr) return nullptr;
  auto* expr = arena_.make<Expr>();
  expr->op = op;
  expr->left = operand;
  expr->flags = inherited_flags(operand);
  return fold(expr);
}

Expr* Binder::make_binary(Op op, Expr* left, Expr* right) {
  if (left == nullptr || right == nullptr) return nullptr;
  auto* expr = arena_.make<Expr>();
  expr->op = op;
  expr->left = left;
  expr->right = right;
  expr->flags = static_cast<u8>(inherited_flags(left) | inherited_flags(right));
  return fold(expr);
}

Expr* Binder::make_comparison(Op op, Expr* left, Expr* right) {
  if (left == nullptr || right == nullptr) return nullptr;
  auto* expr = arena_.make<Expr>();
  expr->op = op;
  expr->left = left;
  expr->right = right;
  expr->flags = static_cast<u8>(inherited_flags(left) | inherited_flags(right));
  expr->collation = comparison_collation(left, right);
  expr->compare = comparison_affinity(left->affinity, right->affinity);
  return fold(expr);
}

Expr* Binder::make_and(Expr* left, Expr* right) {
  if (left == nullptr) return right;
  return right == nullptr ? left : make_binary(Op::kAnd, left, right);
}

Expr* Binder::make_function(const Function* function, std::string_view name, List<Expr*> args) {
  auto* expr = arena_.make<Expr>();
  expr->op = Op::kFunction;
  expr->function = function;
  expr->text = name;
  expr->args = args;
  for (Expr* arg : args) expr->flags |= inherited_flags(arg);
  // The collation that min(), max() and nullif() compare with is that of the first argument that
  // has one; the result itself has none but an explicit one.
  expr->b = state_count_++;
  if (!function->has(function_flag::kDeterministic)) expr->flags |= expr_flag::kVolatile;
  return fold(expr);
}

Expr* Binder::make_cast(Expr* operand, Affinity affinity) {
  if (operand == nullptr) return nullptr;
  auto* expr = arena_.make<Expr>();
  expr->op = Op::kCast;
  expr->left = operand;
  expr->affinity = affinity;
  expr->flags = inherited_flags(operand);
  return fold(expr);
}

bool same_expr(const Expr* a, const Expr* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  bool has_state = a->op == Op::kFunction || a->op == Op::kInList;
  if (a->op != b->op || a->a != b->a || (a->b != b->b && !has_state) || a->flags != b->flags ||
      a->function != b->function || a->subquery != b->subquery ||
      a->args.size() != b->args.size()) {
    return false;
  }
  if (a->has(expr_flag::kVolatile)) return false;
  if (a->op == Op::kConst) {
    return a->constant->type() == b->constant->type() && compare(*a->constant, *b->constant) == 0;
  }
  if (a->op == Op::kCast && a->affinity != b->affinity) return false;
  if (a->op == Op::kCollate && a->collation != b->collation) return false;
  if (!same_expr(a->left, b->left) || !same_expr(a->right, b->right)) return false;
  for (u32 i = 0; i < a->args.size(); ++i) {
    if (!same_expr(a->args[i], b->args[i])) return false;
  }
  return true;
}

bool is_constant(const Expr* expr) {
  return walk(const_cast<Expr*>(expr), [](Expr* e) {
    return e->op != Op::kColumn && e->op != Op::kRowid && e->subquery == nullptr &&
           !e->has(expr_flag::kVolatile) && e->op != Op::kRaise;
  });
}

}  // namespace db
