// Window functions: all input rows in memory; each window definition sorts them by partition and
// order, walks every partition and gives each row its frame.
#include "db/exec/eval.h"
#include "db/exec/row_stream.h"
#include "db/plan/fold.h"
#include "db/value/sort_prefix.h"

#include <algorithm>
#include <cmath>

namespace db {
namespace {

enum class Pure : u8 {
  kNone,  // an aggregate over the frame
  kRowNumber,
  kRank,
  kDenseRank,
  kPercentRank,
  kCumeDist,
  kNtile,
  kLag,
  kLead,
  kFirstValue,
  kLastValue,
  kNthValue,
};

Pure pure_kind(const Function& function) {
  if (!function.has(function_flag::kBuiltIn)) return Pure::kNone;
  static constexpr const char* kNames[] = {
      "",      "row_number", "rank", "dense_rank",  "percent_rank", "cume_dist",
      "ntile", "lag",        "lead", "first_value", "last_value",   "nth_value"};
  for (size_t i = 1; i < std::size(kNames); ++i) {
    if (equal_nocase(function.name, kNames[i])) return static_cast<Pure>(i);
  }
  return Pure::kNone;
}

// Rows [begin, end) of the sorted order, and the peers of the current row.
struct Frame {
  size_t begin = 0, end = 0;
  size_t peers_begin = 0, peers_end = 0;
};

class Window : public SlotStream {
 public:
  Window(const WindowPlan& plan, std::unique_ptr<SlotStream> input)
      : plan_(plan), input_(std::move(input)) {}

  void open(Cx& cx) override {
    width_ = plan_.inputs.size();
    calls_ = static_cast<size_t>(plan_.calls);
    inputs_.clear();
    count_ = 0;
    at_ = 0;
    input_->open(cx);
    while (input_->next(cx)) {
      ++count_;
      for (Expr* expr : plan_.inputs) {
        inputs_.emplace_back();
        eval(expr, cx, inputs_.back());
        inputs_.back().keep();
      }
      if (cx.failed()) break;
    }
    input_->close(cx);
    results_.assign(count_ * calls_, Value());
    order_.resize(count_);
    for (size_t i = 0; i < count_; ++i) order_[i] = static_cast<u32>(i);
    // The first definition is computed last: its order is the order of the result.
    for (u32 i = plan_.groups.size(); i-- > 0 && !cx.failed();) run_group(*plan_.groups[i], cx);
  }

  bool next(Cx& cx) override {
    if (cx.failed() || at_ >= count_) return false;
    size_t row = order_[at_++];
    show(plan_.slot, width_ == 0 ? nullptr : &inputs_[row * width_], cx);
    show(plan_.result_slot, &results_[row * calls_], cx);
    return true;
  }

  void close(Cx&) override {
    inputs_.clear();
    results_.clear();
    order_.clear();
    count_ = 0;
  }

 private:
  void show(int slot_number, Value* row, Cx& cx) {
    Slot& slot = cx.slots[static_cast<size_t>(slot_number)];
    slot.row = row;
    slot.map = nullptr;
    slot.null_row = false;
  }
  const Value& input(size_t sorted, int column) const {
    return inputs_[order_[sorted] * width_ + static_cast<size_t>(column)];
  }

  int compare_partition(const WindowGroup& group, u32 a, u32 b) const {
    for (u32 i = 0; i < group.partition.size(); ++i) {
      size_t column = static_cast<size_t>(group.partition[i]);
      int order = compare(inputs_[a * width_ + column], inputs_[b * width_ + column],
                          group.partition_collations[i]);
      if (order != 0) return order;
    }
    return 0;
  }
  int compare_order(const WindowGroup& group, u32 a, u32 b) const {
    for (const SortKey& key : group.order) {
      const Value& x = inputs_[a * width_ + static_cast<size_t>(key.column)];
      const Value& y = inputs_[b * width_ + static_cast<size_t>(key.column)];
      int order = compare(x, y, key.collation);
      if (order == 0) continue;
      if (key.nulls_last && (x.is_null() || y.is_null())) order = -order;
      return key.descending ? -order : order;
    }
    return 0;
  }

  u64 partition_prefix(const WindowGroup& group, u32 row) const {
    if (group.partition.empty()) return 0;
    const size_t column = static_cast<size_t>(group.partition[0]);
    return sort_prefix(inputs_[row * width_ + column], group.partition_collations[0]);
  }
  u64 order_prefix(const WindowGroup& group, u32 row) const {
    return group.order.empty() ? 0 : RowOrder(group.order).prefix(&inputs_[row * width_]);
  }

  void run_group(const WindowGroup& group, Cx& cx) {
    struct Entry {
      u64 partition, order;  // prefixes of the first columns
      u32 row;
      u32 place;  // so far: ties stay in order
    };
    std::vector<Entry> entries(count_);
    for (size_t i = 0; i < count_; ++i)
      entries[i] = {partition_prefix(group, order_[i]), order_prefix(group, order_[i]), order_[i],
                    static_cast<u32>(i)};
    std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
      if (a.partition != b.partition) return a.partition < b.partition;
      int order = compare_partition(group, a.row, b.row);
      if (order == 0 && a.order != b.order) return a.order < b.order;
      if (order == 0) order = compare_order(group, a.row, b.row);
      return order != 0 ? order < 0 : a.place < b.place;
    });
    for (size_t i = 0; i < count_; ++i) order_[i] = entries[i].row;
    start_offset_ = end_offset_ = Value();
    if (!offset(group.start, "starting", group, &start_offset_, cx) ||
        !offset(group.end, "ending", group, &end_offset_, cx)) {
      return;
    }
    for (size_t begin = 0; begin < count_ && !cx.failed();) {
      size_t end = begin + 1;
      while (end < count_ && compare_partition(group, order_[begin], order_[end]) == 0) ++end;
      run_partition(group, begin, end, cx);
      begin = end;
    }
  }

  bool offset(const FrameBoundPlan& bound, const char* which, const WindowGroup& group, Value* out,
              Cx& cx) {
    if (bound.offset == nullptr) return true;
    eval(bound.offset, cx, *out);
    if (cx.failed()) return false;
    bool range = group.unit == sql::FrameUnit::kRange;
    if (range) {
      apply_numeric_affinity(*out);
      if (out->is_number() && compare(*out, Value::integer(0)) >= 0) return true;
    } else {
      apply_affinity(*out, Affinity::kInteger);
      if (out->is_integer() && out->raw_integer() >= 0) return true;
    }
    cx.fail(rc::kError, std::string("frame ") + which + " offset must be a non-negative " +
                            (range ? "number" : "integer"));
    return false;
  }

  void run_partition(const WindowGroup& group, size_t begin, size_t end, Cx& cx) {
    // The peer group of each row, by number, and where the groups begin.
    std::vector<size_t> starts = {begin};
    std::vector<u32> peer_of(end - begin);
    for (size_t i = begin + 1; i < end; ++i) {
      if (compare_order(group, order_[i - 1], order_[i]) != 0) starts.push_back(i);
      peer_of[i - begin] = static_cast<u32>(starts.size() - 1);
    }
    starts.push_back(end);
    std::vector<Frame> frames(end - begin);
    for (size_t i = begin; i < end; ++i) {
      size_t peer = peer_of[i - begin];
      Frame& frame = frames[i - begin];
      frame.peers_begin = starts[peer];
      frame.peers_end = starts[peer + 1];
      frame.begin = bound_of(group, group.start, start_offset_, true, i, begin, end, starts, peer);
      frame.end = bound_of(group, group.end, end_offset_, false, i, begin, end, starts, peer);
      frame.end = std::max(frame.begin, frame.end);
    }
    for (const WindowCall* call : group.calls) {
      Pure pure = pure_kind(*call->function);
      if (pure == Pure::kNone) {
        run_aggregate(group, *call, frames, begin, end, cx);
      } else {
        for (size_t i = begin; i < end && !cx.failed(); ++i) {
          run_pure(pure, group, *call, frames[i - begin], i, begin, end, starts, peer_of[i - begin],
                   cx);
        }
      }
    }
  }

  // The index at which the frame begins (or, for its end, the one behind its last row).
  size_t bound_of(const WindowGroup& group, const FrameBoundPlan& bound, const Value& offset,
                  bool start, size_t row, size_t begin, size_t end,
                  const std::vector<size_t>& starts, size_t peer) {
    using Kind = sql::FrameBoundKind;
    if (bound.kind == Kind::kUnboundedPreceding) return begin;
    if (bound.kind == Kind::kUnboundedFollowing) return end;
    if (bound.kind == Kind::kCurrentRow) {
      if (group.unit == sql::FrameUnit::kRows) return start ? row : row + 1;
      return start ? starts[peer] : starts[peer + 1];
    }
    bool preceding = bound.kind == Kind::kPreceding;
    i64 sign = preceding ? -1 : 1;
    if (group.unit == sql::FrameUnit::kRows) {
      i64 distance = std::min<i64>(offset.to_integer(), static_cast<i64>(end - begin) + 1);
      i64 at = static_cast<i64>(row) + sign * distance + (start ? 0 : 1);
      return static_cast<size_t>(
          std::clamp<i64>(at, static_cast<i64>(begin), static_cast<i64>(end)));
    }
    if (group.unit == sql::FrameUnit::kGroups) {
      i64 groups = static_cast<i64>(starts.size()) - 1;
      i64 distance = std::min<i64>(offset.to_integer(), groups + 1);
      i64 at = static_cast<i64>(peer) + sign * distance;
      if (start) return at < 0 ? begin : at >= groups ? end : starts[static_cast<size_t>(at)];
      return at < 0 ? begin : at >= groups ? end : starts[static_cast<size_t>(at) + 1];
    }
    return range_bound(group, offset, preceding, start, row, begin, end, starts, peer);
  }

  size_t range_bound(const WindowGroup& group, const Value& offset, bool preceding, bool start,
                     size_t row, size_t begin, size_t end, const std::vector<size_t>& starts,
                     size_t peer) {
    const SortKey& key = group.order[0];
    const Value& value = input(row, key.column);
    if (!value.is_number()) return start ? starts[peer] : starts[peer + 1];
    Value limit;
    evaluate_arithmetic(preceding != key.descending ? Op::kSubtract : Op::kAdd, value, offset,
                        limit);
    // Sorted by the key: find where values pass the limit. NULLs and texts stay outside.
    size_t low = begin;
    size_t high = end;
    while (low < high) {
      size_t middle = (low + high) / 2;
      const Value& at = input(middle, key.column);
      int order = compare(at, limit, key.collation);
      if (key.nulls_last && at.is_null()) order = -order;
      if (key.descending) order = -order;
      bool before = start ? order < 0 : order <= 0;
      if (before) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  bool excluded(const WindowGroup& group, const Frame& frame, size_t row, size_t at) const {
    switch (group.exclude) {
      case sql::FrameExclude::kNoOthers:
        return false;
      case sql::FrameExclude::kCurrentRow:
        return at == row;
      case sql::FrameExclude::kGroup:
        return at >= frame.peers_begin && at < frame.peers_end;
      case sql::FrameExclude::kTies:
        return at != row && at >= frame.peers_begin && at < frame.peers_end;
    }
    return false;
  }

  Value& result(const WindowCall& call, size_t row) {
    return results_[order_[row] * calls_ + static_cast<size_t>(call.output)];
  }

  void step(const WindowCall& call, FunctionContext& context, StepCall function, size_t at) {
    if (context.error_code() != 0) return;
    if (call.filter >= 0 && input(at, call.filter).to_truth() != 1) return;
    args_.clear();
    for (int column : call.args) args_.push_back(input(at, column));
    function(context, args_);
  }

  void run_aggregate(const WindowGroup& group, const WindowCall& call,
                     const std::vector<Frame>& frames, size_t begin, size_t end, Cx& cx) {
    const Function& function = *call.function;
    bool slides = function.inverse != nullptr && group.exclude == sql::FrameExclude::kNoOthers;
    auto context = std::make_unique<FunctionContext>(function, &cx.session);
    context->set_collation(call.collation);
    context->set_windowed(slides);
    bool fresh = true;
    size_t have_begin = begin;
    size_t have_end = begin;
    for (size_t row = begin; row < end; ++row) {
      const Frame& frame = frames[row - begin];
      bool grows = !fresh && frame.begin == have_begin && frame.end >= have_end;
      bool moves = !fresh && slides && frame.begin >= have_begin && frame.end >= have_end &&
                   frame.begin <= have_end;
      if (!(grows && group.exclude == sql::FrameExclude::kNoOthers) && !moves) {
        if (!fresh) spend(function, context.get());
        context = std::make_unique<FunctionContext>(function, &cx.session);
        context->set_collation(call.collation);
        context->set_windowed(slides);
        have_begin = have_end = frame.begin;
      }
      for (; have_begin < frame.begin; ++have_begin)
        step(call, *context, function.inverse, have_begin);
      for (; have_end < frame.end; ++have_end) {
        if (!excluded(group, frame, row, have_end)) step(call, *context, function.step, have_end);
      }
      fresh = false;
      context->result.set_null();
      if (context->error_code() != 0) {
        cx.fail(context->error_code(), context->error_message());
        spend(function, context.get());
        return;
      }
      if (function.value != nullptr) {
        function.value(*context);
      } else if (function.final != nullptr) {
        function.final(*context);
        fresh = true;  // a plain aggregate: its state is spent
      }
      if (context->error_code() != 0) {
        cx.fail(context->error_code(), context->error_message());
        if (!fresh) spend(function, context.get());
        return;
      }
      Value& to = result(call, row);
      to = context->result;
      to.keep();
      if (!cx.tick()) break;
    }
    if (!fresh) spend(function, context.get());
  }

  // Every state that steps have seen is finalised once; its result does not count any more.
  void spend(const Function& function, FunctionContext* context) {
    if (function.value == nullptr || function.final == nullptr) return;
    if (context->aggregate_state(0) == nullptr) return;
    context->clear_error();
    function.final(*context);
  }

  // The n-th row of the frame that is not excluded, counting from 1; `count_` when there is none.
  size_t nth(const WindowGroup& group, const Frame& frame, size_t row, i64 n) const {
    if (group.exclude == sql::FrameExclude::kNoOthers) {
      i64 at = static_cast<i64>(frame.begin) + n - 1;
      return n >= 1 && at < static_cast<i64>(frame.end) ? static_cast<size_t>(at) : count_;
    }
    for (size_t at = frame.begin; at < frame.end; ++at) {
      if (!excluded(group, frame, row, at) && --n == 0) return at;
    }
    return count_;
  }

  void run_pure(Pure pure, const WindowGroup& group, const WindowCall& call, const Frame& frame,
                size_t row, size_t begin, size_t end, const std::vector<size_t>& starts,
                size_t peer, Cx& cx) {
    // tidy: long-function, one case per function
    Value& out = result(call, row);
    i64 rows = static_cast<i64>(end - begin);
    i64 number = static_cast<i64>(row - begin);
    switch (pure) {
      case Pure::kRowNumber:
        out.set_integer(number + 1);
        return;
      case Pure::kRank:
        out.set_integer(static_cast<i64>(starts[peer] - begin) + 1);
        return;
      case Pure::kDenseRank:
        out.set_integer(static_cast<i64>(peer) + 1);
        return;
      case Pure::kPercentRank:
        out.set_real(rows > 1 ? static_cast<f64>(starts[peer] - begin) / static_cast<f64>(rows - 1)
                              : 0.0);
        return;
      case Pure::kCumeDist:
        out.set_real(static_cast<f64>(starts[peer + 1] - begin) / static_cast<f64>(rows));
        return;
      case Pure::kNtile: {
        i64 buckets = input(row, call.args[0]).to_integer();
        if (buckets <= 0) {
          cx.fail(rc::kError, "argument of ntile must be a positive integer");
          return;
        }
        i64 size = rows / buckets;
        i64 larger = rows % buckets;
        if (number < larger * (size + 1)) {
          out.set_integer(1 + number / (size + 1));
        } else {
          out.set_integer(1 + larger + (number - larger * (size + 1)) / std::max<i64>(1, size));
        }
        return;
      }
      case Pure::kLag:
      case Pure::kLead: {
        i64 distance = call.args.size() > 1 ? input(row, call.args[1]).to_integer() : 1;
        i64 at = number + (pure == Pure::kLag ? -distance : distance);
        if (at >= 0 && at < rows) {
          out = input(begin + static_cast<size_t>(at), call.args[0]);
        } else if (call.args.size() > 2) {
          out = input(row, call.args[2]);
        }
        return;
      }
      case Pure::kFirstValue: {
        size_t at = nth(group, frame, row, 1);
        if (at < count_) out = input(at, call.args[0]);
        return;
      }
      case Pure::kLastValue: {
        for (size_t at = frame.end; at-- > frame.begin;) {
          if (excluded(group, frame, row, at)) continue;
          out = input(at, call.args[0]);
          return;
        }
        return;
      }
      case Pure::kNthValue: {
        Value n = input(row, call.args[1]);
        apply_affinity(n, Affinity::kInteger);
        if (!n.is_integer() || n.raw_integer() <= 0) {
          cx.fail(rc::kError, "second argument to nth_value must be a positive integer");
          return;
        }
        size_t at = nth(group, frame, row, n.raw_integer());
        if (at < count_) out = input(at, call.args[0]);
        return;
      }
      case Pure::kNone:
        return;
    }
  }

  const WindowPlan& plan_;
  std::unique_ptr<SlotStream> input_;
  size_t width_ = 0, calls_ = 0, count_ = 0, at_ = 0;
  std::vector<Value> inputs_, results_, args_;
  std::vector<u32> order_;
  Value start_offset_, end_offset_;
};

}  // namespace

std::unique_ptr<SlotStream> make_window(const WindowPlan& plan, std::unique_ptr<SlotStream> input,
                                        Cx&) {
  return std::make_unique<Window>(plan, std::move(input));
}

}  // namespace db
