// Subqueries at run time: answers are computed once for uncorrelated ones, and remembered by the
// enclosing values for correlated ones.
#pragma once

#include "db/exec/row_stream.h"

namespace db {

void eval_scalar_subquery(const Expr* expr, Cx& cx, Value& out);
int eval_exists(const Expr* expr, Cx& cx);
int eval_in_select(const Expr* expr, Cx& cx);
// The distinct non-NULL values of a one-column IN query, for index lookups.
ValueSet* in_select_values(const Expr* expr, Cx& cx);
// All rows of a query in FROM; nullptr after an error. Computed again only when the enclosing
// values that it reads have changed.
RowBuffer* subquery_rows(const SubqueryNode* node, Cx& cx);

}  // namespace db
