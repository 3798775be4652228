// The plain columns of a projection, read from each table's record in one walk instead of one
// column after the other: what SELECT a, b, c and INSERT ... SELECT * spend most of their time on.
//
// Values borrow as those of TableCursor::column() do. Single-threaded; belongs to one projection.
#pragma once

#include "db/exec/context.h"

#include <vector>

namespace db {

// One of them: its place in the record and in the output row.
struct ColumnPick {
  int column = 0;
  int record_at = 0;
  u32 out = 0;
  bool is_real = false;  // of REAL affinity, whose integral values are stored as integers
};

class ColumnPicks {
 public:
  explicit ColumnPicks(const List<Expr*>& out);
  // Fills all of `out`, an array as long as the list. Errors go to the context.
  void read(Cx& cx, Value* out);

 private:
  // The columns of one slot.
  struct Group {
    int slot = 0;
    std::vector<u32> outs;                // the rowid's too
    const TableCursor* cursor = nullptr;  // that `picks` was made for, and its table and index then
    const Table* table = nullptr;
    const Index* index = nullptr;
    std::vector<ColumnPick> picks;  // in the order of the record; empty: column by column
    std::vector<u32> others;        // outs that are not among them
  };
  void prepare(Group& group, const TableCursor& cursor);
  void eval_each(const std::vector<u32>& outs, Cx& cx, Value* out) const;

  const List<Expr*>& exprs_;
  std::vector<Group> groups_;
  std::vector<u32> rest_;  // no columns, or alone in their slot
};

}  // namespace db
