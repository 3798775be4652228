// SELECT without compound operators: projection, DISTINCT, HAVING; VALUES; LIMIT.
#include "db/exec/column_picks.h"
#include "db/exec/eval.h"
#include "db/exec/row_stream.h"
#include "db/exec/table_shortcut.h"
#include "db/exec/vector_aggregate.h"
#include "db/exec/vector_choice.h"

namespace db {
namespace {

class CoreStream : public RowStream {
 public:
  CoreStream(const RowPlan& plan, Cx& cx) : plan_(plan), picks_(plan.out), out_(plan.out.size()) {
    bool in_batches = vector_fits(plan, cx);
    having_ = plan.having;
    source_ = make_table_shortcut(plan, cx);
    if (source_ != nullptr) {
      // Nothing is read row by row.
    } else if (plan.aggregate == nullptr) {
      source_ = in_batches ? make_vector_join(plan) : make_join(*plan.join, cx);
    } else {
      source_ = in_batches ? make_vector_aggregate(plan)
                           : make_aggregate(*plan.aggregate, make_join(*plan.join, cx), cx);
    }
    if (plan.window != nullptr) {
      if (having_ != nullptr) source_ = std::make_unique<Filter>(std::move(source_), having_);
      having_ = nullptr;
      source_ = make_window(*plan.window, std::move(source_), cx);
    }
    row_ = out_.data();
  }

  void open(Cx& cx) override {
    source_->open(cx);
    if (!plan_.distinct) return;
    std::vector<const Collation*> collations;
    for (int i = 0; i < plan_.width; ++i) {
      collations.push_back(value_collation_or_binary(plan_.out[static_cast<size_t>(i)]));
    }
    seen_ = std::make_unique<ValueSet>(plan_.width, collations.data());
  }

  bool next(Cx& cx) override {
    while (source_->next(cx)) {
      if (having_ != nullptr && eval_truth(having_, cx) != 1) {
        if (cx.failed()) return false;
        continue;
      }
      picks_.read(cx, out_.data());
      if (cx.failed()) return false;
      if (seen_ != nullptr) {
        bool is_new = false;
        seen_->insert(out_.data(), &is_new);
        if (!is_new) continue;
      }
      return true;
    }
    return false;
  }

  bool move(Cx& cx) override {
    return having_ == nullptr && seen_ == nullptr ? source_->next(cx) : next(cx);
  }

  void close(Cx& cx) override {
    source_->close(cx);
    seen_.reset();
  }

 private:
  class Filter : public SlotStream {
   public:
    Filter(std::unique_ptr<SlotStream> input, const Expr* expr)
        : input_(std::move(input)), expr_(expr) {}
    void open(Cx& cx) override { input_->open(cx); }
    bool next(Cx& cx) override {
      while (input_->next(cx)) {
        if (eval_truth(expr_, cx) == 1) return !cx.failed();
        if (cx.failed()) return false;
      }
      return false;
    }
    void close(Cx& cx) override { input_->close(cx); }

   private:
    std::unique_ptr<SlotStream> input_;
    const Expr* expr_;
  };

  const RowPlan& plan_;
  std::unique_ptr<SlotStream> source_;
  const Expr* having_ = nullptr;
  std::unique_ptr<ValueSet> seen_;
  ColumnPicks picks_;
  std::vector<Value> out_;
};

class ValuesStream : public RowStream {
 public:
  explicit ValuesStream(const RowPlan& plan) : plan_(plan), out_(static_cast<size_t>(plan.width)) {
    row_ = out_.data();
  }
  void open(Cx&) override { at_ = 0; }
  bool next(Cx& cx) override {
    if (at_ >= plan_.rows.size()) return false;
    const List<Expr*>& row = plan_.rows[at_++];
    for (u32 i = 0; i < row.size(); ++i) eval(row[i], cx, out_[i]);
    return !cx.failed();
  }

 private:
  const RowPlan& plan_;
  std::vector<Value> out_;
  u32 at_ = 0;
};

class LimitStream : public RowStream {
 public:
  LimitStream(const RowPlan& plan, std::unique_ptr<RowStream> input)
      : plan_(plan), input_(std::move(input)) {}
  void open(Cx& cx) override {
    done_ = !eval_limit(plan_, cx, &left_, &skip_) || left_ == 0;
    if (!done_) input_->open(cx);
  }
  bool next(Cx& cx) override {
    if (done_) return false;
    for (; skip_ > 0; --skip_) {
      if (!input_->next(cx)) return false;
    }
    if (left_ == 0 || !input_->next(cx)) return false;
    if (left_ > 0) --left_;
    row_ = input_->row();
    return true;
  }
  void close(Cx& cx) override { input_->close(cx); }

 private:
  const RowPlan& plan_;
  std::unique_ptr<RowStream> input_;
  i64 left_ = -1;
  i64 skip_ = 0;
  bool done_ = false;
};

bool eval_count(const Expr* expr, Cx& cx, i64* out) {
  Value value;
  eval(expr, cx, value);
  if (cx.failed()) return false;
  apply_affinity(value, Affinity::kInteger);
  if (!value.is_integer()) {
    cx.fail(rc::kMismatch, "datatype mismatch");
    return false;
  }
  *out = value.raw_integer();
  return true;
}

}  // namespace

bool eval_limit(const RowPlan& plan, Cx& cx, i64* limit, i64* offset) {
  *limit = -1;
  *offset = 0;
  if (plan.limit != nullptr && !eval_count(plan.limit, cx, limit)) return false;
  if (plan.offset != nullptr && !eval_count(plan.offset, cx, offset)) return false;
  if (*limit < 0) *limit = -1;
  if (*offset < 0) *offset = 0;
  return true;
}

std::unique_ptr<RowStream> make_limit(const RowPlan& plan, std::unique_ptr<RowStream> input) {
  return std::make_unique<LimitStream>(plan, std::move(input));
}

std::unique_ptr<RowStream> make_stream(const RowPlan& plan, Cx& cx) {
  std::unique_ptr<RowStream> stream;
  int width = plan.width;
  switch (plan.kind) {
    case RowKind::kCore:
      stream = std::make_unique<CoreStream>(plan, cx);
      width = static_cast<int>(plan.out.size());
      break;
    case RowKind::kValues:
      stream = std::make_unique<ValuesStream>(plan);
      break;
    case RowKind::kCompound:
      stream = make_compound(plan, cx);
      break;
    case RowKind::kRecursive:
      return make_recursive(plan, cx);
  }
  if (!plan.order.empty()) return make_sort(plan, std::move(stream), width, cx);
  if (plan.limit != nullptr) stream = make_limit(plan, std::move(stream));
  return stream;
}

}  // namespace db
