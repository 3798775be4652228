// Queries inside expressions: scalar, EXISTS, IN.
#include "db/plan/binder.h"

namespace db {

Expr* Binder::subquery_column(SubqueryNode* node, int column, Op op) {
  auto* expr = arena_.make<Expr>();
  expr->op = op;
  expr->a = column;
  expr->subquery = node;
  expr->flags = expr_flag::kHasSubquery;
  if (op == Op::kSubquery) {
    const RowColumn& like = node->plan->columns[static_cast<size_t>(column)];
    expr->affinity = like.affinity;
  }
  return expr;
}

// A column of a query's row: unlike the query's value, it has the column's collation.
Expr* Binder::row_column(SubqueryNode* node, int column) {
  Expr* expr = subquery_column(node, column, Op::kSubquery);
  const RowColumn& like = node->plan->columns[static_cast<size_t>(column)];
  expr->collation = like.collation;
  if (like.explicit_collation) expr->flags |= expr_flag::kExplicitCollate;
  return expr;
}

Expr* Binder::bind_subquery(const sql::Select* select, Scope* scope, Op op) {
  if (prohibited_place != nullptr) {
    fail("subqueries prohibited in " + std::string(prohibited_place));
    return nullptr;
  }
  SubqueryNode* node = new_subquery();
  node->plan = bind_select(select, scope, node);
  if (node->plan == nullptr) return nullptr;
  if (op == Op::kSubquery && node->plan->width != 1) {
    fail("sub-select returns " + std::to_string(node->plan->width) + " columns - expected 1");
    return nullptr;
  }
  return subquery_column(node, 0, op == Op::kRow ? Op::kSubquery : op);
}

// x IN t is x IN (SELECT * FROM t); x IN f(a) reads the table-valued function.
const sql::Select* Binder::select_of_table(const sql::InExpr& in) {
  auto* source = arena_.make<sql::Source>();
  source->kind = in.is_function ? sql::SourceKind::kFunction : sql::SourceKind::kTable;
  source->schema = in.schema;
  source->name = in.table;
  if (in.is_function) source->args = in.list;
  auto* from = arena_.make<sql::From>();
  from->sources.push(arena_, source);
  auto* core = arena_.make<sql::SelectCore>();
  core->from = from;
  sql::ResultColumn star;
  star.kind = sql::ResultKind::kStar;
  core->columns.push(arena_, star);
  auto* select = arena_.make<sql::Select>();
  sql::SelectArm arm;
  arm.core = core;
  select->arms.push(arena_, arm);
  return select;
}

Expr* Binder::bind_in(const sql::InExpr& in, Scope* scope) {
  const sql::Select* select = in.select;
  if (in.table.present()) select = select_of_table(in);
  if (select == nullptr && row_width(in.value) == 1) {
    Expr* value = bind(in.value, scope);
    if (value == nullptr) return nullptr;
    if (in.list.empty()) return make_const(Value::integer(in.negated ? 1 : 0));
    auto* node = arena_.make<Expr>();
    node->op = Op::kInList;
    node->b = state_count_++;
    node->left = value;
    node->compare = value->affinity;
    node->collation = value_collation_or_binary(value);
    node->flags = in.negated ? expr_flag::kNegated : 0;
    node->flags |= value->flags & expr_flag::kInherited;
    for (const sql::Expr* syntax : in.list) {
      if (row_width(syntax) != 1) {
        fail("row value misused");
        return nullptr;
      }
      Expr* item = bind(syntax, scope);
      if (item == nullptr) return nullptr;
      node->flags |= item->flags & expr_flag::kInherited;
      node->args.push(arena_, item);
    }
    return node;
  }
  if (select == nullptr) {
    // (a, b) IN ((1, 2), ...): a chain of comparisons.
    Expr* any = nullptr;
    for (const sql::Expr* item : in.list) {
      auto* equal = arena_.make<sql::BinaryExpr>();
      equal->op = sql::BinaryOp::kEq;
      equal->left = in.value;
      equal->right = const_cast<sql::Expr*>(item);
      Expr* one = bind_binary(*equal, scope);
      if (one == nullptr) return nullptr;
      any = any == nullptr ? one : make_binary(Op::kOr, any, one);
    }
    if (any == nullptr) return make_const(Value::integer(in.negated ? 1 : 0));
    return in.negated ? make_unary(Op::kNot, any) : any;
  }
  std::vector<Expr*> items;
  if (!row_items(in.value, scope, &items)) return nullptr;
  if (prohibited_place != nullptr) {
    fail("subqueries prohibited in " + std::string(prohibited_place));
    return nullptr;
  }
  SubqueryNode* subquery = new_subquery();
  subquery->plan = bind_select(select, scope, subquery);
  if (subquery->plan == nullptr) return nullptr;
  subquery->plan->all_wanted = !subquery->correlated && subquery->plan->limit == nullptr;
  int width = subquery->plan->width;
  if (width != static_cast<int>(items.size())) {
    if (items.size() == 1 || in.table.present()) {
      fail("sub-select returns " + std::to_string(width) + " columns - expected " +
           std::to_string(items.size()));
    } else {
      fail("sub-select returns " + std::to_string(width) + " columns - expected " +
           std::to_string(items.size()));
    }
    return nullptr;
  }
  auto* node = arena_.make<Expr>();
  node->op = Op::kInSelect;
  node->subquery = subquery;
  node->flags = static_cast<u8>(expr_flag::kHasSubquery | (in.negated ? expr_flag::kNegated : 0));
  for (int i = 0; i < width; ++i) {
    Expr* like = row_column(subquery, i);
    auto* pair = arena_.make<Expr>();
    pair->op = Op::kEq;
    pair->left = items[static_cast<size_t>(i)];
    pair->compare = comparison_affinity(like->affinity, pair->left->affinity);
    pair->collation = comparison_collation(pair->left, like);
    node->flags |= pair->left->flags & (expr_flag::kVolatile | expr_flag::kExplicitCollate);
    node->args.push(arena_, pair);
  }
  return node;
}

}  // namespace db
