#include "db/exec/table_shortcut.h"

#include "db/exec/aggregate_state.h"
#include "db/exec/eval.h"
#include "db/exec/table_cursor.h"

namespace db {
namespace {

// How one call is answered.
struct Answer {
  Fast kind = Fast::kNone;
  const Index* index = nullptr;  // null: the table itself
  int column = 0;                // the table's width: the rowid
  int output = 0;
};

// The index whose first column is this one, in the order that the call compares by.
const Index* ordering_index(const Table& table, int column, const Collation* collation, Cx& cx) {
  for (const auto& index : table.indexes) {
    const IndexColumn& first = index->columns[0];
    if (index->where != nullptr || first.column != column || index.get() == table.primary) continue;
    if (cx.session.collation(first.collation) == collation) return index.get();
  }
  return nullptr;
}

bool plan_call(const AggregateCall& call, const Table& table, int slot, Cx& cx, Answer* out) {
  out->kind = fast_kind(call);
  out->output = call.output;
  if (call.filter != nullptr || call.distinct) return false;
  if (out->kind == Fast::kCountStar) {
    // Fewer columns, fewer pages.
    size_t columns = table.columns.size();
    for (const auto& index : table.indexes) {
      if (index->where != nullptr || index->columns.size() >= columns) continue;
      columns = index->columns.size();
      out->index = index.get();
    }
    return true;
  }
  if (out->kind != Fast::kMin && out->kind != Fast::kMax) return false;
  const Expr* arg = call.args[0];
  if ((arg->op != Op::kColumn && arg->op != Op::kRowid) || arg->a != slot) return false;
  if (table.without_rowid) return false;
  out->column = arg->b;
  if (arg->op == Op::kRowid || arg->b == table.rowid_column) {
    out->column = static_cast<int>(table.columns.size());
    return true;
  }
  out->index = ordering_index(table, arg->b, call.collation, cx);
  return out->index != nullptr;
}

class TableShortcut : public SlotStream {
 public:
  TableShortcut(const RowPlan& plan, std::vector<Answer> answers)
      : plan_(plan), source_(*plan.join->levels[0]->source), answers_(std::move(answers)) {}

  void open(Cx& cx) override {
    done_ = false;
    out_.assign(static_cast<size_t>(plan_.aggregate->width), Value());
    bool any = eval_all(plan_.join->constant_filters, cx);
    for (const Answer& answer : answers_) {
      if (cx.failed()) return;
      Value& out = out_[static_cast<size_t>(answer.output)];
      if (answer.kind == Fast::kCountStar) {
        out.set_integer(0);
        if (any) count(answer, cx, out);
      } else if (any) {
        find_end(answer, cx, out);
      }
    }
  }
  bool next(Cx& cx) override {
    if (done_ || cx.failed()) return false;
    done_ = true;
    Slot& slot = cx.slots[static_cast<size_t>(plan_.aggregate->slot)];
    slot.row = out_.data();
    slot.null_row = false;
    return true;
  }

 private:
  void count(const Answer& answer, Cx& cx, Value& out) {
    TableCursor cursor;
    if (!cursor.open(cx, *source_.table, source_.database, answer.index)) return;
    auto rows = cursor.drive().count();
    if (rows.ok()) {
      out.set_integer(rows.value());
    } else {
      cx.fail(rows.error());
    }
  }

  // NULLs sort first and do not count.
  void find_end(const Answer& answer, Cx& cx, Value& out) {
    TableCursor cursor;
    if (!cursor.open(cx, *source_.table, source_.database, answer.index)) return;
    Cursor& drive = cursor.drive();
    const bool is_min = answer.kind == Fast::kMin;
    Hit hit = Hit::kEnd;
    if (answer.index == nullptr) {
      hit = is_min ? drive.first() : drive.last();
    } else {
      const bool descending = cursor.key_info().columns[0].descending;
      const Value null;
      PrefixProbe probe({&null, 1}, cursor.key_info(), descending ? 1 : -1);
      if (is_min) {
        hit = descending ? drive.seek_at_most(probe) : drive.seek_at_least(probe);
      } else {
        hit = descending ? drive.first() : drive.last();
      }
    }
    if (hit == Hit::kError) cx.fail(drive.error());
    if (hit != Hit::kRow) return;
    cursor.moved();
    if (answer.index == nullptr) {
      out.set_integer(cursor.rowid());
    } else {
      cursor.column(answer.column, out, cx);
      out.keep();
    }
  }

  const RowPlan& plan_;
  const SourcePlan& source_;
  std::vector<Answer> answers_;
  std::vector<Value> out_;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<SlotStream> make_table_shortcut(const RowPlan& plan, Cx& cx) {
  if (plan.aggregate == nullptr || plan.join == nullptr || plan.join->levels.size() != 1)
    return nullptr;
  const AggregatePlan& aggregate = *plan.aggregate;
  const JoinLevel& level = *plan.join->levels[0];
  if (!aggregate.groups.empty() || !aggregate.bare.empty() || aggregate.calls.empty())
    return nullptr;
  if (level.path->kind != PathKind::kScan || level.source->kind != SourceKind::kTable ||
      !level.filters.empty() || level.left || level.right) {
    return nullptr;
  }
  if (level.path->index != nullptr && level.path->index->where != nullptr) return nullptr;
  std::vector<Answer> answers(aggregate.calls.size());
  for (u32 i = 0; i < aggregate.calls.size(); ++i) {
    const Table& table = *level.source->table;
    if (!plan_call(*aggregate.calls[i], table, level.source->slot, cx, &answers[i])) return nullptr;
  }
  return std::make_unique<TableShortcut>(plan, std::move(answers));
}

}  // namespace db
