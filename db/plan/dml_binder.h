// Binds INSERT, UPDATE and DELETE; `parent` is the scope of a trigger's NEW and OLD, or null.
// nullptr after a failure, which the Binder keeps. Single-threaded.
#pragma once

#include "db/catalog/virtual_table.h"
#include "db/plan/binder.h"
#include "db/plan/dml_plan.h"

namespace db {

class DmlBinder {
 public:
  DmlBinder(Binder& binder, Scope* parent) : binder_(binder), parent_(parent) {}

  DmlPlan* insert(const sql::InsertStatement& statement);
  DmlPlan* update(const sql::UpdateStatement& statement);
  DmlPlan* remove(const sql::DeleteStatement& statement);
  WritePlan* write_plan(const Table* table);

 private:
  Table* target(const sql::TargetTable& target, const char* verb);
  bool check_view(const Table& table, sql::TriggerEvent event);
  bool bind_generated(const Table& table, Scope* scope, WritePlan* plan);
  Scope* row_scope(const Table* table, int slot);
  Scope* nullptr_scope() { return binder_.new_scope(parent_); }
  bool bind_returning(const List<sql::ResultColumn>& returning, const Table* table,
                      std::string_view alias, DmlPlan* plan);
  bool bind_upsert(const sql::Upsert& upsert, const Table& table,
                   const sql::InsertStatement& statement, DmlPlan* plan);
  bool find_upsert_index(const sql::Upsert& upsert, const Table& table, UpsertPlan* one);
  bool bind_assignments(const List<sql::Assignment>& set, const Table& table, Scope* scope,
                        List<int>* columns, List<Expr*>* values);
  RowPlan* target_scan(const Table* table, const sql::TargetTable& syntax, const sql::From* from,
                       const sql::Expr* where, Scope** scope_out, DmlPlan* plan,
                       FromPlan* from_plan);
  bool finish_scan(RowPlan* rows, FromPlan& from_plan, const List<sql::OrderTerm>& order_by,
                   const sql::Expr* limit, const sql::Expr* offset, Scope* scope, DmlPlan* plan);

  Binder& binder_;
  Scope* parent_;
};

}  // namespace db
