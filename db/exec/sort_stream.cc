// ORDER BY: all rows in memory, sorted once; with LIMIT only the best ones are kept.
#include "db/exec/eval.h"
#include "db/exec/row_stream.h"

#include <algorithm>

namespace db {

int RowOrder::compare(const Value* a, const Value* b) const {
  for (const SortKey& key : keys_) {
    const Value& x = a[key.column];
    const Value& y = b[key.column];
    int order = db::compare(x, y, key.collation);
    if (order == 0) continue;
    if (key.nulls_last && (x.is_null() || y.is_null())) order = -order;
    return key.descending ? -order : order;
  }
  return 0;
}

namespace {

class SortStream : public RowStream {
 public:
  SortStream(const RowPlan& plan, std::unique_ptr<RowStream> input, int width)
      : plan_(plan),
        input_(std::move(input)),
        order_(plan.order),
        width_(static_cast<size_t>(width)) {}

  void open(Cx& cx) override {
    values_.clear();
    places_.clear();
    at_ = 0;
    ++cx.sorts;
    i64 limit = -1;
    i64 offset = 0;
    if (!eval_limit(plan_, cx, &limit, &offset) || limit == 0) return;
    keep_ = limit < 0 || limit + offset > kTopRows ? 0 : static_cast<size_t>(limit + offset);
    input_->open(cx);
    while (input_->next(cx)) add(input_->row());
    input_->close(cx);
    if (cx.failed()) return;
    std::sort(places_.begin(), places_.end(), [this](u32 a, u32 b) { return less(a, b); });
    at_ = static_cast<size_t>(offset);
    end_ = limit < 0 ? places_.size() : std::min(places_.size(), at_ + static_cast<size_t>(limit));
  }

  bool next(Cx& cx) override {
    if (cx.failed() || at_ >= end_ || at_ >= places_.size()) return false;
    row_ = values_.data() + places_[at_++] * width_;
    return true;
  }

  void close(Cx&) override {
    values_.clear();
    places_.clear();
    end_ = 0;
  }

 private:
  static constexpr i64 kTopRows = 100000;

  bool less(u32 a, u32 b) const {
    int order = order_.compare(values_.data() + a * width_, values_.data() + b * width_);
    return order != 0 ? order < 0 : number_[a] < number_[b];
  }

  void add(const Value* row) {
    u32 place = static_cast<u32>(places_.size());
    if (keep_ != 0 && places_.size() == keep_) {
      // The heap's top is the worst row kept; later rows lose ties.
      u32 worst = places_.front();
      if (order_.compare(row, values_.data() + worst * width_) >= 0) return;
      std::pop_heap(places_.begin(), places_.end(), [this](u32 a, u32 b) { return less(a, b); });
      place = places_.back();
      places_.pop_back();
    } else {
      values_.resize(values_.size() + width_);
      number_.resize(places_.size() + 1);
    }
    Value* to = values_.data() + place * width_;
    for (size_t i = 0; i < width_; ++i) {
      to[i] = row[i];
      to[i].keep();
    }
    number_[place] = counter_++;
    places_.push_back(place);
    if (keep_ != 0) {
      std::push_heap(places_.begin(), places_.end(), [this](u32 a, u32 b) { return less(a, b); });
    }
  }

  const RowPlan& plan_;
  std::unique_ptr<RowStream> input_;
  RowOrder order_;
  size_t width_;
  size_t keep_ = 0;
  std::vector<Value> values_;
  std::vector<u32> places_;
  std::vector<u64> number_;
  u64 counter_ = 0;
  size_t at_ = 0;
  size_t end_ = 0;
};

}  // namespace

std::unique_ptr<RowStream> make_sort(const RowPlan& plan, std::unique_ptr<RowStream> input,
                                     int width, Cx&) {
  return std::make_unique<SortStream>(plan, std::move(input), width);
}

}  // namespace db
