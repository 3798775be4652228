// Evaluation of bound expressions. Values that come back may borrow from cursors and rows: keep()
// what must survive the next move. Errors go to the context.
#pragma once

#include "db/exec/context.h"

namespace db {

void eval(const Expr* expr, Cx& cx, Value& out);
// -1 NULL, 0 false, 1 true.
int eval_truth(const Expr* expr, Cx& cx);
// What a comparison with this affinity does to one side.
void apply_comparison_affinity_one(Affinity affinity, Value& value);
// All of them true?
inline bool eval_all(const List<Expr*>& filters, Cx& cx) {
  for (const Expr* filter : filters) {
    if (eval_truth(filter, cx) != 1) return false;
  }
  return true;
}

}  // namespace db
