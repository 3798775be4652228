#include "db/exec/vector_expr.h"

#include "db/exec/eval.h"
#include "db/exec/subquery.h"
#include "db/plan/binder.h"
#include "db/plan/fold.h"

#include <algorithm>

namespace db {
namespace {

using Node = std::unique_ptr<VectorExpr>;

class ColumnNode : public VectorExpr {
 public:
  explicit ColumnNode(const Vector& column) : column_(column) {}
  const Vector& eval(Batch&, const Selection&, Cx&) override { return column_; }

 private:
  const Vector& column_;
};

// A constant, a parameter, a column of an enclosing row: the same for the whole run.
class FixedNode : public VectorExpr {
 public:
  explicit FixedNode(const Expr* expr) : expr_(expr) {}
  const Vector& eval(Batch&, const Selection&, Cx& cx) override {
    if (!known_) {
      known_ = true;
      eval_into(cx);
    }
    return result_;
  }

 private:
  void eval_into(Cx& cx) {
    db::eval(expr_, cx, value_);
    value_.keep();
    arena_.reset();
    result_.store(0, value_, arena_);
    for (u32 i = 1; i < kBatchRows; ++i) result_.copy(i, result_, 0);
  }
  const Expr* expr_;
  bool known_ = false;
  Value value_;
  sql::Arena arena_{256};
  Vector result_;
};

class ArithmeticNode : public VectorExpr {
 public:
  ArithmeticNode(Op op, Node left, Node right)
      : op_(op), left_(std::move(left)), right_(std::move(right)) {}
  const Vector& eval(Batch& batch, const Selection& rows, Cx& cx) override {
    const Vector& a = left_->eval(batch, rows, cx);
    const Vector& b = right_->eval(batch, rows, cx);
    switch (op_) {
      case Op::kAdd:
        loop(
            a, b, rows, [](f64 x, f64 y) { return x + y; },
            [](i64 x, i64 y, i64* z) { return !__builtin_add_overflow(x, y, z); });
        break;
      case Op::kSubtract:
        loop(
            a, b, rows, [](f64 x, f64 y) { return x - y; },
            [](i64 x, i64 y, i64* z) { return !__builtin_sub_overflow(x, y, z); });
        break;
      case Op::kMultiply:
        loop(
            a, b, rows, [](f64 x, f64 y) { return x * y; },
            [](i64 x, i64 y, i64* z) { return !__builtin_mul_overflow(x, y, z); });
        break;
      default:
        for (u32 i = 0; i < rows.count; ++i) one(a, b, rows.rows[i]);
    }
    return result_;
  }

 private:
  template <class Real, class Integer>
  void loop(const Vector& a, const Vector& b, const Selection& rows, Real real, Integer integer) {
    for (u32 i = 0; i < rows.count; ++i) {
      u32 r = rows.rows[i];
      Type x = a.types[r];
      Type y = b.types[r];
      if (x == Type::kReal && y == Type::kReal) {
        result_.set_real(r, real(a.cells[r].r, b.cells[r].r));
      } else if (x == Type::kInteger && y == Type::kInteger) {
        i64 value = 0;
        if (integer(a.cells[r].i, b.cells[r].i, &value)) {
          result_.set_integer(r, value);
        } else {
          one(a, b, r);
        }
      } else if (x == Type::kInteger && y == Type::kReal) {
        result_.set_real(r, real(static_cast<f64>(a.cells[r].i), b.cells[r].r));
      } else if (x == Type::kReal && y == Type::kInteger) {
        result_.set_real(r, real(a.cells[r].r, static_cast<f64>(b.cells[r].i)));
      } else {
        one(a, b, r);
      }
    }
  }
  void one(const Vector& a, const Vector& b, u32 r) {
    Value x, y, z;
    a.load(r, x);
    b.load(r, y);
    evaluate_arithmetic(op_, x, y, z);
    if (z.is_integer()) {
      result_.set_integer(r, z.raw_integer());
    } else if (z.is_real()) {
      result_.set_real(r, z.raw_real());
    } else {
      result_.set_null(r);
    }
  }
  Op op_;
  Node left_, right_;
  Vector result_;
};

// A node whose natural result is a truth value.
class TruthNode : public VectorExpr {
 public:
  const Vector& eval(Batch& batch, const Selection& rows, Cx& cx) override {
    if (result_ == nullptr) result_ = std::make_unique<Vector>();
    i8 truths[kBatchRows];
    truth(batch, rows, truths, cx);
    for (u32 i = 0; i < rows.count; ++i) {
      result_->set_truth(rows.rows[i], truths[rows.rows[i]]);
    }
    return *result_;
  }

 private:
  std::unique_ptr<Vector> result_;
};

class CompareNode : public TruthNode {
 public:
  CompareNode(const Expr* expr, Node left, Node right)
      : CompareNode(expr->op, expr->compare, expr->collation, std::move(left), std::move(right)) {}
  CompareNode(Op op, Affinity affinity, const Collation* collation, Node left, Node right)
      : op_(op),
        affinity_(affinity),
        collation_(collation),
        left_(std::move(left)),
        right_(std::move(right)) {
    binary_ = collation == nullptr || collation->kind == Collation::Kind::kBinary;
  }

  void truth(Batch& batch, const Selection& rows, i8* out, Cx& cx) override {
    const Vector& a = left_->eval(batch, rows, cx);
    const Vector& b = right_->eval(batch, rows, cx);
    switch (op_) {
      case Op::kEq:
      case Op::kIs:
        return loop(a, b, rows, out, [](auto x, auto y) { return x == y; });
      case Op::kNe:
      case Op::kIsNot:
        return loop(a, b, rows, out, [](auto x, auto y) { return x != y; });
      case Op::kLt:
        return loop(a, b, rows, out, [](auto x, auto y) { return x < y; });
      case Op::kLe:
        return loop(a, b, rows, out, [](auto x, auto y) { return x <= y; });
      case Op::kGt:
        return loop(a, b, rows, out, [](auto x, auto y) { return x > y; });
      default:
        return loop(a, b, rows, out, [](auto x, auto y) { return x >= y; });
    }
  }

 private:
  template <class Decide>
  void loop(const Vector& a, const Vector& b, const Selection& rows, i8* out, Decide decide) {
    const bool plain_text = binary_;
    const bool numeric = affinity_ >= Affinity::kNumeric;
    for (u32 i = 0; i < rows.count; ++i) {
      u32 r = rows.rows[i];
      Type x = a.types[r];
      if (x == b.types[r]) {
        if (x == Type::kInteger) {
          out[r] = decide(a.cells[r].i, b.cells[r].i);
          continue;
        }
        if (x == Type::kReal) {
          out[r] = decide(a.cells[r].r, b.cells[r].r);
          continue;
        }
        if (x == Type::kText && plain_text &&
            (!numeric || (!may_be_number(a.bytes(r)) && !may_be_number(b.bytes(r))))) {
          out[r] = decide(compare_bytes(a, b, r), 0);
          continue;
        }
      }
      Value left, right;
      a.load(r, left);
      b.load(r, right);
      out[r] = static_cast<i8>(evaluate_comparison(op_, left, right, affinity_, collation_));
    }
  }
  static int compare_bytes(const Vector& a, const Vector& b, u32 r) {
    u32 size = std::min(a.sizes[r], b.sizes[r]);
    int order = std::memcmp(a.cells[r].p, b.cells[r].p, size);
    return order != 0 ? order : static_cast<int>(a.sizes[r]) - static_cast<int>(b.sizes[r]);
  }
  Op op_;
  Affinity affinity_;
  const Collation* collation_;
  bool binary_;
  Node left_, right_;
};

// AND, OR: the right side sees only the rows that the left one leaves open.
class LogicNode : public TruthNode {
 public:
  LogicNode(bool is_and, Node left, Node right)
      : decisive_(is_and ? 0 : 1), left_(std::move(left)), right_(std::move(right)) {}
  void truth(Batch& batch, const Selection& rows, i8* out, Cx& cx) override {
    left_->truth(batch, rows, out, cx);
    Selection open;
    for (u32 i = 0; i < rows.count; ++i) {
      if (out[rows.rows[i]] != decisive_) open.rows[open.count++] = rows.rows[i];
    }
    if (open.count == 0) return;
    i8 second[kBatchRows];
    right_->truth(batch, open, second, cx);
    for (u32 i = 0; i < open.count; ++i) {
      u32 r = open.rows[i];
      if (second[r] == decisive_ || out[r] >= 0) out[r] = second[r];
    }
  }

 private:
  i8 decisive_;
  Node left_, right_;
};

class NotNode : public TruthNode {
 public:
  explicit NotNode(Node left) : left_(std::move(left)) {}
  void truth(Batch& batch, const Selection& rows, i8* out, Cx& cx) override {
    left_->truth(batch, rows, out, cx);
    for (u32 i = 0; i < rows.count; ++i) {
      i8& truth = out[rows.rows[i]];
      if (truth >= 0) truth = static_cast<i8>(1 - truth);
    }
  }

 private:
  Node left_;
};

class NullTestNode : public TruthNode {
 public:
  NullTestNode(bool wants_null, Node left) : wants_null_(wants_null), left_(std::move(left)) {}
  void truth(Batch& batch, const Selection& rows, i8* out, Cx& cx) override {
    const Vector& a = left_->eval(batch, rows, cx);
    for (u32 i = 0; i < rows.count; ++i) {
      u32 r = rows.rows[i];
      out[r] = (a.types[r] == Type::kNull) == wants_null_;
    }
  }

 private:
  bool wants_null_;
  Node left_;
};

// x IN (constants).
class InListNode : public TruthNode {
 public:
  InListNode(const Expr* expr, Node left) : expr_(expr), left_(std::move(left)) {}
  void truth(Batch& batch, const Selection& rows, i8* out, Cx& cx) override {
    const Vector& a = left_->eval(batch, rows, cx);
    if (set_ == nullptr) build(cx);
    const i8 found = expr_->has(expr_flag::kNegated) ? 0 : 1;
    const i8 missing = has_null_ ? -1 : static_cast<i8>(1 - found);
    Value value;
    for (u32 i = 0; i < rows.count; ++i) {
      u32 r = rows.rows[i];
      a.load(r, value);
      if (value.is_null()) {
        out[r] = -1;
        continue;
      }
      apply_comparison_affinity_one(expr_->compare, value);
      out[r] = set_->find(&value) != ValueSet::kNone ? found : missing;
    }
  }

 private:
  void build(Cx& cx) {
    set_ = std::make_unique<ValueSet>(1, &expr_->collation);
    for (const Expr* item : expr_->args) {
      Value one;
      db::eval(item, cx, one);
      has_null_ |= one.is_null();
      if (one.is_null()) continue;
      apply_comparison_affinity_one(expr_->compare, one);
      bool is_new = false;
      set_->insert(&one, &is_new);
    }
  }
  const Expr* expr_;
  Node left_;
  std::unique_ptr<ValueSet> set_;
  bool has_null_ = false;
};

class CaseNode : public VectorExpr {
 public:
  CaseNode(std::vector<Node> args, Node otherwise)
      : args_(std::move(args)), otherwise_(std::move(otherwise)) {}
  const Vector& eval(Batch& batch, const Selection& rows, Cx& cx) override {
    Selection open = rows;
    Selection taken;
    i8 truths[kBatchRows];
    for (size_t i = 0; i + 1 < args_.size() && open.count > 0; i += 2) {
      args_[i]->truth(batch, open, truths, cx);
      u32 left = 0;
      taken.count = 0;
      for (u32 k = 0; k < open.count; ++k) {
        u16 r = open.rows[k];
        if (truths[r] == 1) {
          taken.rows[taken.count++] = r;
        } else {
          open.rows[left++] = r;
        }
      }
      open.count = left;
      if (taken.count > 0) take(args_[i + 1]->eval(batch, taken, cx), taken);
    }
    if (otherwise_ != nullptr) {
      if (open.count > 0) take(otherwise_->eval(batch, open, cx), open);
    } else {
      for (u32 k = 0; k < open.count; ++k) result_.set_null(open.rows[k]);
    }
    return result_;
  }

 private:
  void take(const Vector& from, const Selection& rows) {
    for (u32 k = 0; k < rows.count; ++k) result_.copy(rows.rows[k], from, rows.rows[k]);
  }
  std::vector<Node> args_;
  Node otherwise_;
  Vector result_;
};

// A built-in scalar function: a call a row, its arguments from vectors.
class FunctionNode : public VectorExpr {
 public:
  FunctionNode(const Expr* expr, std::vector<Node> args)
      : expr_(expr), args_(std::move(args)), values_(args_.size()) {}
  const Vector& eval(Batch& batch, const Selection& rows, Cx& cx) override {
    std::vector<const Vector*> vectors;
    for (Node& arg : args_) vectors.push_back(&arg->eval(batch, rows, cx));
    if (cx.failed()) return result_;
    FunctionContext& context = cx.call(expr_);
    for (u32 i = 0; i < rows.count; ++i) {
      u32 r = rows.rows[i];
      for (size_t a = 0; a < vectors.size(); ++a) vectors[a]->load(r, values_[a]);
      expr_->function->scalar(context, values_);
      if (context.error_code() != 0) {
        cx.fail(context.error_code(), context.error_message());
        context.clear_error();
        return result_;
      }
      take(r, context, batch);
    }
    return result_;
  }

 private:
  void take(u32 at, FunctionContext& context, Batch& batch) {
    Value& value = context.result;
    if (value.is_shared()) {
      result_.store(at, value, batch.arena);
      context.spare = std::move(value);
    } else if (expr_->function->has(function_flag::kBuiltIn)) {
      // Bytes that are not its own are an argument's, which the batch keeps.
      result_.borrow(at, value);
    } else {
      result_.store(at, value, batch.arena);
    }
    value.set_null();
  }

  const Expr* expr_;
  std::vector<Node> args_;
  std::vector<Value> values_;
  Vector result_;
};

class ConcatNode : public VectorExpr {
 public:
  ConcatNode(Node left, Node right) : left_(std::move(left)), right_(std::move(right)) {}
  const Vector& eval(Batch& batch, const Selection& rows, Cx& cx) override {
    const Vector& a = left_->eval(batch, rows, cx);
    const Vector& b = right_->eval(batch, rows, cx);
    char left_number[40];
    char right_number[40];
    for (u32 i = 0; i < rows.count; ++i) {
      const u32 r = rows.rows[i];
      if (a.types[r] == Type::kNull || b.types[r] == Type::kNull) {
        result_.set_null(r);
        continue;
      }
      const std::string_view left = text_at(a, r, left_number);
      const std::string_view right = text_at(b, r, right_number);
      const size_t size = left.size() + right.size();
      char* to = static_cast<char*>(batch.arena.allocate(size + 1, 1));
      std::memcpy(to, left.data(), left.size());
      std::memcpy(to + left.size(), right.data(), right.size());
      result_.set_bytes(r, Type::kText, to, static_cast<u32>(size));
    }
    return result_;
  }

 private:
  static std::string_view text_at(const Vector& from, u32 at, char* number) {
    if (from.types[at] >= Type::kText) return from.bytes(at);
    const VectorCell cell = from.cells[at];
    return {number, from.types[at] == Type::kInteger ? format_integer(cell.i, number)
                                                     : format_real(cell.r, number)};
  }

  Node left_, right_;
  Vector result_;
};

// Anything else: the row executor's evaluation, row by row.
class RowNode : public VectorExpr {
 public:
  RowNode(const Expr* expr, Batch& batch, Cx& cx) : expr_(expr) { view_.add(expr, batch, cx); }
  const Vector& eval(Batch& batch, const Selection& rows, Cx& cx) override {
    if (result_ == nullptr) result_ = std::make_unique<Vector>();
    Value value;
    for (u32 i = 0; i < rows.count && !cx.failed(); ++i) {
      view_.show(rows.rows[i], cx);
      db::eval(expr_, cx, value);
      result_->store(rows.rows[i], value, batch.arena);
    }
    return *result_;
  }
  void truth(Batch&, const Selection& rows, i8* out, Cx& cx) override {
    for (u32 i = 0; i < rows.count; ++i) {
      if (cx.failed()) {
        out[rows.rows[i]] = -1;
        continue;
      }
      view_.show(rows.rows[i], cx);
      out[rows.rows[i]] = static_cast<i8>(eval_truth(expr_, cx));
    }
  }

 private:
  const Expr* expr_;
  RowView view_;
  std::unique_ptr<Vector> result_;
};

bool reads_batch(const Expr* expr, Batch& batch) {
  std::vector<ColumnRef> refs;
  collect_columns(expr, &refs);
  for (const ColumnRef& ref : refs) {
    if (batch.find(ref) != nullptr) return true;
  }
  return false;
}

bool is_subject_to_change(const Expr* expr) {
  return expr->has(expr_flag::kVolatile) || expr->has(expr_flag::kHasSubquery);
}

std::vector<Node> compile_list(const List<Expr*>& from, Batch& batch, Cx& cx) {
  std::vector<Node> nodes;
  for (const Expr* one : from) nodes.push_back(compile_vector(one, batch, cx));
  return nodes;
}

bool is_fixed(const Expr* expr) {
  return expr->op == Op::kConst || expr->op == Op::kParam;
}

Node compile_between(const Expr* expr, Batch& batch, Cx& cx) {
  auto side = [&](const Expr* pair, Op op, const Expr* value) {
    return std::make_unique<CompareNode>(op, pair->compare, pair->collation,
                                         compile_vector(value, batch, cx),
                                         compile_vector(pair->right, batch, cx));
  };
  const Expr* value = expr->left->left;
  Node both = std::make_unique<LogicNode>(true, side(expr->left, Op::kGe, value),
                                          side(expr->right, Op::kLe, value));
  if (!expr->has(expr_flag::kNegated)) return both;
  return std::make_unique<NotNode>(std::move(both));
}

}  // namespace

void VectorExpr::truth(Batch& batch, const Selection& rows, i8* out, Cx& cx) {
  const Vector& values = eval(batch, rows, cx);
  for (u32 i = 0; i < rows.count; ++i) {
    out[rows.rows[i]] = static_cast<i8>(values.truth(rows.rows[i]));
  }
}

void collect_columns(const Expr* expr, std::vector<ColumnRef>* out) {
  walk(const_cast<Expr*>(expr), [&](Expr* e) {
    if (e->op == Op::kColumn || e->op == Op::kRowid) {
      ColumnRef ref{e->a, e->b};
      if (std::find(out->begin(), out->end(), ref) == out->end()) out->push_back(ref);
    }
    if (e->subquery != nullptr) {
      for (const Expr* outer : e->subquery->outer) collect_columns(outer, out);
    }
    return true;
  });
}

void RowView::add(const Expr* expr, Batch& batch, Cx&) {
  std::vector<ColumnRef> refs;
  collect_columns(expr, &refs);
  for (const ColumnRef& ref : refs) {
    const Vector* vector = batch.find(ref);
    if (vector == nullptr) continue;  // an enclosing row's
    auto at = std::find_if(slots_.begin(), slots_.end(),
                           [&](const SlotRow& one) { return one.slot == ref.slot; });
    if (at == slots_.end()) {
      slots_.push_back({ref.slot, {}, {}});
      at = slots_.end() - 1;
    }
    std::pair<int, const Vector*> column{ref.column, vector};
    if (std::find(at->columns.begin(), at->columns.end(), column) != at->columns.end()) continue;
    at->columns.push_back(column);
    size_t width = static_cast<size_t>(ref.column) + 1;
    if (at->values.size() < width) at->values.resize(width);
  }
}

void RowView::show(u32 row, Cx& cx) {
  for (SlotRow& one : slots_) {
    for (auto& [column, vector] : one.columns) {
      vector->load(row, one.values[static_cast<size_t>(column)]);
    }
    Slot& slot = cx.slots[static_cast<size_t>(one.slot)];
    slot.row = one.values.data();
    slot.map = nullptr;
    slot.null_row = false;
  }
}

std::unique_ptr<VectorExpr> compile_vector(const Expr* expr, Batch& batch, Cx& cx) {
  // tidy: long-function, one case per operator
  if (!is_subject_to_change(expr) && !reads_batch(expr, batch)) {
    return std::make_unique<FixedNode>(expr);
  }
  auto child = [&](const Expr* one) { return compile_vector(one, batch, cx); };
  switch (expr->op) {
    case Op::kColumn:
    case Op::kRowid:
      return std::make_unique<ColumnNode>(*batch.find({expr->a, expr->b}));
    case Op::kPlus:
    case Op::kCollate:
      return child(expr->left);
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kModulo:
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kShiftLeft:
    case Op::kShiftRight:
      return std::make_unique<ArithmeticNode>(expr->op, child(expr->left), child(expr->right));
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
    case Op::kIs:
    case Op::kIsNot:
      return std::make_unique<CompareNode>(expr, child(expr->left), child(expr->right));
    case Op::kAnd:
    case Op::kOr:
      return std::make_unique<LogicNode>(expr->op == Op::kAnd, child(expr->left),
                                         child(expr->right));
    case Op::kConcat:
      return std::make_unique<ConcatNode>(child(expr->left), child(expr->right));
    case Op::kNot:
      return std::make_unique<NotNode>(child(expr->left));
    case Op::kIsNull:
    case Op::kNotNull:
      return std::make_unique<NullTestNode>(expr->op == Op::kIsNull, child(expr->left));
    case Op::kBetween:
      return compile_between(expr, batch, cx);
    case Op::kInList:
      if (std::all_of(expr->args.begin(), expr->args.end(), is_fixed)) {
        return std::make_unique<InListNode>(expr, child(expr->left));
      }
      break;
    case Op::kCase:
      return std::make_unique<CaseNode>(compile_list(expr->args, batch, cx),
                                        expr->right != nullptr ? child(expr->right) : nullptr);
    case Op::kFunction:
      if (expr->function->has(function_flag::kSubtype)) break;  // vectors carry no subtypes
      return std::make_unique<FunctionNode>(expr, compile_list(expr->args, batch, cx));
    default:
      break;
  }
  return std::make_unique<RowNode>(expr, batch, cx);
}

void filter_batch(const std::vector<std::unique_ptr<VectorExpr>>& filters, Batch& batch, Cx& cx) {
  i8 truths[kBatchRows];
  Selection& rows = batch.selection;
  for (const auto& filter : filters) {
    if (rows.count == 0 || cx.failed()) return;
    filter->truth(batch, rows, truths, cx);
    u32 kept = 0;
    for (u32 i = 0; i < rows.count; ++i) {
      u16 r = rows.rows[i];
      rows.rows[kept] = r;
      kept += truths[r] == 1;
    }
    rows.count = kept;
  }
}

}  // namespace db
