// One SELECT: result columns, grouping, windows, order, compound operators.
#include "db/plan/binder.h"

namespace db {
namespace {

std::string ordinal(u32 number) {
  const char* suffix = "th";
  if (number % 100 < 11 || number % 100 > 13) {
    if (number % 10 == 1) suffix = "st";
    if (number % 10 == 2) suffix = "nd";
    if (number % 10 == 3) suffix = "rd";
  }
  return std::to_string(number) + suffix;
}

const sql::Expr* strip_collate(const sql::Expr* expr, const sql::CollateExpr** collate) {
  while (const auto* node = expr->is<sql::CollateExpr>()) {
    if (*collate == nullptr) *collate = node;
    expr = node->value;
  }
  return expr;
}

// ORDER BY 2, GROUP BY 1: an integer of 32 bits, signs allowed.
bool is_position(const sql::Expr* expr, i64* position) {
  if (const auto* unary = expr->is<sql::UnaryExpr>()) {
    bool negative = unary->op == sql::UnaryOp::kNegate;
    if (!negative && unary->op != sql::UnaryOp::kPlus) return false;
    if (!is_position(unary->operand, position)) return false;
    if (negative) *position = -*position;
    return true;
  }
  const auto* literal = expr->is<sql::LiteralExpr>();
  if (literal == nullptr || literal->type != sql::LiteralType::kInteger) return false;
  *position = literal->integer;
  return literal->integer <= INT32_MAX && literal->integer >= INT32_MIN;
}

void set_order(SortKey& key, const sql::OrderTerm& term) {
  key.descending = term.descending();
  key.nulls_last =
      key.descending ? term.nulls == sql::NullsOrder::kFirst : term.nulls == sql::NullsOrder::kLast;
}

}  // namespace

RowPlan* Binder::bind_select(const sql::Select* select, Scope* parent, SubqueryNode* node) {
  if (failed()) return nullptr;
  if (++select_depth_ > 200) {
    fail("parser stack overflow");
    return nullptr;
  }
  if (select->with != nullptr) push_with(select->with, parent);
  RowPlan* plan = nullptr;
  if (select->arms.size() == 1) {
    plan = select->arms[0].core->is_values ? bind_values(select->arms[0].core, parent, node)
                                           : bind_core(select->arms[0].core, select, parent, node);
    if (plan != nullptr && select->arms[0].core->is_values && !select->order_by.empty() &&
        !bind_compound_order_by(select, plan)) {
      plan = nullptr;
    }
  } else {
    plan = bind_arms(select, 0, select->arms.size(), parent, node);
    if (plan != nullptr && !bind_compound_order_by(select, plan)) plan = nullptr;
  }
  if (plan != nullptr && !bind_limit(select, parent, plan)) plan = nullptr;
  if (select->with != nullptr) pop_with();
  --select_depth_;
  return plan;
}

bool Binder::bind_limit(const sql::Select* select, Scope* parent, RowPlan* plan) {
  if (select->limit == nullptr) return true;
  Scope* scope = new_scope(parent);
  plan->limit = bind(select->limit, scope);
  if (plan->limit == nullptr) return false;
  if (select->offset != nullptr) {
    plan->offset = bind(select->offset, scope);
    if (plan->offset == nullptr) return false;
  }
  return true;
}

RowPlan* Binder::bind_values(const sql::SelectCore* core, Scope* parent, SubqueryNode* node) {
  auto* plan = arena_.make<RowPlan>();
  plan->kind = RowKind::kValues;
  Scope* scope = new_scope(parent);
  scope->node = node;
  for (const sql::RowExpr* row : core->rows) {
    if (plan->rows.size() > 0 && row->items.size() != plan->rows[0].size()) {
      fail("all VALUES must have the same number of terms");
      return nullptr;
    }
    List<Expr*> items;
    if (!bind_args(row->items, scope, &items)) return nullptr;
    plan->rows.push(arena_, items);
  }
  plan->width = static_cast<int>(plan->rows[0].size());
  for (int i = 0; i < plan->width; ++i) {
    std::string name = "column" + std::to_string(i + 1);
    RowColumn column = describe(plan->rows[0][static_cast<size_t>(i)], arena_.copy(name), nullptr);
    plan->columns.push(arena_, column);
  }
  plan->estimated_rows = plan->rows.size();
  return plan;
}

RowColumn Binder::describe(Expr* expr, std::string_view name, Scope* scope) {
  RowColumn column;
  column.name = name;
  column.affinity = expr->affinity;
  column.collation = value_collation(expr);
  column.explicit_collation = expr->has(expr_flag::kExplicitCollate);
  column.expr = expr;
  const Expr* leaf = expr;
  if (scope == nullptr) return column;
  // See through the aggregate's and window's carrying.
  while (leaf->op == Op::kColumn) {
    const Expr* under = nullptr;
    if (scope->window != nullptr && leaf->a == scope->window->slot) {
      under = scope->window->inputs[static_cast<size_t>(leaf->b)];
    } else if (scope->aggregate != nullptr && leaf->a == scope->aggregate->slot) {
      AggregatePlan& aggregate = *scope->aggregate;
      if (leaf->b < static_cast<int>(aggregate.groups.size())) {
        under = aggregate.groups[static_cast<size_t>(leaf->b)];
      }
      for (u32 i = 0; i < aggregate.bare.size(); ++i) {
        if (aggregate.bare_outputs[i] == leaf->b) under = aggregate.bare[i];
      }
    }
    if (under == nullptr) break;
    leaf = under;
  }
  auto it = std::find_if(origins_.begin(), origins_.end(),
                         [&](const Origin& one) { return one.slot == leaf->a; });
  if ((leaf->op == Op::kColumn || leaf->op == Op::kRowid) && it != origins_.end()) {
    const Table& table = *it->table;
    int at = leaf->op == Op::kRowid ? table.rowid_column : leaf->b;
    if (at >= 0 && at < static_cast<int>(table.columns.size())) {
      const Column& definition = table.columns[static_cast<size_t>(at)];
      column.declared_type = definition.declared_type;
      column.origin = definition.name;
    } else {
      column.declared_type = "INTEGER";
      column.origin = "rowid";
    }
    column.table = table.name;
    if (table.schema != nullptr) column.database = table.schema->name;
  } else if (leaf->op == Op::kColumn) {
    for (const ScopeSource& source : scope->sources) {
      if (source.plan == nullptr || source.slot != leaf->a || source.plan->rows == nullptr)
        continue;
      if (leaf->b >= static_cast<int>(source.plan->rows->columns.size())) continue;
      const RowColumn& inner = source.plan->rows->columns[static_cast<size_t>(leaf->b)];
      column.declared_type = inner.declared_type;
      column.database = inner.database;
      column.table = inner.table;
      column.origin = inner.origin;
    }
  } else if (leaf->op == Op::kSubquery) {
    column.declared_type =
        leaf->subquery->plan->columns[static_cast<size_t>(leaf->a)].declared_type;
  }
  return column;
}

bool Binder::expand_star(const sql::ResultColumn& result, Scope* scope, List<Expr*>* out,
                         List<RowColumn>* columns) {
  bool any = false;
  if (scope->sources.empty() && result.kind == sql::ResultKind::kStar) {
    return fail("no tables specified");
  }
  for (ScopeSource& source : scope->sources) {
    if (source.qualified_only) continue;
    bool nested = !source.columns.empty() && !source.columns[0].table.empty();
    bool whole = result.kind == sql::ResultKind::kStar;
    if (!whole && !nested && !equal_nocase(source.alias, result.table.text)) continue;
    for (int i = 0; i < source.column_count(); ++i) {
      std::string_view name;
      if (source.columns.empty()) {
        const Column& column = source.table->columns[static_cast<size_t>(i)];
        if (column.hidden) continue;
        name = column.name;
      } else {
        const ScopeColumn& column = source.columns[static_cast<size_t>(i)];
        if (column.hidden) continue;
        if (!whole && nested && !equal_nocase(column.table, result.table.text)) continue;
        name = column.name;
      }
      bool merged = false;
      for (std::string_view one : source.merged) merged |= equal_nocase(one, name);
      if (whole && merged) continue;
      any = true;
      Expr* expr = column_of(source, i);
      if (whole) {
        for (const ScopeColumn& one : scope->coalesced) {
          if (equal_nocase(one.name, name)) expr = one.expr;
        }
      }
      if (source.table != nullptr && session_.hooks.authorizer &&
          !authorize(20, source.table->name, name, source.table->schema->name)) {
        if (failed()) return false;
        expr = make_const(Value());
      }
      expr = phase_wrap(expr, scope);
      if (expr == nullptr) return false;
      out->push(arena_, expr);
      RowColumn described = describe(expr, name, scope);
      if (described.declared_type.empty() && !source.columns.empty()) {
        described.declared_type = source.columns[static_cast<size_t>(i)].declared_type;
      }
      columns->push(arena_, described);
      if (star_tables_ != nullptr && scope->collect_star_tables) {
        star_tables_->push_back(nested ? source.columns[static_cast<size_t>(i)].table
                                       : source.alias);
      }
    }
  }
  if (!any && result.kind == sql::ResultKind::kTableStar) {
    return fail("no such table: " + std::string(result.table.text));
  }
  return true;
}

bool Binder::bind_results(const List<sql::ResultColumn>& results, Scope* scope, List<Expr*>* out,
                          List<RowColumn>* columns) {
  for (const sql::ResultColumn& result : results) {
    if (result.kind != sql::ResultKind::kExpr) {
      if (!expand_star(result, scope, out, columns)) return false;
      continue;
    }
    if (row_width(result.expr) > 1 && result.expr->kind == sql::ExprKind::kRow) {
      return fail("row value misused");
    }
    Expr* expr = bind(result.expr, scope);
    if (expr == nullptr) return false;
    out->push(arena_, expr);
    std::string_view name = result.text.in(sql);
    if (result.alias.present()) {
      name = result.alias.text;
    } else if (const auto* column = result.expr->is<sql::ColumnExpr>()) {
      // The column's own spelling, as in its CREATE TABLE.
      RowColumn described = describe(expr, column->column.text, scope);
      if (column->column.quote != sql::Quote::kDouble || expr->op != Op::kConst) {
        bool own = equal_nocase(described.origin, column->column.text) ||
                   is_rowid_name(column->column.text);
        if (!described.origin.empty() && own) described.name = described.origin;
        columns->push(arena_, described);
        continue;
      }
    }
    columns->push(arena_, describe(expr, name, scope));
  }
  if (out->size() > static_cast<u32>(session_.limit(Limit::kColumn))) {
    return fail("too many columns in result set");
  }
  return true;
}

bool Binder::bind_group_by(const sql::SelectCore* core, Scope* scope, AggregatePlan* aggregate) {
  u32 number = 0;
  for (const sql::Expr* syntax : core->group_by) {
    ++number;
    const sql::CollateExpr* collate = nullptr;
    const sql::Expr* plain = strip_collate(syntax, &collate);
    if (i64 at = 0; is_position(plain, &at)) {
      if (at < 1 || at > static_cast<i64>(core->columns.size())) {
        return fail(ordinal(number) + " GROUP BY term out of range - should be between 1 and " +
                    std::to_string(core->columns.size()));
      }
      const sql::ResultColumn& result = core->columns[static_cast<size_t>(at - 1)];
      if (result.kind == sql::ResultKind::kExpr) syntax = result.expr;
    }
    if (contains_aggregate(syntax)) {
      return fail("aggregate functions are not allowed in the GROUP BY clause");
    }
    Expr* expr = bind(syntax, scope);
    if (expr == nullptr) return false;
    aggregate->groups.push(arena_, expr);
    aggregate->group_collations.push(arena_, value_collation_or_binary(expr));
    aggregate->group_descending.push(arena_, false);
  }
  aggregate->width = static_cast<int>(aggregate->groups.size());
  return true;
}

RowPlan* Binder::bind_core(const sql::SelectCore* core, const sql::Select* select, Scope* parent,
                           SubqueryNode* node) {
  auto* plan = arena_.make<RowPlan>();
  plan->kind = RowKind::kCore;
  plan->distinct = core->distinct;
  Scope* scope = new_scope(parent);
  scope->node = node;
  scope->results = &core->columns;
  scope->windows = &core->windows;
  scope->collect_star_tables = star_tables_ != nullptr && select->span.empty();
  if (!authorize(21, "", "", "")) {
    if (failed()) return nullptr;
  }
  FromPlan from;
  if (core->from != nullptr && !bind_from(core->from, scope, &from)) return nullptr;
  for (const ScopeSource& source : scope->sources) {
    if (source.table != nullptr) origins_.push_back({source.slot, source.table});
  }
  scope->aliases_visible = true;
  if (core->where != nullptr && !split_conjuncts(core->where, scope, {}, &from.conjuncts)) {
    return nullptr;
  }
  bool aggregated = !core->group_by.empty() || contains_aggregate(core->having);
  bool windowed = false;
  for (const sql::ResultColumn& result : core->columns) {
    if (result.kind != sql::ResultKind::kExpr) continue;
    aggregated |= contains_aggregate(result.expr);
    windowed |= contains_window(result.expr);
  }
  for (const sql::OrderTerm& term : select->order_by) {
    if (select->arms.size() > 1) break;
    aggregated |= contains_aggregate(term.expr);
    windowed |= contains_window(term.expr);
  }
  if (core->having != nullptr && !aggregated) {
    fail("HAVING clause on a non-aggregate query");
    return nullptr;
  }
  if (aggregated) {
    plan->aggregate = arena_.make<AggregatePlan>();
    plan->aggregate->slot = new_slot();
    if (!bind_group_by(core, scope, plan->aggregate)) return nullptr;
    scope->aggregate = plan->aggregate;
    scope->aggregates_allowed = true;
    scope->phase = Phase::kAggregate;
    if (core->having != nullptr) {
      plan->having = bind(core->having, scope);
      if (plan->having == nullptr) return nullptr;
    }
  }
  if (windowed) {
    plan->window = arena_.make<WindowPlan>();
    plan->window->slot = new_slot();
    plan->window->result_slot = new_slot();
    scope->window = plan->window;
    scope->windows_allowed = true;
    scope->phase = Phase::kWindow;
  }
  scope->aliases_visible = false;
  if (!bind_results(core->columns, scope, &plan->out, &plan->columns)) return nullptr;
  plan->width = static_cast<int>(plan->out.size());
  if (select->arms.size() == 1 && !bind_order_by(select, core, scope, plan)) return nullptr;
  const List<SortKey>* order = nullptr;
  if (plan->aggregate == nullptr && plan->window == nullptr && select->arms.size() == 1 &&
      !plan->order.empty()) {
    order = &plan->order;
  }
  if (core->from != nullptr) {
    plan->join = plan_join(from, order, &plan->out, select->limit != nullptr, plan);
    if (plan->join == nullptr) return nullptr;
    if (plan->join->ordered) plan->order = {};
  } else {
    plan->join = arena_.make<JoinPlan>();
    for (const Conjunct& conjunct : from.conjuncts) {
      plan->join->constant_filters.push(arena_, conjunct.expr);
    }
    plan->estimated_rows = 1;
  }
  if (plan->aggregate != nullptr) {
    plan->estimated_rows = plan->aggregate->groups.empty() ? 1 : plan->estimated_rows / 4 + 1;
  }
  return plan;
}

// The collation of a term's COLLATE; false with the error set when there is none of that name.
static bool named_collation(Binder& binder, const sql::CollateExpr& collate, SortKey* key) {
  key->collation = binder.session().collation(collate.collation.text);
  return key->collation != nullptr ||
         binder.fail(rc::kErrorMissingCollation,
                     "no such collation sequence: " + std::string(collate.collation.text));
}

static std::string order_range_error(u32 number, int width) {
  return ordinal(number) + " ORDER BY term out of range - should be between 1 and " +
         std::to_string(width);
}

bool Binder::bind_order_by(const sql::Select* select, const sql::SelectCore* core, Scope* scope,
                           RowPlan* plan) {
  u32 number = 0;
  for (const sql::OrderTerm& term : select->order_by) {
    ++number;
    const sql::CollateExpr* collate = nullptr;
    const sql::Expr* plain = strip_collate(term.expr, &collate);
    SortKey key;
    set_order(key, term);
    int column = -1;
    if (i64 at = 0; is_position(plain, &at)) {
      if (at < 1 || at > plan->width) {
        return fail(order_range_error(number, plan->width),
                    at < 1 ? static_cast<int>(plain->span.begin) : -1);
      }
      column = static_cast<int>(at) - 1;
    } else if (const auto* name = plain->is<sql::ColumnExpr>();
               name != nullptr && !name->table.present()) {
      // An alias comes before a column of the tables.
      int out = 0;
      for (const sql::ResultColumn& result : core->columns) {
        if (result.kind != sql::ResultKind::kExpr) {
          out = -1000000;  // positions are not known statically behind a star
        } else if (column < 0 && result.alias.present() && out >= 0 &&
                   equal_nocase(result.alias.text, name->column.text)) {
          column = out;
        }
        ++out;
      }
      if (column < 0) {
        for (u32 i = 0; i < plan->columns.size() && column < 0; ++i) {
          for (const sql::ResultColumn& result : core->columns) {
            if (result.kind == sql::ResultKind::kExpr && result.alias.present() &&
                equal_nocase(result.alias.text, name->column.text) &&
                plan->columns[i].name == result.alias.text) {
              column = static_cast<int>(i);
            }
          }
        }
      }
    }
    Expr* expr = nullptr;
    if (column < 0) {
      scope->aliases_visible = true;
      expr = bind(plain, scope);
      scope->aliases_visible = false;
      if (expr == nullptr) return false;
      for (u32 i = 0; i < plan->out.size() && column < 0; ++i) {
        if (same_expr(plan->out[i], expr)) column = static_cast<int>(i);
      }
      if (column < 0) {
        column = static_cast<int>(plan->out.size());
        plan->out.push(arena_, expr);
      }
    }
    expr = plan->out[static_cast<size_t>(column)];
    key.column = column;
    key.expr = expr;
    key.collation = value_collation_or_binary(expr);
    if (collate != nullptr && !named_collation(*this, *collate, &key)) return false;
    bool repeated = false;
    for (const SortKey& one : plan->order) {
      repeated |= one.column == key.column && one.collation == key.collation;
    }
    if (!repeated) plan->order.push(arena_, key);
  }
  return true;
}

RowPlan* Binder::bind_arms(const sql::Select* select, u32 first, u32 count, Scope* parent,
                           SubqueryNode* node) {
  auto* plan = arena_.make<RowPlan>();
  plan->kind = RowKind::kCompound;
  for (u32 i = first; i < first + count; ++i) {
    const sql::SelectArm& arm = select->arms[i];
    RowPlan* one = arm.core->is_values ? bind_values(arm.core, parent, node)
                                       : bind_core(arm.core, select, parent, node);
    if (one == nullptr) return nullptr;
    if (i > first && one->width != plan->arms[0]->width) {
      static constexpr const char* kNames[] = {"", "UNION", "UNION ALL", "INTERSECT", "EXCEPT"};
      if (arm.core->is_values && select->arms[i - 1].core->is_values) {
        fail("all VALUES must have the same number of terms");
      } else {
        fail(std::string("SELECTs to the left and right of ") + kNames[static_cast<int>(arm.op)] +
             " do not have the same number of result columns");
      }
      return nullptr;
    }
    plan->arms.push(arena_, one);
    plan->ops.push(arena_, i == first ? sql::CompoundOp::kNone : arm.op);
    plan->estimated_rows += one->estimated_rows;
  }
  if (count == 1) return plan->arms[0];
  // Only UNION ALL hands rows on as they come.
  const bool all = std::any_of(plan->ops.begin() + 1, plan->ops.end(),
                               [](sql::CompoundOp op) { return op != sql::CompoundOp::kUnionAll; });
  for (RowPlan* arm : plan->arms) arm->all_wanted = all;
  plan->width = plan->arms[0]->width;
  // Names, types and collations come from the left; a collation from the first arm that has one.
  for (int i = 0; i < plan->width; ++i) {
    RowColumn column = plan->arms[0]->columns[static_cast<size_t>(i)];
    for (RowPlan* arm : plan->arms) {
      const RowColumn& other = arm->columns[static_cast<size_t>(i)];
      if (column.collation == nullptr) column.collation = other.collation;
      if (column.affinity == Affinity::kNone) column.affinity = Affinity::kNone;
    }
    plan->columns.push(arena_, column);
  }
  return plan;
}

bool Binder::bind_compound_order_by(const sql::Select* select, RowPlan* plan) {
  u32 number = 0;
  for (const sql::OrderTerm& term : select->order_by) {
    ++number;
    const sql::CollateExpr* collate = nullptr;
    const sql::Expr* plain = strip_collate(term.expr, &collate);
    int column = -1;
    if (i64 at = 0; is_position(plain, &at)) {
      if (at < 1 || at > plan->width) {
        return fail(order_range_error(number, plan->width), static_cast<int>(plain->span.begin));
      }
      column = static_cast<int>(at) - 1;
    }
    List<RowPlan*> arms = plan->arms;
    if (arms.empty()) arms.push(arena_, plan);
    const auto* name = plain->is<sql::ColumnExpr>();
    for (u32 a = 0; a < arms.size() && column < 0; ++a) {
      const sql::SelectCore* core = select->arms[a].core;
      if (name != nullptr && !name->table.present()) {
        for (u32 i = 0; i < arms[a]->columns.size() && column < 0; ++i) {
          if (equal_nocase(arms[a]->columns[i].name, name->column.text))
            column = static_cast<int>(i);
        }
      }
      // Or the text of a result expression.
      int at = 0;
      for (const sql::ResultColumn& result : core->columns) {
        if (result.kind != sql::ResultKind::kExpr) break;
        if (column < 0 && plain->span.in(sql) == result.text.in(sql) && !plain->span.empty()) {
          column = at;
        }
        ++at;
      }
    }
    if (column < 0) {
      return fail(ordinal(number) + " ORDER BY term does not match any column in the result set");
    }
    SortKey key;
    set_order(key, term);
    key.column = column;
    const RowColumn& like = plan->columns[static_cast<size_t>(column)];
    if (like.collation != nullptr) key.collation = like.collation;
    if (collate != nullptr && !named_collation(*this, *collate, &key)) return false;
    plan->order.push(arena_, key);
  }
  return true;
}

}  // namespace db
