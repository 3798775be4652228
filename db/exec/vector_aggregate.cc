#include "db/exec/vector_aggregate.h"

#include "db/exec/aggregate_state.h"
#include "db/exec/eval.h"
#include "db/exec/vector_groups.h"
#include "db/exec/vector_source.h"

#include <algorithm>

namespace db {
namespace {

class VectorAggregate : public AggregateStream {
 public:
  explicit VectorAggregate(const RowPlan& plan)
      : AggregateStream(*plan.aggregate), join_(*plan.join) {
    ColumnRefs read;
    auto collect = [&](const List<Expr*>& exprs) {
      for (const Expr* expr : exprs) collect_columns(expr, &read);
    };
    collect(plan_.groups);
    collect(plan_.bare);
    for (const AggregateCall* call : plan_.calls) {
      collect(call->args);
      if (call->filter != nullptr) collect_columns(call->filter, &read);
      for (const SortKey& key : call->order) collect_columns(key.expr, &read);
    }
    source_ = make_pipeline(join_, read);
  }

  void close(Cx& cx) override {
    AggregateStream::close(cx);
    source_->close(cx);
  }

 protected:
  const Value* key(size_t group) const override { return table_.row(group); }

  void read(Cx& cx) override {
    table_.reset({plan_.group_collations.begin(), plan_.group_collations.end()});
    if (!eval_all(join_.constant_filters, cx)) return;
    source_->open(cx);
    if (cx.failed()) return;
    Batch& batch = source_->batch();
    group_nodes_ = compile_all(plan_.groups, batch, cx);
    calls_.clear();
    for (const AggregateCall* call : plan_.calls) {
      calls_.emplace_back();
      calls_.back().args = compile_all(call->args, batch, cx);
      if (call->filter != nullptr) calls_.back().filter = compile_vector(call->filter, batch, cx);
      for (const SortKey& key : call->order) {
        calls_.back().order.push_back(compile_vector(key.expr, batch, cx));
      }
    }
    bare_view_ = RowView();
    for (const Expr* expr : plan_.bare) bare_view_.add(expr, batch, cx);
    while (Batch* one = source_->next(cx)) {
      take(*one, cx);
      if (cx.failed()) break;
    }
    source_->close(cx);
  }

 private:
  struct Call {
    VectorExprs args;
    std::unique_ptr<VectorExpr> filter;
    VectorExprs order;
  };

  void take(Batch& batch, Cx& cx) {
    const Selection& rows = batch.selection;
    size_t before = groups_;
    if (keys_ > 0) {
      std::vector<const Vector*> keys;
      for (auto& node : group_nodes_) keys.push_back(&node->eval(batch, rows, cx));
      if (cx.failed()) return;
      table_.find(keys, rows, group_of_);
      while (groups_ < table_.size()) add_group();
    } else {
      for (u32 i = 0; i < rows.count; ++i) group_of_[rows.rows[i]] = 0;
      if (groups_ == 0) add_group();
    }
    if (!plan_.bare.empty()) take_first_rows(rows, before, cx);
    for (u32 i = 0; i < calls_.size() && !cx.failed(); ++i) step(i, batch, cx);
  }

  // A new group's bare columns come from its first row.
  void take_first_rows(const Selection& rows, size_t before, Cx& cx) {
    for (u32 i = 0; i < rows.count && before < groups_; ++i) {
      u32 r = rows.rows[i];
      if (group_of_[r] != before) continue;
      bare_view_.show(r, cx);
      take_bare(before++, cx);
    }
  }

  void step(u32 index, Batch& batch, Cx& cx) {
    Call& call = calls_[index];
    const Selection* rows = &batch.selection;
    Selection passing;
    if (call.filter != nullptr) {
      i8 truths[kBatchRows];
      call.filter->truth(batch, *rows, truths, cx);
      for (u32 i = 0; i < rows->count; ++i) {
        if (truths[rows->rows[i]] == 1) passing.rows[passing.count++] = rows->rows[i];
      }
      rows = &passing;
    }
    if (rows->count == 0) return;
    Fast kind = kinds_[index];
    if (kind == Fast::kCountStar) {
      for (u32 i = 0; i < rows->count; ++i) ++to(index, rows->rows[i]).sum.count;
      return;
    }
    if (kind == Fast::kNone) return step_general(index, batch, *rows, cx);
    const Vector& values = call.args[0]->eval(batch, *rows, cx);
    if (cx.failed()) return;
    if (kind == Fast::kMin || kind == Fast::kMax || plan_.calls[index]->distinct) {
      return step_values(index, values, *rows, cx);
    }
    for (u32 i = 0; i < rows->count; ++i) {
      u32 r = rows->rows[i];
      if (values.types[r] == Type::kNull) continue;
      Sum& sum = to(index, r).sum;
      if (kind == Fast::kCount) {
        ++sum.count;
      } else if (values.types[r] == Type::kReal) {
        sum.add_value(values.cells[r].r);
      } else {
        Value value;
        values.load(r, value);
        sum.add(value);
      }
    }
  }

  void step_values(u32 index, const Vector& values, const Selection& rows, Cx& cx) {
    const bool picks_row = static_cast<int>(index) == plan_.min_max && !plan_.bare.empty();
    Value value;
    for (u32 i = 0; i < rows.count; ++i) {
      u32 r = rows.rows[i];
      values.load(r, value);
      if (step_value(index, to(index, r), value) && picks_row) {
        bare_view_.show(r, cx);
        take_bare(group_of_[r], cx);
      }
    }
  }

  void step_general(u32 index, Batch& batch, const Selection& rows, Cx& cx) {
    Call& call = calls_[index];
    std::vector<const Vector*> args, order;
    for (auto& node : call.args) args.push_back(&node->eval(batch, rows, cx));
    for (auto& node : call.order) order.push_back(&node->eval(batch, rows, cx));
    std::vector<Value> arg_values(args.size()), order_values(order.size());
    for (u32 i = 0; i < rows.count && !cx.failed(); ++i) {
      u32 r = rows.rows[i];
      for (size_t a = 0; a < args.size(); ++a) args[a]->load(r, arg_values[a]);
      for (size_t a = 0; a < order.size(); ++a) order[a]->load(r, order_values[a]);
      step_args(index, to(index, r), arg_values, order_values, cx);
    }
  }

  Accumulator& to(u32 index, u32 row) { return accumulator(group_of_[row], index); }

  const JoinPlan& join_;
  std::unique_ptr<BatchSource> source_;
  VectorGroups table_;
  VectorExprs group_nodes_;
  std::vector<Call> calls_;
  RowView bare_view_;
  u32 group_of_[kBatchRows];
};

// A join whose rows the operators above read through slots.
class VectorJoin : public SlotStream {
 public:
  explicit VectorJoin(const RowPlan& plan) : plan_(plan) {
    for (const Expr* expr : plan.out) collect_columns(expr, &read_);
    if (plan.window != nullptr) {
      for (const Expr* expr : plan.window->inputs) collect_columns(expr, &read_);
    }
    source_ = make_pipeline(*plan.join, read_);
  }

  void open(Cx& cx) override {
    batch_ = nullptr;
    done_ = !eval_all(plan_.join->constant_filters, cx) || cx.failed();
    if (done_) return;
    source_->open(cx);
    view_ = RowView();
    for (const Expr* expr : plan_.out) view_.add(expr, source_->batch(), cx);
    if (plan_.window == nullptr) return;
    for (const Expr* expr : plan_.window->inputs) view_.add(expr, source_->batch(), cx);
  }

  bool next(Cx& cx) override {
    while (!done_ && !cx.failed()) {
      if (batch_ != nullptr && at_ < batch_->selection.count) {
        view_.show(batch_->selection.rows[at_++], cx);
        return true;
      }
      at_ = 0;
      batch_ = source_->next(cx);
      done_ = batch_ == nullptr;
    }
    return false;
  }

  void close(Cx& cx) override {
    source_->close(cx);
    batch_ = nullptr;
    done_ = true;
  }

 private:
  const RowPlan& plan_;
  ColumnRefs read_;
  std::unique_ptr<BatchSource> source_;
  RowView view_;
  Batch* batch_ = nullptr;
  u32 at_ = 0;
  bool done_ = true;
};

}  // namespace

std::unique_ptr<SlotStream> make_vector_join(const RowPlan& plan) {
  return std::make_unique<VectorJoin>(plan);
}

std::unique_ptr<SlotStream> make_vector_aggregate(const RowPlan& plan) {
  return std::make_unique<VectorAggregate>(plan);
}

}  // namespace db
