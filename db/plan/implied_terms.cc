// What an OR over several items says about each of them: (a=1 AND b=2) OR (a=3 AND b=4) implies
// (a=1 OR a=3), and what all arms share holds by itself. The OR stays; these come beside it.
#include "db/plan/where.h"

namespace db {
namespace {

void split(Expr* expr, Op op, std::vector<Expr*>* out) {
  if (expr->op == op) {
    split(expr->left, op, out);
    split(expr->right, op, out);
  } else {
    out->push_back(expr);
  }
}

bool contains(const std::vector<Expr*>& parts, const Expr* wanted) {
  for (const Expr* part : parts) {
    if (same_expr(part, wanted)) return true;
  }
  return false;
}

constexpr size_t kMaxArms = 16;

}  // namespace

void JoinPlanner::add_implied(const JoinConjunct& from, Expr* expr, f64 factor) {
  JoinConjunct implied = from;
  implied.expr = expr;
  implied.mask = mask_of(expr);
  implied.factor = factor;
  conjuncts_.push_back(implied);
}

void JoinPlanner::imply_from_or(size_t conjunct) {
  const JoinConjunct from = conjuncts_[conjunct];
  if (from.expr->op != Op::kOr || from.on_source >= 0 || from.is_argument) return;
  if (from.expr->has(expr_flag::kVolatile) || from.expr->has(expr_flag::kHasSubquery)) return;
  if ((from.mask & (from.mask - 1)) == 0) return;
  std::vector<Expr*> arms;
  split(from.expr, Op::kOr, &arms);
  if (arms.size() > kMaxArms) return;
  std::vector<std::vector<Expr*>> parts(arms.size());
  for (size_t i = 0; i < arms.size(); ++i) split(arms[i], Op::kAnd, &parts[i]);
  for (Expr* part : parts[0]) {
    bool shared = true;
    for (size_t i = 1; i < parts.size(); ++i) shared = shared && contains(parts[i], part);
    if (shared) add_implied(from, part, factor_of(part));
  }
  for (u64 left = from.mask; left != 0; left &= left - 1) {
    u64 bit = left & -left;
    Expr* any = nullptr;
    bool every_arm = true;
    for (const std::vector<Expr*>& arm : parts) {
      Expr* all = nullptr;
      for (Expr* part : arm) {
        if (mask_of(part) != bit) continue;
        all = all == nullptr ? part : binder_.make_binary(Op::kAnd, all, part);
      }
      every_arm = every_arm && all != nullptr;
      if (!every_arm) break;
      any = any == nullptr ? all : binder_.make_binary(Op::kOr, any, all);
    }
    if (every_arm) add_implied(from, any, factor_of(any));
  }
}

}  // namespace db
