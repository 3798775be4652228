// The recursive-descent parser behind parse(). One method for a rule of the grammar; binary
// operators climb by binding power (parse_expr.cc).
//
// Error handling without exceptions: the first error is kept and the current token becomes
// T::kPoison, which no rule accepts, so every loop and every list ends by itself and the callers
// unwind. Rules therefore never return null expressions.
// Single-threaded.
#pragma once

#include "db/sql/lexer.h"
#include "db/sql/parser.h"

namespace db::sql {

class Parser {
 public:
  Parser(std::string_view sql, Arena& arena, const ParseLimits& limits)
      : sql_(sql), arena_(arena), limits_(limits) {
    token_ = lex(sql_, 0);
    classify_window_word();
  }

  Parsed run();
  ParsedExpr run_expr();

 private:
  // ---- tokens (parser.cc)
  bool at(T kind) const { return token_.kind == kind; }
  void advance();
  bool accept(T kind) {
    if (token_.kind != kind) return false;
    advance();
    return true;
  }
  void expect(T kind) {
    if (!accept(kind)) syntax_error();
  }
  Token peek(Token from) const { return lex(sql_, from.end); }
  T peek_kind() const { return lex(sql_, token_.end).kind; }
  std::string_view text(Token token) const {
    return sql_.substr(token.begin, token.end - token.begin);
  }
  Span span_from(u32 begin) const { return {begin, last_end_ > begin ? last_end_ : begin}; }
  // From `begin` to the current token, blanks at both ends cut: SQLite's column names.
  Span trimmed_span(u32 begin, u32 end) const;
  // WINDOW, OVER and FILTER are keywords only where what follows says so.
  void classify_window_word();

  void syntax_error();
  void fail(std::string message, i32 offset = -1);
  // For what SQLite checks when a rule is complete: counts only if the current token may follow,
  // else the syntax error there is what SQLite reports.
  void fail_when_accepted(std::string message, i32 offset = -1);
  bool failed() const { return failed_; }

  // ---- names (parser.cc)
  bool at_id() const { return token_.kind == T::kId || falls_back(token_.kind); }
  bool at_ids() const { return at_id() || at(T::kString); }
  bool at_nm() const;
  static bool falls_back(T kind) { return falls_back_to_id(kind); }
  static bool is_join_word(T kind);
  Name make_name(Token token);
  std::string_view unquote(Token token);
  Name take_name();                        // the current token, whatever it is
  Name nm();                               // nm ::= id | STRING | JOIN_KW
  Name ids();                              // ids ::= ID | STRING
  void nm_dbnm(Name& schema, Name& name);  // nm [. nm]
  List<Name> id_list();                    // a, b, c
  List<Name> parenthesised_names();        // eidlist in parentheses
  bool if_exists();
  bool if_not_exists();

  // ---- statements (parser.cc)
  Statement* statement();
  Statement* begin_statement();
  Statement* rollback_statement();
  Statement* pragma_statement();
  Statement* attach_statement();
  Statement* vacuum_statement();
  Statement* analyze_or_reindex();
  Statement* savepoint_or_release();
  void transaction_name();
  void pragma_value(PragmaStatement* pragma);

  // ---- expressions (parse_expr.cc)
  Expr* expr() { return expr_above(0, false); }
  Expr* expr_above(int min_power, bool stop_at_and);
  Expr* prefix();
  Expr* prefix_operator(UnaryOp op, int power);
  Expr* postfix_or_infix(Expr* left, int min_power, bool stop_at_and, bool& done);
  Expr* infix_not(Expr* left);
  Expr* is_operator(Expr* left);
  Expr* like(Expr* left, bool negated, u32 begin);
  Expr* between(Expr* left, bool negated);
  Expr* in(Expr* left, bool negated);
  Expr* primary();
  Expr* parenthesised();
  Expr* literal();
  Expr* number_literal();
  Expr* variable();
  Expr* case_expr();
  Expr* cast_expr();
  Expr* raise_expr();
  Expr* column_or_function();
  Expr* function_call(Name name, u32 begin);
  void within_group(FunctionExpr* call);
  void filter_over(FunctionExpr* call);
  Expr* ctime();
  WindowSpec* window_body();
  void window_frame(WindowSpec* spec);
  FrameBound frame_bound(bool is_start);
  Expr* binary(BinaryOp op, Expr* left, Expr* right);
  Expr* unary(UnaryOp op, Expr* operand, u32 begin);
  Expr* negate_literal(LiteralExpr* literal, u32 begin);
  Expr* dummy_expr();
  List<Expr*> expr_list();           // at least one
  List<Expr*> optional_expr_list();  // may be empty, ends before ')'
  List<OrderTerm> order_list();
  template <class N>
  N* finish(N* node, u32 begin) {
    node->span = span_from(begin);
    return node;
  }
  void grow_depth(Expr* node, const Expr* child) {
    if (child != nullptr && child->depth >= node->depth) set_depth(node, child->depth + 1u);
  }
  void grow_depth(Expr* node, const List<Expr*>& children) {
    for (const Expr* child : children) grow_depth(node, child);
  }
  void grow_depth(Expr* node, const Select* select);
  void set_depth(Expr* node, u32 depth);

  // ---- SELECT (parse_select.cc)
  bool at_select() const { return at(T::kSelect) || at(T::kValues) || at(T::kWith); }
  Select* select();  // with an optional WITH clause
  Select* select_no_with(With* with);
  With* with_clause();  // null when there is none
  CommonTable* common_table();
  SelectCore* select_core(Select* select);
  SelectCore* values_core();
  void order_by_and_limit(List<OrderTerm>& order_by, Expr*& limit, Expr*& offset);
  List<ResultColumn> result_columns();
  ResultColumn result_column();
  From* from_clause();
  From* source_list();
  Source* source(u8 join);
  void source_body(Source* item);
  void on_using(Source* item);
  void indexed_by(Name& index, bool& not_indexed);
  bool join_operator(u8& join);
  void optional_alias(Name& alias);
  bool compound_operator(CompoundOp& op);

  // ---- DML (parse_dml.cc)
  Statement* insert(With* with, bool in_trigger);
  Statement* update(With* with, bool in_trigger);
  Statement* delete_from(With* with, bool in_trigger);
  ConflictAction or_conflict();
  ConflictAction resolve_type();
  List<Assignment> set_list();
  void target_table(TargetTable& table, bool in_trigger);
  void upserts(InsertStatement* insert);
  bool returning(bool& has_returning, List<ResultColumn>& columns);

  // ---- DDL (parse_ddl.cc)
  Statement* create();
  Statement* create_table(u32 begin, bool temporary);
  Statement* create_index(bool unique);
  Statement* create_view(bool temporary);
  Statement* create_trigger(bool temporary);
  Statement* create_virtual_table();
  void trigger_head(CreateTriggerStatement* trigger);
  Statement* trigger_step();
  void virtual_table_args(CreateVirtualTableStatement* table);
  Statement* drop();
  Statement* alter();
  Statement* alter_action(AlterStatement* alter);
  Statement* alter_add(AlterStatement* alter);
  Statement* alter_column(AlterStatement* alter);
  void table_options(CreateTableStatement* table);
  ColumnDef* column_def();
  std::string_view type_name();
  ColumnConstraint* column_constraint();
  bool at_column_constraint() const;
  bool at_table_constraint() const;
  void default_value(ColumnConstraint* constraint);
  void generated_column(ColumnConstraint* constraint);
  TableConstraint* table_constraint();
  void table_constraints(List<TableConstraint*>& constraints);
  ForeignReference* foreign_reference();
  ForeignAction foreign_action();
  bool deferrable();
  ConflictAction on_conflict();
  Expr* check_expr(Span& text);

  friend class NestingGuard;

  std::string_view sql_;
  Arena& arena_;
  const ParseLimits& limits_;
  Token token_;
  T last_kind_ = T::kSemi;
  u32 last_end_ = 0;  // end of the token before the current one
  u32 nesting_ = 0;
  u32 param_count_ = 0;
  List<ParamName> params_;
  bool failed_ = false;
  bool pending_ = false;  // error_ holds the message of fail_when_accepted()
  std::string error_;
  const char* late_error_ = nullptr;  // reported only when the whole statement parses
  i32 error_offset_ = -1;
};

// Counts nested rules so that hostile input ends in an error instead of a full stack.
class NestingGuard {
 public:
  explicit NestingGuard(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > parser_.limits_.nesting) parser_.fail("parser stack overflow");
  }
  ~NestingGuard() { --parser_.nesting_; }
  NestingGuard(const NestingGuard&) = delete;
  NestingGuard& operator=(const NestingGuard&) = delete;

 private:
  Parser& parser_;
};

}  // namespace db::sql
