// Column names: SQLite's order of search, ambiguity rules, double-quoted strings.
#include "db/plan/binder.h"

namespace db {

Expr* Binder::bind_rowid(ScopeSource& source) {
  if (source.row_based) {
    Expr* expr =
        make_slot_column(source.slot, static_cast<int>(source.table->columns.size()), nullptr);
    expr->affinity = Affinity::kInteger;
    expr->collation = &kBinary;
    return expr;
  }
  return make_rowid(source.slot, static_cast<int>(source.table->columns.size()));
}

Expr* Binder::column_of(ScopeSource& source, int column) {
  if (!source.columns.empty()) return source.columns[static_cast<size_t>(column)].expr;
  const Table& table = *source.table;
  if (column == table.rowid_column && !source.row_based) return bind_rowid(source);
  const Column& definition = table.columns[static_cast<size_t>(column)];
  if (definition.generated == Generated::kVirtual && !source.row_based) {
    return generated_column(source, definition);
  }
  return make_column(source.slot, column, definition);
}

// A virtual column is its expression over the same row.
Expr* Binder::generated_column(const ScopeSource& source, const Column& column) {
  if (generated_depth_ > 50) {
    fail("generated column loop on \"" + column.name + "\"");
    return nullptr;
  }
  ++generated_depth_;
  Scope* scope = new_scope(nullptr);
  scope->sources.push_back(source);
  scope->sources.back().merged.clear();
  Expr* value = bind(column.generated_expr, scope);
  --generated_depth_;
  if (value == nullptr) return nullptr;
  auto* expr = arena_.make<Expr>();
  expr->op = Op::kAffinity;
  expr->left = value;
  expr->affinity = column.affinity;
  expr->collation = session_.collation(column.collation);
  expr->flags = value->flags & (expr_flag::kVolatile | expr_flag::kHasSubquery);
  return expr;
}

// In an aggregated or windowed query, what is read from a row must be carried to the output row.
Expr* Binder::phase_wrap(Expr* expr, Scope* scope) {
  if (expr == nullptr || scope->phase == Phase::kRow || scope->in_aggregate_args) return expr;
  if (expr->op == Op::kConst) return expr;
  if (scope->aggregate != nullptr) expr = carry_through_aggregate(expr, *scope->aggregate);
  return scope->phase == Phase::kWindow ? register_window_input(expr, scope) : expr;
}

Expr* Binder::carry_through_aggregate(Expr* expr, AggregatePlan& aggregate) {
  for (u32 i = 0; i < aggregate.groups.size(); ++i) {
    if (same_expr(aggregate.groups[i], expr)) {
      return make_slot_column(aggregate.slot, static_cast<int>(i), expr);
    }
  }
  for (u32 i = 0; i < aggregate.bare.size(); ++i) {
    if (same_expr(aggregate.bare[i], expr)) {
      return make_slot_column(aggregate.slot, aggregate.bare_outputs[i], expr);
    }
  }
  int output = aggregate.width++;
  aggregate.bare.push(arena_, expr);
  aggregate.bare_outputs.push(arena_, output);
  return make_slot_column(aggregate.slot, output, expr);
}

void Binder::note_outer(Expr* expr, Scope* from, Scope* owner) {
  if (expr->op == Op::kConst) return;
  for (Scope* scope = from; scope != nullptr && scope != owner; scope = scope->parent) {
    if (scope->node == nullptr) continue;
    scope->node->correlated = true;
    bool present = false;
    for (Expr* one : scope->node->outer) present |= same_expr(one, expr);
    if (!present) scope->node->outer.push(arena_, expr);
  }
}

namespace {

struct Found {
  ScopeSource* source = nullptr;
  int column = -1;
  int count = 0;
};

bool is_merged(const ScopeSource& source, std::string_view name) {
  for (std::string_view merged : source.merged) {
    if (equal_nocase(merged, name)) return true;
  }
  return false;
}

bool table_matches(const ScopeSource& source, std::string_view schema, std::string_view table) {
  if (!equal_nocase(source.alias, table)) {
    // The table's own name does not count once it has an alias; sqlite_schema has several names.
    bool schema_table =
        source.table != nullptr && source.table->root == 1 &&
        (equal_nocase(table, "sqlite_master") || equal_nocase(table, "sqlite_schema")) &&
        (equal_nocase(source.alias, "sqlite_master") ||
         equal_nocase(source.alias, "sqlite_schema"));
    if (!schema_table) return false;
  }
  return schema.empty() || equal_nocase(source.schema, schema);
}

Found search(Scope* scope, std::string_view schema, std::string_view table, std::string_view name) {
  Found found;
  for (ScopeSource& source : scope->sources) {
    if (table.empty() && source.qualified_only) continue;
    bool by_column = !source.columns.empty();
    bool nested = by_column && !source.columns[0].table.empty();
    if (!table.empty() && !nested && !table_matches(source, schema, table)) continue;
    int count = source.column_count();
    for (int i = 0; i < count; ++i) {
      std::string_view column_name =
          by_column ? source.columns[static_cast<size_t>(i)].name
                    : std::string_view(source.table->columns[static_cast<size_t>(i)].name);
      if (!equal_nocase(column_name, name)) continue;
      if (nested && !table.empty() &&
          !equal_nocase(source.columns[static_cast<size_t>(i)].table, table)) {
        continue;
      }
      if (table.empty() && found.count > 0 && is_merged(source, name)) {
        // The right one of a USING pair. For RIGHT JOIN the left may be missing; the executor of
        // such a join sees a coalesce that the FROM binder put in place of the left column.
        break;
      }
      if (found.count++ == 0) {
        found.source = &source;
        found.column = i;
      }
      break;
    }
  }
  return found;
}

// The only source that a bare rowid can mean.
ScopeSource* rowid_source(Scope* scope, std::string_view schema, std::string_view table,
                          int* count) {
  ScopeSource* found = nullptr;
  for (ScopeSource& source : scope->sources) {
    if (table.empty() && source.qualified_only) continue;
    if (!table.empty() && !table_matches(source, schema, table)) continue;
    if (!source.has_rowid) continue;
    ++*count;
    if (found == nullptr) found = &source;
  }
  return found;
}

std::string full_name(std::string_view schema, std::string_view table, std::string_view column) {
  std::string text;
  if (!schema.empty()) text += std::string(schema) + ".";
  if (!table.empty()) text += std::string(table) + ".";
  return text + std::string(column);
}

}  // namespace

// nullptr without *failed: no such column.
Expr* Binder::lookup(std::string_view schema, std::string_view table, std::string_view name,
                     Scope* scope, const sql::ColumnExpr& syntax, bool* failed) {
  for (Scope* at = scope; at != nullptr; at = at->parent) {
    if (table.empty()) {
      for (const ScopeColumn& merged : at->coalesced) {
        if (!equal_nocase(merged.name, name)) continue;
        Expr* expr = phase_wrap(merged.expr, at);
        if (at != scope) note_outer(expr, scope, at);
        return expr;
      }
    }
    Found found = search(at, schema, table, name);
    if (found.count > 1) {
      fail("ambiguous column name: " + full_name(schema, table, name),
           static_cast<int>(syntax.span.begin));
      *failed = true;
      return nullptr;
    }
    if (found.count == 1) {
      Expr* expr = column_of(*found.source, found.column);
      if (expr == nullptr) {
        *failed = true;
        return nullptr;
      }
      if (found.source->table != nullptr && session_.hooks.authorizer) {
        const Table& owner = *found.source->table;
        std::string_view column =
            found.column < static_cast<int>(owner.columns.size())
                ? std::string_view(owner.columns[static_cast<size_t>(found.column)].name)
                : name;
        if (!authorize(20, owner.name, column, owner.schema->name)) {
          if (this->failed()) {
            *failed = true;
            return nullptr;
          }
          return make_const(Value());
        }
      }
      expr = phase_wrap(expr, at);
      if (at != scope) note_outer(expr, scope, at);
      return expr;
    }
    if (is_rowid_name(name)) {
      int count = 0;
      ScopeSource* source = rowid_source(at, schema, table, &count);
      if (count == 1 || (count > 1 && !table.empty())) {
        Expr* expr = phase_wrap(bind_rowid(*source), at);
        if (at != scope) note_outer(expr, scope, at);
        return expr;
      }
    }
    if (table.empty() && at->aliases_visible && at->results != nullptr) {
      for (u32 i = 0; i < at->results->size(); ++i) {
        const sql::ResultColumn& result = (*at->results)[i];
        if (!result.alias.present() || !equal_nocase(result.alias.text, name)) continue;
        at->aliases_visible = false;  // an alias cannot be defined by itself
        Expr* expr = nullptr;
        if (contains_aggregate(result.expr) && !at->aggregates_allowed) {
          fail("misuse of aliased aggregate " + std::string(name),
               static_cast<int>(syntax.span.begin));
        } else {
          expr = bind(result.expr, at);
        }
        at->aliases_visible = true;
        *failed = expr == nullptr;
        if (expr != nullptr && at != scope) note_outer(expr, scope, at);
        return expr;
      }
    }
  }
  return nullptr;
}

Expr* Binder::bind_column(const sql::ColumnExpr& column, Scope* scope) {
  bool lookup_failed = false;
  std::string_view table = column.table.present() ? column.table.text : std::string_view();
  std::string_view schema = column.schema.present() ? column.schema.text : std::string_view();
  Expr* expr = lookup(schema, table, column.column.text, scope, column, &lookup_failed);
  if (expr != nullptr || lookup_failed) return expr;
  std::string_view name = column.column.text;
  if (!column.table.present()) {
    if (column.column.quote == sql::Quote::kNone) {
      if (equal_nocase(name, "true")) return make_const(Value::integer(1));
      if (equal_nocase(name, "false")) return make_const(Value::integer(0));
    }
    if (column.column.quote == sql::Quote::kDouble) {
      bool allowed = session_.config_on(dqs_ddl != 0 ? DbConfig::kDqsDdl : DbConfig::kDqsDml);
      if (allowed) return make_const(Value::borrowed_text(name));
      fail("no such column: \"" + std::string(name) +
               "\" - should this be a string literal in single-quotes?",
           static_cast<int>(column.span.begin));
      return nullptr;
    }
  }
  fail("no such column: " + full_name(schema, table, name), static_cast<int>(column.span.begin));
  return nullptr;
}

}  // namespace db
