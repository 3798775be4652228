// Where batches come from: the scan of a FROM item, and the levels of a join on top of it.
//
//   auto source = make_pipeline(join, wanted);     // wanted: what is read after the join
//   source->open(cx);
//   while (Batch* batch = source->next(cx)) use(*batch, batch->selection);
//
// A batch has at least one selected row and is good until the next call; null is the end, or an
// error in cx. Rows come in the order in which the row executor would give them. Single-threaded.
#pragma once

#include "db/exec/level_run.h"
#include "db/exec/vector_expr.h"

namespace db {

using ColumnRefs = std::vector<ColumnRef>;
using VectorExprs = std::vector<std::unique_ptr<VectorExpr>>;

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual void open(Cx& cx) = 0;
  virtual Batch* next(Cx& cx) = 0;
  virtual void close(Cx&) {}
  // Its columns are known from the start; its rows after next().
  Batch& batch() { return batch_; }

 protected:
  Batch batch_;
};

// Takes the wanted columns of records apart into vectors.
class RowDecoder {
 public:
  // Columns of the table's item; those vectors outlive the decoder's use.
  RowDecoder(const Table& table, Batch& batch, int slot);
  // Text and blobs are copied into `arena` when there is one; else they point into `record`.
  void decode(u32 at, i64 rowid, std::string_view record, sql::Arena* arena) const;
  // The rows of these cells of a table leaf, up to the first that overflows; how many. Text and
  // blobs point into the page.
  u32 decode(u32 at, std::span<const Cell> cells) const;
  bool only_rowid() const { return items_.empty(); }

 private:
  struct Item {
    int place;  // in the record
    u32 skip;   // columns between the one before and this one, it included
    Vector* to;
    bool real;  // REAL columns store whole numbers as integers
    const Value* missing;
  };
  void take_any(const Item* item, u32 at, std::string_view record, sql::Arena* arena) const;
  void take(u32 at, i64 rowid, std::string_view record, sql::Arena* arena) const;
  static void put(const Item& item, u32 at, u64 type, const u8* body, std::ptrdiff_t room,
                  sql::Arena* arena);

  std::vector<Item> items_;  // by place
  std::vector<Vector*> rowids_;
};

// The first level, or the build side of a hash join. `first`: it may run a subquery as a stream.
std::unique_ptr<BatchSource> make_scan(const JoinLevel& level, const ColumnRefs& wanted,
                                       bool first);
// A level after `input`. `wanted`: columns of this and earlier items that its filters and
// everything behind it read. `expected`: rows that the input gives, as planned.
std::unique_ptr<BatchSource> make_join_level(const JoinLevel& level,
                                             std::unique_ptr<BatchSource> input,
                                             const ColumnRefs& wanted, f64 expected);
std::unique_ptr<BatchSource> make_pipeline(const JoinPlan& plan, const ColumnRefs& wanted);

void add_columns(Batch& batch, const ColumnRefs& wanted);
VectorExprs compile_all(const List<Expr*>& exprs, Batch& batch, Cx& cx);
// The value that the slot shows for the column; `width` is its item's.
void read_slot(const Slot& slot, int column, int width, Value& out, Cx& cx);

}  // namespace db
