// Table-valued functions in FROM: an eponymous virtual table whose hidden columns are arguments.
#include "db/catalog/virtual_table.h"
#include "db/plan/binder.h"

namespace db {

bool Binder::bind_table_function(const sql::Source* source, Scope* scope, FromPlan* plan) {
  std::string_view name = source->name.text;
  Table* table = session_.eponymous_table(name);
  if (table == nullptr) {
    return session_.find_table({}, name) != nullptr
               ? fail("'" + std::string(name) + "' is not a function")
               : fail("no such table: " + std::string(name));
  }
  std::string_view alias = source->alias.present() ? source->alias.text : name;
  int slot = new_slot();
  auto* item = arena_.make<SourcePlan>();
  item->kind = SourceKind::kVirtual;
  item->slot = slot;
  item->table = table;
  item->width = static_cast<int>(table->columns.size());
  item->name = alias;
  plan->sources.push_back(item);
  plan->joins.push_back(0);
  plan->syntax.push_back(source);
  ScopeSource in_scope = table_source(table, slot, alias);
  std::vector<int> hidden;
  for (size_t i = 0; i < table->columns.size(); ++i) {
    if (table->columns[i].hidden) hidden.push_back(static_cast<int>(i));
  }
  if (source->args.size() > hidden.size()) {
    return fail("too many arguments on " + std::string(name) + "() - max " +
                std::to_string(hidden.size()));
  }
  // f(a, b) means: hidden columns equal to a and b, which earlier items may give.
  for (u32 i = 0; i < source->args.size(); ++i) {
    Expr* arg = bind(source->args[i], scope);
    if (arg == nullptr) return false;
    Expr* column = make_slot_column(slot, hidden[i], nullptr);
    column->affinity = Affinity::kNone;
    Expr* equal = make_comparison(Op::kEq, column, arg);
    if (equal == nullptr) return false;
    Conjunct conjunct;
    conjunct.is_argument = true;
    conjunct.expr = equal;
    plan->conjuncts.push_back(conjunct);
  }
  scope->sources.push_back(std::move(in_scope));
  return true;
}

}  // namespace db
