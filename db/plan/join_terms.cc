// Conjuncts of a join: what they need, what they can look up, how much they keep.
#include "db/plan/where.h"

#include <cmath>

namespace db {
namespace {

// A table without statistics counts as at least this large: statements are prepared while tables
// are still empty and outlive that moment, and a needless search of a small table costs nothing.
constexpr f64 kFewestRows = 400;

}  // namespace

u64 JoinPlanner::mask_of(Expr* expr) {
  u64 mask = 0;
  auto visit = [&](Expr* e) {
    if ((e->op == Op::kColumn || e->op == Op::kRowid) &&
        e->a < static_cast<int>(bit_of_slot_.size()) &&
        bit_of_slot_[static_cast<size_t>(e->a)] >= 0) {
      mask |= u64{1} << bit_of_slot_[static_cast<size_t>(e->a)];
    }
    if (e->subquery != nullptr) {
      for (Expr* outer : e->subquery->outer) mask |= mask_of(outer);
    }
    return true;
  };
  walk(expr, visit);
  return mask;
}

// Does it read a row of an enclosing query?
bool JoinPlanner::reads_outer(Expr* expr) const {
  bool outer = false;
  auto visit = [&](Expr* e) {
    if (e->op == Op::kColumn || e->op == Op::kRowid) {
      size_t slot = static_cast<size_t>(e->a);
      outer |= slot >= bit_of_slot_.size() || bit_of_slot_[slot] < 0;
    }
    if (e->subquery != nullptr) {
      for (Expr* one : e->subquery->outer) outer |= reads_outer(one);
    }
    return !outer;
  };
  walk(expr, visit);
  return outer;
}

// A column declared to hold one character has few values.
bool JoinPlanner::has_few_values(const Expr* expr) const {
  if (expr->op != Op::kColumn || static_cast<size_t>(expr->a) >= bit_of_slot_.size()) return false;
  int bit = bit_of_slot_[static_cast<size_t>(expr->a)];
  const Table* table = bit < 0 ? nullptr : items_[static_cast<size_t>(bit)].source->table;
  if (table == nullptr || static_cast<size_t>(expr->b) >= table->columns.size()) return false;
  return table->columns[static_cast<size_t>(expr->b)].declared_type.find("(1)") !=
         std::string::npos;
}

f64 JoinPlanner::factor_of(const Expr* expr) {
  switch (expr->op) {
    case Op::kEq:
    case Op::kIs:
      return has_few_values(expr->left) || has_few_values(expr->right) ? 0.4 : 0.1;
    case Op::kInList:
      return expr->has(expr_flag::kNegated)
                 ? 0.9
                 : std::min(0.5, 0.1 * static_cast<f64>(expr->args.size()));
    case Op::kInSelect:
      return 0.3;
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      return 0.35;
    case Op::kIsNull:
      return 0.1;
    case Op::kOr:
      return std::min(0.9, factor_of(expr->left) + factor_of(expr->right));
    case Op::kAnd:
      return factor_of(expr->left) * factor_of(expr->right);
    case Op::kNot:
      return std::max(0.1, 1 - factor_of(expr->left));
    case Op::kFunction:
      return expr->function->has(function_flag::kLike) ? 0.1 : 0.75;
    default:
      return 0.75;
  }
}

void JoinPlanner::collect_conjuncts() {
  for (const Conjunct& one : from_.conjuncts) {
    JoinConjunct conjunct;
    conjunct.expr = one.expr;
    conjunct.on_source = one.on_source;
    conjunct.inner_source = one.inner_source;
    conjunct.is_argument = one.is_argument;
    conjunct.mask = mask_of(one.expr);
    conjunct.factor = factor_of(one.expr);
    in_subquery_ = in_subquery_ || reads_outer(one.expr);
    conjuncts_.push_back(conjunct);
  }
  size_t given = conjuncts_.size();
  for (size_t i = 0; i < given; ++i) imply_from_or(i);
}

// A LEFT JOIN whose NULL rows WHERE throws away is an inner join.
void JoinPlanner::reduce_outer_joins() {
  auto rejects_null = [&](const Expr* expr, int bit) {
    auto is_of = [&](const Expr* e) {
      return e != nullptr && (e->op == Op::kColumn || e->op == Op::kRowid) &&
             bit_of_slot_[static_cast<size_t>(e->a)] == bit;
    };
    switch (expr->op) {
      case Op::kEq:
      case Op::kNe:
      case Op::kLt:
      case Op::kLe:
      case Op::kGt:
      case Op::kGe:
        return is_of(expr->left) || is_of(expr->right);
      case Op::kNotNull:
        return is_of(expr->left);
      case Op::kInList:
        return is_of(expr->left) && !expr->has(expr_flag::kNegated);
      default:
        return false;
    }
  };
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].left || items_[i].right || has_right_) continue;
    bool rejected = false;
    for (const JoinConjunct& conjunct : conjuncts_) {
      bool is_where =
          conjunct.on_source < 0 || !items_[static_cast<size_t>(conjunct.on_source)].left;
      if (is_where && rejects_null(conjunct.expr, static_cast<int>(i))) rejected = true;
    }
    if (!rejected) continue;
    items_[i].left = false;
    items_[i].prerequisites = 0;
    for (JoinConjunct& conjunct : conjuncts_) {
      if (conjunct.on_source == static_cast<int>(i)) conjunct.on_source = -1;
    }
    i = static_cast<size_t>(-1);  // this may free another one
  }
}

bool JoinPlanner::term_allowed(const JoinConjunct& conjunct, int source) const {
  const JoinItem& item = items_[static_cast<size_t>(source)];
  if (item.right) return false;
  if (conjunct.is_argument) return true;
  if (item.left) return conjunct.on_source == source;
  if (conjunct.on_source >= 0) return false;
  return !has_right_ || conjunct.inner_source == source;
}

void JoinPlanner::match_side(int conjunct, Op op, Expr* column, Expr* value, const Expr* comparison,
                             std::vector<Term>* out, int only_source) {
  Term term;
  term.conjunct = conjunct;
  term.op = op;
  term.value = value;
  term.column_expr = column;
  term.compare = comparison->compare;
  term.collation = comparison->collation != nullptr ? comparison->collation : &kBinary;
  if (column->op == Op::kColumn || column->op == Op::kRowid) {
    int bit = bit_of_slot_[static_cast<size_t>(column->a)];
    if (bit < 0) return;
    term.source = bit;
    term.column = column->op == Op::kRowid ? kRowid : column->b;
  } else {
    u64 mask = mask_of(column);
    if (mask == 0 || (mask & (mask - 1)) != 0) return;
    int bit = __builtin_ctzll(mask);
    const Table* table = items_[static_cast<size_t>(bit)].source->table;
    bool has_expressions = false;
    if (table != nullptr) {
      for (const auto& index : table->indexes) {
        for (const IndexColumn& one : index->columns) has_expressions |= one.column == kExpression;
      }
    }
    if (!has_expressions) return;
    term.source = bit;
    term.column = kExpression;
  }
  if (only_source >= 0 && term.source != only_source) return;
  term.value_mask = op == Op::kInList || op == Op::kIsNull ? 0 : mask_of(value);
  if (op == Op::kInList) {
    for (Expr* item : comparison->args) term.value_mask |= mask_of(item);
  } else if (op == Op::kInSelect) {
    term.value_mask = 0;
    for (Expr* outer : comparison->subquery->outer) term.value_mask |= mask_of(outer);
  }
  if ((term.value_mask >> term.source & 1) != 0) return;
  if (!term_allowed(conjuncts_[static_cast<size_t>(conjunct)], term.source)) return;
  out->push_back(term);
}

void JoinPlanner::add_term(int conjunct, Expr* expr, std::vector<Term>* out, int only_source) {
  static constexpr auto kFlip = [](Op op) {
    switch (op) {
      case Op::kLt:
        return Op::kGt;
      case Op::kLe:
        return Op::kGe;
      case Op::kGt:
        return Op::kLt;
      case Op::kGe:
        return Op::kLe;
      default:
        return op;
    }
  };
  switch (expr->op) {
    case Op::kEq:
    case Op::kIs:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      match_side(conjunct, expr->op, expr->left, expr->right, expr, out, only_source);
      match_side(conjunct, kFlip(expr->op), expr->right, expr->left, expr, out, only_source);
      break;
    case Op::kInList:
      if (!expr->has(expr_flag::kNegated)) {
        match_side(conjunct, Op::kInList, expr->left, expr, expr, out, only_source);
      }
      break;
    case Op::kInSelect:
      if (!expr->has(expr_flag::kNegated) && expr->args.size() == 1) {
        Expr* pair = expr->args[0];
        size_t before = out->size();
        match_side(conjunct, Op::kInSelect, pair->left, expr, expr, out, only_source);
        if (out->size() > before) {
          out->back().compare = pair->compare;
          out->back().collation = pair->collation;
        }
      }
      break;
    case Op::kIsNull:
      match_side(conjunct, Op::kIsNull, expr->left, expr, expr, out, only_source);
      break;
    default:
      break;
  }
}

void JoinPlanner::find_terms() {
  std::vector<Term> terms;
  for (size_t i = 0; i < conjuncts_.size(); ++i) {
    JoinConjunct& conjunct = conjuncts_[i];
    add_term(static_cast<int>(i), conjunct.expr, &terms, -1);
    if (conjunct.mask != 0 && (conjunct.mask & (conjunct.mask - 1)) == 0) {
      int source = __builtin_ctzll(conjunct.mask);
      if (term_allowed(conjunct, source)) {
        items_[static_cast<size_t>(source)].local.push_back(static_cast<int>(i));
        items_[static_cast<size_t>(source)].local_factor *= conjunct.factor;
      }
    }
  }
  for (Term& term : terms) items_[static_cast<size_t>(term.source)].terms.push_back(term);
}

f64 JoinPlanner::table_rows(const Table& table, int database) {
  if (table.stat_rows >= 0) return std::max(1.0, table.stat_rows);
  Store* store = binder_.session().databases[static_cast<size_t>(database)]->store.get();
  if (store == nullptr || table.root == 0) return kFewestRows;
  if (!store->begin_read().ok()) return kFewestRows;
  Cursor cursor(*store, table.root, nullptr);
  auto rows = cursor.estimate_rows();
  return rows.ok() ? std::max(kFewestRows, static_cast<f64>(rows.value())) : kFewestRows;
}

void JoinPlanner::note_columns(Expr* expr) {
  auto visit = [&](Expr* e) {
    if (e->op == Op::kColumn && e->a < static_cast<int>(bit_of_slot_.size())) {
      int bit = bit_of_slot_[static_cast<size_t>(e->a)];
      if (bit >= 0 &&
          e->b < static_cast<int>(items_[static_cast<size_t>(bit)].used_columns.size())) {
        items_[static_cast<size_t>(bit)].used_columns[static_cast<size_t>(e->b)] = true;
      }
    }
    if (e->subquery != nullptr) {
      for (Expr* outer : e->subquery->outer) note_columns(outer);
    }
    return true;
  };
  walk(expr, visit);
}

void JoinPlanner::note_used_columns(const List<Expr*>* outs, RowPlan* row) {
  for (const JoinConjunct& conjunct : conjuncts_) note_columns(conjunct.expr);
  if (outs != nullptr) {
    for (Expr* expr : *outs) note_columns(expr);
  }
  if (row == nullptr) {
    for (JoinItem& item : items_) item.used_columns.assign(item.used_columns.size(), true);
    return;
  }
  if (row->aggregate != nullptr) {
    for (Expr* expr : row->aggregate->groups) note_columns(expr);
    for (Expr* expr : row->aggregate->bare) note_columns(expr);
    for (AggregateCall* call : row->aggregate->calls) {
      for (Expr* arg : call->args) note_columns(arg);
      if (call->filter != nullptr) note_columns(call->filter);
      for (const SortKey& key : call->order) note_columns(key.expr);
    }
  }
  if (row->window != nullptr) {
    for (Expr* expr : row->window->inputs) note_columns(expr);
  }
}

}  // namespace db
