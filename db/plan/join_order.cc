// Join order: a beam search over left-deep orders, then the plan of the best one.
#include "db/plan/where.h"

#include <algorithm>
#include <cmath>

namespace db {
namespace {

// How often a correlated subquery is thought to run: what its kept tables cost is shared.
constexpr f64 kStartsGuess = 30;
constexpr f64 kManyRows = 20000;

bool has_correlated_subquery(Expr* expr) {
  bool found = false;
  walk(expr, [&](Expr* e) {
    found |= e->subquery != nullptr && e->subquery->correlated;
    return !found;
  });
  return found;
}

// Does an aggregate of the query depend on the order of its rows, as group_concat(x) does, or a
// sum() of integers that overflows on the way? Then PRAGMA reverse_unordered_selects, which turns
// round the order of result rows, lets it be.
bool order_shows(const RowPlan* row) {
  static constexpr std::string_view kAnyOrder[] = {"count", "total", "avg", "min", "max"};
  if (row == nullptr || row->aggregate == nullptr) return false;
  for (const AggregateCall* call : row->aggregate->calls) {
    const Function& function = *call->function;
    bool any =
        function.has(function_flag::kBuiltIn) &&
        std::find(std::begin(kAnyOrder), std::end(kAnyOrder), function.name) != std::end(kAnyOrder);
    if (!any && call->order.empty()) return true;
  }
  return false;
}

}  // namespace

// Rows of the item found by equality with what is already there; with no such equality, its rows
// filtered once and kept.
AccessPath* JoinPlanner::hash_path(const Candidate& so_far, int source) {
  JoinItem& item = items_[static_cast<size_t>(source)];
  if (item.source->kind == SourceKind::kVirtual || item.source->correlated) return nullptr;
  if (!binder_.session().automatic_index && !item.right) return nullptr;
  Arena& arena = binder_.arena();
  AccessPath* path = nullptr;
  f64 kept = std::max(1.0, item.rows * item.local_factor);
  f64 matches = kept;
  u64 prerequisites = 0;
  std::vector<Lookup> lookups;
  std::vector<Expr*> consumed;
  for (const Term& term : item.terms) {
    if (term.op != Op::kEq && term.op != Op::kIs) continue;
    if (term.value_mask == 0 && !reads_outer(term.value)) continue;
    if ((term.value_mask & ~so_far.placed) != 0) continue;
    if (term.collation->kind == Collation::Kind::kUser) continue;
    lookups.push_back(lookup_of(term));
    consumed.push_back(conjuncts_[static_cast<size_t>(term.conjunct)].expr);
    prerequisites |= term.value_mask;
    f64 distinct = std::max(10.0, std::sqrt(item.rows));
    if (term.column == kRowid) distinct = item.rows;
    if (__builtin_popcountll(term.value_mask) == 1) {
      const JoinItem& other = items_[static_cast<size_t>(__builtin_ctzll(term.value_mask))];
      // A reference to the other table's key: no more values than that has rows.
      if (term.value->op == Op::kRowid) distinct = std::min(item.rows, std::max(1.0, other.rows));
    }
    matches = std::max(0.5, matches / distinct);
  }
  if (so_far.placed == 0 && lookups.empty()) return nullptr;
  path = arena.make<AccessPath>();
  path->kind = PathKind::kHash;
  path->kept = in_subquery_ && !item.right;
  for (const Lookup& lookup : lookups) path->lookups.push(arena, lookup);
  for (Expr* expr : consumed) path->consumed.push(arena, expr);
  path->prerequisites = prerequisites;
  path->setup = (item.rows + kept * 2 + 4) / (path->kept ? kStartsGuess : 1);
  path->rows = lookups.empty() ? kept : matches;
  path->cost = lookups.empty() ? kept * 0.5 : 0.5 + matches;
  return path;
}

// Of candidates that placed the same items only the cheapest goes on, ordered or not apart. The
// vector is sorted by cost.
void JoinPlanner::drop_dearer_twins(std::vector<Candidate>* candidates) {
  size_t kept = 0;
  for (Candidate& one : *candidates) {
    bool twin = false;
    for (size_t i = 0; i < kept && !twin; ++i) {
      const Candidate& cheaper = (*candidates)[i];
      twin = cheaper.placed == one.placed && cheaper.ordered >= one.ordered;
    }
    if (twin) continue;
    if (&(*candidates)[kept] != &one) (*candidates)[kept] = std::move(one);
    ++kept;
  }
  candidates->resize(kept);
}

bool JoinPlanner::path_orders(int source, AccessPath* path, bool* reverse) {
  const JoinItem& item = items_[static_cast<size_t>(source)];
  if (order_ == nullptr || item.source->kind != SourceKind::kTable || item.left) return false;
  if (path->kind == PathKind::kMultiOr || path->kind == PathKind::kHash) return false;
  for (const Lookup& lookup : path->lookups) {
    if (lookup.is_in) return false;
  }
  const Table& table = *item.source->table;
  const Index* index = path->index;
  size_t at = path->kind == PathKind::kIndexSeek ? path->lookups.size() : 0;
  int direction = -1;  // unknown
  bool complete = false;
  for (const SortKey& key : *order_) {
    if (complete) break;
    Expr* expr = key.expr;
    if (is_constant(expr)) continue;
    // A column fixed by equality does not order anything.
    bool fixed = false;
    for (const Term& term : item.terms) {
      fixed |= term.op == Op::kEq && term.value_mask == 0 && same_expr(term.column_expr, expr) &&
               term.collation == key.collation;
    }
    if (fixed) continue;
    if (key.nulls_last) return false;
    bool descending = false;
    if (expr->op == Op::kRowid && expr->a == item.source->slot && index == nullptr) {
      complete = true;
    } else if (index != nullptr) {
      for (; at < index->columns.size(); ++at) {
        const IndexColumn& column = index->columns[at];
        bool matches = false;
        if (column.column == kRowid) {
          matches = expr->op == Op::kRowid && expr->a == item.source->slot;
          complete = matches;
        } else if (column.column == kExpression) {
          Expr* bound = index_expression(source, column);
          matches = bound != nullptr && same_expr(bound, expr);
        } else {
          matches =
              expr->op == Op::kColumn && expr->a == item.source->slot && expr->b == column.column;
        }
        if (matches && column.column != kRowid &&
            binder_.session().collation(column.collation) != key.collation) {
          matches = false;
        }
        if (matches) {
          descending = column.descending;
          break;
        }
        // Skip an index column that equality fixes.
        bool constant = false;
        for (const Term& term : item.terms) {
          constant |=
              term.op == Op::kEq && term.value_mask == 0 && term_fits_index(term, *index, column);
        }
        if (!constant) return false;
      }
      if (at >= index->columns.size()) return false;
      ++at;
      if (index->unique && static_cast<int>(at) >= index->key_columns && !table.without_rowid) {
        bool all_not_null = true;
        for (int i = 0; i < index->key_columns; ++i) {
          int column = index->columns[static_cast<size_t>(i)].column;
          all_not_null &= column >= 0 && table.columns[static_cast<size_t>(column)].not_null;
        }
        complete |= all_not_null;
      }
    } else {
      return false;
    }
    int wanted = key.descending != descending ? 1 : 0;
    if (direction >= 0 && wanted != direction) return false;
    direction = wanted;
    if (items_.size() > 1 && !complete && &key != &order_->back()) {
      // Further keys of this item may still follow; keys of other items may not.
    }
  }
  if (items_.size() > 1) {
    for (const SortKey& key : *order_) {
      if (is_constant(key.expr)) continue;
      u64 mask = mask_of(key.expr);
      if ((mask & ~(u64{1} << source)) != 0) return false;
    }
  }
  *reverse = direction == 1;
  return true;
}

bool JoinPlanner::extend(const Candidate& from, int source, AccessPath* path, Candidate* to) {
  const JoinItem& item = items_[static_cast<size_t>(source)];
  u64 bit = u64{1} << source;
  f64 rows = path->rows;
  f64 factor = 1;
  for (size_t i = 0; i < conjuncts_.size(); ++i) {
    const JoinConjunct& conjunct = conjuncts_[i];
    if ((conjunct.mask & bit) == 0 || (conjunct.mask & ~(from.placed | bit)) != 0) continue;
    bool used = path->kind == PathKind::kHash && conjunct.mask == bit;
    for (Expr* one : path->consumed) used |= one == conjunct.expr;
    if (!used) factor *= conjunct.factor;
  }
  f64 visited = from.rows * path->cost;
  // Guesses of less than one row must not make a second reading of a whole table look free.
  if (path->kind == PathKind::kScan && from.placed != 0 && !from.one_row) {
    visited = std::max(from.rows, 2.0) * path->cost;
  }
  to->placed = from.placed | bit;
  to->cost = from.cost + path->setup + std::max(visited, 0.1);
  to->rows = std::max(from.rows * rows * factor, item.left ? from.rows : 0.01);
  if (from.placed == 0) to->rows = std::max(to->rows, 1.0);
  to->one_row = from.one_row && path->one_row;
  to->ordered = from.ordered;
  return true;
}

JoinPlan* JoinPlanner::plan(const List<SortKey>* order, const List<Expr*>* outs, bool has_limit,
                            RowPlan* row) {
  order_ = order;
  has_limit_ = has_limit;
  bit_of_slot_.assign(static_cast<size_t>(binder_.slot_count()), -1);
  size_t count = from_.sources.size();
  items_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    JoinItem& item = items_[i];
    item.source = from_.sources[i];
    item.syntax = from_.syntax[i];
    item.join = from_.joins[i];
    item.left = (item.join & sql::join::kLeft) != 0;
    item.right = (item.join & sql::join::kRight) != 0;
    has_right_ |= item.right;
    bit_of_slot_[static_cast<size_t>(item.source->slot)] = static_cast<int>(i);
    item.used_columns.assign(static_cast<size_t>(item.source->width), false);
  }
  collect_conjuncts();
  for (size_t i = 0; i < count; ++i) {
    JoinItem& item = items_[i];
    if (item.left || has_right_ || (item.join & sql::join::kCross) != 0) {
      item.prerequisites = (u64{1} << i) - 1;
    }
    const SourcePlan& source = *item.source;
    if (source.kind == SourceKind::kTable) {
      item.rows = table_rows(*source.table, source.database);
    } else if (source.rows != nullptr) {
      item.rows = std::max(1.0, source.rows->estimated_rows);
    }
  }
  reduce_outer_joins();
  find_terms();
  note_used_columns(outs, row);
  for (JoinItem& item : items_) {
    for (size_t c = 0; c < item.used_columns.size(); ++c) {
      if (item.used_columns[c]) item.source->used.push(binder_.arena(), static_cast<int>(c));
    }
  }
  for (size_t i = 0; i < count; ++i) build_paths(static_cast<int>(i));
  if (no_solution_) {
    binder_.fail("no query solution");
    return nullptr;
  }
  if (binder_.failed()) return nullptr;

  f64 rows = 0;
  for (const JoinItem& item : items_) rows += item.rows;
  size_t width = count <= 2 ? 8 : count <= 8 ? 12 : count <= 16 ? 5 : 2;
  // With so much to read, looking at every set of items (70 is the most of one size) pays.
  if (rows > kManyRows && count <= 8) width = 70;
  std::vector<Candidate> beam(1);
  std::vector<Candidate> next;
  for (size_t step = 0; step < count; ++step) {
    next.clear();
    for (const Candidate& candidate : beam) {
      for (size_t s = 0; s < count; ++s) {
        JoinItem& item = items_[s];
        if ((candidate.placed >> s & 1) != 0 || (item.prerequisites & ~candidate.placed) != 0) {
          continue;
        }
        Candidate best;
        Candidate best_ordered;
        AccessPath* best_path = nullptr;
        AccessPath* best_ordered_path = nullptr;
        auto consider = [&](AccessPath* path) {
          if ((path->prerequisites & ~candidate.placed) != 0) return;
          Candidate made;
          extend(candidate, static_cast<int>(s), path, &made);
          bool reverse = false;
          if (candidate.one_row && !candidate.ordered && order_ != nullptr && !has_right_ &&
              path_orders(static_cast<int>(s), path, &reverse)) {
            made.ordered = true;
          }
          if (made.ordered && (best_ordered_path == nullptr || made.cost < best_ordered.cost)) {
            best_ordered = made;
            best_ordered_path = path;
          }
          if (!made.ordered && (best_path == nullptr || made.cost < best.cost)) {
            best = made;
            best_path = path;
          }
        };
        if (item.right) {
          if (AccessPath* path = hash_path(candidate, static_cast<int>(s)); path != nullptr)
            consider(path);
        } else {
          for (AccessPath* path : item.paths) consider(path);
          if (candidate.placed != 0 ? candidate.rows > 1.5 : in_subquery_) {
            if (AccessPath* path = hash_path(candidate, static_cast<int>(s)); path != nullptr) {
              consider(path);
            }
          }
        }
        for (auto [made, path] :
             {std::pair{&best, best_path}, {&best_ordered, best_ordered_path}}) {
          if (path == nullptr) continue;
          made->steps = candidate.steps;
          made->steps.push_back({static_cast<int>(s), path});
          next.push_back(std::move(*made));
        }
      }
    }
    if (next.empty()) {
      binder_.fail("no query solution");
      return nullptr;
    }
    std::sort(next.begin(), next.end(), [](const Candidate& a, const Candidate& b) {
      return a.cost != b.cost ? a.cost < b.cost : a.steps.back().item < b.steps.back().item;
    });
    drop_dearer_twins(&next);
    if (next.size() > width) {
      // Keep the best ordered one alive.
      auto ordered =
          std::find_if(next.begin(), next.end(), [](const Candidate& c) { return c.ordered; });
      if (ordered != next.end() && static_cast<size_t>(ordered - next.begin()) >= width) {
        std::swap(next[width - 1], *ordered);
      }
      next.resize(width);
    }
    beam.swap(next);
  }
  const Candidate* best = nullptr;
  f64 best_cost = 0;
  for (const Candidate& candidate : beam) {
    f64 cost = candidate.cost;
    if (order_ != nullptr && !candidate.ordered) {
      cost += candidate.rows * (2.0 + 0.4 * std::log2(candidate.rows + 2));
    } else if (order_ != nullptr && has_limit_) {
      cost *= 0.2;
    }
    if (best == nullptr || cost < best_cost) {
      best = &candidate;
      best_cost = cost;
    }
  }
  if (row != nullptr) row->estimated_rows = best->rows;
  JoinPlan* plan = build(*best);
  if (binder_.session().reverse_unordered && !plan->ordered && !order_shows(row)) {
    for (JoinLevel* level : plan->levels) {
      if (level->path->kind <= PathKind::kIndexSeek) level->path->reverse = true;
    }
  }
  return plan;
}

JoinPlan* JoinPlanner::build(const Candidate& best) {
  Arena& arena = binder_.arena();
  auto* plan = arena.make<JoinPlan>();
  plan->ordered = order_ != nullptr && best.ordered;
  bool first_unordered = true;
  for (const Step& step : best.steps) {
    JoinItem& item = items_[static_cast<size_t>(step.item)];
    auto* level = arena.make<JoinLevel>();
    level->source = item.source;
    level->path = step.path;
    level->left = item.left;
    level->right = item.right;
    bool reverse = false;
    if (plan->ordered && first_unordered && path_orders(step.item, step.path, &reverse)) {
      level->path->reverse = reverse;
      first_unordered = false;
    }
    plan->levels.push(arena, level);
  }
  place_filters(plan, best);
  return plan;
}

// A query for each row waits for the lookups behind its level that only lose rows.
int JoinPlanner::level_for_subquery(const JoinPlan& plan, int level) {
  constexpr f64 kAboutOne = 1.5;
  for (u32 next = static_cast<u32>(level) + 1; next < plan.levels.size(); ++next) {
    const AccessPath& path = *plan.levels[next]->path;
    bool lookup = path.kind == PathKind::kRowidEqual || path.kind == PathKind::kHash;
    if (!lookup || path.rows > kAboutOne || plan.levels[next]->left) break;
    level = static_cast<int>(next);
  }
  return level;
}

void JoinPlanner::place_filters(JoinPlan* plan, const Candidate& best) {
  Arena& arena = binder_.arena();
  int last_right = -1;
  std::vector<int> level_of(items_.size());
  for (size_t i = 0; i < best.steps.size(); ++i) {
    level_of[static_cast<size_t>(best.steps[i].item)] = static_cast<int>(i);
    if (items_[static_cast<size_t>(best.steps[i].item)].right) last_right = static_cast<int>(i);
  }
  for (int pass = 0; pass < 2; ++pass) {  // cheap ones before those with subqueries
    for (const JoinConjunct& conjunct : conjuncts_) {
      if (conjunct.expr->has(expr_flag::kHasSubquery) != (pass == 1)) continue;
      int level = -1;
      for (size_t i = 0; i < items_.size(); ++i) {
        if ((conjunct.mask >> i & 1) != 0) level = std::max(level, level_of[i]);
      }
      bool on = conjunct.on_source >= 0 && (items_[static_cast<size_t>(conjunct.on_source)].left ||
                                            items_[static_cast<size_t>(conjunct.on_source)].right);
      if (on) {
        level = level_of[static_cast<size_t>(conjunct.on_source)];
      } else if (has_right_ && conjunct.inner_source >= 0) {
        level = level_of[static_cast<size_t>(conjunct.inner_source)];
      } else if (has_right_ && level < last_right) {
        level = last_right;
      }
      if (level < 0 || (level == -1 && conjunct.mask == 0)) {
        plan->constant_filters.push(arena, conjunct.expr);
        continue;
      }
      bool dear = pass == 1 && has_correlated_subquery(conjunct.expr);
      if (dear && !on && !has_right_) level = level_for_subquery(*plan, level);
      JoinLevel& at = *plan->levels[static_cast<size_t>(level)];
      bool consumed = false;
      for (Expr* one : at.path->consumed) consumed |= one == conjunct.expr;
      if (consumed) continue;
      int item = best.steps[static_cast<size_t>(level)].item;
      if (at.path->kind == PathKind::kHash && conjunct.mask == u64{1} << item && !dear &&
          !conjunct.expr->has(expr_flag::kVolatile) && !at.right && (on || !at.left) &&
          !(at.path->kept && reads_outer(conjunct.expr))) {
        at.path->build_filters.push(arena, conjunct.expr);
      } else if (on) {
        at.on.push(arena, conjunct.expr);
      } else {
        at.filters.push(arena, conjunct.expr);
      }
    }
  }
}

JoinPlan* Binder::plan_join(FromPlan& from, const List<SortKey>* order, const List<Expr*>* outs,
                            bool has_limit, RowPlan* row) {
  return JoinPlanner(*this, from).plan(order, outs, has_limit, row);
}

}  // namespace db
