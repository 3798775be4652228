// The ways to read one FROM item, with costs.
#include "db/plan/where.h"

#include <cmath>

namespace db {
namespace {

f64 seek_cost(f64 rows) {
  return 1.0 + 0.25 * std::log2(rows + 1);
}

bool is_equality(const Term& term) {
  return term.op == Op::kEq || term.op == Op::kIs || term.op == Op::kInList ||
         term.op == Op::kInSelect || term.op == Op::kIsNull;
}
bool is_range(const Term& term) {
  return term.op >= Op::kLt && term.op <= Op::kGe;
}

f64 in_count(const Term& term) {
  if (term.op == Op::kInList) return static_cast<f64>(term.value->args.size());
  if (term.op == Op::kInSelect) return 25;
  return 1;
}

}  // namespace

Lookup JoinPlanner::lookup_of(const Term& term) {
  Lookup lookup;
  lookup.value = term.value;
  lookup.key = term.column_expr;
  lookup.term = conjuncts_[static_cast<size_t>(term.conjunct)].expr;
  lookup.collation = term.collation;
  lookup.affinity = term.compare;
  lookup.is_in = term.op == Op::kInList || term.op == Op::kInSelect;
  lookup.is_null_safe = term.op == Op::kIs || term.op == Op::kIsNull;
  if (term.op == Op::kIsNull) lookup.value = binder_.make_const(Value());
  return lookup;
}

bool JoinPlanner::term_fits_index(const Term& term, const Index& index, const IndexColumn& column) {
  if (column.column != kExpression) {
    if (term.column != column.column) return false;
    if (column.column == kRowid) return true;
    Affinity stored = index.table->columns[static_cast<size_t>(column.column)].affinity;
    if (term.op != Op::kIsNull) {
      if (term.compare == Affinity::kText && stored != Affinity::kText) return false;
      if (term.compare >= Affinity::kNumeric && stored < Affinity::kNumeric) return false;
    }
  } else {
    if (term.column != kExpression) return false;
    Expr* bound = index_expression(term.source, column);
    if (bound == nullptr || !same_expr(bound, term.column_expr)) return false;
    if (term.op != Op::kIsNull && term.compare != Affinity::kNone &&
        term.compare != term.column_expr->affinity && term.compare != Affinity::kBlob) {
      return false;
    }
  }
  if (term.op == Op::kIsNull) return true;
  return term.collation == binder_.session().collation(column.collation);
}

Expr* JoinPlanner::index_expression(int source, const IndexColumn& column) {
  const SourcePlan& plan = *items_[static_cast<size_t>(source)].source;
  Scope* scope = binder_.new_scope(nullptr);
  scope->sources.push_back(binder_.table_source(plan.table, plan.slot, plan.table->name));
  return binder_.bind(column.expr, scope);
}

bool JoinPlanner::partial_index_usable(int source, const Index& index) {
  if (index.where == nullptr) return true;
  const SourcePlan& plan = *items_[static_cast<size_t>(source)].source;
  Scope* scope = binder_.new_scope(nullptr);
  scope->sources.push_back(binder_.table_source(plan.table, plan.slot, plan.table->name));
  std::vector<Conjunct> needed;
  if (!binder_.split_conjuncts(index.where, scope, {}, &needed)) return false;
  for (const Conjunct& need : needed) {
    bool implied = false;
    for (const JoinConjunct& have : conjuncts_) {
      if (!term_allowed(have, source)) continue;
      implied |= same_expr(have.expr, need.expr);
      // x IS NOT NULL follows from any comparison with x.
      if (need.expr->op == Op::kNotNull && have.expr->op >= Op::kEq && have.expr->op <= Op::kGe) {
        implied |= same_expr(have.expr->left, need.expr->left) ||
                   same_expr(have.expr->right, need.expr->left);
      }
      if (need.expr->op == Op::kNotNull && have.expr->op == Op::kInList &&
          !have.expr->has(expr_flag::kNegated)) {
        implied |= same_expr(have.expr->left, need.expr->left);
      }
    }
    if (!implied) return false;
  }
  return true;
}

bool JoinPlanner::is_covering(int source, const Index& index) {
  if (source == 0 && from_.changes_first) return false;  // the row itself is looked up anyway
  const JoinItem& item = items_[static_cast<size_t>(source)];
  const Table& table = *item.source->table;
  if (table.primary == &index) return true;
  for (size_t i = 0; i < item.used_columns.size(); ++i) {
    if (!item.used_columns[i] || static_cast<int>(i) == table.rowid_column) continue;
    bool present = false;
    for (const IndexColumn& column : index.columns) present |= column.column == static_cast<int>(i);
    if (!present) return false;
  }
  return true;
}

namespace {

int column_width(const Column& column) {
  if (column.affinity != Affinity::kText && column.affinity != Affinity::kBlob) return 1;
  if (column.declared_type.empty()) return 1;
  size_t open = column.declared_type.find('(');
  int size = open == std::string::npos ? 16 : std::atoi(column.declared_type.c_str() + open + 1);
  return std::min(255, size / 4 + 1);
}

}  // namespace

int JoinPlanner::table_width(const Table& table) {
  int width = table.rowid_column < 0 ? 1 : 0;
  for (const Column& column : table.columns) width += column_width(column);
  return width;
}

int JoinPlanner::index_width(const Index& index) {
  int width = 0;
  for (const IndexColumn& column : index.columns) {
    width += column.column >= 0
                 ? column_width(index.table->columns[static_cast<size_t>(column.column)])
                 : 1;
  }
  return width;
}

AccessPath* JoinPlanner::scan_path(int source) {
  const JoinItem& item = items_[static_cast<size_t>(source)];
  auto* path = binder_.arena().make<AccessPath>();
  path->kind = PathKind::kScan;
  path->rows = item.rows;
  path->cost = item.rows * 1.2 + 1;
  if (item.source->kind == SourceKind::kRows) {
    path->kind = PathKind::kRows;
    path->cost = item.rows + 1;
    return path;
  }
  if (item.source->table->without_rowid) path->index = item.source->table->primary;
  return path;
}

AccessPath* JoinPlanner::index_path(int source, const Index& index,
                                    const std::vector<Term>& terms) {
  const JoinItem& item = items_[static_cast<size_t>(source)];
  Arena& arena = binder_.arena();
  auto* path = arena.make<AccessPath>();
  path->kind = PathKind::kIndexSeek;
  path->index = &index;
  f64 matches = item.rows;
  f64 seeks = 1;
  int prefix = 0;
  int columns = index.key_columns;
  if (!index.table->without_rowid) columns = static_cast<int>(index.columns.size());
  bool only_values = true;
  for (; prefix < columns; ++prefix) {
    const IndexColumn& column = index.columns[static_cast<size_t>(prefix)];
    const Term* chosen = nullptr;
    for (const Term& term : terms) {
      if (!is_equality(term) || !term_fits_index(term, index, column)) continue;
      // A plain value beats IN; fewer prerequisites beat more.
      if (chosen == nullptr || in_count(term) < in_count(*chosen) ||
          (in_count(term) == in_count(*chosen) &&
           __builtin_popcountll(term.value_mask) < __builtin_popcountll(chosen->value_mask))) {
        chosen = &term;
      }
    }
    if (chosen == nullptr) break;
    path->lookups.push(arena, lookup_of(*chosen));
    path->prerequisites |= chosen->value_mask;
    path->consumed.push(arena, conjuncts_[static_cast<size_t>(chosen->conjunct)].expr);
    seeks *= std::max(1.0, in_count(*chosen));
    only_values &= chosen->op == Op::kEq;
    if (index.stat.size() > static_cast<size_t>(prefix) + 1) {
      matches = std::max(1.0, index.stat[static_cast<size_t>(prefix) + 1]);
    } else if (prefix == 0) {
      matches = std::max(1.0, std::min(10.0, item.rows / 4));
    } else {
      matches = std::max(1.0, matches / 1.5);
    }
  }
  if (index.unique && prefix >= index.key_columns && only_values) {
    matches = 1;
    path->one_row = seeks == 1;
  }
  f64 range_factor = 1;
  if (prefix < columns && !path->one_row) {
    const IndexColumn& column = index.columns[static_cast<size_t>(prefix)];
    for (const Term& term : terms) {
      if (!is_range(term) || !term_fits_index(term, index, column)) continue;
      bool above = term.op == Op::kGt || term.op == Op::kGe;
      Bound& bound = above != column.descending ? path->low : path->high;
      if (bound.value != nullptr) continue;
      bound.value = term.value;
      bound.inclusive = term.op == Op::kGe || term.op == Op::kLe;
      path->range_affinity = term.compare;
      path->prerequisites |= term.value_mask;
      path->consumed.push(arena, conjuncts_[static_cast<size_t>(term.conjunct)].expr);
      range_factor *= 0.25;
    }
    path->skip_null = path->low.value != nullptr || path->high.value != nullptr;
  }
  if (path->lookups.empty() && path->low.value == nullptr && path->high.value == nullptr) {
    return nullptr;
  }
  path->rows = std::max(1.0, std::min(item.rows, matches * seeks * range_factor));
  bool covering = is_covering(source, index);
  path->cost = seeks * seek_cost(item.rows) + path->rows * (covering ? 1.0 : 2.2);
  return path;
}

void JoinPlanner::index_paths(int source, const std::vector<Term>& terms,
                              std::vector<AccessPath*>* out, bool scans) {
  const JoinItem& item = items_[static_cast<size_t>(source)];
  const Table& table = *item.source->table;
  const sql::Source* syntax = item.syntax;
  bool none = syntax != nullptr && syntax->not_indexed;
  std::string_view only = syntax != nullptr && syntax->indexed_by.present()
                              ? syntax->indexed_by.text
                              : std::string_view();
  for (const auto& index : table.indexes) {
    bool primary = table.primary == index.get();
    if (none && !primary) continue;
    if (!only.empty() && !equal_nocase(index->name, only)) continue;
    if (!partial_index_usable(source, *index)) continue;
    AccessPath* path = index_path(source, *index, terms);
    if (path != nullptr) out->push_back(path);
    // The variant that needs nothing from other items.
    if (path != nullptr && path->prerequisites != 0) {
      std::vector<Term> alone;
      for (const Term& term : terms) {
        if (term.value_mask == 0) alone.push_back(term);
      }
      if (AccessPath* one = index_path(source, *index, alone); one != nullptr) out->push_back(one);
    }
    if (!scans || primary) continue;
    bool orders = order_ != nullptr || !only.empty();
    bool covering = is_covering(source, *index);
    bool smaller = covering && index_width(*index) < table_width(table);
    if (!orders && !smaller && index->where == nullptr) continue;
    auto* scan = binder_.arena().make<AccessPath>();
    scan->kind = PathKind::kScan;
    scan->index = index.get();
    scan->rows = index->where != nullptr ? item.rows * 0.5 : item.rows;
    scan->cost = scan->rows * (covering ? (smaller ? 1.1 : 1.25) : 2.4) + 1;
    out->push_back(scan);
  }
}

void JoinPlanner::rowid_paths(int source, const std::vector<Term>& terms,
                              std::vector<AccessPath*>* out) {
  const JoinItem& item = items_[static_cast<size_t>(source)];
  Arena& arena = binder_.arena();
  AccessPath* range = nullptr;
  for (const Term& term : terms) {
    if (term.column != kRowid || term.op == Op::kIsNull) continue;
    Expr* conjunct = conjuncts_[static_cast<size_t>(term.conjunct)].expr;
    if (is_equality(term)) {
      auto* path = arena.make<AccessPath>();
      path->kind = PathKind::kRowidEqual;
      path->lookups.push(arena, lookup_of(term));
      path->prerequisites = term.value_mask;
      path->consumed.push(arena, conjunct);
      path->one_row = term.op == Op::kEq || term.op == Op::kIs;
      path->rows = std::min(item.rows, in_count(term));
      path->cost = in_count(term) * seek_cost(item.rows) * 0.8 + path->rows;
      out->push_back(path);
      continue;
    }
    if (!is_range(term)) continue;
    if (range == nullptr) {
      range = arena.make<AccessPath>();
      range->kind = PathKind::kRowidRange;
      range->rows = item.rows;
    }
    bool above = term.op == Op::kGt || term.op == Op::kGe;
    Bound& bound = above ? range->low : range->high;
    if (bound.value != nullptr ||
        (range->prerequisites != term.value_mask && range->prerequisites != 0)) {
      continue;
    }
    bound.value = term.value;
    bound.inclusive = term.op == Op::kGe || term.op == Op::kLe;
    range->prerequisites |= term.value_mask;
    range->consumed.push(arena, conjunct);
    range->rows *= 0.25;
  }
  if (range != nullptr) {
    range->cost = seek_cost(item.rows) + range->rows * 1.2;
    out->push_back(range);
  }
}

AccessPath* JoinPlanner::or_path(int source, int conjunct) {
  std::vector<Expr*> arms;
  auto split = [&](auto& self, Expr* expr) -> void {
    if (expr->op == Op::kOr) {
      self(self, expr->left);
      self(self, expr->right);
    } else {
      arms.push_back(expr);
    }
  };
  split(split, conjuncts_[static_cast<size_t>(conjunct)].expr);
  if (arms.size() < 2 || arms.size() > 32) return nullptr;
  auto* path = binder_.arena().make<AccessPath>();
  path->kind = PathKind::kMultiOr;
  for (Expr* arm : arms) {
    std::vector<Conjunct> parts;
    binder_.push_conjunct(arm, {}, &parts);
    std::vector<Term> terms;
    for (const Conjunct& part : parts) add_term(conjunct, part.expr, &terms, source);
    std::vector<AccessPath*> choices;
    rowid_paths(source, terms, &choices);
    index_paths(source, terms, &choices, false);
    AccessPath* best = nullptr;
    for (AccessPath* choice : choices) {
      if (best == nullptr || choice->cost < best->cost) best = choice;
    }
    if (best == nullptr) return nullptr;
    best->consumed = {};
    path->branches.push(binder_.arena(), best);
    path->cost += best->cost * 1.2;
    path->rows += best->rows;
    path->prerequisites |= best->prerequisites;
  }
  path->rows = std::min(path->rows, items_[static_cast<size_t>(source)].rows);
  return path;
}

void JoinPlanner::build_paths(int source) {
  JoinItem& item = items_[static_cast<size_t>(source)];
  if (item.source->kind == SourceKind::kVirtual) {
    virtual_paths(source);
    return;
  }
  bool forced = item.syntax != nullptr && item.syntax->indexed_by.present() &&
                item.source->kind == SourceKind::kTable;
  if (!forced) item.paths.push_back(scan_path(source));
  if (item.source->kind == SourceKind::kRows || item.right) return;
  const Table& table = *item.source->table;
  if (!table.without_rowid && !forced) rowid_paths(source, item.terms, &item.paths);
  index_paths(source, item.terms, &item.paths, true);
  if (table.without_rowid || forced) {
    if (forced && item.paths.empty()) no_solution_ = true;
    return;
  }
  if (table.indexes.empty() && table.rowid_column < 0) return;
  for (size_t i = 0; i < conjuncts_.size(); ++i) {
    if (conjuncts_[i].expr->op != Op::kOr || !term_allowed(conjuncts_[i], source)) continue;
    if ((conjuncts_[i].mask >> source & 1) == 0) continue;
    if (AccessPath* path = or_path(source, static_cast<int>(i)); path != nullptr) {
      item.paths.push_back(path);
    }
  }
}

}  // namespace db
