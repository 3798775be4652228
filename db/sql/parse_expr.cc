// Expressions: operators climb by binding power, which follows SQLite's precedence table.
#include "db/sql/parser_impl.h"

#include <charconv>
#include <cstdlib>

namespace db::sql {
namespace {

// Binding powers, loosest first. A left-associative operator parses its right side above itself.
constexpr int kOrPower = 1;
constexpr int kAndPower = 2;
constexpr int kNotPower = 3;      // prefix NOT; also NOT LIKE, NOT IN, NOT NULL after a value
constexpr int kEqualPower = 4;    // = == <> != IS IN LIKE BETWEEN MATCH ISNULL NOTNULL
constexpr int kComparePower = 5;  // < <= > >=
constexpr int kBitPower = 7;      // & | << >>   (6 is ESCAPE)
constexpr int kAddPower = 8;
constexpr int kMultiplyPower = 9;
constexpr int kConcatPower = 10;  // || -> ->>
constexpr int kCollatePower = 11;
constexpr int kUnaryPower = 12;  // - + ~

struct Infix {
  int power = 0;  // 0: no plain binary operator
  BinaryOp op = BinaryOp::kOr;
};

Infix infix_of(T kind) {
  switch (kind) {
    case T::kOr:
      return {kOrPower, BinaryOp::kOr};
    case T::kAnd:
      return {kAndPower, BinaryOp::kAnd};
    case T::kEq:
      return {kEqualPower, BinaryOp::kEq};
    case T::kNe:
      return {kEqualPower, BinaryOp::kNe};
    case T::kLt:
      return {kComparePower, BinaryOp::kLt};
    case T::kLe:
      return {kComparePower, BinaryOp::kLe};
    case T::kGt:
      return {kComparePower, BinaryOp::kGt};
    case T::kGe:
      return {kComparePower, BinaryOp::kGe};
    case T::kBitAnd:
      return {kBitPower, BinaryOp::kBitAnd};
    case T::kBitOr:
      return {kBitPower, BinaryOp::kBitOr};
    case T::kShiftLeft:
      return {kBitPower, BinaryOp::kShiftLeft};
    case T::kShiftRight:
      return {kBitPower, BinaryOp::kShiftRight};
    case T::kPlus:
      return {kAddPower, BinaryOp::kAdd};
    case T::kMinus:
      return {kAddPower, BinaryOp::kSubtract};
    case T::kStar:
      return {kMultiplyPower, BinaryOp::kMultiply};
    case T::kSlash:
      return {kMultiplyPower, BinaryOp::kDivide};
    case T::kPercent:
      return {kMultiplyPower, BinaryOp::kModulo};
    case T::kConcat:
      return {kConcatPower, BinaryOp::kConcat};
    case T::kArrow:
      return {kConcatPower, BinaryOp::kArrow};
    case T::kDoubleArrow:
      return {kConcatPower, BinaryOp::kDoubleArrow};
    default:
      return {};
  }
}

bool is_like_word(T kind) {
  return kind == T::kLike || kind == T::kGlob || kind == T::kRegexp || kind == T::kMatch;
}

LikeOp like_op(T kind) {
  switch (kind) {
    case T::kGlob:
      return LikeOp::kGlob;
    case T::kRegexp:
      return LikeOp::kRegexp;
    case T::kMatch:
      return LikeOp::kMatch;
    default:
      return LikeOp::kLike;
  }
}

}  // namespace

// `stop_at_and` ends the expression at a top-level AND: the low bound of BETWEEN.
Expr* Parser::expr_above(int min_power, bool stop_at_and) {
  NestingGuard guard(*this);
  Expr* left = prefix();
  bool done = false;
  while (!done) left = postfix_or_infix(left, min_power, stop_at_and, done);
  return left;
}

Expr* Parser::postfix_or_infix(Expr* left, int min_power, bool stop_at_and, bool& done) {
  u32 begin = left->span.begin;
  T kind = token_.kind;
  if (Infix infix = infix_of(kind); infix.power != 0) {
    if (infix.power < min_power || (stop_at_and && kind == T::kAnd)) {
      done = true;
      return left;
    }
    advance();
    return binary(infix.op, left, expr_above(infix.power + 1, false));
  }
  if (kind == T::kCollate && min_power <= kCollatePower) {
    advance();
    auto* node = arena_.make<CollateExpr>();
    node->value = left;
    node->collation = ids();
    grow_depth(node, left);
    return finish(node, begin);
  }
  if (kind == T::kNot && min_power <= kNotPower) return infix_not(left);
  if (min_power <= kEqualPower) {
    if (is_like_word(kind)) return like(left, false, begin);
    switch (kind) {
      case T::kIs:
        return is_operator(left);
      case T::kIn:
        return in(left, false);
      case T::kBetween:
        return between(left, false);
      case T::kIsnull:
        advance();
        return unary(UnaryOp::kIsNull, left, begin);
      case T::kNotnull:
        advance();
        return unary(UnaryOp::kNotNull, left, begin);
      default:
        break;
    }
  }
  done = true;
  return left;
}

// value NOT NULL | NOT LIKE | NOT BETWEEN | NOT IN
Expr* Parser::infix_not(Expr* left) {
  u32 begin = left->span.begin;
  advance();
  if (accept(T::kNull)) return unary(UnaryOp::kNotNull, left, begin);
  if (is_like_word(token_.kind)) return like(left, true, begin);
  if (at(T::kBetween)) return between(left, true);
  if (at(T::kIn)) return in(left, true);
  syntax_error();
  return left;
}

Expr* Parser::is_operator(Expr* left) {
  advance();
  bool negated = accept(T::kNot);
  if (accept(T::kDistinct)) {
    expect(T::kFrom);
    negated = !negated;
  }
  return binary(negated ? BinaryOp::kIsNot : BinaryOp::kIs, left,
                expr_above(kEqualPower + 1, false));
}

Expr* Parser::like(Expr* left, bool negated, u32 begin) {
  auto* node = arena_.make<LikeExpr>();
  node->op = like_op(token_.kind);
  node->negated = negated;
  node->value = left;
  advance();
  node->pattern = expr_above(kEqualPower + 1, false);
  if (accept(T::kEscape)) node->escape = expr_above(kEqualPower + 1, false);
  grow_depth(node, node->value);
  grow_depth(node, node->pattern);
  grow_depth(node, node->escape);
  return finish(node, begin);
}

Expr* Parser::between(Expr* left, bool negated) {
  u32 begin = left->span.begin;
  auto* node = arena_.make<BetweenExpr>();
  node->negated = negated;
  node->value = left;
  advance();
  node->low = expr_above(0, true);
  expect(T::kAnd);
  node->high = expr_above(kEqualPower + 1, false);
  grow_depth(node, node->value);
  grow_depth(node, node->low);
  grow_depth(node, node->high);
  return finish(node, begin);
}

Expr* Parser::in(Expr* left, bool negated) {
  u32 begin = left->span.begin;
  auto* node = arena_.make<InExpr>();
  node->negated = negated;
  node->value = left;
  advance();
  if (accept(T::kLp)) {
    if (at_select()) {
      node->select = select();
    } else {
      node->list = optional_expr_list();
    }
    expect(T::kRp);
  } else {
    nm_dbnm(node->schema, node->table);
    if (accept(T::kLp)) {
      node->is_function = true;
      node->list = optional_expr_list();
      expect(T::kRp);
    }
  }
  grow_depth(node, left);
  grow_depth(node, node->list);
  grow_depth(node, node->select);
  return finish(node, begin);
}

Expr* Parser::prefix() {
  switch (token_.kind) {
    case T::kNot:
      return prefix_operator(UnaryOp::kNot, kNotPower);
    case T::kMinus:
      return prefix_operator(UnaryOp::kNegate, kUnaryPower);
    case T::kPlus:
      return prefix_operator(UnaryOp::kPlus, kUnaryPower);
    case T::kBitNot:
      return prefix_operator(UnaryOp::kBitNot, kUnaryPower);
    default:
      return primary();
  }
}

Expr* Parser::prefix_operator(UnaryOp op, int power) {
  u32 begin = token_.begin;
  advance();
  Expr* operand = expr_above(power, false);
  if (op == UnaryOp::kNegate && operand->kind == ExprKind::kLiteral) {
    return negate_literal(operand->as<LiteralExpr>(), begin);
  }
  return unary(op, operand, begin);
}

// -9223372036854775808 is an integer although 9223372036854775808 is not.
Expr* Parser::negate_literal(LiteralExpr* literal, u32 begin) {
  if (literal->type == LiteralType::kReal && literal->text == "9223372036854775808") {
    auto* node = arena_.make<LiteralExpr>();
    node->type = LiteralType::kInteger;
    node->integer = INT64_MIN;
    node->text = literal->text;
    return finish(node, begin);
  }
  return unary(UnaryOp::kNegate, literal, begin);
}

Expr* Parser::binary(BinaryOp op, Expr* left, Expr* right) {
  auto* node = arena_.make<BinaryExpr>();
  node->op = op;
  node->left = left;
  node->right = right;
  grow_depth(node, left);
  grow_depth(node, right);
  return finish(node, left->span.begin);
}

Expr* Parser::unary(UnaryOp op, Expr* operand, u32 begin) {
  auto* node = arena_.make<UnaryExpr>();
  node->op = op;
  node->operand = operand;
  grow_depth(node, operand);
  return finish(node, begin);
}

void Parser::set_depth(Expr* node, u32 depth) {
  if (depth > limits_.expr_depth) {
    fail("Expression tree is too large (maximum depth " + std::to_string(limits_.expr_depth) + ")");
    return;
  }
  node->depth = static_cast<u16>(depth);
}

void Parser::grow_depth(Expr* node, const Select* select) {
  if (select == nullptr) return;
  for (const SelectArm& arm : select->arms) {
    for (const ResultColumn& column : arm.core->columns) grow_depth(node, column.expr);
    grow_depth(node, arm.core->where);
    grow_depth(node, arm.core->having);
    grow_depth(node, arm.core->group_by);
  }
  for (const OrderTerm& term : select->order_by) grow_depth(node, term.expr);
  grow_depth(node, select->limit);
}

Expr* Parser::dummy_expr() {
  return arena_.make<LiteralExpr>();
}

// ---------------------------------------------------------------- primaries

Expr* Parser::primary() {
  u32 begin = token_.begin;
  switch (token_.kind) {
    case T::kLp:
      return parenthesised();
    case T::kNull:
    case T::kInteger:
    case T::kFloat:
    case T::kBlob:
      return literal();
    case T::kString:
      return peek_kind() == T::kDot ? column_or_function() : literal();
    case T::kVariable:
      return variable();
    case T::kCase:
      return case_expr();
    case T::kCast:
      return cast_expr();
    case T::kRaise:
      return raise_expr();
    case T::kExists: {
      advance();
      auto* node = arena_.make<ExistsExpr>();
      expect(T::kLp);
      node->select = select();
      expect(T::kRp);
      grow_depth(node, node->select);
      return finish(node, begin);
    }
    case T::kCurrentDate:
    case T::kCurrentTime:
    case T::kCurrentTimestamp:
      return ctime();
    default:
      if (at_nm()) return column_or_function();
      syntax_error();
      return dummy_expr();
  }
}

// (expr) | (a, b, ...) | (SELECT ...)
Expr* Parser::parenthesised() {
  u32 begin = token_.begin;
  advance();
  if (at_select()) {
    auto* node = arena_.make<SubqueryExpr>();
    node->select = select();
    expect(T::kRp);
    grow_depth(node, node->select);
    return finish(node, begin);
  }
  Expr* first = expr();
  if (!at(T::kComma)) {
    expect(T::kRp);
    first->span = span_from(begin);
    return first;
  }
  auto* node = arena_.make<RowExpr>();
  node->items.push(arena_, first);
  while (accept(T::kComma)) node->items.push(arena_, expr());
  expect(T::kRp);
  grow_depth(node, node->items);
  return finish(node, begin);
}

Expr* Parser::literal() {
  u32 begin = token_.begin;
  if (at(T::kInteger) || at(T::kFloat)) return number_literal();
  auto* node = arena_.make<LiteralExpr>();
  if (at(T::kString)) {
    node->type = LiteralType::kText;
    node->text = unquote(token_);
  } else if (at(T::kBlob)) {
    node->type = LiteralType::kBlob;
    std::string_view hex = text(token_).substr(2);
    hex.remove_suffix(1);
    auto* bytes = static_cast<char*>(arena_.allocate(hex.size() / 2 + 1, 1));
    auto value = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
    for (size_t i = 0; i < hex.size(); i += 2) {
      bytes[i / 2] = static_cast<char>(value(hex[i]) * 16 + value(hex[i + 1]));
    }
    node->text = {bytes, hex.size() / 2};
  }
  advance();
  return finish(node, begin);
}

Expr* Parser::number_literal() {
  u32 begin = token_.begin;
  auto* node = arena_.make<LiteralExpr>();
  std::string_view digits = text(token_);
  if (token_.separators) {
    auto* to = static_cast<char*>(arena_.allocate(digits.size(), 1));
    size_t n = 0;
    for (char c : digits) {
      if (c != '_') to[n++] = c;
    }
    digits = {to, n};
  }
  node->text = digits;
  const char* end = digits.data() + digits.size();
  if (digits.size() > 2 && (digits[1] | 0x20) == 'x') {
    u64 value = 0;
    size_t zeros = digits.find_first_not_of('0', 2);
    if (zeros != std::string_view::npos && digits.size() - zeros > 16) {
      fail_when_accepted("hex literal too big: " + std::string(digits), static_cast<i32>(begin));
    } else {
      std::from_chars(digits.data() + 2, end, value, 16);
    }
    node->type = LiteralType::kInteger;
    node->is_hex = true;
    node->integer = static_cast<i64>(value);
  } else if (at(T::kInteger) &&
             std::from_chars(digits.data(), end, node->integer).ec == std::errc()) {
    node->type = LiteralType::kInteger;
  } else {
    node->type = LiteralType::kReal;
    if (std::from_chars(digits.data(), end, node->real).ec != std::errc()) {
      node->real = std::strtod(std::string(digits).c_str(), nullptr);  // infinity or zero
    }
  }
  advance();
  return finish(node, begin);
}

Expr* Parser::variable() {
  u32 begin = token_.begin;
  auto* node = arena_.make<ParamExpr>();
  std::string_view name = text(token_);
  if (name[0] == '#') {
    advance();
    fail_when_accepted("near \"" + std::string(name) + "\": syntax error", static_cast<i32>(begin));
    return finish(node, begin);
  }
  auto range_error = [&] {
    fail_when_accepted(
        "variable number must be between ?1 and ?" + std::to_string(limits_.variables),
        static_cast<i32>(begin));
  };
  if (name == "?") {
    node->number = ++param_count_;
  } else if (name[0] == '?') {
    u64 number = 0;
    auto parsed = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (parsed.ec != std::errc() || number == 0 || number > limits_.variables) {
      range_error();
      return node;
    }
    node->number = static_cast<u32>(number);
  }
  if (name != "?") {
    for (const ParamName& known : params_) {
      if (known.name == name) node->number = known.number;
    }
    bool known = false;
    for (const ParamName& param : params_) known = known || param.name == name;
    if (node->number == 0) node->number = ++param_count_;
    if (node->number > param_count_) param_count_ = node->number;
    if (!known) params_.push(arena_, {node->number, name});
    node->name = name;
  }
  if (param_count_ > limits_.variables)
    fail_when_accepted("too many SQL variables", static_cast<i32>(begin));
  advance();
  return finish(node, begin);
}

Expr* Parser::case_expr() {
  u32 begin = token_.begin;
  advance();
  auto* node = arena_.make<CaseExpr>();
  if (!at(T::kWhen)) node->base = expr();
  do {
    expect(T::kWhen);
    WhenArm arm;
    arm.when = expr();
    expect(T::kThen);
    arm.then = expr();
    node->arms.push(arena_, arm);
    grow_depth(node, arm.when);
    grow_depth(node, arm.then);
  } while (at(T::kWhen));
  if (accept(T::kElse)) node->otherwise = expr();
  expect(T::kEndKw);
  grow_depth(node, node->base);
  grow_depth(node, node->otherwise);
  return finish(node, begin);
}

Expr* Parser::cast_expr() {
  u32 begin = token_.begin;
  advance();
  auto* node = arena_.make<CastExpr>();
  expect(T::kLp);
  node->value = expr();
  expect(T::kAs);
  node->type = type_name();
  expect(T::kRp);
  grow_depth(node, node->value);
  return finish(node, begin);
}

Expr* Parser::raise_expr() {
  u32 begin = token_.begin;
  advance();
  auto* node = arena_.make<RaiseExpr>();
  expect(T::kLp);
  if (!accept(T::kIgnore)) {
    if (accept(T::kRollback)) {
      node->action = ConflictAction::kRollback;
    } else if (accept(T::kAbort)) {
      node->action = ConflictAction::kAbort;
    } else {
      expect(T::kFail);
      node->action = ConflictAction::kFail;
    }
    expect(T::kComma);
    node->message = expr();
    grow_depth(node, node->message);
  }
  expect(T::kRp);
  return finish(node, begin);
}

Expr* Parser::ctime() {
  u32 begin = token_.begin;
  auto* node = arena_.make<FunctionExpr>();
  node->bare = true;
  node->name = take_name();
  return finish(node, begin);
}

// a | a.b | a.b.c | f(...)
Expr* Parser::column_or_function() {
  u32 begin = token_.begin;
  bool can_call = !at(T::kString);
  Name first = take_name();
  if (can_call && at(T::kLp)) return function_call(first, begin);
  auto* node = arena_.make<ColumnExpr>();
  node->column = first;
  if (accept(T::kDot)) {
    node->table = first;
    node->column = nm();
    if (accept(T::kDot)) {
      node->schema = node->table;
      node->table = node->column;
      node->column = nm();
    }
  }
  return finish(node, begin);
}

Expr* Parser::function_call(Name name, u32 begin) {
  auto* node = arena_.make<FunctionExpr>();
  node->name = name;
  advance();
  if (accept(T::kStar)) {
    node->star = true;
  } else {
    if (accept(T::kDistinct)) {
      node->distinct = true;
    } else {
      accept(T::kAll);
    }
    node->args = optional_expr_list();
    if (accept(T::kOrder)) {
      expect(T::kBy);
      node->order_by = order_list();
    }
  }
  expect(T::kRp);
  within_group(node);
  filter_over(node);
  grow_depth(node, node->args);
  if (node->args.size() > limits_.function_args) {
    fail_when_accepted("too many arguments on function " + std::string(name.span.in(sql_)),
                       static_cast<i32>(begin));
  }
  return finish(node, begin);
}

// percentile(0.5) WITHIN GROUP (ORDER BY x) is percentile(x, 0.5).
void Parser::within_group(FunctionExpr* call) {
  if (!at(T::kWithin) || peek_kind() != T::kGroup) return;
  advance();
  advance();
  expect(T::kLp);
  expect(T::kOrder);
  expect(T::kBy);
  List<Expr*> args;
  args.push(arena_, expr());
  expect(T::kRp);
  for (Expr* arg : call->args) args.push(arena_, arg);
  call->args = args;
}

void Parser::filter_over(FunctionExpr* call) {
  if (accept(T::kFilter)) {
    expect(T::kLp);
    expect(T::kWhere);
    call->filter = expr();
    expect(T::kRp);
    if (token_.kind == T::kId && keyword_of(text(token_)) == T::kOver) {
      classify_window_word();
    }
  }
  if (!accept(T::kOver)) return;
  if (at(T::kLp)) {
    call->over = window_body();
    return;
  }
  call->over = arena_.make<WindowSpec>();
  call->over->is_reference = true;
  call->over->name = nm();
}

// ( [base] [PARTITION BY ...] [ORDER BY ...] [frame] )
WindowSpec* Parser::window_body() {
  auto* spec = arena_.make<WindowSpec>();
  expect(T::kLp);
  bool clause = at(T::kPartition) || at(T::kRange) || at(T::kRows) || at(T::kGroups);
  if (at_nm() && !clause) spec->base = nm();
  if (accept(T::kPartition)) {
    expect(T::kBy);
    spec->partition_by = expr_list();
  }
  if (accept(T::kOrder)) {
    expect(T::kBy);
    spec->order_by = order_list();
  }
  if (at(T::kRange) || at(T::kRows) || at(T::kGroups)) window_frame(spec);
  expect(T::kRp);
  return spec;
}

void Parser::window_frame(WindowSpec* spec) {
  spec->has_frame = true;
  spec->unit = at(T::kRows)     ? FrameUnit::kRows
               : at(T::kGroups) ? FrameUnit::kGroups
                                : FrameUnit::kRange;
  advance();
  if (accept(T::kBetween)) {
    spec->start = frame_bound(true);
    expect(T::kAnd);
    spec->end = frame_bound(false);
  } else {
    spec->start = frame_bound(true);
  }
  if (!failed_ && spec->start.kind > spec->end.kind)
    fail_when_accepted("unsupported frame specification");
  if (!accept(T::kExclude)) return;
  if (accept(T::kNo)) {
    expect(T::kOthers);
  } else if (accept(T::kCurrent)) {
    expect(T::kRow);
    spec->exclude = FrameExclude::kCurrentRow;
  } else if (accept(T::kGroup)) {
    spec->exclude = FrameExclude::kGroup;
  } else {
    expect(T::kTies);
    spec->exclude = FrameExclude::kTies;
  }
}

FrameBound Parser::frame_bound(bool is_start) {
  if (accept(T::kUnbounded)) {
    if (is_start) {
      expect(T::kPreceding);
      return {FrameBoundKind::kUnboundedPreceding, nullptr};
    }
    expect(T::kFollowing);
    return {FrameBoundKind::kUnboundedFollowing, nullptr};
  }
  if (accept(T::kCurrent)) {
    expect(T::kRow);
    return {FrameBoundKind::kCurrentRow, nullptr};
  }
  FrameBound bound;
  bound.offset = expr();
  if (accept(T::kPreceding)) {
    bound.kind = FrameBoundKind::kPreceding;
  } else {
    expect(T::kFollowing);
    bound.kind = FrameBoundKind::kFollowing;
  }
  return bound;
}

// ---------------------------------------------------------------- lists

List<Expr*> Parser::expr_list() {
  List<Expr*> list;
  do {
    list.push(arena_, expr());
  } while (accept(T::kComma));
  return list;
}

List<Expr*> Parser::optional_expr_list() {
  if (at(T::kRp) || at(T::kOrder)) return {};
  return expr_list();
}

List<OrderTerm> Parser::order_list() {
  List<OrderTerm> list;
  do {
    OrderTerm term;
    term.expr = expr();
    if (accept(T::kAsc)) {
      term.order = SortOrder::kAsc;
    } else if (accept(T::kDesc)) {
      term.order = SortOrder::kDesc;
    }
    if (accept(T::kNulls)) {
      if (accept(T::kFirst)) {
        term.nulls = NullsOrder::kFirst;
      } else {
        expect(T::kLast);
        term.nulls = NullsOrder::kLast;
      }
    }
    list.push(arena_, term);
  } while (accept(T::kComma));
  return list;
}

}  // namespace db::sql
