// ORDER BY: all rows in memory, sorted once; with LIMIT only the best ones are kept.
#include "db/exec/eval.h"
#include "db/exec/row_stream.h"
#include "db/value/sort_prefix.h"

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

u64 RowOrder::prefix(const Value* row) const {
  const SortKey& key = keys_[0];
  const Value& value = row[key.column];
  const u64 prefix =
      key.nulls_last && value.is_null() ? ~u64{0} : sort_prefix(value, key.collation);
  return key.descending ? ~prefix : prefix;
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
    forget();
    ++cx.sorts;
    i64 limit = -1;
    i64 offset = 0;
    if (!eval_limit(plan_, cx, &limit, &offset) || limit == 0) return;
    keep_ = limit < 0 || limit + offset > kTopRows ? 0 : static_cast<size_t>(limit + offset);
    input_->open(cx);
    if (keep_ == 0) {
      while (input_->next(cx)) add(input_->row());
    } else {
      while (input_->next(cx)) add_to_best(input_->row());
    }
    input_->close(cx);
    if (cx.failed()) return;
    std::sort(entries_.begin(), entries_.end(),
              [this](const Entry& a, const Entry& b) { return less(a, b); });
    at_ = static_cast<size_t>(offset);
    end_ =
        limit < 0 ? entries_.size() : std::min(entries_.size(), at_ + static_cast<size_t>(limit));
  }

  bool next(Cx& cx) override {
    if (cx.failed() || at_ >= end_ || at_ >= entries_.size()) return false;
    row_ = entries_[at_++].row;
    return true;
  }

  void close(Cx&) override { forget(); }

 private:
  static constexpr i64 kTopRows = 100000;
  static constexpr size_t kBlockRows = 512;

  struct Entry {
    u64 prefix;  // of the first key
    u64 number;  // of the row in the input: ties stay in its order
    Value* row;
  };

  void forget() {
    entries_.clear();
    blocks_.clear();
    bytes_ = sql::Arena(kFirstBytes);
    counter_ = 0;
    at_ = end_ = 0;
  }

  bool less(const Entry& a, const Entry& b) const {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    const int order = order_.compare(a.row, b.row);
    return order != 0 ? order < 0 : a.number < b.number;
  }

  // Rows lie in blocks, so that none moves when more come.
  Value* new_row() {
    const size_t at = entries_.size() % kBlockRows;
    if (at == 0) blocks_.emplace_back(kBlockRows * width_);
    return blocks_.back().data() + at * width_;
  }

  // All rows: texts go side by side into one arena.
  void add(const Value* row) {
    Value* to = new_row();
    for (size_t i = 0; i < width_; ++i) {
      to[i] = row[i];
      if (!to[i].has_bytes() || to[i].is_shared()) continue;
      const std::string_view copy = bytes_.copy(to[i].bytes());
      const u8 subtype = to[i].subtype();
      to[i].set_borrowed(to[i].type(), copy.data(), copy.size());
      to[i].set_subtype(subtype);
    }
    entries_.push_back({order_.prefix(row), counter_++, to});
  }

  // The best rows so far, a heap whose top is the worst of them.
  void add_to_best(const Value* row) {
    const u64 prefix = order_.prefix(row);
    const auto before = [this](const Entry& a, const Entry& b) { return less(a, b); };
    Value* to = nullptr;
    if (entries_.size() == keep_) {
      const Entry& worst = entries_.front();  // later rows lose ties
      if (prefix > worst.prefix ||
          (prefix == worst.prefix && order_.compare(row, worst.row) >= 0)) {
        return;
      }
      std::pop_heap(entries_.begin(), entries_.end(), before);
      to = entries_.back().row;
      entries_.pop_back();
    } else {
      to = new_row();
    }
    for (size_t i = 0; i < width_; ++i) {
      to[i] = row[i];
      to[i].keep();
    }
    entries_.push_back({prefix, counter_++, to});
    std::push_heap(entries_.begin(), entries_.end(), before);
  }

  static constexpr size_t kFirstBytes = 4096;
  const RowPlan& plan_;
  std::unique_ptr<RowStream> input_;
  RowOrder order_;
  size_t width_;
  size_t keep_ = 0;  // rows at most; 0: all
  std::vector<Entry> entries_;
  std::vector<std::vector<Value>> blocks_;
  sql::Arena bytes_{kFirstBytes};
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
