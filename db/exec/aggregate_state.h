// What row-wise and vectorised aggregation share: the accumulators of a group, their results, and
// the order in which groups come out (by key). A derived class reads the input.
//
// sum(), avg() and total() follow SQLite: exact in integers, compensated in reals, "integer
// overflow" for sum(). Bare columns come from the group's first row, or from the row that gave
// min() or max() its value. Single-threaded.
#pragma once

#include "db/exec/row_stream.h"
#include "db/exec/value_set.h"

#include <cmath>
#include <memory>
#include <vector>

namespace db {

// Aggregates with code of their own.
enum class Fast : u8 { kNone, kCountStar, kCount, kSum, kTotal, kAvg, kMin, kMax };

Fast fast_kind(const AggregateCall& call);

// sum(), total(), avg(): exact in integers until a real comes, then with a running compensation.
struct Sum {
  i64 integer = 0;
  f64 real = 0, error = 0;
  i64 count = 0;
  bool approximate = false, overflow = false;

  void add_real(f64 value) {
    f64 total = real + value;
    error += std::fabs(real) > std::fabs(value) ? (real - total) + value : (value - total) + real;
    real = total;
  }
  void add_integer(i64 value) {
    if (value <= -4503599627370496 || value >= 4503599627370496) {
      i64 small = value % 16384;
      add_real(static_cast<f64>(value - small));
      add_real(static_cast<f64>(small));
    } else {
      add_real(static_cast<f64>(value));
    }
  }
  // add() for a real.
  void add_value(f64 value) {
    ++count;
    if (!approximate) start_real();
    overflow = false;
    add_real(value);
  }
  void start_real() {
    approximate = true;
    real = error = 0;
    add_integer(integer);
  }
  void add(const Value& value) {
    ++count;
    Value number = value;
    if (number.is_text()) apply_numeric_affinity(number);
    if (number.is_integer()) {
      i64 v = number.raw_integer();
      if (!approximate) {
        i64 sum = 0;
        if (!__builtin_add_overflow(integer, v, &sum)) {
          integer = sum;
          return;
        }
        overflow = true;
        start_real();
      }
      add_integer(v);
      return;
    }
    if (!approximate) start_real();
    overflow = false;
    add_real(number.to_real());
  }
  f64 value() const {
    if (!approximate) return static_cast<f64>(integer);
    return std::isfinite(error) ? real + error : real;
  }
};

struct Accumulator {
  Sum sum;
  Value best;
  std::unique_ptr<FunctionContext> context;
  std::unique_ptr<ValueSet> distinct;
  std::vector<Value> ordered;  // f(x ORDER BY y): arguments, then keys
};

class AggregateStream : public SlotStream {
 public:
  explicit AggregateStream(const AggregatePlan& plan);
  void open(Cx& cx) override;
  bool next(Cx& cx) override;
  void close(Cx& cx) override;

 protected:
  // Fills accumulators_ and bare_: one set for each group, in order of first appearance.
  virtual void read(Cx& cx) = 0;
  virtual const Value* key(size_t group) const = 0;

  void add_group();
  Accumulator& accumulator(size_t group, size_t call) {
    return accumulators_[group * plan_.calls.size() + call];
  }
  // One row's arguments. True when min() or max() found a better row.
  bool step_value(u32 call, Accumulator& to, const Value& value);
  void step_args(u32 call, Accumulator& to, std::span<Value> args, std::span<const Value> order,
                 Cx& cx);
  void take_bare(size_t group, Cx& cx);

  const AggregatePlan& plan_;
  size_t keys_;
  size_t groups_ = 0;
  std::vector<Fast> kinds_;
  std::vector<Accumulator> accumulators_;
  std::vector<Value> bare_;

 private:
  bool group_less(u32 a, u32 b) const;
  static bool is_first(const AggregateCall& call, Accumulator& to, const Value* value);
  void call_step(const AggregateCall& call, Accumulator& to, std::span<Value> args, Cx& cx);
  void step_ordered(const AggregateCall& call, Accumulator& to, Cx& cx);
  void finish(u32 index, Accumulator& from, Cx& cx, Value& out);

  std::vector<u32> order_;
  std::vector<Value> out_;
  size_t at_ = 0;
};

}  // namespace db
