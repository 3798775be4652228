// UNION, UNION ALL, INTERSECT, EXCEPT; and WITH RECURSIVE.
#include "db/exec/eval.h"
#include "db/exec/row_stream.h"
#include "db/value/sort_prefix.h"

#include <algorithm>

namespace db {
namespace {

std::vector<const Collation*> collations_of(const RowPlan& plan) {
  std::vector<const Collation*> out;
  for (const RowColumn& column : plan.columns) out.push_back(column.collation);
  return out;
}

class UnionAllStream : public RowStream {
 public:
  UnionAllStream(const RowPlan& plan, Cx& cx) {
    for (const RowPlan* arm : plan.arms) arms_.push_back(make_stream(*arm, cx));
  }
  void open(Cx& cx) override {
    at_ = 0;
    arms_[0]->open(cx);
  }
  bool next(Cx& cx) override {
    while (at_ < arms_.size()) {
      if (arms_[at_]->next(cx)) {
        row_ = arms_[at_]->row();
        return true;
      }
      if (cx.failed()) return false;
      arms_[at_]->close(cx);
      if (++at_ < arms_.size()) arms_[at_]->open(cx);
    }
    return false;
  }
  void close(Cx& cx) override {
    for (auto& arm : arms_) arm->close(cx);
  }

 private:
  std::vector<std::unique_ptr<RowStream>> arms_;
  size_t at_ = 0;
};

// Set operators: the result so far is a set; it comes out sorted, as SQLite's merge does it.
class SetStream : public RowStream {
 public:
  SetStream(const RowPlan& plan, Cx& cx) : plan_(plan) {
    for (const RowPlan* arm : plan.arms) arms_.push_back(make_stream(*arm, cx));
  }

  void open(Cx& cx) override {
    rows_.clear();
    at_ = 0;
    size_t width = static_cast<size_t>(plan_.width);
    auto collations = collations_of(plan_);
    for (size_t i = 0; i < arms_.size() && !cx.failed(); ++i) {
      sql::CompoundOp op = plan_.ops[i];
      if (op == sql::CompoundOp::kNone || op == sql::CompoundOp::kUnionAll) {
        read(cx, i, rows_);
        continue;
      }
      ValueSet left(plan_.width, collations.data());
      std::vector<bool> keep;
      bool is_new = false;
      for (size_t r = 0; r * width < rows_.size(); ++r) left.insert(&rows_[r * width], &is_new);
      keep.assign(left.size(), op != sql::CompoundOp::kIntersect);
      arms_[i]->open(cx);
      while (arms_[i]->next(cx)) {
        if (op == sql::CompoundOp::kUnion) {
          unite(left, arms_[i]->row(), keep);
          continue;
        }
        size_t place = left.find(arms_[i]->row());
        if (place != ValueSet::kNone) keep[place] = op == sql::CompoundOp::kIntersect;
      }
      arms_[i]->close(cx);
      rows_.clear();
      for (size_t r = 0; r < left.size(); ++r) {
        if (op != sql::CompoundOp::kUnion && r < keep.size() && !keep[r]) continue;
        for (size_t c = 0; c < width; ++c) rows_.push_back(left.row(r)[c]);
      }
      sort(collations);
    }
  }

  bool next(Cx& cx) override {
    size_t width = static_cast<size_t>(plan_.width);
    if (cx.failed() || at_ * width >= rows_.size()) return false;
    row_ = &rows_[at_++ * width];
    return true;
  }
  void close(Cx&) override { rows_.clear(); }

 private:
  void read(Cx& cx, size_t arm, std::vector<Value>& to) {
    arms_[arm]->open(cx);
    while (arms_[arm]->next(cx)) {
      for (int c = 0; c < plan_.width; ++c) {
        to.push_back(arms_[arm]->row()[c]);
        to.back().keep();
      }
    }
    arms_[arm]->close(cx);
  }

  // Of rows that are equal but not the same (1 and 1.0, 'a' and 'A' under NOCASE) SQLite's merge
  // keeps the right arm's first. `fresh` is true for rows of the left arm not met yet.
  static void unite(ValueSet& all, const Value* row, std::vector<bool>& fresh) {
    bool is_new = false;
    size_t place = all.insert(row, &is_new);
    if (is_new || place >= fresh.size() || !fresh[place]) return;
    fresh[place] = false;
    for (int c = 0; c < all.width(); ++c) {
      Value& kept = all.row(place)[c];
      if (kept.type() == row[c].type() && (!kept.has_bytes() || kept.bytes() == row[c].bytes())) {
        continue;
      }
      kept = row[c];
      kept.keep();
    }
  }

  void sort(const std::vector<const Collation*>& collations) {
    size_t width = static_cast<size_t>(plan_.width);
    size_t count = rows_.size() / width;
    std::vector<const Collation*> by = collations;
    std::replace(by.begin(), by.end(), static_cast<const Collation*>(nullptr), &kBinary);
    struct Entry {
      u64 prefix;  // of the first column
      u32 row;
    };
    std::vector<Entry> entries(count);
    for (u32 i = 0; i < count; ++i) entries[i] = {sort_prefix(rows_[i * width], by[0]), i};
    std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
      if (a.prefix != b.prefix) return a.prefix < b.prefix;
      for (size_t c = 0; c < width; ++c) {
        const int order = compare(rows_[a.row * width + c], rows_[b.row * width + c], by[c]);
        if (order != 0) return order < 0;
      }
      return a.row < b.row;
    });
    std::vector<Value> sorted;
    sorted.reserve(rows_.size());
    for (const Entry& entry : entries) {
      for (size_t c = 0; c < width; ++c) sorted.push_back(std::move(rows_[entry.row * width + c]));
    }
    rows_.swap(sorted);
  }

  const RowPlan& plan_;
  std::vector<std::unique_ptr<RowStream>> arms_;
  std::vector<Value> rows_;
  size_t at_ = 0;
};

// The queue of WITH RECURSIVE: first in, first out, or by ORDER BY.
class RecursiveStream : public RowStream {
 public:
  RecursiveStream(const RowPlan& plan, Cx& cx)
      : plan_(plan), order_(plan.order), out_(static_cast<size_t>(plan.width)) {
    for (const RowPlan* arm : plan.arms) arms_.push_back(make_stream(*arm, cx));
    row_ = out_.data();
  }

  void open(Cx& cx) override {
    queue_.clear();
    head_ = 0;
    seen_.reset();
    if (!plan_.recursive_union_all) {
      auto collations = collations_of(plan_);
      seen_ = std::make_unique<ValueSet>(plan_.width, collations.data());
    }
    done_ = !eval_limit(plan_, cx, &left_, &skip_) || left_ == 0;
    if (!done_) feed(cx, 0);
    pending_ = false;
  }

  bool next(Cx& cx) override {
    while (!done_ && !cx.failed()) {
      if (pending_) {
        // The row given last is now worked on.
        pending_ = false;
        cx.recursive_rows[static_cast<size_t>(plan_.recursive_id)] = out_.data();
        for (size_t i = 1; i < arms_.size() && !cx.failed(); ++i) feed(cx, i);
        if (cx.failed()) return false;
      }
      if (!pop()) return false;
      pending_ = true;
      if (skip_ > 0) {
        --skip_;
        continue;
      }
      if (left_ > 0 && --left_ == 0) done_ = true;
      return true;
    }
    return false;
  }

  void close(Cx& cx) override {
    for (auto& arm : arms_) arm->close(cx);
    queue_.clear();
    seen_.reset();
  }

 private:
  void feed(Cx& cx, size_t arm) {
    RowStream& stream = *arms_[arm];
    stream.open(cx);
    while (stream.next(cx)) {
      if (!cx.tick()) break;
      bool is_new = true;
      if (seen_ != nullptr) seen_->insert(stream.row(), &is_new);
      if (!is_new) continue;
      std::vector<Value> row(stream.row(), stream.row() + plan_.width);
      for (Value& value : row) value.keep();
      queue_.push_back(std::move(row));
      if (!order_.empty()) std::push_heap(queue_.begin(), queue_.end(), Later{&order_});
    }
    stream.close(cx);
  }

  bool pop() {
    if (!order_.empty()) {
      if (queue_.empty()) return false;
      std::pop_heap(queue_.begin(), queue_.end(), Later{&order_});
      take(queue_.back());
      queue_.pop_back();
      return true;
    }
    if (head_ >= queue_.size()) return false;
    take(queue_[head_++]);
    if (head_ > 1024 && head_ * 2 > queue_.size()) {
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return true;
  }

  void take(std::vector<Value>& row) {
    for (size_t i = 0; i < out_.size(); ++i) out_[i] = std::move(row[i]);
  }

  struct Later {
    const RowOrder* order;
    bool operator()(const std::vector<Value>& a, const std::vector<Value>& b) const {
      return order->compare(a.data(), b.data()) > 0;
    }
  };

  const RowPlan& plan_;
  RowOrder order_;
  std::vector<std::unique_ptr<RowStream>> arms_;
  std::vector<std::vector<Value>> queue_;
  std::unique_ptr<ValueSet> seen_;
  std::vector<Value> out_;
  size_t head_ = 0;
  i64 left_ = -1;
  i64 skip_ = 0;
  bool done_ = false;
  bool pending_ = false;
};

}  // namespace

std::unique_ptr<RowStream> make_compound(const RowPlan& plan, Cx& cx) {
  for (u32 i = 1; i < plan.ops.size(); ++i) {
    if (plan.ops[i] != sql::CompoundOp::kUnionAll) return std::make_unique<SetStream>(plan, cx);
  }
  return std::make_unique<UnionAllStream>(plan, cx);
}

std::unique_ptr<RowStream> make_recursive(const RowPlan& plan, Cx& cx) {
  return std::make_unique<RecursiveStream>(plan, cx);
}

}  // namespace db
