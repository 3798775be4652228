// GROUP BY and aggregates over rows: a hash table of groups; groups come out in key order.
#include "db/exec/aggregate_state.h"
#include "db/exec/eval.h"

namespace db {
namespace {

class Aggregate : public AggregateStream {
 public:
  Aggregate(const AggregatePlan& plan, std::unique_ptr<SlotStream> input)
      : AggregateStream(plan), input_(std::move(input)) {}

  void close(Cx& cx) override {
    AggregateStream::close(cx);
    set_.reset();
  }

 protected:
  const Value* key(size_t group) const override { return set_->row(group); }

  void read(Cx& cx) override {
    set_ = std::make_unique<ValueSet>(static_cast<int>(keys_),
                                      keys_ == 0 ? nullptr : &plan_.group_collations[0]);
    input_->open(cx);
    std::vector<Value> row(keys_);
    while (input_->next(cx) && !cx.failed()) {
      size_t group = 0;
      bool is_new = false;
      if (keys_ > 0) {
        for (u32 i = 0; i < keys_; ++i) eval(plan_.groups[i], cx, row[i]);
        group = set_->insert(row.data(), &is_new);
      } else {
        is_new = groups_ == 0;
      }
      if (is_new) add_group();
      bool wants_bare = is_new;
      for (u32 i = 0; i < plan_.calls.size(); ++i) {
        bool better = step(i, accumulator(group, i), cx);
        if (static_cast<int>(i) == plan_.min_max && better) wants_bare = true;
      }
      if (wants_bare) take_bare(group, cx);
    }
    input_->close(cx);
  }

 private:
  // True when min() or max() found a better row.
  bool step(u32 index, Accumulator& to, Cx& cx) {
    const AggregateCall& call = *plan_.calls[index];
    if (call.filter != nullptr && eval_truth(call.filter, cx) != 1) return false;
    if (kinds_[index] == Fast::kCountStar) {
      ++to.sum.count;
      return false;
    }
    if (kinds_[index] != Fast::kNone) {
      Value value;
      eval(call.args[0], cx, value);
      return step_value(index, to, value);
    }
    std::vector<Value> args(call.args.size());
    for (u32 i = 0; i < call.args.size(); ++i) eval(call.args[i], cx, args[i]);
    std::vector<Value> order(call.order.size());
    for (u32 i = 0; i < call.order.size(); ++i) eval(call.order[i].expr, cx, order[i]);
    step_args(index, to, args, order, cx);
    return call.function->has(function_flag::kMinMax);
  }

  std::unique_ptr<SlotStream> input_;
  std::unique_ptr<ValueSet> set_;
};

}  // namespace

std::unique_ptr<SlotStream> make_aggregate(const AggregatePlan& plan,
                                           std::unique_ptr<SlotStream> input, Cx&) {
  return std::make_unique<Aggregate>(plan, std::move(input));
}

}  // namespace db
