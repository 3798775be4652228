// Virtual tables: asks the table which constraints it can use.
#include "db/catalog/virtual_table.h"
#include "db/plan/where.h"

namespace db {
namespace {

ConstraintOp constraint_op(Op op) {
  switch (op) {
    case Op::kEq:
      return ConstraintOp::kEq;
    case Op::kIs:
      return ConstraintOp::kIs;
    case Op::kLt:
      return ConstraintOp::kLt;
    case Op::kLe:
      return ConstraintOp::kLe;
    case Op::kGt:
      return ConstraintOp::kGt;
    case Op::kGe:
      return ConstraintOp::kGe;
    default:
      return ConstraintOp::kIsNull;
  }
}

}  // namespace

void JoinPlanner::virtual_paths(int source) {
  JoinItem& item = items_[static_cast<size_t>(source)];
  Arena& arena = binder_.arena();
  std::vector<const Term*> offered;
  bool dependent = false;
  for (const Term& term : item.terms) {
    if (term.op == Op::kInList || term.op == Op::kInSelect || term.op == Op::kIsNull) continue;
    offered.push_back(&term);
    dependent |= term.value_mask != 0;
  }
  // Once with everything, once without what other items give.
  for (int pass = 0; pass < (dependent ? 2 : 1); ++pass) {
    IndexQuestion question;
    for (const Term* term : offered) {
      bool must = conjuncts_[static_cast<size_t>(term->conjunct)].is_argument;
      question.constraints.push_back(
          {term->column, constraint_op(term->op), pass == 0 || term->value_mask == 0 || must});
    }
    question.usage.resize(question.constraints.size());
    question.columns_used = ~u64{0};
    Status asked = item.source->table->virtual_table->best_index(question);
    if (!asked.ok()) {
      if (asked.error().code() == rc::kConstraint) continue;
      binder_.fail(asked.error().code(), asked.error().message());
      return;
    }
    auto* path = arena.make<AccessPath>();
    path->kind = PathKind::kVirtual;
    path->virtual_number = question.number;
    path->virtual_text = arena.copy(question.text);
    path->rows = question.rows;
    path->cost = std::min(question.cost, 1e12) + question.rows;
    path->one_row = question.one_row;
    int arguments = 0;
    for (const auto& usage : question.usage) arguments = std::max(arguments, usage.argument);
    std::vector<Expr*> values(static_cast<size_t>(arguments));
    for (size_t i = 0; i < offered.size(); ++i) {
      int argument = question.usage[i].argument;
      if (argument == 0) continue;
      values[static_cast<size_t>(argument) - 1] = offered[i]->value;
      path->prerequisites |= offered[i]->value_mask;
      if (question.usage[i].omit ||
          conjuncts_[static_cast<size_t>(offered[i]->conjunct)].is_argument) {
        path->consumed.push(arena, conjuncts_[static_cast<size_t>(offered[i]->conjunct)].expr);
      }
    }
    for (Expr* value : values) path->virtual_args.push(arena, value);
    item.paths.push_back(path);
  }
}

}  // namespace db
