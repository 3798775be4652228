// CREATE, DROP, ALTER.
#include "db/sql/parser_impl.h"

namespace db::sql {
namespace {

// `lower` is in lower case.
bool word_is(std::string_view word, std::string_view lower) {
  if (word.size() != lower.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i) {
    if ((word[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

}  // namespace

Statement* Parser::create() {
  u32 begin = token_.begin;
  advance();
  if (accept(T::kUnique)) {
    expect(T::kIndex);
    return create_index(true);
  }
  if (accept(T::kIndex)) return create_index(false);
  if (accept(T::kVirtual)) return create_virtual_table();
  bool temporary = accept(T::kTemp) || accept(T::kTemporary);
  if (accept(T::kTable)) return create_table(begin, temporary);
  if (accept(T::kView)) return create_view(temporary);
  if (accept(T::kTrigger)) return create_trigger(temporary);
  syntax_error();
  return arena_.make<DropStatement>();
}

// ---------------------------------------------------------------- tables

Statement* Parser::create_table(u32 begin, bool temporary) {
  auto* node = arena_.make<CreateTableStatement>();
  node->temporary = temporary;
  node->if_not_exists = if_not_exists();
  nm_dbnm(node->schema, node->name);
  if (accept(T::kAs)) {
    node->as_select = select();
  } else {
    expect(T::kLp);
    bool more = true;
    while (more && !at_table_constraint()) {
      node->columns.push(arena_, column_def());
      more = accept(T::kComma);
      if (more && at_table_constraint()) break;
    }
    if (node->columns.empty()) syntax_error();
    if (more) table_constraints(node->constraints);
    expect(T::kRp);
    table_options(node);
  }
  node->span = span_from(begin);
  node->body = {node->name.span.begin, last_end_};
  return node;
}

// table_option_set ::= | option | set COMMA option
void Parser::table_options(CreateTableStatement* table) {
  bool any = at(T::kWithout) || at_nm() || accept(T::kComma);
  for (; any && !failed_; any = accept(T::kComma)) {
    bool without = accept(T::kWithout);
    Name name = nm();
    if (without && word_is(name.text, "rowid")) {
      table->without_rowid = true;
    } else if (!without && word_is(name.text, "strict")) {
      table->strict = true;
    } else if (!failed_) {
      fail_when_accepted("unknown table option: " + std::string(name.span.in(sql_)));
    }
  }
}

ColumnDef* Parser::column_def() {
  auto* column = arena_.make<ColumnDef>();
  u32 begin = token_.begin;
  column->name = nm();
  column->type = type_name();
  while (at_column_constraint()) column->constraints.push(arena_, column_constraint());
  column->span = span_from(begin);
  return column;
}

// Words, then at most two numbers in parentheses; kept as written.
std::string_view Parser::type_name() {
  u32 begin = token_.begin;
  if (!at_ids() || at(T::kGenerated)) return {};
  while (at_ids() && !at(T::kGenerated)) advance();
  if (accept(T::kLp)) {
    auto number = [this] {
      if (!accept(T::kPlus)) accept(T::kMinus);
      if (!accept(T::kInteger)) expect(T::kFloat);
    };
    number();
    if (accept(T::kComma)) number();
    expect(T::kRp);
  }
  return failed_ ? std::string_view() : sql_.substr(begin, last_end_ - begin);
}

bool Parser::at_column_constraint() const {
  switch (token_.kind) {
    case T::kConstraint:
    case T::kDefault:
    case T::kNull:
    case T::kNot:
    case T::kPrimary:
    case T::kUnique:
    case T::kCheck:
    case T::kReferences:
    case T::kDeferrable:
    case T::kCollate:
    case T::kGenerated:
    case T::kAs:
      return true;
    default:
      return false;
  }
}

ConflictAction Parser::on_conflict() {
  if (!accept(T::kOn)) return ConflictAction::kDefault;
  expect(T::kConflict);
  return resolve_type();
}

Expr* Parser::check_expr(Span& text) {
  expect(T::kLp);
  u32 begin = token_.begin;
  Expr* condition = expr();
  text = trimmed_span(begin, token_.begin);
  expect(T::kRp);
  return condition;
}

ColumnConstraint* Parser::column_constraint() {  // tidy: long-function, one arm a constraint
  auto* node = arena_.make<ColumnConstraint>();
  if (accept(T::kConstraint)) {
    node->name = nm();
    if (!at_column_constraint() || at(T::kConstraint)) return node;  // a name for nothing is legal
  }
  if (at(T::kDeferrable)) {  // belongs to an earlier REFERENCES; without one it means nothing
    deferrable();
    return node;
  }
  T kind = token_.kind;
  advance();
  switch (kind) {
    case T::kDefault:
      node->kind = ColumnConstraintKind::kDefault;
      default_value(node);
      break;
    case T::kNull:
      node->conflict = on_conflict();
      break;
    case T::kNot:
      if (at(T::kDeferrable)) {
        deferrable();
        break;
      }
      expect(T::kNull);
      node->kind = ColumnConstraintKind::kNotNull;
      node->conflict = on_conflict();
      break;
    case T::kPrimary:
      expect(T::kKey);
      node->kind = ColumnConstraintKind::kPrimaryKey;
      if (accept(T::kAsc)) {
        node->order = SortOrder::kAsc;
      } else if (accept(T::kDesc)) {
        node->order = SortOrder::kDesc;
      }
      node->conflict = on_conflict();
      node->autoincrement = accept(T::kAutoincrement);
      break;
    case T::kUnique:
      node->kind = ColumnConstraintKind::kUnique;
      node->conflict = on_conflict();
      break;
    case T::kCheck:
      node->kind = ColumnConstraintKind::kCheck;
      node->expr = check_expr(node->text);
      break;
    case T::kReferences:
      node->kind = ColumnConstraintKind::kReferences;
      node->reference = foreign_reference();
      break;
    case T::kCollate:
      node->kind = ColumnConstraintKind::kCollate;
      node->collation = ids();
      break;
    case T::kGenerated:
      expect(T::kAlways);
      expect(T::kAs);
      generated_column(node);
      break;
    case T::kAs:
      generated_column(node);
      break;
    default:
      syntax_error();
  }
  return node;
}

// DEFAULT term | (expr) | + term | - term | id
void Parser::default_value(ColumnConstraint* constraint) {
  u32 begin = token_.begin;
  if (accept(T::kLp)) {
    begin = token_.begin;
    constraint->expr = expr();
    constraint->text = trimmed_span(begin, token_.begin);
    expect(T::kRp);
    return;
  }
  bool negative = at(T::kMinus);
  bool sign = negative || at(T::kPlus);
  if (sign) advance();
  switch (token_.kind) {
    case T::kNull:
    case T::kInteger:
    case T::kFloat:
    case T::kBlob:
    case T::kString:
      constraint->expr = literal();
      break;
    case T::kCurrentDate:
    case T::kCurrentTime:
    case T::kCurrentTimestamp:
      constraint->expr = ctime();
      break;
    default: {
      if (sign || !(at_id() || at(T::kIndexed))) return syntax_error();
      auto* column = arena_.make<ColumnExpr>();
      column->column = take_name();
      constraint->expr = finish(column, begin);
    }
  }
  if (negative) {
    constraint->expr = constraint->expr->kind == ExprKind::kLiteral
                           ? negate_literal(constraint->expr->as<LiteralExpr>(), begin)
                           : unary(UnaryOp::kNegate, constraint->expr, begin);
  }
  constraint->text = trimmed_span(begin, last_end_);
}

void Parser::generated_column(ColumnConstraint* constraint) {
  constraint->kind = ColumnConstraintKind::kGenerated;
  constraint->expr = check_expr(constraint->text);
  if (!at(T::kId)) {
    if (at(T::kVirtual)) advance();
    return;
  }
  constraint->stored = word_is(text(token_), "stored");
  advance();
}

bool Parser::at_table_constraint() const {
  switch (token_.kind) {
    case T::kConstraint:
    case T::kPrimary:
    case T::kUnique:
    case T::kCheck:
    case T::kForeign:
      return true;
    default:
      return false;
  }
}

// The commas between table constraints are optional.
void Parser::table_constraints(List<TableConstraint*>& constraints) {
  do {
    if (!at_table_constraint()) return syntax_error();
    do {
      if (TableConstraint* constraint = table_constraint()) constraints.push(arena_, constraint);
    } while (at_table_constraint());
  } while (accept(T::kComma));
}

// Null for a name that nothing follows, which SQLite accepts.
TableConstraint* Parser::table_constraint() {
  auto* node = arena_.make<TableConstraint>();
  if (accept(T::kConstraint)) {
    node->name = nm();
    if (at(T::kComma)) {
      // CONSTRAINT name, CHECK ...: the name still belongs to what follows in SQLite; harmless.
      return nullptr;
    }
    if (!at_table_constraint() || at(T::kConstraint)) return nullptr;
  }
  T kind = token_.kind;
  advance();
  switch (kind) {
    case T::kPrimary:
    case T::kUnique:
      node->kind =
          kind == T::kPrimary ? TableConstraintKind::kPrimaryKey : TableConstraintKind::kUnique;
      if (kind == T::kPrimary) expect(T::kKey);
      expect(T::kLp);
      node->columns = order_list();
      if (kind == T::kPrimary) node->autoincrement = accept(T::kAutoincrement);
      expect(T::kRp);
      node->conflict = on_conflict();
      break;
    case T::kCheck:
      node->expr = check_expr(node->text);
      node->conflict = on_conflict();
      break;
    case T::kForeign:
      node->kind = TableConstraintKind::kForeignKey;
      expect(T::kKey);
      node->key = parenthesised_names();
      expect(T::kReferences);
      node->reference = foreign_reference();
      break;
    default:
      syntax_error();
  }
  return node;
}

// nm [(columns)] refargs [deferrable]
ForeignReference* Parser::foreign_reference() {
  auto* node = arena_.make<ForeignReference>();
  node->table = nm();
  if (at(T::kLp)) node->columns = parenthesised_names();
  for (;;) {
    if (accept(T::kMatch)) {
      node->match = nm().text;
    } else if (accept(T::kOn)) {
      bool on_delete = at(T::kDelete);
      bool on_insert = at(T::kInsert);
      if (!on_delete && !on_insert && !at(T::kUpdate)) {
        syntax_error();
        return node;
      }
      advance();
      ForeignAction action = foreign_action();
      if (on_delete) node->on_delete = action;
      if (!on_delete && !on_insert) node->on_update = action;
    } else {
      break;
    }
  }
  if (at(T::kDeferrable) || (at(T::kNot) && peek_kind() == T::kDeferrable)) {
    bool negated = accept(T::kNot);
    bool deferred = deferrable();
    node->initially_deferred = deferred && !negated;
  }
  return node;
}

ForeignAction Parser::foreign_action() {
  if (accept(T::kCascade)) return ForeignAction::kCascade;
  if (accept(T::kRestrict)) return ForeignAction::kRestrict;
  if (accept(T::kNo)) {
    expect(T::kAction);
    return ForeignAction::kNoAction;
  }
  expect(T::kSet);
  if (accept(T::kNull)) return ForeignAction::kSetNull;
  expect(T::kDefault);
  return ForeignAction::kSetDefault;
}

// DEFERRABLE [INITIALLY DEFERRED | INITIALLY IMMEDIATE]; true when initially deferred.
bool Parser::deferrable() {
  expect(T::kDeferrable);
  if (!accept(T::kInitially)) return false;
  if (accept(T::kDeferred)) return true;
  expect(T::kImmediate);
  return false;
}

// ---------------------------------------------------------------- indexes and views

Statement* Parser::create_index(bool unique) {
  auto* node = arena_.make<CreateIndexStatement>();
  node->unique = unique;
  node->if_not_exists = if_not_exists();
  nm_dbnm(node->schema, node->name);
  expect(T::kOn);
  node->table = nm();
  expect(T::kLp);
  node->columns = order_list();
  for (const OrderTerm& term : node->columns) {
    if (term.nulls != NullsOrder::kUnset) {
      fail_when_accepted(std::string("unsupported use of NULLS ") +
                         (term.nulls == NullsOrder::kFirst ? "FIRST" : "LAST"));
    }
  }
  expect(T::kRp);
  if (accept(T::kWhere)) node->where = expr();
  node->body = {node->name.span.begin, last_end_};
  return node;
}

Statement* Parser::create_view(bool temporary) {
  auto* node = arena_.make<CreateViewStatement>();
  node->temporary = temporary;
  node->if_not_exists = if_not_exists();
  nm_dbnm(node->schema, node->name);
  if (at(T::kLp)) node->columns = parenthesised_names();
  expect(T::kAs);
  node->select = select();
  if (param_count_ > 0) fail_when_accepted("parameters are not allowed in views");
  node->body = {node->name.span.begin, last_end_};
  return node;
}

// The module's arguments are raw text, split at commas outside parentheses.
Statement* Parser::create_virtual_table() {
  auto* node = arena_.make<CreateVirtualTableStatement>();
  expect(T::kTable);
  node->if_not_exists = if_not_exists();
  nm_dbnm(node->schema, node->name);
  expect(T::kUsing);
  node->module = nm();
  if (accept(T::kLp)) virtual_table_args(node);
  node->body = {node->name.span.begin, last_end_};
  return node;
}

void Parser::virtual_table_args(CreateVirtualTableStatement* table) {
  int depth = 0;
  u32 begin = token_.begin;
  bool any = false;
  while (!failed_) {
    bool end = at(T::kRp) && depth == 0;
    if (at(T::kEof) || at(T::kIllegal) || at(T::kSemi)) return syntax_error();
    if (end || (at(T::kComma) && depth == 0)) {
      Span arg = trimmed_span(begin, any ? last_end_ : begin);
      if (!arg.empty() || !end || !table->args.empty()) table->args.push(arena_, arg.in(sql_));
      any = false;
      advance();
      begin = token_.begin;
      if (end) return;
      continue;
    }
    if (at(T::kLp)) ++depth;
    if (at(T::kRp)) --depth;
    any = true;
    advance();
  }
}

// ---------------------------------------------------------------- triggers

Statement* Parser::create_trigger(bool temporary) {
  auto* node = arena_.make<CreateTriggerStatement>();
  node->temporary = temporary;
  node->if_not_exists = if_not_exists();
  nm_dbnm(node->schema, node->name);
  trigger_head(node);
  expect(T::kBegin);
  do {
    node->steps.push(arena_, trigger_step());
    expect(T::kSemi);
  } while (!failed_ && !at(T::kEndKw));
  expect(T::kEndKw);
  if (param_count_ > 0) fail_when_accepted("trigger cannot use variables");
  node->body = {node->name.span.begin, last_end_};
  return node;
}

void Parser::trigger_head(CreateTriggerStatement* trigger) {
  if (accept(T::kAfter)) {
    trigger->time = TriggerTime::kAfter;
  } else if (accept(T::kInstead)) {
    expect(T::kOf);
    trigger->time = TriggerTime::kInsteadOf;
  } else {
    accept(T::kBefore);
  }
  if (accept(T::kDelete)) {
    trigger->event = TriggerEvent::kDelete;
  } else if (accept(T::kInsert)) {
    trigger->event = TriggerEvent::kInsert;
  } else {
    expect(T::kUpdate);
    trigger->event = TriggerEvent::kUpdate;
    if (accept(T::kOf)) {
      trigger->has_update_of = true;
      trigger->update_of = id_list();
    }
  }
  expect(T::kOn);
  nm_dbnm(trigger->table_schema, trigger->table);
  if (accept(T::kFor)) {
    expect(T::kEach);
    expect(T::kRow);
  }
  if (accept(T::kWhen)) trigger->when = expr();
}

Statement* Parser::trigger_step() {
  u32 begin = token_.begin;
  Statement* step = nullptr;
  switch (token_.kind) {
    case T::kUpdate:
      step = update(nullptr, true);
      break;
    case T::kInsert:
    case T::kReplace:
      step = insert(nullptr, true);
      break;
    case T::kDelete:
      step = delete_from(nullptr, true);
      break;
    default: {
      auto* node = arena_.make<SelectStatement>();
      if (!at_select()) syntax_error();
      node->select = select();
      step = node;
    }
  }
  step->span = span_from(begin);
  return step;
}

// ---------------------------------------------------------------- DROP and ALTER

Statement* Parser::drop() {
  advance();
  auto* node = arena_.make<DropStatement>();
  if (accept(T::kIndex)) {
    node->object = ObjectKind::kIndex;
  } else if (accept(T::kView)) {
    node->object = ObjectKind::kView;
  } else if (accept(T::kTrigger)) {
    node->object = ObjectKind::kTrigger;
  } else {
    expect(T::kTable);
  }
  node->if_exists = if_exists();
  nm_dbnm(node->schema, node->name);
  return node;
}

Statement* Parser::alter() {
  advance();
  auto* node = arena_.make<AlterStatement>();
  expect(T::kTable);
  nm_dbnm(node->schema, node->table);
  return alter_action(node);
}

Statement* Parser::alter_action(AlterStatement* alter) {
  if (accept(T::kRename)) {
    if (accept(T::kTo)) {
      alter->new_name = nm();
      return alter;
    }
    accept(T::kColumn);
    alter->action = AlterKind::kRenameColumn;
    alter->column = nm();
    expect(T::kTo);
    alter->new_name = nm();
  } else if (accept(T::kAdd)) {
    return alter_add(alter);
  } else if (accept(T::kDrop)) {
    if (accept(T::kConstraint)) {
      alter->action = AlterKind::kDropConstraint;
      alter->new_name = nm();
      return alter;
    }
    accept(T::kColumn);
    alter->action = AlterKind::kDropColumn;
    alter->column = nm();
  } else {
    return alter_column(alter);
  }
  return alter;
}

// ADD [COLUMN] definition | ADD [CONSTRAINT name] CHECK (expr)
Statement* Parser::alter_add(AlterStatement* alter) {
  if (at(T::kConstraint) || at(T::kCheck)) {
    alter->action = AlterKind::kAddConstraint;
    u32 begin = token_.begin;
    auto* constraint = arena_.make<TableConstraint>();
    if (accept(T::kConstraint)) constraint->name = nm();
    expect(T::kCheck);
    constraint->expr = check_expr(constraint->text);
    constraint->conflict = on_conflict();
    alter->constraint = constraint;
    alter->text = span_from(begin);
    return alter;
  }
  accept(T::kColumn);
  alter->action = AlterKind::kAddColumn;
  alter->added = column_def();
  alter->text = alter->added->span;
  return alter;
}

// ALTER [COLUMN] name SET NOT NULL | DROP NOT NULL
Statement* Parser::alter_column(AlterStatement* alter) {
  expect(T::kAlter);
  accept(T::kColumn);
  alter->column = nm();
  bool set = accept(T::kSet);
  if (!set) expect(T::kDrop);
  expect(T::kNot);
  expect(T::kNull);
  alter->action = set ? AlterKind::kSetNotNull : AlterKind::kDropNotNull;
  if (set) alter->conflict = on_conflict();
  return alter;
}

}  // namespace db::sql
