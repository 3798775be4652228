#include "db/exec/column_picks.h"

#include "db/exec/eval.h"
#include "db/exec/table_cursor.h"

#include <algorithm>

namespace db {

ColumnPicks::ColumnPicks(const List<Expr*>& out) : exprs_(out) {
  for (u32 i = 0; i < out.size(); ++i) {
    if (out[i]->op != Op::kColumn && out[i]->op != Op::kRowid) {
      rest_.push_back(i);
      continue;
    }
    auto at = std::find_if(groups_.begin(), groups_.end(),
                           [&](const Group& group) { return group.slot == out[i]->a; });
    if (at == groups_.end()) {
      at = groups_.emplace(groups_.end());
      at->slot = out[i]->a;
    }
    at->outs.push_back(i);
  }
  for (const Group& group : groups_) {
    if (group.outs.size() == 1) rest_.push_back(group.outs[0]);
  }
  std::erase_if(groups_, [](const Group& group) { return group.outs.size() == 1; });
}

void ColumnPicks::eval_each(const std::vector<u32>& outs, Cx& cx, Value* out) const {
  for (u32 i : outs) eval(exprs_[i], cx, out[i]);
}

void ColumnPicks::prepare(Group& group, const TableCursor& cursor) {
  group.cursor = &cursor;
  group.table = &cursor.table();
  group.index = cursor.index();
  group.picks.clear();
  group.others.clear();
  bool covered = group.index != nullptr;
  for (u32 i : group.outs) {
    if (exprs_[i]->op == Op::kRowid) {
      group.others.push_back(i);
      continue;
    }
    const int at = exprs_[i]->b;
    const Column& column = group.table->columns[static_cast<size_t>(at)];
    const bool twice = std::any_of(group.picks.begin(), group.picks.end(),
                                   [&](const ColumnPick& pick) { return pick.column == at; });
    if (at == group.table->rowid_column || column.record_at < 0 || twice) {
      group.others.push_back(i);
      continue;
    }
    covered = covered && cursor.index_has(at);
    group.picks.push_back({at, column.record_at, i, column.affinity == Affinity::kReal});
  }
  if (covered || group.picks.size() < 2) {
    group.picks.clear();
    group.others = group.outs;
  }
  std::sort(group.picks.begin(), group.picks.end(),
            [](const ColumnPick& a, const ColumnPick& b) { return a.record_at < b.record_at; });
}

void ColumnPicks::read(Cx& cx, Value* out) {
  for (Group& group : groups_) {
    const Slot& slot = cx.slots[static_cast<size_t>(group.slot)];
    if (slot.null_row) {
      for (u32 i : group.outs) out[i].set_null();
      continue;
    }
    if (slot.row != nullptr) {
      for (u32 i : group.outs)
        out[i] = slot.row[slot.map != nullptr ? slot.map[exprs_[i]->b] : exprs_[i]->b];
      continue;
    }
    TableCursor& cursor = *slot.cursor;
    if (group.cursor != &cursor || group.table != &cursor.table() ||
        group.index != cursor.index()) {
      prepare(group, cursor);
    }
    if (!group.picks.empty()) cursor.columns(group.picks, out, cx);
    eval_each(group.others, cx, out);
  }
  eval_each(rest_, cx, out);
}

}  // namespace db
