// Operators that produce rows of values, and those that position slots.
//
//   auto stream = make_stream(*plan, cx);
//   stream->open(cx);
//   while (stream->next(cx)) use(stream->row());
//
// next() is false at the end and after an error (cx.failed() tells). A row is good until the next
// call. open() may be called again to start over.
#pragma once

#include "db/exec/context.h"

#include <memory>
#include <vector>

namespace db {

class RowStream {
 public:
  virtual ~RowStream() = default;
  virtual void open(Cx& cx) = 0;
  virtual bool next(Cx& cx) = 0;
  // As next(), for whom it is enough that slots show the row: row() may be anything then.
  virtual bool move(Cx& cx) { return next(cx); }
  // Lets go of cursors and buffers.
  virtual void close(Cx&) {}
  Value* row() { return row_; }

 protected:
  Value* row_ = nullptr;
};

// Positions slots; the rows are whatever the slots show.
class SlotStream {
 public:
  virtual ~SlotStream() = default;
  virtual void open(Cx& cx) = 0;
  virtual bool next(Cx& cx) = 0;
  virtual void close(Cx&) {}
};

std::unique_ptr<RowStream> make_stream(const RowPlan& plan, Cx& cx);
std::unique_ptr<SlotStream> make_join(const JoinPlan& plan, Cx& cx);
std::unique_ptr<SlotStream> make_aggregate(const AggregatePlan& plan,
                                           std::unique_ptr<SlotStream> input, Cx& cx);
std::unique_ptr<SlotStream> make_window(const WindowPlan& plan, std::unique_ptr<SlotStream> input,
                                        Cx& cx);
std::unique_ptr<RowStream> make_compound(const RowPlan& plan, Cx& cx);
std::unique_ptr<RowStream> make_recursive(const RowPlan& plan, Cx& cx);
std::unique_ptr<RowStream> make_sort(const RowPlan& plan, std::unique_ptr<RowStream> input,
                                     int width, Cx& cx);
std::unique_ptr<RowStream> make_limit(const RowPlan& plan, std::unique_ptr<RowStream> input);

// LIMIT and OFFSET as numbers; no limit is -1. False after "datatype mismatch".
bool eval_limit(const RowPlan& plan, Cx& cx, i64* limit, i64* offset);

// Compares rows by sort keys.
class RowOrder {
 public:
  explicit RowOrder(const List<SortKey>& keys) : keys_(keys) {}
  int compare(const Value* a, const Value* b) const;
  // As sort_prefix() of the first key. REQUIRES: !empty().
  u64 prefix(const Value* row) const;
  bool empty() const { return keys_.empty(); }

 private:
  List<SortKey> keys_;
};

}  // namespace db
