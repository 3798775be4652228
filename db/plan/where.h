// WHERE analysis and access paths: which conjuncts can find rows of a FROM item, and by what.
//
// Costs are in "rows looked at"; they only rank plans. Masks have a bit per FROM item.
#pragma once

#include "db/plan/binder.h"

#include <vector>

namespace db {

// A conjunct that compares a column of one item with something that item does not give.
struct Term {
  int conjunct = -1;
  int source = -1;
  int column = 0;  // kRowid, kExpression or a column
  Expr* column_expr = nullptr;
  Op op = Op::kEq;        // kEq, kIs, kLt, kLe, kGt, kGe, kInList, kInSelect, kIsNull
  Expr* value = nullptr;  // the other side, or the IN expression
  u64 value_mask = 0;
  Affinity compare = Affinity::kNone;
  const Collation* collation = &kBinary;
};

struct JoinItem {
  SourcePlan* source = nullptr;
  const sql::Source* syntax = nullptr;
  u8 join = 0;
  bool left = false, right = false;
  u64 prerequisites = 0;
  f64 rows = 1;          // in the table
  f64 local_factor = 1;  // share that its own filters keep
  std::vector<Term> terms;
  std::vector<AccessPath*> paths;
  std::vector<int> local;  // conjuncts on this item alone
  std::vector<bool> used_columns;
};

struct JoinConjunct {
  Expr* expr = nullptr;
  int on_source = -1;
  int inner_source = -1;
  bool is_argument = false;
  u64 mask = 0;
  f64 factor = 0.75;
};

class JoinPlanner {
 public:
  JoinPlanner(Binder& binder, FromPlan& from) : binder_(binder), from_(from) {}
  JoinPlan* plan(const List<SortKey>* order, const List<Expr*>* outs, bool has_limit, RowPlan* row);

 private:
  struct Step {
    int item;
    AccessPath* path;
  };
  struct Candidate {
    u64 placed = 0;
    f64 cost = 0, rows = 1;
    bool ordered = false;  // ORDER BY is satisfied
    bool one_row = true;   // so far at most one row
    std::vector<Step> steps;
  };

  // join_terms.cc
  u64 mask_of(Expr* expr);
  bool reads_outer(Expr* expr) const;
  void collect_conjuncts();
  void add_implied(const JoinConjunct& from, Expr* expr, f64 factor);
  void imply_from_or(size_t conjunct);
  void reduce_outer_joins();
  void find_terms();
  void add_term(int conjunct, Expr* expr, std::vector<Term>* out, int only_source);
  void match_side(int conjunct, Op op, Expr* column, Expr* value, const Expr* comparison,
                  std::vector<Term>* out, int only_source);
  bool term_allowed(const JoinConjunct& conjunct, int source) const;
  f64 factor_of(const Expr* expr);
  bool has_few_values(const Expr* expr) const;
  f64 table_rows(const Table& table, int database);
  void note_columns(Expr* expr);
  void note_used_columns(const List<Expr*>* outs, RowPlan* row);

  // access_path.cc
  void build_paths(int source);
  AccessPath* scan_path(int source);
  void index_paths(int source, const std::vector<Term>& terms, std::vector<AccessPath*>* out,
                   bool scans);
  void rowid_paths(int source, const std::vector<Term>& terms, std::vector<AccessPath*>* out);
  AccessPath* index_path(int source, const Index& index, const std::vector<Term>& terms);
  AccessPath* or_path(int source, int conjunct);
  bool partial_index_usable(int source, const Index& index);
  bool term_fits_index(const Term& term, const Index& index, const IndexColumn& column);
  bool is_covering(int source, const Index& index);
  Lookup lookup_of(const Term& term);
  void virtual_paths(int source);
  Expr* index_expression(int source, const IndexColumn& column);
  int index_width(const Index& index);
  int table_width(const Table& table);

  // join_order.cc
  AccessPath* hash_path(const Candidate& so_far, int source);
  bool extend(const Candidate& from, int source, AccessPath* path, Candidate* to);
  bool path_orders(int source, AccessPath* path, bool* reverse);
  static void drop_dearer_twins(std::vector<Candidate>* candidates);
  JoinPlan* build(const Candidate& best);
  static int level_for_subquery(const JoinPlan& plan, int level);
  void place_filters(JoinPlan* plan, const Candidate& best);

  Binder& binder_;
  FromPlan& from_;
  std::vector<JoinItem> items_;
  std::vector<JoinConjunct> conjuncts_;
  std::vector<int> bit_of_slot_;
  const List<SortKey>* order_ = nullptr;
  bool has_right_ = false;
  bool has_limit_ = false;
  bool in_subquery_ = false;  // some conjunct reads an enclosing row
  bool no_solution_ = false;
};

}  // namespace db
