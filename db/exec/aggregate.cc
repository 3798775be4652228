// GROUP BY and aggregates: a hash table of groups; groups come out in key order.
#include "db/exec/eval.h"
#include "db/exec/row_stream.h"

#include <algorithm>
#include <cmath>

namespace db {
namespace {

enum class Fast : u8 { kNone, kCountStar, kCount, kSum, kTotal, kAvg, kMin, kMax };

Fast fast_kind(const AggregateCall& call) {
  if (!call.function->has(function_flag::kBuiltIn) || !call.order.empty()) return Fast::kNone;
  std::string_view name = call.function->name;
  if (equal_nocase(name, "count")) return call.args.empty() ? Fast::kCountStar : Fast::kCount;
  if (call.args.size() != 1) return Fast::kNone;
  if (equal_nocase(name, "sum")) return Fast::kSum;
  if (equal_nocase(name, "total")) return Fast::kTotal;
  if (equal_nocase(name, "avg")) return Fast::kAvg;
  if (equal_nocase(name, "min")) return Fast::kMin;
  if (equal_nocase(name, "max")) return Fast::kMax;
  return Fast::kNone;
}

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

class Aggregate : public SlotStream {
 public:
  Aggregate(const AggregatePlan& plan, std::unique_ptr<SlotStream> input)
      : plan_(plan), input_(std::move(input)), groups_count_(plan.groups.size()) {
    for (const AggregateCall* call : plan.calls) kinds_.push_back(fast_kind(*call));
  }

  void open(Cx& cx) override {
    groups_ = std::make_unique<ValueSet>(static_cast<int>(groups_count_),
                                         groups_count_ == 0 ? nullptr : &plan_.group_collations[0]);
    accumulators_.clear();
    bare_.clear();
    order_.clear();
    at_ = 0;
    input_->open(cx);
    read(cx);
    input_->close(cx);
    if (cx.failed()) return;
    if (groups_count_ == 0 && accumulators_.empty()) add_group();
    size_t count = groups_count_ == 0 ? 1 : groups_->size();
    order_.resize(count);
    for (size_t i = 0; i < count; ++i) order_[i] = static_cast<u32>(i);
    if (groups_count_ > 0) {
      std::sort(order_.begin(), order_.end(), [&](u32 a, u32 b) { return group_less(a, b); });
    }
    out_.assign(static_cast<size_t>(plan_.width), Value());
  }

  bool next(Cx& cx) override {
    if (cx.failed() || at_ >= order_.size()) return false;
    size_t group = order_[at_++];
    for (size_t i = 0; i < groups_count_; ++i) out_[i] = groups_->row(group)[i];
    for (u32 i = 0; i < plan_.calls.size(); ++i) {
      finish(i, accumulators_[group * plan_.calls.size() + i], cx,
             out_[static_cast<size_t>(plan_.calls[i]->output)]);
    }
    for (u32 i = 0; i < plan_.bare.size(); ++i) {
      out_[static_cast<size_t>(plan_.bare_outputs[i])] = bare_[group * plan_.bare.size() + i];
    }
    Slot& slot = cx.slots[static_cast<size_t>(plan_.slot)];
    slot.row = out_.data();
    slot.null_row = false;
    return !cx.failed();
  }

  void close(Cx&) override {
    groups_.reset();
    accumulators_.clear();
    bare_.clear();
    order_.clear();
  }

 private:
  bool group_less(u32 a, u32 b) const {
    for (u32 i = 0; i < groups_count_; ++i) {
      int order = compare(groups_->row(a)[i], groups_->row(b)[i], plan_.group_collations[i]);
      if (order != 0) return (order < 0) != plan_.group_descending[i];
    }
    return a < b;
  }

  void add_group() {
    accumulators_.resize(accumulators_.size() + std::max<size_t>(1, plan_.calls.size()));
    bare_.resize(bare_.size() + plan_.bare.size());
  }

  void read(Cx& cx) {
    std::vector<Value> key(groups_count_);
    while (input_->next(cx)) {
      size_t group = 0;
      bool is_new = false;
      if (groups_count_ > 0) {
        for (u32 i = 0; i < groups_count_; ++i) eval(plan_.groups[i], cx, key[i]);
        group = groups_->insert(key.data(), &is_new);
      } else {
        is_new = accumulators_.empty();
      }
      if (is_new) add_group();
      bool take_bare = is_new;
      for (u32 i = 0; i < plan_.calls.size(); ++i) {
        bool better = step(i, accumulators_[group * plan_.calls.size() + i], cx);
        if (static_cast<int>(i) == plan_.min_max && better) take_bare = true;
      }
      if (take_bare) {
        for (u32 i = 0; i < plan_.bare.size(); ++i) {
          Value& to = bare_[group * plan_.bare.size() + i];
          eval(plan_.bare[i], cx, to);
          to.keep();
        }
      }
      if (cx.failed()) return;
    }
  }

  // True when min() or max() found a better row.
  bool step(u32 index, Accumulator& to, Cx& cx) {
    const AggregateCall& call = *plan_.calls[index];
    if (call.filter != nullptr && eval_truth(call.filter, cx) != 1) return false;
    Fast kind = kinds_[index];
    if (kind == Fast::kCountStar) {
      ++to.sum.count;
      return false;
    }
    if (kind == Fast::kNone) {
      step_general(call, to, cx);
      return call.function->has(function_flag::kMinMax);
    }
    Value value;
    eval(call.args[0], cx, value);
    if (value.is_null()) return false;
    if (call.distinct && !is_first(call, to, &value)) return false;
    switch (kind) {
      case Fast::kCount:
        ++to.sum.count;
        return false;
      case Fast::kMin:
      case Fast::kMax: {
        bool first = to.sum.count++ == 0;
        int order = first ? 0 : compare(value, to.best, call.collation);
        bool better = first || (kind == Fast::kMin ? order < 0 : order > 0);
        if (better) {
          to.best = value;
          to.best.keep();
        }
        return better;
      }
      default:
        to.sum.add(value);
        return false;
    }
  }

  bool is_first(const AggregateCall& call, Accumulator& to, const Value* value) {
    if (to.distinct == nullptr) to.distinct = std::make_unique<ValueSet>(1, &call.collation);
    bool is_new = false;
    to.distinct->insert(value, &is_new);
    return is_new;
  }

  void step_general(const AggregateCall& call, Accumulator& to, Cx& cx) {
    std::vector<Value> args(call.args.size());
    for (u32 i = 0; i < call.args.size(); ++i) eval(call.args[i], cx, args[i]);
    if (call.distinct && !is_first(call, to, args.data())) return;
    if (!call.order.empty()) {
      for (Value& value : args) {
        to.ordered.push_back(value);
        to.ordered.back().keep();
      }
      for (const SortKey& key : call.order) {
        to.ordered.emplace_back();
        eval(key.expr, cx, to.ordered.back());
        to.ordered.back().keep();
      }
      return;
    }
    call_step(call, to, args, cx);
  }

  void call_step(const AggregateCall& call, Accumulator& to, std::span<Value> args, Cx& cx) {
    if (to.context == nullptr) {
      to.context = std::make_unique<FunctionContext>(*call.function, &cx.session);
      to.context->set_collation(call.collation);
    }
    call.function->step(*to.context, args);
    if (to.context->error_code() != 0) {
      cx.fail(to.context->error_code(), to.context->error_message());
    }
  }

  void step_ordered(const AggregateCall& call, Accumulator& to, Cx& cx) {
    size_t args = call.args.size();
    size_t stride = args + call.order.size();
    std::vector<u32> places(to.ordered.size() / stride);
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<u32>(i);
    std::sort(places.begin(), places.end(), [&](u32 a, u32 b) {
      for (u32 k = 0; k < call.order.size(); ++k) {
        const SortKey& key = call.order[k];
        const Value& x = to.ordered[a * stride + args + k];
        const Value& y = to.ordered[b * stride + args + k];
        int order = compare(x, y, key.collation);
        if (order == 0) continue;
        if (key.nulls_last && (x.is_null() || y.is_null())) order = -order;
        return (order < 0) != key.descending;
      }
      return a < b;
    });
    for (u32 place : places) call_step(call, to, {&to.ordered[place * stride], args}, cx);
    to.ordered.clear();
  }

  void finish(u32 index, Accumulator& from, Cx& cx, Value& out) {
    const AggregateCall& call = *plan_.calls[index];
    const Sum& sum = from.sum;
    switch (kinds_[index]) {
      case Fast::kCountStar:
      case Fast::kCount:
        out.set_integer(sum.count);
        return;
      case Fast::kSum:
        if (sum.count == 0) {
          out.set_null();
        } else if (!sum.approximate) {
          out.set_integer(sum.integer);
        } else if (sum.overflow) {
          cx.fail(rc::kError, "integer overflow");
        } else {
          out.set_real(sum.value());
        }
        return;
      case Fast::kTotal:
        out.set_real(sum.value());
        return;
      case Fast::kAvg:
        if (sum.count == 0) {
          out.set_null();
        } else {
          out.set_real(sum.value() / static_cast<f64>(sum.count));
        }
        return;
      case Fast::kMin:
      case Fast::kMax:
        if (sum.count == 0) {
          out.set_null();
        } else {
          out = from.best;
        }
        return;
      case Fast::kNone:
        break;
    }
    if (!from.ordered.empty()) step_ordered(call, from, cx);
    if (from.context == nullptr) {
      from.context = std::make_unique<FunctionContext>(*call.function, &cx.session);
      from.context->set_collation(call.collation);
    }
    from.context->result.set_null();
    call.function->final(*from.context);
    if (from.context->error_code() != 0) {
      cx.fail(from.context->error_code(), from.context->error_message());
    }
    out = from.context->result;
    out.keep();
  }

  const AggregatePlan& plan_;
  std::unique_ptr<SlotStream> input_;
  size_t groups_count_;
  std::vector<Fast> kinds_;
  std::unique_ptr<ValueSet> groups_;
  std::vector<Accumulator> accumulators_;
  std::vector<Value> bare_;
  std::vector<u32> order_;
  std::vector<Value> out_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<SlotStream> make_aggregate(const AggregatePlan& plan,
                                           std::unique_ptr<SlotStream> input, Cx&) {
  return std::make_unique<Aggregate>(plan, std::move(input));
}

}  // namespace db
