// WITH: common tables, recursive ones too; table-valued functions in FROM.
#include "db/plan/binder.h"

namespace db {

void Binder::push_with(const sql::With* with, Scope* scope) {
  cte_scopes_.push_back(std::make_unique<CteScope>());
  CteScope* env = cte_scopes_.back().get();
  env->parent = cte_;
  env->scope = scope;
  env->sql = sql;
  for (const sql::CommonTable* table : with->tables) {
    for (const CteEntry& earlier : env->entries) {
      if (equal_nocase(earlier.cte->name.text, table->name.text)) {
        fail("duplicate WITH table name: " + std::string(table->name.text));
      }
    }
    CteEntry entry;
    entry.cte = table;
    for (const sql::Name& name : table->columns) entry.columns.push_back(name.text);
    env->entries.push_back(std::move(entry));
  }
  cte_ = env;
}

CteEntry* Binder::find_cte(const sql::Name& name, CteScope** env) {
  for (CteScope* at = cte_; at != nullptr; at = at->parent) {
    for (CteEntry& entry : at->entries) {
      if (equal_nocase(entry.cte->name.text, name.text)) {
        *env = at;
        return &entry;
      }
    }
  }
  return nullptr;
}

namespace {

bool mentions(const sql::From* from, std::string_view name);

bool mentions(const sql::SelectCore* core, std::string_view name) {
  return core->from != nullptr && mentions(core->from, name);
}

bool mentions(const sql::Select* select, std::string_view name) {
  for (const sql::SelectArm& arm : select->arms) {
    if (mentions(arm.core, name)) return true;
  }
  return false;
}

bool mentions(const sql::From* from, std::string_view name) {
  for (const sql::Source* source : from->sources) {
    if (source->kind == sql::SourceKind::kTable && !source->schema.present() &&
        equal_nocase(source->name.text, name)) {
      return true;
    }
    if (source->select != nullptr && mentions(source->select, name)) return true;
    if (source->nested != nullptr && mentions(source->nested, name)) return true;
  }
  return false;
}

}  // namespace

bool Binder::bind_cte(CteScope* env, CteEntry& entry, const sql::Source* source, Scope* scope,
                      FromPlan* plan, bool may_flatten) {
  std::string_view name = entry.cte->name.text;
  std::string_view alias = source->alias.present() ? source->alias.text : name;
  const auto* names = entry.columns.empty() ? nullptr : &entry.columns;
  if (entry.recursive != nullptr) {
    // Inside a recursive arm: the row that the queue just gave.
    RowPlan* rows = entry.recursive;
    if (++entry.recursive_uses > 1) {
      return fail("multiple references to recursive table: " + std::string(name));
    }
    if (!add_rows_source(rows, nullptr, alias, names, source, scope, plan)) return false;
    SourcePlan* item = plan->sources.back();
    item->rows = nullptr;
    item->recursive_id = rows->recursive_id;
    item->correlated = true;
    return true;
  }
  if (entry.being_bound) return fail("circular reference: " + std::string(name));
  bool recursive = false;
  const sql::Select* select = entry.cte->select;
  for (u32 i = 1; i < select->arms.size(); ++i) recursive |= mentions(select->arms[i].core, name);
  ++entry.uses;
  CteScope* saved = cte_;
  cte_ = env;
  bool bound = false;
  bool share = recursive || entry.uses > 1 || entry.cte->materialize == sql::Materialize::kYes;
  if (!share) {
    entry.being_bound = true;
    bool inline_it = may_flatten;
    bound = bind_subquery_source(select, alias, names, source, scope, env->scope, plan, inline_it);
    entry.being_bound = false;
    // A grouped query stays one item; a second use may read the rows of this one.
    bool grouped = select->arms.size() == 1 && !select->arms[0].core->group_by.empty();
    if (bound && grouped && !plan->sources.back()->correlated) {
      entry.first_item = plan->sources.back();
    }
  } else {
    if (entry.shared == nullptr && entry.first_item != nullptr) {
      entry.shared = entry.first_item->shared;
      if (entry.shared != nullptr) entry.first_item->materialized = true;
    }
    if (entry.shared == nullptr) {
      SubqueryNode* node = new_subquery();
      entry.being_bound = true;
      node->plan =
          recursive ? bind_recursive(env, entry, node) : bind_select(select, env->scope, node);
      entry.being_bound = false;
      if (node->plan != nullptr) entry.shared = node;
    }
    bound = entry.shared != nullptr &&
            add_rows_source(entry.shared->plan, entry.shared, alias, names, source, scope, plan);
    if (bound && !recursive) plan->sources.back()->materialized = true;
  }
  cte_ = saved;
  return bound;
}

RowPlan* Binder::bind_recursive(CteScope* env, CteEntry& entry, SubqueryNode* node) {
  const sql::Select* select = entry.cte->select;
  std::string_view name = entry.cte->name.text;
  if (select->with != nullptr) push_with(select->with, env->scope);
  u32 first = 1;
  while (!mentions(select->arms[first].core, name)) ++first;
  RowPlan* start = bind_arms(select, 0, first, env->scope, node);
  if (start == nullptr) return nullptr;
  auto* plan = arena_.make<RowPlan>();
  plan->kind = RowKind::kRecursive;
  plan->width = start->width;
  plan->recursive_id = recursive_count_++;
  plan->first_recursive = 1;
  plan->arms.push(arena_, start);
  for (const RowColumn& column : start->columns) plan->columns.push(arena_, column);
  if (!entry.columns.empty() && static_cast<int>(entry.columns.size()) != plan->width) {
    fail("table " + std::string(name) + " has " + std::to_string(plan->width) + " values for " +
         std::to_string(entry.columns.size()) + " columns");
    return nullptr;
  }
  for (u32 i = first; i < select->arms.size(); ++i) {
    const sql::SelectArm& arm = select->arms[i];
    if (arm.op != sql::CompoundOp::kUnion && arm.op != sql::CompoundOp::kUnionAll) {
      fail("circular reference: " + std::string(name));
      return nullptr;
    }
    if (arm.op == sql::CompoundOp::kUnion) plan->recursive_union_all = false;
    entry.recursive = plan;
    entry.recursive_uses = 0;
    RowPlan* one = bind_core(arm.core, select, env->scope, node);
    entry.recursive = nullptr;
    if (one == nullptr) return nullptr;
    if (one->aggregate != nullptr) {
      fail("recursive aggregate queries not supported");
      return nullptr;
    }
    if (one->window != nullptr) {
      fail("cannot use window functions in recursive queries");
      return nullptr;
    }
    if (one->width != plan->width) {
      fail(std::string("SELECTs to the left and right of UNION") +
           (plan->recursive_union_all ? " ALL" : "") +
           " do not have the same number of result columns");
      return nullptr;
    }
    plan->arms.push(arena_, one);
  }
  if (!bind_compound_order_by(select, plan)) return nullptr;
  if (!bind_limit(select, env->scope, plan)) return nullptr;
  if (select->with != nullptr) pop_with();
  plan->estimated_rows = 1000;
  return plan;
}

}  // namespace db
