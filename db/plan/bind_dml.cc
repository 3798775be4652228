// INSERT, UPDATE, DELETE: targets, new values, RETURNING, upsert.
#include "db/plan/dml_binder.h"

#include <algorithm>

namespace db {
namespace {

bool has_trigger(const Table& table, sql::TriggerEvent event, Session& session) {
  for (const auto& trigger : table.triggers) {
    if (trigger->statement->event == event) return true;
  }
  if (!session.databases.empty() && table.schema != nullptr) {
    for (const auto& [name, trigger] : session.databases[1]->schema.triggers) {
      if (trigger->statement->event == event && equal_nocase(trigger->table, table.name))
        return true;
    }
  }
  return false;
}

}  // namespace

Table* DmlBinder::target(const sql::TargetTable& target, const char*) {
  Table* table = binder_.find_table(target.schema, target.name);
  if (table == nullptr) return nullptr;
  Session& session = binder_.session();
  if (table->kind == TableKind::kView) {
    if (!binder_.view_columns(table)) return nullptr;
  }
  if (table->schema != nullptr && table->root == 1 && !session.writable_schema) {
    binder_.fail("table " + table->name + " may not be modified");
    return nullptr;
  }
  if (table->kind == TableKind::kVirtual) {
    Status connected = session.connect_virtual(*table, false);
    if (!connected.ok()) {
      binder_.fail(connected.error().code(), connected.error().message());
      return nullptr;
    }
  }
  if (table->kind == TableKind::kVirtual &&
      (table->virtual_table == nullptr || !table->virtual_table->writable())) {
    binder_.fail("table " + table->name + " may not be modified");
    return nullptr;
  }
  return table;
}

bool DmlBinder::check_view(const Table& table, sql::TriggerEvent event) {
  if (table.kind != TableKind::kView) return true;
  if (has_trigger(table, event, binder_.session())) return true;
  return binder_.fail("cannot modify " + table.name + " because it is a view");
}

WritePlan* DmlBinder::write_plan(const Table* table) {
  Arena& arena = binder_.arena();
  binder_.keep(table);
  auto* plan = arena.make<WritePlan>();
  plan->table = table;
  plan->database = binder_.session().index_of(*table->schema);
  plan->slot = binder_.new_slot();
  Session& session = binder_.session();
  plan->has_insert_triggers = has_trigger(*table, sql::TriggerEvent::kInsert, session);
  plan->has_update_triggers = has_trigger(*table, sql::TriggerEvent::kUpdate, session);
  plan->has_delete_triggers = has_trigger(*table, sql::TriggerEvent::kDelete, session);
  Scope* scope = row_scope(table, plan->slot);
  std::string_view saved = binder_.sql;
  if (table->definition != nullptr) binder_.sql = table->definition->sql;
  for (const Check& check : table->checks) {
    binder_.prohibited_place = "CHECK constraints";
    Expr* expr = binder_.bind(check.expr, scope);
    binder_.prohibited_place = nullptr;
    if (expr == nullptr) return nullptr;
    plan->checks.push(arena, expr);
    plan->check_names.push(arena, check.name.empty() ? check.text : check.name);
  }
  if (!bind_generated(*table, scope, plan)) return nullptr;
  for (const auto& index : table->indexes) {
    if (table->primary == index.get()) continue;
    IndexWrite write;
    write.index = index.get();
    if (index->definition != nullptr) binder_.sql = index->definition->sql;
    for (const IndexColumn& column : index->columns) {
      Expr* expr = nullptr;
      if (column.column == kExpression) {
        expr = binder_.bind(column.expr, scope);
        if (expr == nullptr) return nullptr;
      }
      write.exprs.push(arena, expr);
    }
    if (index->where != nullptr) {
      write.where = binder_.bind(index->where, scope);
      if (write.where == nullptr) return nullptr;
    }
    plan->indexes.push(arena, write);
  }
  binder_.sql = saved;
  return plan;
}

// Generated columns may use each other: each comes after those it reads.
bool DmlBinder::bind_generated(const Table& table, Scope* scope, WritePlan* plan) {
  std::vector<GeneratedWrite> waiting;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    if (column.generated == Generated::kNo) continue;
    binder_.prohibited_place = "generated columns";
    Expr* value = binder_.bind(column.generated_expr, scope);
    binder_.prohibited_place = nullptr;
    if (value == nullptr) return false;
    waiting.push_back({static_cast<int>(i), value});
  }
  while (!waiting.empty()) {
    bool moved = false;
    for (size_t i = 0; i < waiting.size(); ++i) {
      bool ready = walk(waiting[i].value, [&](Expr* e) {
        if (e->op != Op::kColumn || e->a != plan->slot) return true;
        for (const GeneratedWrite& other : waiting) {
          if (other.column == e->b) return false;
        }
        return true;
      });
      if (!ready) continue;
      plan->generated.push(binder_.arena(), waiting[i]);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
      moved = true;
      break;
    }
    if (!moved) {
      return binder_.fail("generated column loop on \"" +
                          table.columns[static_cast<size_t>(waiting[0].column)].name + "\"");
    }
  }
  return true;
}

Scope* DmlBinder::row_scope(const Table* table, int slot) {
  Scope* scope = binder_.new_scope(nullptr);
  scope->sources.push_back(binder_.table_source(table, slot, table->name));
  scope->sources.back().row_based = true;
  return scope;
}

bool DmlBinder::bind_returning(const List<sql::ResultColumn>& returning, const Table* table,
                               std::string_view alias, DmlPlan* plan) {
  plan->has_returning = true;
  plan->returning_slot = plan->write->slot;
  Scope* scope = row_scope(table, plan->returning_slot);
  scope->parent = parent_;
  scope->sources.back().alias = alias;
  for (const sql::ResultColumn& column : returning) {
    if (column.kind == sql::ResultKind::kTableStar) {
      return binder_.fail("RETURNING may not use \"TABLE.*\" wildcards");
    }
  }
  return binder_.bind_results(returning, scope, &plan->returning, &plan->returning_columns);
}

DmlPlan* DmlBinder::insert(const sql::InsertStatement& statement) {
  Table* table = target(statement.table, "INSERT");
  if (table == nullptr || !check_view(*table, sql::TriggerEvent::kInsert)) return nullptr;
  if (!binder_.authorize(18, table->name, "", table->schema->name) && binder_.failed())
    return nullptr;
  Arena& arena = binder_.arena();
  auto* plan = arena.make<DmlPlan>();
  plan->kind = sql::StatementKind::kInsert;
  plan->conflict = statement.conflict;
  plan->is_view = table->kind == TableKind::kView;
  plan->write = write_plan(table);
  if (plan->write == nullptr) return nullptr;
  if (statement.with != nullptr) binder_.push_with(statement.with, parent_);
  std::vector<bool> given(table->columns.size());
  for (const sql::Name& name : statement.columns) {
    int at = table->find_column(name.text);
    if (at < 0 && is_rowid_name(name.text) && !table->without_rowid && !plan->is_view) {
      plan->targets.push(arena, kRowid);
      continue;
    }
    if (at < 0) {
      binder_.fail("table " + table->name + " has no column named " + std::string(name.text));
      return nullptr;
    }
    if (table->columns[static_cast<size_t>(at)].generated != Generated::kNo) {
      binder_.fail("cannot INSERT into generated column \"" +
                   table->columns[static_cast<size_t>(at)].name + "\"");
      return nullptr;
    }
    given[static_cast<size_t>(at)] = true;
    plan->targets.push(arena, at);
  }
  if (!statement.has_columns) {
    for (size_t i = 0; i < table->columns.size(); ++i) {
      if (table->columns[i].generated != Generated::kNo || table->columns[i].hidden) continue;
      if (statement.select != nullptr) given[i] = true;
      plan->targets.push(arena, static_cast<int>(i));
    }
  }
  if (statement.select != nullptr) {
    // Taken off the list, the target comes back to it when the source reads it too.
    std::erase(binder_.tables_used, table);
    plan->source = binder_.bind_select(statement.select, parent_, nullptr);
    if (plan->source == nullptr) return nullptr;
    const auto& used = binder_.tables_used;
    plan->source_reads_target = std::find(used.begin(), used.end(), table) != used.end();
    if (!plan->source_reads_target) binder_.tables_used.push_back(table);
    if (plan->source->width != static_cast<int>(plan->targets.size())) {
      binder_.fail(statement.has_columns
                       ? std::to_string(plan->source->width) + " values for " +
                             std::to_string(plan->targets.size()) + " columns"
                       : "table " + table->name + " has " + std::to_string(plan->targets.size()) +
                             " columns but " + std::to_string(plan->source->width) +
                             " values were supplied");
      return nullptr;
    }
  }
  std::string_view saved = binder_.sql;
  for (size_t i = 0; i < table->columns.size(); ++i) {
    Expr* value = nullptr;
    const Column& column = table->columns[i];
    if (column.default_expr != nullptr && column.generated == Generated::kNo) {
      binder_.sql = table->definition->sql;
      value = binder_.bind(column.default_expr, nullptr_scope());
      if (value == nullptr) return nullptr;
    }
    plan->defaults.push(arena, value);
  }
  binder_.sql = saved;
  for (const sql::Upsert* upsert : statement.upserts) {
    if (!bind_upsert(*upsert, *table, statement, plan)) return nullptr;
  }
  std::string_view alias =
      statement.table.alias.present() ? statement.table.alias.text : std::string_view(table->name);
  if (statement.has_returning && !bind_returning(statement.returning, table, alias, plan)) {
    return nullptr;
  }
  if (statement.with != nullptr) binder_.pop_with();
  return plan;
}

bool DmlBinder::bind_upsert(const sql::Upsert& upsert, const Table& table,
                            const sql::InsertStatement& statement, DmlPlan* plan) {
  Arena& arena = binder_.arena();
  auto* one = arena.make<UpsertPlan>();
  one->do_nothing = upsert.do_nothing;
  if (table.kind == TableKind::kView) return binder_.fail("cannot UPSERT a view");
  if (plan->target_slot == 0 && plan->excluded_slot < 0) {
    plan->target_slot = binder_.new_slot();
    plan->excluded_slot = binder_.new_slot();
  }
  std::string_view alias =
      statement.table.alias.present() ? statement.table.alias.text : std::string_view(table.name);
  Scope* scope = row_scope(&table, plan->target_slot);
  scope->parent = parent_;
  scope->sources.back().alias = alias;
  if (upsert.target.empty()) {
    one->any_target = true;
  } else if (!find_upsert_index(upsert, table, one)) {
    return false;
  }
  Scope* excluded = scope;
  excluded->sources.push_back(binder_.table_source(&table, plan->excluded_slot, "excluded"));
  excluded->sources.back().row_based = true;
  excluded->sources.back().qualified_only = true;
  if (!bind_assignments(upsert.set, table, scope, &one->columns, &one->values)) return false;
  if (upsert.where != nullptr) {
    one->where = binder_.bind(upsert.where, scope);
    if (one->where == nullptr) return false;
  }
  plan->upserts.push(arena, one);
  return true;
}

bool DmlBinder::find_upsert_index(const sql::Upsert& upsert, const Table& table, UpsertPlan* one) {
  std::vector<int> columns;
  std::vector<const sql::Expr*> exprs;
  for (const sql::OrderTerm& term : upsert.target) {
    const sql::Expr* expr = term.expr;
    if (const auto* collate = expr->is<sql::CollateExpr>()) expr = collate->value;
    const auto* column = expr->is<sql::ColumnExpr>();
    int at = column == nullptr ? kExpression : table.find_column(column->column.text);
    if (column != nullptr && at < 0) {
      if (!is_rowid_name(column->column.text)) {
        return binder_.fail("no such column: " + std::string(column->column.text));
      }
      at = kRowid;
    }
    columns.push_back(at == table.rowid_column ? kRowid : at);
    exprs.push_back(expr);
  }
  if (columns.size() == 1 && columns[0] == kRowid && !table.without_rowid) return true;
  for (const auto& index : table.indexes) {
    if (!index->unique || index->key_columns != static_cast<int>(columns.size())) continue;
    if (index->where != nullptr && upsert.target_where == nullptr) continue;
    bool all = true;
    for (int i = 0; i < index->key_columns; ++i) {
      const IndexColumn& key = index->columns[static_cast<size_t>(i)];
      bool found = false;
      for (size_t c = 0; c < columns.size(); ++c) {
        if (key.column == kExpression) {
          Scope* scope = row_scope(&table, 0);
          found |= columns[c] == kExpression &&
                   same_expr(binder_.bind(key.expr, scope), binder_.bind(exprs[c], scope));
        } else {
          found |= columns[c] == key.column;
        }
      }
      all &= found;
    }
    if (!all) continue;
    one->index = index.get();
    return true;
  }
  return binder_.fail("ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint");
}

bool DmlBinder::bind_assignments(const List<sql::Assignment>& set, const Table& table, Scope* scope,
                                 List<int>* columns, List<Expr*>* values) {
  Arena& arena = binder_.arena();
  for (const sql::Assignment& assignment : set) {
    std::vector<Expr*> items;
    if (assignment.columns.size() == 1 && !assignment.is_row) {
      items.push_back(binder_.bind(assignment.value, scope));
      if (items.back() == nullptr) return false;
    } else {
      if (!binder_.bind_row(assignment.value, scope, &items)) return false;
      if (items.size() != assignment.columns.size()) {
        return binder_.fail(std::to_string(assignment.columns.size()) + " columns assigned " +
                            std::to_string(items.size()) + " values");
      }
    }
    for (u32 i = 0; i < assignment.columns.size(); ++i) {
      std::string_view name = assignment.columns[i].text;
      int at = table.find_column(name);
      if (at < 0 && is_rowid_name(name) && !table.without_rowid) at = kRowid;
      if (at == -1 && !is_rowid_name(name)) {
        return binder_.fail("no such column: " + std::string(name));
      }
      if (at >= 0 && table.columns[static_cast<size_t>(at)].generated != Generated::kNo) {
        return binder_.fail("cannot UPDATE generated column \"" +
                            table.columns[static_cast<size_t>(at)].name + "\"");
      }
      if (!binder_.authorize(23, table.name, name, table.schema->name)) {
        if (binder_.failed()) return false;
        continue;
      }
      // The last assignment to a column wins.
      bool replaced = false;
      for (u32 c = 0; c < columns->size(); ++c) {
        if ((*columns)[c] != at) continue;
        (*values)[c] = items[i];
        replaced = true;
      }
      if (replaced) continue;
      columns->push(arena, at);
      values->push(arena, items[i]);
    }
  }
  return true;
}

// The query that finds the rows to change: their rowid or primary key, and what else is asked for.
RowPlan* DmlBinder::target_scan(const Table* table, const sql::TargetTable& syntax,
                                const sql::From* from, const sql::Expr* where, Scope** scope_out,
                                DmlPlan* plan, FromPlan* from_plan) {
  Arena& arena = binder_.arena();
  auto* rows = arena.make<RowPlan>();
  std::string_view alias =
      syntax.alias.present() ? syntax.alias.text : std::string_view(syntax.name.text);
  Scope* scope = binder_.new_scope(parent_);
  *scope_out = scope;
  if (table->kind == TableKind::kView) {
    auto* source = arena.make<sql::Source>();
    source->schema = syntax.schema;
    source->name = syntax.name;
    source->alias = syntax.alias;
    auto* view_from = arena.make<sql::From>();
    view_from->sources.push(arena, source);
    if (!binder_.bind_from(view_from, scope, from_plan)) return nullptr;
  } else {
    auto* source = arena.make<sql::Source>();
    source->indexed_by = syntax.indexed_by;
    source->not_indexed = syntax.not_indexed;
    plan->target_slot = binder_.new_slot();
    from_plan->changes_first = true;
    from_plan->sources.push_back(binder_.table_plan(table, plan->target_slot, alias));
    from_plan->joins.push_back(0);
    from_plan->syntax.push_back(source);
    scope->sources.push_back(binder_.table_source(table, plan->target_slot, alias));
    if (syntax.indexed_by.present()) {
      Index* index = table->schema->find_index(syntax.indexed_by.text);
      if (index == nullptr || index->table != table) {
        binder_.fail("no such index: " + std::string(syntax.indexed_by.text));
        return nullptr;
      }
    }
  }
  if (from != nullptr && !binder_.bind_from(from, scope, from_plan)) return nullptr;
  if (where != nullptr && !binder_.split_conjuncts(where, scope, {}, &from_plan->conjuncts)) {
    return nullptr;
  }
  if (table->kind == TableKind::kView) {
    for (int i = 0; i < scope->sources[0].column_count(); ++i) {
      rows->out.push(arena, scope->sources[0].columns[static_cast<size_t>(i)].expr);
    }
  } else if (table->without_rowid) {
    for (int i = 0; i < table->primary->key_columns; ++i) {
      int column = table->primary->columns[static_cast<size_t>(i)].column;
      rows->out.push(arena, binder_.make_column(plan->target_slot, column,
                                                table->columns[static_cast<size_t>(column)]));
    }
  } else {
    rows->out.push(arena,
                   binder_.make_rowid(plan->target_slot, static_cast<int>(table->columns.size())));
  }
  return rows;
}

namespace {

// Is it cheaper to look for the rows in batches first, and then at each of those found again, than
// to change rows where one scan stands? So it is where a scan meets rows that its filters turn
// away.
bool finds_rows_first(const RowPlan& rows) {
  if (rows.limit != nullptr || rows.join->levels.size() != 1) return false;
  const JoinLevel& level = *rows.join->levels[0];
  if (level.source->kind != SourceKind::kTable || level.filters.empty()) return false;
  return (level.path->kind == PathKind::kScan && level.path->index == nullptr) ||
         level.path->kind == PathKind::kRowidRange;
}

}  // namespace

bool DmlBinder::finish_scan(RowPlan* rows, FromPlan& from_plan,
                            const List<sql::OrderTerm>& order_by, const sql::Expr* limit,
                            const sql::Expr* offset, Scope* scope, DmlPlan* plan) {
  Arena& arena = binder_.arena();
  if (!order_by.empty() && limit == nullptr)
    return binder_.fail(
        "ORDER BY without LIMIT on " +
        std::string(plan->kind == sql::StatementKind::kDelete ? "DELETE" : "UPDATE"));
  rows->width = static_cast<int>(rows->out.size());
  for (const sql::OrderTerm& term : order_by) {
    SortKey key;
    key.expr = binder_.bind(term.expr, scope);
    if (key.expr == nullptr) return false;
    key.descending = term.descending();
    key.collation = value_collation_or_binary(key.expr);
    key.column = static_cast<int>(rows->out.size());
    rows->out.push(arena, key.expr);
    rows->order.push(arena, key);
  }
  if (limit != nullptr) {
    rows->limit = binder_.bind(limit, nullptr_scope());
    if (rows->limit == nullptr) return false;
    if (offset != nullptr) {
      rows->offset = binder_.bind(offset, nullptr_scope());
      if (rows->offset == nullptr) return false;
    }
  }
  rows->join = binder_.plan_join(from_plan, nullptr, &rows->out, false, rows);
  if (rows->join == nullptr) return false;
  plan->scan = rows;
  rows->all_wanted = finds_rows_first(*rows);
  plan->one_row = rows->join->levels.size() == 1 && rows->join->levels[0]->path->one_row;
  return true;
}

DmlPlan* DmlBinder::update(const sql::UpdateStatement& statement) {
  Table* table = target(statement.table, "UPDATE");
  if (table == nullptr || !check_view(*table, sql::TriggerEvent::kUpdate)) return nullptr;
  Arena& arena = binder_.arena();
  auto* plan = arena.make<DmlPlan>();
  plan->kind = sql::StatementKind::kUpdate;
  plan->conflict = statement.conflict;
  plan->is_view = table->kind == TableKind::kView;
  plan->write = write_plan(table);
  if (plan->write == nullptr) return nullptr;
  if (statement.with != nullptr) binder_.push_with(statement.with, parent_);
  Scope* scope = nullptr;
  FromPlan from_plan;
  RowPlan* rows = target_scan(table, statement.table, statement.from, statement.where, &scope, plan,
                              &from_plan);
  if (rows == nullptr) return nullptr;
  if (!bind_assignments(statement.set, *table, scope, &plan->columns, &plan->values))
    return nullptr;
  plan->early = statement.from != nullptr || plan->is_view;
  if (plan->early) {
    for (Expr* value : plan->values) rows->out.push(arena, value);
  }
  if (!finish_scan(rows, from_plan, statement.order_by, statement.limit, statement.offset, scope,
                   plan)) {
    return nullptr;
  }
  std::string_view alias =
      statement.table.alias.present() ? statement.table.alias.text : std::string_view(table->name);
  if (statement.has_returning && !bind_returning(statement.returning, table, alias, plan)) {
    return nullptr;
  }
  if (statement.with != nullptr) binder_.pop_with();
  return plan;
}

DmlPlan* DmlBinder::remove(const sql::DeleteStatement& statement) {
  Table* table = target(statement.table, "DELETE");
  if (table == nullptr || !check_view(*table, sql::TriggerEvent::kDelete)) return nullptr;
  bool allowed = binder_.authorize(9, table->name, "", table->schema->name);
  if (!allowed && binder_.failed()) return nullptr;
  Arena& arena = binder_.arena();
  auto* plan = arena.make<DmlPlan>();
  plan->kind = sql::StatementKind::kDelete;
  plan->is_view = table->kind == TableKind::kView;
  plan->write = write_plan(table);
  if (plan->write == nullptr) return nullptr;
  if (statement.with != nullptr) binder_.push_with(statement.with, parent_);
  Scope* scope = nullptr;
  FromPlan from_plan;
  RowPlan* rows =
      target_scan(table, statement.table, nullptr, statement.where, &scope, plan, &from_plan);
  if (rows == nullptr) return nullptr;
  if (!finish_scan(rows, from_plan, statement.order_by, statement.limit, statement.offset, scope,
                   plan)) {
    return nullptr;
  }
  plan->whole_table = allowed && statement.where == nullptr && statement.limit == nullptr &&
                      !plan->is_view && table->kind == TableKind::kTable;
  std::string_view alias =
      statement.table.alias.present() ? statement.table.alias.text : std::string_view(table->name);
  if (statement.has_returning && !bind_returning(statement.returning, table, alias, plan)) {
    return nullptr;
  }
  if (statement.with != nullptr) binder_.pop_with();
  return plan;
}

}  // namespace db
