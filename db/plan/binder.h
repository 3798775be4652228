// Turns syntax trees into bound expressions and plans: name resolution with SQLite's rules and
// texts, star expansion, aggregates and windows, flattening of views and subqueries, planning of
// each query's joins.
//
// One Binder serves one statement (and one trigger program): it numbers slots and subqueries, and
// collects the schema objects that the plan must keep alive. Functions return nullptr or false
// after a failure; the first failure is kept in error(). Single-threaded.
#pragma once

#include "db/plan/plan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace db {

// The text that spans refer to, and whose rules apply.
struct SourceText {
  std::string_view sql;
};

// A column as name resolution sees it.
struct ScopeColumn {
  std::string_view name;
  Expr* expr = nullptr;    // null: made on demand from the slot
  std::string_view table;  // nested joins: the alias it can be qualified with
  std::string_view declared_type;
  bool hidden = false;  // not part of *
};

// One FROM item in scope.
struct ScopeSource {
  std::string_view alias;
  std::string_view schema;
  const Table* table = nullptr;  // null for subqueries
  SourcePlan* plan = nullptr;    // null when flattened away
  int slot = -1;
  bool has_rowid = false;
  bool nullable = false;                 // right side of a LEFT JOIN
  bool qualified_only = false;           // NEW, OLD, excluded: never found by a bare name
  bool row_based = false;                // the slot holds a row: columns, then the rowid
  std::vector<ScopeColumn> columns;      // empty for tables: their columns are read directly
  std::vector<std::string_view> merged;  // USING and NATURAL: same as a column to the left
  u8 join = 0;
  int column_count() const {
    return columns.empty() && table != nullptr ? static_cast<int>(table->columns.size())
                                               : static_cast<int>(columns.size());
  }
};

struct CteEntry {
  const sql::CommonTable* cte = nullptr;
  int uses = 0;
  SubqueryNode* shared = nullptr;
  SourcePlan* first_item = nullptr;  // a grouped table's first use
  bool being_bound = false;
  RowPlan* recursive = nullptr;  // while its recursive arms are bound
  int working_slot = -1;
  std::vector<std::string_view> columns;
  int recursive_uses = 0;
};

struct CteScope {
  CteScope* parent = nullptr;
  std::vector<CteEntry> entries;
  struct Scope* scope = nullptr;  // where the WITH stands
  std::string_view sql;
};

enum class Phase : u8 { kRow, kAggregate, kWindow };

struct Scope {
  Scope* parent = nullptr;
  SubqueryNode* node = nullptr;  // the subquery that this scope is the body of
  std::vector<ScopeSource> sources;
  Phase phase = Phase::kRow;
  AggregatePlan* aggregate = nullptr;
  WindowPlan* window = nullptr;
  bool aggregates_allowed = false;
  bool windows_allowed = false;
  bool in_aggregate_args = false;
  // Aliases of result columns, for WHERE, GROUP BY, HAVING and ORDER BY.
  const List<sql::ResultColumn>* results = nullptr;
  const List<Expr*>* bound_results = nullptr;
  bool aliases_visible = false;
  const List<sql::WindowSpec*>* windows = nullptr;
  // USING columns of RIGHT and FULL joins: whichever side is there.
  std::vector<ScopeColumn> coalesced;
  bool collect_star_tables = false;
};

struct Conjunct {
  Expr* expr = nullptr;
  bool is_argument = false;  // hidden column = argument of a table-valued function
  int on_source = -1;        // plan index of the outer join whose ON it is from; -1: none
  int inner_source = -1;     // plan index of the inner join whose ON it is from; -1: WHERE
};

// What a FROM clause became.
struct FromPlan {
  std::vector<SourcePlan*> sources;
  std::vector<u8> joins;  // join:: flags of each source
  std::vector<Conjunct> conjuncts;
  std::vector<const sql::Source*> syntax;  // for INDEXED BY; null when flattened from a view
  bool changes_first = false;  // UPDATE and DELETE: the rows of the first source are wanted whole
};

class Binder {
 public:
  Binder(Session& session, Arena& arena) : session_(session), arena_(arena) {}
  Binder(const Binder&) = delete;
  Binder& operator=(const Binder&) = delete;

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }
  Session& session() { return session_; }
  Arena& arena() { return arena_; }

  // --- expressions (bind_expr.cc)
  Expr* bind(const sql::Expr* expr, Scope* scope);
  // A row value: the items of (a, b), or the columns of a subquery's first row.
  bool bind_row(const sql::Expr* expr, Scope* scope, std::vector<Expr*>* out) {
    return row_items(expr, scope, out);
  }
  // --- building nodes (make_expr.cc)
  Expr* make_const(Value value);
  Expr* make_column(int slot, int column, const Column& definition);
  // `width`: columns of the table; the rowid of a row in memory lies behind them.
  Expr* make_rowid(int slot, int width);
  // Flags (and a COLLATE below) of a node whose operands are in place.
  static void inherit_operands(Expr* expr);
  // An expression of a subquery as a column of the outer query: it has an implicit collation.
  Expr* as_source_column(Expr* expr);
  Expr* make_slot_column(int slot, int column, const Expr* like);
  Expr* make_unary(Op op, Expr* operand);
  Expr* make_binary(Op op, Expr* left, Expr* right);
  Expr* make_comparison(Op op, Expr* left, Expr* right);
  Expr* make_and(Expr* left, Expr* right);
  Expr* make_function(const Function* function, std::string_view name, List<Expr*> args);
  Expr* make_cast(Expr* operand, Affinity affinity);

  // --- queries (bind_select.cc, bind_from.cc)
  RowPlan* bind_select(const sql::Select* select, Scope* parent, SubqueryNode* node);
  // Aliases, star expansion: the bound result columns of RETURNING and the like.
  bool bind_results(const List<sql::ResultColumn>& results, Scope* scope, List<Expr*>* out,
                    List<RowColumn>* columns);
  bool bind_from(const sql::From* from, Scope* scope, FromPlan* plan);
  bool split_conjuncts(const sql::Expr* expr, Scope* scope, Conjunct like,
                       std::vector<Conjunct>* out);
  void push_conjunct(Expr* expr, Conjunct like, std::vector<Conjunct>* out);
  // A table as the only source, for UPDATE, DELETE, CHECK, indexes on expressions, triggers.
  ScopeSource table_source(const Table* table, int slot, std::string_view alias);
  SourcePlan* table_plan(const Table* table, int slot, std::string_view name);
  // Plans the join of `from` (plan_join.cc). `order` may be null.
  JoinPlan* plan_join(FromPlan& from, const List<SortKey>* order, const List<Expr*>* outs,
                      bool has_limit, RowPlan* row = nullptr);

  // --- names
  Table* find_table(const sql::Name& schema, const sql::Name& name);  // fails: no such table
  void keep(const Table* table);
  bool view_columns(Table* table);  // fills in the columns of a view
  void push_with(const sql::With* with, Scope* scope);
  void pop_with() { cte_ = cte_->parent; }
  bool authorize(int action, std::string_view a, std::string_view b, std::string_view schema);

  int new_slot() { return slot_count_++; }
  int slot_count() const { return slot_count_; }
  SubqueryNode* new_subquery();
  int subquery_count() const { return subquery_count_; }

  bool fail(std::string message, int offset = -1) {
    return fail(rc::kError, std::move(message), offset);
  }
  bool fail(int code, std::string message, int offset = -1);

  // The text that the trees being bound were parsed from; views and triggers switch it.
  std::string_view sql;
  // Set while the body of a trigger is bound.
  const Table* trigger_table = nullptr;
  int new_slot_row = -1;  // NEW, OLD: slots, -1 when not there
  int old_slot_row = -1;
  bool in_trigger = false;
  bool in_check = false;                   // no subqueries, no parameters
  const char* prohibited_place = nullptr;  // e.g. "CHECK constraints": texts of errors
  int dqs_ddl = 0;                         // double-quoted strings are errors when set
  // Where unqualified tables are looked for: the view's or trigger's own schema; null: everywhere.
  const Schema* home = nullptr;
  bool from_schema = false;  // binding a view, trigger, index: direct-only functions fail
  std::vector<std::shared_ptr<const void>> kept;
  std::vector<const Table*> tables_used;
  std::vector<int> databases_used;
  std::string_view auth_trigger;  // innermost trigger or view name
  int view_depth = 0;
  bool has_volatile = false;

 private:
  friend class SelectBinder;
  Expr* bind_column(const sql::ColumnExpr& column, Scope* scope);
  Expr* lookup(std::string_view schema, std::string_view table, std::string_view column,
               Scope* scope, const sql::ColumnExpr& syntax, bool* failed);
  Expr* column_of(ScopeSource& source, int column);
  Expr* generated_column(const ScopeSource& source, const Column& column);
  Expr* phase_wrap(Expr* expr, Scope* scope);
  Expr* carry_through_aggregate(Expr* expr, AggregatePlan& aggregate);
  void note_outer(Expr* expr, Scope* from, Scope* owner);
  Expr* bind_literal(const sql::LiteralExpr& literal);
  Expr* bind_unary(const sql::UnaryExpr& unary, Scope* scope);
  Expr* bind_binary(const sql::BinaryExpr& binary, Scope* scope);
  Expr* bind_row_comparison(Op op, const sql::BinaryExpr& binary, Scope* scope);
  bool row_items(const sql::Expr* expr, Scope* scope, std::vector<Expr*>* out);
  int row_width(const sql::Expr* expr);
  Expr* bind_in(const sql::InExpr& in, Scope* scope);
  Expr* bind_between(const sql::BetweenExpr& between, Scope* scope);
  Expr* bind_case(const sql::CaseExpr& syntax, Scope* scope);
  Expr* bind_function(const sql::FunctionExpr& call, Scope* scope);
  Expr* bind_aggregate(const sql::FunctionExpr& call, const Function* function, Scope* scope);
  Expr* bind_window(const sql::FunctionExpr& call, const Function* function, Scope* scope);
  Expr* bind_like(const sql::LikeExpr& like, Scope* scope);
  Expr* bind_subquery(const sql::Select* select, Scope* scope, Op op);
  Expr* bind_rowid(ScopeSource& source);
  bool bind_args(const List<sql::Expr*>& syntax, Scope* scope, List<Expr*>* out);
  const sql::Select* select_of_table(const sql::InExpr& in);
  Expr* subquery_column(SubqueryNode* node, int column, Op op);
  Expr* row_column(SubqueryNode* node, int column);
  Expr* fold(Expr* expr);
  bool bind_source(const sql::Source* source, Scope* scope, FromPlan* plan, bool may_flatten);
  bool bind_subquery_source(const sql::Select* select, std::string_view alias,
                            const std::vector<std::string_view>* names, const sql::Source* source,
                            Scope* scope, Scope* outer, FromPlan* plan, bool may_flatten);
  bool flatten(const sql::Select* select, std::string_view alias,
               const std::vector<std::string_view>* names, const sql::Source* source, Scope* scope,
               Scope* outer, FromPlan* plan);
  bool can_flatten(const sql::Select* select);
  bool bind_view(Table* table, const sql::Source* source, Scope* scope, FromPlan* plan,
                 bool may_flatten);
  bool bind_nested(const sql::Source* source, Scope* scope, FromPlan* plan);
  bool bind_cte(CteScope* env, CteEntry& entry, const sql::Source* source, Scope* scope,
                FromPlan* plan, bool may_flatten);
  bool bind_table_function(const sql::Source* source, Scope* scope, FromPlan* plan);
  bool bind_join_condition(const sql::Source* source, Scope* scope, FromPlan* plan,
                           size_t first_scope, int plan_index);
  bool join_using(const std::vector<std::string_view>& names, bool natural,
                  const sql::Source* source, Scope* scope, FromPlan* plan, size_t first_scope,
                  int plan_index);
  bool add_rows_source(RowPlan* rows, SubqueryNode* node, std::string_view alias,
                       const std::vector<std::string_view>* names, const sql::Source* source,
                       Scope* scope, FromPlan* plan);
  CteEntry* find_cte(const sql::Name& name, CteScope** env);
  RowPlan* bind_recursive(CteScope* env, CteEntry& entry, SubqueryNode* node);
  RowPlan* bind_core(const sql::SelectCore* core, const sql::Select* select, Scope* parent,
                     SubqueryNode* node);
  RowPlan* bind_values(const sql::SelectCore* core, Scope* parent, SubqueryNode* node);
  bool bind_limit(const sql::Select* select, Scope* parent, RowPlan* plan);
  bool bind_order_by(const sql::Select* select, const sql::SelectCore* core, Scope* scope,
                     RowPlan* plan);
  bool bind_compound_order_by(const sql::Select* select, RowPlan* plan);
  bool bind_group_by(const sql::SelectCore* core, Scope* scope, AggregatePlan* aggregate);
  RowPlan* bind_arms(const sql::Select* select, u32 first, u32 count, Scope* parent,
                     SubqueryNode* node);
  bool expand_star(const sql::ResultColumn& result, Scope* scope, List<Expr*>* out,
                   List<RowColumn>* columns);
  RowColumn describe(Expr* expr, std::string_view name, Scope* scope);
  bool contains_aggregate(const sql::Expr* expr);
  bool contains_window(const sql::Expr* expr);
  Expr* register_window_input(Expr* expr, Scope* scope);
  int window_input(Expr* expr, Scope* scope);
  WindowGroup* window_group(const sql::WindowSpec* spec, Scope* scope, const Function* function);

  Session& session_;
  Arena& arena_;
  std::optional<Error> error_;
  CteScope* cte_ = nullptr;
  std::vector<const Table*> open_views_;
  std::vector<std::string_view>* star_tables_ = nullptr;  // nested joins: whose column each is
  std::vector<std::unique_ptr<CteScope>> cte_scopes_;
  std::vector<std::unique_ptr<Scope>> scopes_;
  struct Origin {
    int slot;
    const Table* table;
  };
  std::vector<Origin> origins_;
  int select_depth_ = 0;
  int generated_depth_ = 0;
  int slot_count_ = 0;
  int state_count_ = 0;
  int subquery_count_ = 0;
  int recursive_count_ = 0;

 public:
  Scope* new_scope(Scope* parent) {
    scopes_.push_back(std::make_unique<Scope>());
    scopes_.back()->parent = parent;
    return scopes_.back().get();
  }
  int recursive_count() const { return recursive_count_; }
  int state_count() const { return state_count_; }
};

// Calls `visit` for every node below and including `expr` until it answers false for one.
template <class Visit>
bool walk(Expr* expr, Visit&& visit) {
  if (expr == nullptr) return true;
  if (!visit(expr)) return false;
  if (!walk(expr->left, visit) || !walk(expr->right, visit)) return false;
  for (Expr* arg : expr->args) {
    if (!walk(arg, visit)) return false;
  }
  return true;
}

bool same_expr(const Expr* a, const Expr* b);
bool is_constant(const Expr* expr);  // no columns, no subqueries, nothing volatile
// The collation and affinity rules of SQLite.
const Collation* comparison_collation(const Expr* left, const Expr* right);
Affinity comparison_affinity(Affinity left, Affinity right);

}  // namespace db
