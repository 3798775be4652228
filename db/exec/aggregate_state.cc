#include "db/exec/aggregate_state.h"

#include "db/exec/eval.h"

#include <algorithm>

namespace db {

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

AggregateStream::AggregateStream(const AggregatePlan& plan)
    : plan_(plan), keys_(plan.groups.size()) {
  for (const AggregateCall* call : plan.calls) kinds_.push_back(fast_kind(*call));
}

void AggregateStream::open(Cx& cx) {
  accumulators_.clear();
  bare_.clear();
  order_.clear();
  groups_ = 0;
  at_ = 0;
  read(cx);
  if (cx.failed()) return;
  if (keys_ == 0 && groups_ == 0) add_group();
  order_.resize(groups_);
  for (size_t i = 0; i < groups_; ++i) order_[i] = static_cast<u32>(i);
  if (keys_ > 0) {
    std::sort(order_.begin(), order_.end(), [&](u32 a, u32 b) { return group_less(a, b); });
  }
  out_.assign(static_cast<size_t>(plan_.width), Value());
}

bool AggregateStream::next(Cx& cx) {
  if (cx.failed() || at_ >= order_.size()) return false;
  size_t group = order_[at_++];
  for (size_t i = 0; i < keys_; ++i) out_[i] = key(group)[i];
  for (u32 i = 0; i < plan_.calls.size(); ++i) {
    finish(i, accumulator(group, i), cx, out_[static_cast<size_t>(plan_.calls[i]->output)]);
  }
  for (u32 i = 0; i < plan_.bare.size(); ++i) {
    out_[static_cast<size_t>(plan_.bare_outputs[i])] = bare_[group * plan_.bare.size() + i];
  }
  Slot& slot = cx.slots[static_cast<size_t>(plan_.slot)];
  slot.row = out_.data();
  slot.null_row = false;
  return !cx.failed();
}

void AggregateStream::close(Cx&) {
  accumulators_.clear();
  bare_.clear();
  order_.clear();
}

bool AggregateStream::group_less(u32 a, u32 b) const {
  for (u32 i = 0; i < keys_; ++i) {
    int order = compare(key(a)[i], key(b)[i], plan_.group_collations[i]);
    if (order != 0) return (order < 0) != plan_.group_descending[i];
  }
  return a < b;
}

void AggregateStream::add_group() {
  ++groups_;
  accumulators_.resize(groups_ * plan_.calls.size());
  bare_.resize(groups_ * plan_.bare.size());
}

void AggregateStream::take_bare(size_t group, Cx& cx) {
  for (u32 i = 0; i < plan_.bare.size(); ++i) {
    Value& to = bare_[group * plan_.bare.size() + i];
    eval(plan_.bare[i], cx, to);
    to.keep();
  }
}

bool AggregateStream::step_value(u32 index, Accumulator& to, const Value& value) {
  const AggregateCall& call = *plan_.calls[index];
  if (value.is_null()) return false;
  if (call.distinct && !is_first(call, to, &value)) return false;
  Fast kind = kinds_[index];
  if (kind == Fast::kCount) {
    ++to.sum.count;
    return false;
  }
  if (kind != Fast::kMin && kind != Fast::kMax) {
    to.sum.add(value);
    return false;
  }
  bool first = to.sum.count++ == 0;
  int order = first ? 0 : compare(value, to.best, call.collation);
  bool better = first || (kind == Fast::kMin ? order < 0 : order > 0);
  if (better) {
    to.best = value;
    to.best.keep();
  }
  return better;
}

void AggregateStream::step_args(u32 index, Accumulator& to, std::span<Value> args,
                                std::span<const Value> order, Cx& cx) {
  const AggregateCall& call = *plan_.calls[index];
  if (call.distinct && !is_first(call, to, args.data())) return;
  if (call.order.empty()) return call_step(call, to, args, cx);
  for (const Value& value : args) {
    to.ordered.push_back(value);
    to.ordered.back().keep();
  }
  for (const Value& value : order) {
    to.ordered.push_back(value);
    to.ordered.back().keep();
  }
}

bool AggregateStream::is_first(const AggregateCall& call, Accumulator& to, const Value* value) {
  if (to.distinct == nullptr) to.distinct = std::make_unique<ValueSet>(1, &call.collation);
  bool is_new = false;
  to.distinct->insert(value, &is_new);
  return is_new;
}

void AggregateStream::call_step(const AggregateCall& call, Accumulator& to, std::span<Value> args,
                                Cx& cx) {
  if (to.context == nullptr) {
    to.context = std::make_unique<FunctionContext>(*call.function, &cx.session);
    to.context->set_collation(call.collation);
  }
  call.function->step(*to.context, args);
  if (to.context->error_code() != 0) {
    cx.fail(to.context->error_code(), to.context->error_message());
  }
}

void AggregateStream::step_ordered(const AggregateCall& call, Accumulator& to, Cx& cx) {
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

void AggregateStream::finish(u32 index, Accumulator& from, Cx& cx, Value& out) {
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

}  // namespace db
