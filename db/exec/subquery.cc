#include "db/exec/subquery.h"

#include "db/exec/eval.h"

namespace db {
namespace {

// Is the cached answer for the enclosing rows as they are now? Notes them when not.
bool still_valid(SubqueryState& state, Cx& cx) {
  const SubqueryNode& node = *state.node;
  if (!node.correlated) return state.valid;
  bool same = state.valid && state.outer.size() == node.outer.size();
  std::vector<Value> now(node.outer.size());
  for (u32 i = 0; i < node.outer.size(); ++i) {
    eval(node.outer[i], cx, now[i]);
    same = same && now[i].type() == state.outer[i].type() && compare(now[i], state.outer[i]) == 0;
  }
  if (same && !node.is_volatile) return true;
  for (Value& value : now) value.keep();
  state.outer = std::move(now);
  return false;
}

RowStream& stream_of(SubqueryState& state, Cx& cx) {
  if (state.stream == nullptr) state.stream = make_stream(*state.node->plan, cx);
  return *state.stream;
}

bool read_first(SubqueryState& state, Cx& cx) {
  RowStream& stream = stream_of(state, cx);
  stream.open(cx);
  bool found = stream.next(cx);
  state.first.assign(static_cast<size_t>(state.node->plan->width), Value());
  if (found) {
    for (size_t i = 0; i < state.first.size(); ++i) {
      state.first[i] = stream.row()[i];
      state.first[i].keep();
    }
  }
  state.exists = found;
  stream.close(cx);
  state.valid = !cx.failed();
  return found;
}

constexpr size_t kMemoRows = 4096;

// Correlated answers by enclosing values: repeated values do not run the query again.
bool recall(SubqueryState& state, size_t width) {
  if (state.memo == nullptr) return false;
  size_t at = state.memo->find(state.outer.data());
  if (at == ValueSet::kNone) return false;
  Value* row = state.memo_rows.data() + at * (width + 1);
  state.exists = row[0].raw_integer() != 0;
  state.first.assign(row + 1, row + 1 + width);
  state.valid = true;
  return true;
}

void remember(SubqueryState& state, size_t width) {
  if (!state.node->correlated || state.outer.empty() || state.node->is_volatile) return;
  if (state.memo == nullptr) {
    state.memo = std::make_unique<ValueSet>(static_cast<int>(state.outer.size()));
  }
  if (state.memo->size() >= kMemoRows) return;
  bool is_new = false;
  state.memo->insert(state.outer.data(), &is_new);
  if (!is_new) return;
  state.memo_rows.push_back(Value::boolean(state.exists));
  for (size_t i = 0; i < width; ++i) state.memo_rows.push_back(state.first[i]);
}

bool answer(SubqueryState& state, Cx& cx) {
  if (still_valid(state, cx)) return true;
  size_t width = static_cast<size_t>(state.node->plan->width);
  if (state.node->correlated && recall(state, width)) return true;
  read_first(state, cx);
  if (!cx.failed()) remember(state, width);
  return !cx.failed();
}

}  // namespace

void eval_scalar_subquery(const Expr* expr, Cx& cx, Value& out) {
  SubqueryState& state = cx.subquery(expr->subquery);
  if (!answer(state, cx)) {
    out.set_null();
    return;
  }
  out = state.first[static_cast<size_t>(expr->a)];
  if (out.subtype() != 0) out.set_subtype(0);
}

int eval_exists(const Expr* expr, Cx& cx) {
  SubqueryState& state = cx.subquery(expr->subquery);
  return answer(state, cx) && state.exists;
}

namespace {

bool build_set(const Expr* expr, SubqueryState& state, Cx& cx) {
  if (still_valid(state, cx) && state.set != nullptr) return true;
  int width = state.node->plan->width;
  std::vector<const Collation*> collations;
  for (const Expr* pair : expr->args) collations.push_back(pair->collation);
  state.set = std::make_unique<ValueSet>(width, collations.data());
  state.set_has_null = false;
  RowStream& stream = stream_of(state, cx);
  stream.open(cx);
  std::vector<Value> row(static_cast<size_t>(width));
  while (stream.next(cx)) {
    bool has_null = false;
    for (int i = 0; i < width; ++i) {
      Value& value = row[static_cast<size_t>(i)];
      value = stream.row()[i];
      has_null |= value.is_null();
      apply_comparison_affinity_one(expr->args[static_cast<size_t>(i)]->compare, value);
    }
    state.set_has_null |= has_null;
    if (has_null && width == 1) continue;
    bool is_new = false;
    state.set->insert(row.data(), &is_new);
  }
  stream.close(cx);
  state.valid = !cx.failed();
  return state.valid;
}

}  // namespace

ValueSet* in_select_values(const Expr* expr, Cx& cx) {
  SubqueryState& state = cx.subquery(expr->subquery);
  return build_set(expr, state, cx) ? state.set.get() : nullptr;
}

int eval_in_select(const Expr* expr, Cx& cx) {
  SubqueryState& state = cx.subquery(expr->subquery);
  if (!build_set(expr, state, cx)) return -1;
  int negated = expr->has(expr_flag::kNegated) ? 1 : 0;
  size_t width = expr->args.size();
  std::vector<Value> key(width);
  bool has_null = false;
  for (size_t i = 0; i < width; ++i) {
    eval(expr->args[i]->left, cx, key[i]);
    apply_comparison_affinity_one(expr->args[i]->compare, key[i]);
    has_null |= key[i].is_null();
  }
  if (state.set->size() == 0 && !state.set_has_null) return negated;
  if (!has_null && state.set->find(key.data()) != ValueSet::kNone) return 1 - negated;
  if (!has_null && !state.set_has_null) return negated;
  if (width == 1) return -1;
  // With NULLs in rows: unknown only if some row agrees in all columns where neither is NULL.
  for (size_t r = 0; r < state.set->size(); ++r) {
    const Value* row = state.set->row(r);
    bool possible = true;
    for (size_t i = 0; i < width && possible; ++i) {
      if (row[i].is_null() || key[i].is_null()) continue;
      possible = compare(row[i], key[i], expr->args[i]->collation) == 0;
    }
    if (possible) return -1;
  }
  return negated;
}

RowBuffer* subquery_rows(const SubqueryNode* node, Cx& cx) {
  SubqueryState& state = cx.subquery(node);
  if (still_valid(state, cx) && state.rows != nullptr) return state.rows.get();
  if (state.running) {
    cx.fail(rc::kError, "circular reference");
    return nullptr;
  }
  state.running = true;
  RowStream& stream = stream_of(state, cx);
  auto rows = std::make_unique<RowBuffer>();
  rows->width = node->plan->width;
  stream.open(cx);
  while (stream.next(cx)) {
    for (int i = 0; i < rows->width; ++i) {
      rows->values.push_back(stream.row()[i]);
      rows->values.back().keep();
    }
  }
  stream.close(cx);
  state.running = false;
  state.rows = std::move(rows);
  state.valid = !cx.failed();
  return state.valid ? state.rows.get() : nullptr;
}

}  // namespace db
