// SELECT, VALUES, WITH and the FROM clause.
#include "db/sql/parser_impl.h"

namespace db::sql {

// ---------------------------------------------------------------- WITH

With* Parser::with_clause() {
  if (!accept(T::kWith)) return nullptr;
  auto* with = arena_.make<With>();
  with->recursive = accept(T::kRecursive);
  do {
    CommonTable* table = common_table();
    for (const CommonTable* other : with->tables) {
      if (failed_ || other->name.text.size() != table->name.text.size()) continue;
      bool same = true;
      for (size_t i = 0; i < table->name.text.size(); ++i) {
        auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
        same = same && lower(other->name.text[i]) == lower(table->name.text[i]);
      }
      if (same) fail_when_accepted("duplicate WITH table name: " + std::string(table->name.text));
    }
    with->tables.push(arena_, table);
  } while (accept(T::kComma));
  return with;
}

CommonTable* Parser::common_table() {
  NestingGuard guard(*this);
  auto* table = arena_.make<CommonTable>();
  table->name = nm();
  if (at(T::kLp)) table->columns = parenthesised_names();
  expect(T::kAs);
  if (accept(T::kMaterialized)) {
    table->materialize = Materialize::kYes;
  } else if (accept(T::kNot)) {
    expect(T::kMaterialized);
    table->materialize = Materialize::kNo;
  }
  expect(T::kLp);
  table->select = select();
  expect(T::kRp);
  return table;
}

// ---------------------------------------------------------------- SELECT

Select* Parser::select() {
  return select_no_with(with_clause());
}

Select* Parser::select_no_with(With* with) {
  NestingGuard guard(*this);
  auto* node = arena_.make<Select>();
  node->with = with;
  u32 begin = token_.begin;
  CompoundOp op = CompoundOp::kNone;
  do {
    if (!node->order_by.empty() || node->limit != nullptr) {
      static constexpr const char* kNames[] = {"", "UNION", "UNION ALL", "INTERSECT", "EXCEPT"};
      const char* clause = node->order_by.empty() ? "LIMIT" : "ORDER BY";
      fail_when_accepted(std::string(clause) + " clause should come after " +
                         kNames[static_cast<int>(op)] + " not before");
    }
    node->arms.push(arena_, {op, select_core(node)});
    if (node->arms.size() > limits_.compound_arms)
      fail_when_accepted("too many terms in compound SELECT");
  } while (compound_operator(op));
  node->span = span_from(begin);
  return node;
}

bool Parser::compound_operator(CompoundOp& op) {
  if (accept(T::kUnion)) {
    op = accept(T::kAll) ? CompoundOp::kUnionAll : CompoundOp::kUnion;
  } else if (accept(T::kExcept)) {
    op = CompoundOp::kExcept;
  } else if (accept(T::kIntersect)) {
    op = CompoundOp::kIntersect;
  } else {
    return false;
  }
  return true;
}

SelectCore* Parser::select_core(Select* select) {
  if (at(T::kValues)) return values_core();
  auto* core = arena_.make<SelectCore>();
  u32 begin = token_.begin;
  expect(T::kSelect);
  if (accept(T::kDistinct)) {
    core->distinct = true;
  } else {
    accept(T::kAll);
  }
  core->columns = result_columns();
  core->from = from_clause();
  if (accept(T::kWhere)) core->where = expr();
  if (accept(T::kGroup)) {
    expect(T::kBy);
    core->group_by = expr_list();
  }
  if (accept(T::kHaving)) core->having = expr();
  if (accept(T::kWindow)) {
    do {
      Name name = nm();
      expect(T::kAs);
      WindowSpec* spec = window_body();
      spec->name = name;
      core->windows.push(arena_, spec);
    } while (accept(T::kComma));
  }
  core->span = span_from(begin);
  order_by_and_limit(select->order_by, select->limit, select->offset);
  return core;
}

SelectCore* Parser::values_core() {
  auto* core = arena_.make<SelectCore>();
  core->is_values = true;
  u32 begin = token_.begin;
  expect(T::kValues);
  do {
    auto* row = arena_.make<RowExpr>();
    u32 row_begin = token_.begin;
    expect(T::kLp);
    row->items = expr_list();
    expect(T::kRp);
    grow_depth(row, row->items);
    core->rows.push(arena_, finish(row, row_begin));
    if (core->rows[0]->items.size() != row->items.size()) {
      late_error_ = "all VALUES must have the same number of terms";
    }
  } while (accept(T::kComma));
  core->span = span_from(begin);
  return core;
}

void Parser::order_by_and_limit(List<OrderTerm>& order_by, Expr*& limit, Expr*& offset) {
  if (accept(T::kOrder)) {
    expect(T::kBy);
    order_by = order_list();
  }
  if (!accept(T::kLimit)) return;
  limit = expr();
  if (accept(T::kOffset)) {
    offset = expr();
  } else if (accept(T::kComma)) {
    offset = limit;
    limit = expr();
  }
}

List<ResultColumn> Parser::result_columns() {
  List<ResultColumn> columns;
  do {
    columns.push(arena_, result_column());
  } while (accept(T::kComma));
  return columns;
}

ResultColumn Parser::result_column() {
  ResultColumn column;
  u32 begin = token_.begin;
  if (accept(T::kStar)) {
    column.kind = ResultKind::kStar;
    column.text = span_from(begin);
    return column;
  }
  if (at_nm()) {
    Token dot = peek(token_);
    if (dot.kind == T::kDot && peek(dot).kind == T::kStar) {
      column.kind = ResultKind::kTableStar;
      column.table = nm();
      advance();
      advance();
      column.text = span_from(begin);
      return column;
    }
  }
  column.expr = expr();
  column.text = trimmed_span(begin, token_.begin);
  optional_alias(column.alias);
  return column;
}

// as ::= AS nm | ids |
void Parser::optional_alias(Name& alias) {
  if (accept(T::kAs)) {
    alias = nm();
  } else if (at_ids()) {
    alias = take_name();
  }
}

// ---------------------------------------------------------------- FROM

From* Parser::from_clause() {
  return accept(T::kFrom) ? source_list() : nullptr;
}

From* Parser::source_list() {
  auto* from = arena_.make<From>();
  u8 join = 0;
  do {
    from->sources.push(arena_, source(join));
    const Source* item = from->sources.back();
    if (from->sources.size() == 1 && (item->on != nullptr || item->has_using) && !failed_) {
      fail_when_accepted(std::string("a JOIN clause is required before ") +
                         (item->on ? "ON" : "USING"));
    }
  } while (join_operator(join));
  return from;
}

Source* Parser::source(u8 join) {
  NestingGuard guard(*this);
  auto* item = arena_.make<Source>();
  item->join = join;
  u32 begin = token_.begin;
  source_body(item);
  item->span = span_from(begin);
  on_using(item);
  if ((join & join::kNatural) != 0 && (item->on != nullptr || item->has_using) && !failed_) {
    fail_when_accepted("a NATURAL join may not have an ON or USING clause");
  }
  return item;
}

void Parser::source_body(Source* item) {
  if (accept(T::kLp)) {
    if (at_select()) {
      item->kind = SourceKind::kSubquery;
      item->select = select();
    } else {
      item->kind = SourceKind::kJoin;
      item->nested = source_list();
    }
    expect(T::kRp);
    optional_alias(item->alias);
    return;
  }
  nm_dbnm(item->schema, item->name);
  if (accept(T::kLp)) {
    item->kind = SourceKind::kFunction;
    item->args = optional_expr_list();
    expect(T::kRp);
    optional_alias(item->alias);
    return;
  }
  optional_alias(item->alias);
  indexed_by(item->indexed_by, item->not_indexed);
}

void Parser::indexed_by(Name& index, bool& not_indexed) {
  if (accept(T::kIndexed)) {
    expect(T::kBy);
    index = nm();
  } else if (accept(T::kNot)) {
    expect(T::kIndexed);
    not_indexed = true;
  }
}

void Parser::on_using(Source* item) {
  if (accept(T::kOn)) {
    item->on = expr();
  } else if (accept(T::kUsing)) {
    expect(T::kLp);
    item->has_using = true;
    item->using_columns = id_list();
    expect(T::kRp);
  }
}

// COMMA | JOIN | up to three words and JOIN
bool Parser::join_operator(u8& join) {
  if (accept(T::kComma)) {
    join = join::kInner | join::kComma;
    return true;
  }
  if (accept(T::kJoin)) {
    join = join::kInner;
    return true;
  }
  if (!is_join_word(token_.kind)) return false;
  u8 flags = 0;
  bool known = true;
  std::string words;
  for (int count = 0; count < 3 && !at(T::kJoin) && !failed_; ++count) {
    switch (token_.kind) {
      case T::kNatural:
        flags |= join::kNatural;
        break;
      case T::kLeft:
        flags |= join::kLeft | join::kOuter;
        break;
      case T::kOuter:
        flags |= join::kOuter;
        break;
      case T::kRight:
        flags |= join::kRight | join::kOuter;
        break;
      case T::kFull:
        flags |= join::kLeft | join::kRight | join::kOuter;
        break;
      case T::kInner:
        flags |= join::kInner;
        break;
      case T::kCross:
        flags |= join::kInner | join::kCross;
        break;
      default:
        if (!at_nm()) {
          syntax_error();
          return false;
        }
        known = false;
    }
    if (!words.empty()) words += ' ';
    words += text(token_);
    advance();
  }
  expect(T::kJoin);
  u8 side = flags & (join::kOuter | join::kLeft | join::kRight);
  if (!known || side == join::kOuter ||
      (flags & (join::kInner | join::kOuter)) == (join::kInner | join::kOuter)) {
    fail_when_accepted("unknown join type: " + words);
  }
  if ((flags & join::kOuter) == 0) flags |= join::kInner;
  join = flags;
  return true;
}

}  // namespace db::sql
