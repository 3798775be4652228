// FROM: tables, views, subqueries, joins and their conditions.
#include "db/plan/binder.h"

namespace db {

void Binder::keep(const Table* table) {
  for (const Table* one : tables_used) {
    if (one == table) return;
  }
  tables_used.push_back(table);
  int database = session_.index_of(*table->schema);
  if (std::find(databases_used.begin(), databases_used.end(), database) == databases_used.end()) {
    databases_used.push_back(database);
  }
  auto it = table->schema->tables.find(table->name);
  if (it != table->schema->tables.end()) kept.push_back(it->second);
  for (const auto& index : table->indexes) kept.push_back(index);
}

Table* Binder::find_table(const sql::Name& schema, const sql::Name& name) {
  std::string_view schema_name = schema.present() ? schema.text : std::string_view();
  if (schema_name.empty() && home != nullptr) schema_name = home->name;
  Table* table = session_.find_table(schema_name, name.text);
  if (table != nullptr) return table;
  std::string text = "no such table: ";
  if (!schema_name.empty()) text += std::string(schema_name) + ".";
  fail(text + std::string(name.text));
  return nullptr;
}

bool Binder::authorize(int action, std::string_view a, std::string_view b,
                       std::string_view schema) {
  if (!session_.hooks.authorizer) return true;
  std::string first(a), second(b), where(schema), trigger(auth_trigger);
  int answer = session_.hooks.authorizer(
      action, a.empty() && action != 20 ? nullptr : first.c_str(),
      b.empty() && action != 20 ? nullptr : second.c_str(),
      schema.empty() ? nullptr : where.c_str(), trigger.empty() ? nullptr : trigger.c_str());
  if (answer == 0) return true;
  if (answer == 2) return false;
  if (answer != 1) return fail("authorizer malfunction");
  if (action == 20) {
    std::string name = first + "." + second;
    if (session_.databases.size() > 2 || where != "main") name = where + "." + name;
    return fail(rc::kAuth, "access to " + name + " is prohibited");
  }
  if (action == 31) return fail(rc::kAuth, "not authorized to use function: " + second);
  return fail(rc::kAuth, "not authorized");
}

ScopeSource Binder::table_source(const Table* table, int slot, std::string_view alias) {
  ScopeSource source;
  source.alias = alias;
  source.schema = table->schema != nullptr ? std::string_view(table->schema->name) : "main";
  source.table = table;
  source.slot = slot;
  source.has_rowid = !table->without_rowid && table->kind != TableKind::kView;
  return source;
}

SourcePlan* Binder::table_plan(const Table* table, int slot, std::string_view name) {
  keep(table);
  auto* plan = arena_.make<SourcePlan>();
  plan->kind = table->kind == TableKind::kVirtual ? SourceKind::kVirtual : SourceKind::kTable;
  plan->slot = slot;
  plan->table = table;
  plan->database = session_.index_of(*table->schema);
  plan->width = static_cast<int>(table->columns.size());
  plan->name = name;
  return plan;
}

void Binder::push_conjunct(Expr* expr, Conjunct like, std::vector<Conjunct>* out) {
  if (expr->op == Op::kAnd) {
    push_conjunct(expr->left, like, out);
    push_conjunct(expr->right, like, out);
    return;
  }
  like.expr = expr;
  out->push_back(like);
}

bool Binder::split_conjuncts(const sql::Expr* expr, Scope* scope, Conjunct like,
                             std::vector<Conjunct>* out) {
  Expr* bound = bind(expr, scope);
  if (bound == nullptr) return false;
  push_conjunct(bound, like, out);
  return true;
}

bool Binder::bind_from(const sql::From* from, Scope* scope, FromPlan* plan) {
  bool outer_on_right = false;
  for (const sql::Source* source : from->sources)
    outer_on_right |= (source->join & sql::join::kRight) != 0;
  bool first = true;
  for (const sql::Source* source : from->sources) {
    size_t first_scope = scope->sources.size();
    size_t first_plan = plan->sources.size();
    bool outer = (source->join & (sql::join::kLeft | sql::join::kRight)) != 0;
    if (!bind_source(source, scope, plan, !outer && !outer_on_right)) return false;
    for (size_t i = first_scope; i < scope->sources.size(); ++i) {
      scope->sources[i].join = source->join;
      scope->sources[i].nullable = outer;
    }
    if (plan->sources.size() > first_plan) {
      // CROSS JOIN fixes the order of a flattened group's first member against what is before.
      plan->joins[first_plan] = first ? 0 : source->join;
    }
    int plan_index = static_cast<int>(plan->sources.size()) - 1;
    if (!first && !bind_join_condition(source, scope, plan, first_scope, plan_index)) return false;
    if (first && source->on != nullptr) {
      return fail("a JOIN clause is required before ON");
    }
    first = false;
  }
  if (plan->sources.size() > 64) return fail("at most 64 tables in a join");
  return true;
}

bool Binder::bind_source(const sql::Source* source, Scope* scope, FromPlan* plan,
                         bool may_flatten) {
  switch (source->kind) {
    case sql::SourceKind::kTable:
      break;
    case sql::SourceKind::kFunction:
      return bind_table_function(source, scope, plan);
    case sql::SourceKind::kSubquery:
      return bind_subquery_source(source->select,
                                  source->alias.present() ? source->alias.text : std::string_view(),
                                  nullptr, source, scope, scope->parent, plan, may_flatten);
    case sql::SourceKind::kJoin:
      return bind_nested(source, scope, plan);
  }
  if (!source->schema.present()) {
    CteScope* env = nullptr;
    if (CteEntry* entry = find_cte(source->name, &env); entry != nullptr) {
      return bind_cte(env, *entry, source, scope, plan, may_flatten);
    }
  }
  Table* table = session_.find_table(
      source->schema.present() ? source->schema.text : std::string_view(), source->name.text);
  if (table == nullptr) {
    if (session_.modules.find(source->name.text) != session_.modules.end()) {
      return bind_table_function(source, scope, plan);
    }
    return find_table(source->schema, source->name) != nullptr;
  }
  if (table->kind == TableKind::kView) return bind_view(table, source, scope, plan, may_flatten);
  if (table->kind == TableKind::kVirtual) {
    Status connected = session_.connect_virtual(*table, false);
    if (!connected.ok()) return fail(connected.error().code(), connected.error().message());
  }
  std::string_view alias = source->alias.present() ? source->alias.text : source->name.text;
  int slot = new_slot();
  plan->sources.push_back(table_plan(table, slot, alias));
  plan->joins.push_back(0);
  plan->syntax.push_back(source);
  scope->sources.push_back(table_source(table, slot, alias));
  if (source->indexed_by.present()) {
    Index* index = table->schema->find_index(source->indexed_by.text);
    if (index == nullptr || index->table != table) {
      return fail("no such index: " + std::string(source->indexed_by.text));
    }
  }
  return true;
}

// Can the query's tables become part of the enclosing join?
bool Binder::can_flatten(const sql::Select* select) {
  if (select->arms.size() != 1 || select->with != nullptr || !select->order_by.empty() ||
      select->limit != nullptr) {
    return false;
  }
  const sql::SelectCore* core = select->arms[0].core;
  if (core->is_values || core->distinct || core->from == nullptr || !core->group_by.empty() ||
      core->having != nullptr) {
    return false;
  }
  for (const sql::Source* source : core->from->sources) {
    if ((source->join & (sql::join::kLeft | sql::join::kRight | sql::join::kNatural)) != 0 ||
        source->has_using) {
      return false;
    }
  }
  for (const sql::ResultColumn& column : core->columns) {
    if (column.kind == sql::ResultKind::kExpr &&
        (contains_aggregate(column.expr) || contains_window(column.expr))) {
      return false;
    }
  }
  return true;
}

bool Binder::flatten(const sql::Select* select, std::string_view alias,
                     const std::vector<std::string_view>* names, const sql::Source* source,
                     Scope* scope, Scope* outer, FromPlan* plan) {
  const sql::SelectCore* core = select->arms[0].core;
  Scope* inner = new_scope(outer);
  if (!bind_from(core->from, inner, plan)) return false;
  if (core->where != nullptr) {
    inner->results = &core->columns;
    inner->aliases_visible = true;
    if (!split_conjuncts(core->where, inner, {}, &plan->conjuncts)) return false;
    inner->aliases_visible = false;
  }
  List<Expr*> outs;
  List<RowColumn> columns;
  if (!bind_results(core->columns, inner, &outs, &columns)) return false;
  if (names != nullptr && names->size() != outs.size()) {
    return fail("expected " + std::to_string(names->size()) + " columns for '" +
                std::string(source->name.text) + "' but got " + std::to_string(outs.size()));
  }
  ScopeSource item;
  item.alias = alias;
  for (u32 i = 0; i < outs.size(); ++i) {
    ScopeColumn column;
    column.name = names != nullptr ? (*names)[i] : columns[i].name;
    column.expr = as_source_column(outs[i]);
    column.declared_type = columns[i].declared_type;
    item.columns.push_back(column);
  }
  scope->sources.push_back(std::move(item));
  return true;
}

bool Binder::add_rows_source(RowPlan* rows, SubqueryNode* node, std::string_view alias,
                             const std::vector<std::string_view>* names, const sql::Source* source,
                             Scope* scope, FromPlan* plan) {
  int slot = new_slot();
  auto* item = arena_.make<SourcePlan>();
  item->kind = SourceKind::kRows;
  item->slot = slot;
  item->rows = rows;
  item->width = rows->width;
  item->name = alias;
  item->shared = node;
  item->correlated = node != nullptr && node->correlated;
  plan->sources.push_back(item);
  plan->joins.push_back(0);
  plan->syntax.push_back(source);
  if (names != nullptr && static_cast<int>(names->size()) != rows->width) {
    if (!open_views_.empty() && equal_nocase(open_views_.back()->name, source->name.text)) {
      return fail("expected " + std::to_string(names->size()) + " columns for '" +
                  std::string(source->name.text) + "' but got " + std::to_string(rows->width));
    }
    return fail(source->kind == sql::SourceKind::kTable
                    ? "table " + std::string(alias) + " has " + std::to_string(rows->width) +
                          " values for " + std::to_string(names->size()) + " columns"
                    : "wrong number of columns");
  }
  ScopeSource in_scope;
  in_scope.alias = alias;
  in_scope.slot = slot;
  in_scope.plan = item;
  for (int i = 0; i < rows->width; ++i) {
    const RowColumn& like = rows->columns[static_cast<size_t>(i)];
    ScopeColumn column;
    column.name = names != nullptr ? (*names)[static_cast<size_t>(i)] : like.name;
    column.declared_type = like.declared_type;
    column.expr = make_slot_column(slot, i, nullptr);
    column.expr->affinity = like.affinity;
    column.expr->collation = like.collation != nullptr ? like.collation : &kBinary;
    in_scope.columns.push_back(column);
  }
  scope->sources.push_back(std::move(in_scope));
  return true;
}

bool Binder::bind_subquery_source(const sql::Select* select, std::string_view alias,
                                  const std::vector<std::string_view>* names,
                                  const sql::Source* source, Scope* scope, Scope* outer,
                                  FromPlan* plan, bool may_flatten) {
  if (may_flatten && can_flatten(select)) {
    return flatten(select, alias, names, source, scope, outer, plan);
  }
  SubqueryNode* node = new_subquery();
  RowPlan* rows = bind_select(select, outer, node);
  if (rows == nullptr) return false;
  node->plan = rows;
  return add_rows_source(rows, node, alias, names, source, scope, plan);
}

bool Binder::bind_view(Table* table, const sql::Source* source, Scope* scope, FromPlan* plan,
                       bool may_flatten) {
  if (view_depth >= 100) return fail("view " + table->name + " is circularly defined");
  for (const Table* open : open_views_) {
    if (open == table) return fail("view " + table->name + " is circularly defined");
  }
  std::vector<std::string_view> names(table->view_columns.begin(), table->view_columns.end());
  keep(table);
  std::string_view saved_sql = sql;
  CteScope* saved_cte = cte_;
  bool saved_from_schema = from_schema;
  sql = table->definition->sql;
  cte_ = nullptr;
  from_schema = true;
  const Schema* saved_home = home;
  home = session_.index_of(*table->schema) == 1 ? nullptr : table->schema;
  ++view_depth;
  open_views_.push_back(table);
  std::string_view alias = source->alias.present() ? source->alias.text : source->name.text;
  size_t first_plan = plan->sources.size();
  bool bound = bind_subquery_source(table->view, alias, names.empty() ? nullptr : &names, source,
                                    scope, nullptr, plan, may_flatten);
  for (size_t i = first_plan; i < plan->sources.size(); ++i) {
    if (plan->sources[i]->kind == SourceKind::kRows && plan->syntax[i] == source) {
      plan->sources[i]->name = alias;
    }
  }
  open_views_.pop_back();
  --view_depth;
  sql = saved_sql;
  cte_ = saved_cte;
  from_schema = saved_from_schema;
  home = saved_home;
  return bound;
}

bool Binder::view_columns(Table* table) {
  if (table->view_resolved) return true;
  auto* source = arena_.make<sql::Source>();
  source->name.text = table->name;
  source->name.span.end = 1;
  Scope* scope = new_scope(nullptr);
  FromPlan plan;
  if (!bind_view(table, source, scope, &plan, true)) return false;
  table->columns.clear();
  for (const ScopeColumn& column : scope->sources[0].columns) {
    Column made;
    made.name = column.name;
    made.declared_type = column.declared_type;
    made.affinity = column.expr->affinity;
    made.collation = value_collation_or_binary(column.expr)->name;
    table->columns.push_back(std::move(made));
  }
  table->view_resolved = true;
  return true;
}

// (a JOIN b ...) as an item: its own join, whose columns keep their table names.
bool Binder::bind_nested(const sql::Source* source, Scope* scope, FromPlan* plan) {
  bool plain = (source->join & (sql::join::kLeft | sql::join::kRight)) == 0;
  for (const sql::Source* inner : source->nested->sources) {
    plain &= (inner->join & (sql::join::kLeft | sql::join::kRight)) == 0;
  }
  if (plain && !source->alias.present()) {
    // Inner joins associate: the members join directly.
    Scope* inner = new_scope(scope->parent);
    if (!bind_from(source->nested, inner, plan)) return false;
    for (ScopeSource& one : inner->sources) scope->sources.push_back(std::move(one));
    return true;
  }
  auto* core = arena_.make<sql::SelectCore>();
  core->from = source->nested;
  sql::ResultColumn star;
  star.kind = sql::ResultKind::kStar;
  core->columns.push(arena_, star);
  SubqueryNode* node = new_subquery();
  auto* select = arena_.make<sql::Select>();
  sql::SelectArm arm;
  arm.core = core;
  select->arms.push(arena_, arm);
  std::vector<std::string_view> tables;
  star_tables_ = &tables;
  RowPlan* rows = bind_select(select, scope->parent, node);
  star_tables_ = nullptr;
  if (rows == nullptr) return false;
  node->plan = rows;
  std::string_view alias = source->alias.present() ? source->alias.text : std::string_view();
  if (!add_rows_source(rows, node, alias, nullptr, source, scope, plan)) return false;
  if (!source->alias.present()) {
    auto& columns = scope->sources.back().columns;
    for (size_t i = 0; i < columns.size() && i < tables.size(); ++i) columns[i].table = tables[i];
  }
  return true;
}

bool Binder::bind_join_condition(const sql::Source* source, Scope* scope, FromPlan* plan,
                                 size_t first_scope, int plan_index) {
  bool natural = (source->join & sql::join::kNatural) != 0;
  if (natural && (source->on != nullptr || source->has_using)) {
    return fail("a NATURAL join may not have an ON or USING clause");
  }
  if (natural || source->has_using) {
    std::vector<std::string_view> names;
    if (natural) {
      for (size_t i = first_scope; i < scope->sources.size(); ++i) {
        ScopeSource& right = scope->sources[i];
        for (int c = 0; c < right.column_count(); ++c) {
          names.push_back(right.columns.empty()
                              ? std::string_view(right.table->columns[static_cast<size_t>(c)].name)
                              : right.columns[static_cast<size_t>(c)].name);
        }
      }
    } else {
      for (const sql::Name& name : source->using_columns) names.push_back(name.text);
    }
    return join_using(names, natural, source, scope, plan, first_scope, plan_index);
  }
  if (source->on == nullptr) return true;
  Conjunct like;
  if ((source->join & (sql::join::kLeft | sql::join::kRight)) != 0) {
    like.on_source = plan_index;
  } else {
    like.inner_source = plan_index;
  }
  return split_conjuncts(source->on, scope, like, &plan->conjuncts);
}

bool Binder::join_using(const std::vector<std::string_view>& names, bool natural,
                        const sql::Source* source, Scope* scope, FromPlan* plan, size_t first_scope,
                        int plan_index) {
  auto find_in = [&](size_t from, size_t to, std::string_view name, ScopeSource** found) {
    for (size_t i = from; i < to; ++i) {
      ScopeSource& one = scope->sources[i];
      for (int c = 0; c < one.column_count(); ++c) {
        std::string_view column =
            one.columns.empty() ? std::string_view(one.table->columns[static_cast<size_t>(c)].name)
                                : one.columns[static_cast<size_t>(c)].name;
        if (equal_nocase(column, name)) {
          *found = &one;
          return c;
        }
      }
    }
    return -1;
  };
  bool right_join = (source->join & sql::join::kRight) != 0;
  for (std::string_view name : names) {
    ScopeSource* left_source = nullptr;
    ScopeSource* right_source = nullptr;
    int left = find_in(0, first_scope, name, &left_source);
    int right = find_in(first_scope, scope->sources.size(), name, &right_source);
    if (left < 0 || right < 0) {
      if (natural) continue;
      return fail("cannot join using column " + std::string(name) +
                  " - column not present in both tables");
    }
    Expr* left_expr = column_of(*left_source, left);
    for (const ScopeColumn& merged : scope->coalesced) {
      if (equal_nocase(merged.name, name)) left_expr = merged.expr;
    }
    Expr* right_expr = column_of(*right_source, right);
    Expr* equal = make_comparison(Op::kEq, left_expr, right_expr);
    if (equal == nullptr) return false;
    Conjunct conjunct;
    if ((source->join & (sql::join::kLeft | sql::join::kRight)) != 0) {
      conjunct.on_source = plan_index;
    } else {
      conjunct.inner_source = plan_index;
    }
    push_conjunct(equal, conjunct, &plan->conjuncts);
    right_source->merged.push_back(name);
    if (right_join) {
      auto* either = arena_.make<Expr>();
      either->op = Op::kCoalesce;
      either->args.push(arena_, left_expr);
      either->args.push(arena_, right_expr);
      either->affinity = left_expr->affinity;
      inherit_operands(either);
      either->collation = value_collation(left_expr);
      bool replaced = false;
      for (ScopeColumn& merged : scope->coalesced) {
        if (!equal_nocase(merged.name, name)) continue;
        merged.expr = either;
        replaced = true;
      }
      if (!replaced) {
        ScopeColumn merged;
        merged.name = name;
        merged.expr = either;
        scope->coalesced.push_back(merged);
      }
    }
  }
  return true;
}

}  // namespace db
