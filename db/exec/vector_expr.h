// Expressions over batches. compile_vector() turns a bound expression into nodes that work on a
// whole selection at a time; what has no node of its own is evaluated row by row through the
// slots, with the row executor's code, so that every expression has the same meaning in both.
//
//   auto node = compile_vector(expr, batch, cx);   // once; columns are found in the batch
//   const Vector& values = node->eval(batch, selection, cx);
//   filter_batch(nodes, batch, cx);                // narrows batch.selection
//
// Results are good for the rows of the selection, until the node runs again. Errors go to cx.
#pragma once

#include "db/exec/context.h"
#include "db/exec/vector.h"

namespace db {

class VectorExpr {
 public:
  virtual ~VectorExpr() = default;
  virtual const Vector& eval(Batch& batch, const Selection& rows, Cx& cx) = 0;
  // -1 NULL, 0 false, 1 true, at the places of the rows.
  virtual void truth(Batch& batch, const Selection& rows, i8* out, Cx& cx);
};

// Shows a row of a batch in the context's slots.
class RowView {
 public:
  // Only the columns that the expressions read.
  void add(const Expr* expr, Batch& batch, Cx& cx);
  void show(u32 row, Cx& cx);

 private:
  struct SlotRow {
    int slot = 0;
    std::vector<Value> values;
    std::vector<std::pair<int, const Vector*>> columns;
  };
  std::vector<SlotRow> slots_;
};

std::unique_ptr<VectorExpr> compile_vector(const Expr* expr, Batch& batch, Cx& cx);
void filter_batch(const std::vector<std::unique_ptr<VectorExpr>>& filters, Batch& batch, Cx& cx);

// Every column that evaluating it reads, those that its subqueries read of this row included.
void collect_columns(const Expr* expr, std::vector<ColumnRef>* out);

}  // namespace db
