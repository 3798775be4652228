#include "db/sql/parser.h"

#include "db/sql/parser_impl.h"

namespace db::sql {

Parsed parse(std::string_view sql, Arena& arena, const ParseLimits& limits) {
  return Parser(sql, arena, limits).run();
}

ParsedExpr parse_expr(std::string_view text, Arena& arena, const ParseLimits& limits) {
  return Parser(text, arena, limits).run_expr();
}

Parsed Parser::run() {
  Parsed result;
  while (accept(T::kSemi)) {
  }
  if (at(T::kEof)) {
    result.tail = token_.begin;
    return result;
  }
  u32 begin = token_.begin;
  Explain explain = Explain::kNone;
  if (at(T::kExplain)) {
    advance();
    explain = Explain::kCode;
    if (accept(T::kQuery)) {
      expect(T::kPlan);
      explain = Explain::kQueryPlan;
    }
  }
  Statement* parsed = statement();
  if (!failed_) {
    parsed->explain = explain;
    parsed->span = span_from(begin);
    result.tail = token_.end;
    if (!at(T::kEof) && !at(T::kSemi)) {
      syntax_error();
    } else if (pending_) {
      fail(std::move(error_), error_offset_);
    } else if (late_error_ != nullptr) {
      fail(late_error_);
    }
  }
  if (failed_) {
    result.failed = true;
    result.error = std::move(error_);
    result.error_offset = error_offset_;
    result.tail = last_end_;
    return result;
  }
  result.statement = parsed;
  result.param_count = param_count_;
  result.params = params_;
  return result;
}

ParsedExpr Parser::run_expr() {
  ParsedExpr result;
  result.expr = expr();
  if (!failed_ && !at(T::kEof)) syntax_error();
  if (failed_ || pending_) result = {nullptr, std::move(error_)};
  return result;
}

// ---------------------------------------------------------------- tokens

void Parser::advance() {
  if (failed_) return;
  if (pending_) return fail(std::move(error_), error_offset_);
  last_kind_ = token_.kind;
  last_end_ = token_.end;
  token_ = lex(sql_, token_.end);
  if (token_.kind == T::kWindow || token_.kind == T::kOver || token_.kind == T::kFilter) {
    classify_window_word();
  }
}

void Parser::classify_window_word() {
  auto id_like = [](T kind) {
    return kind == T::kId || kind == T::kString || is_join_word(kind) || falls_back(kind) ||
           kind == T::kWindow || kind == T::kOver;
  };
  Token next = peek(token_);
  switch (token_.kind) {
    case T::kWindow:
      if (!id_like(next.kind) || peek(next).kind != T::kAs) token_.kind = T::kId;
      return;
    case T::kOver:
      if (last_kind_ != T::kRp || !(next.kind == T::kLp || id_like(next.kind))) {
        token_.kind = T::kId;
      }
      return;
    case T::kFilter:
      if (last_kind_ != T::kRp || next.kind != T::kLp) token_.kind = T::kId;
      return;
    default:
      return;
  }
}

Span Parser::trimmed_span(u32 begin, u32 end) const {
  auto blank = [this](u32 i) {
    char c = sql_[i];
    return c == ' ' || (c >= '\t' && c <= '\r');
  };
  while (begin < end && blank(begin)) ++begin;
  while (end > begin && blank(end - 1)) --end;
  return {begin, end};
}

void Parser::syntax_error() {
  if (failed_) return;
  auto offset = static_cast<i32>(token_.begin);
  if (at(T::kEof)) return fail("incomplete input");
  if (at(T::kIllegal))
    return fail("unrecognized token: \"" + std::string(text(token_)) + "\"", offset);
  fail("near \"" + std::string(text(token_)) + "\": syntax error", offset);
}

void Parser::fail_when_accepted(std::string message, i32 offset) {
  if (failed_ || pending_) return;
  pending_ = true;
  error_ = std::move(message);
  error_offset_ = offset;
}

void Parser::fail(std::string message, i32 offset) {
  if (failed_) return;
  failed_ = true;
  pending_ = false;
  error_ = std::move(message);
  error_offset_ = offset;
  token_ = {T::kPoison, false, token_.begin, token_.begin};
}

// ---------------------------------------------------------------- names

bool Parser::is_join_word(T kind) {
  switch (kind) {
    case T::kCross:
    case T::kFull:
    case T::kInner:
    case T::kLeft:
    case T::kNatural:
    case T::kOuter:
    case T::kRight:
      return true;
    default:
      return false;
  }
}

bool Parser::at_nm() const {
  return at_ids() || at(T::kIndexed) || is_join_word(token_.kind);
}

std::string_view Parser::unquote(Token token) {
  std::string_view raw = text(token);
  char quote = raw[0];
  if (quote == '[') return raw.substr(1, raw.size() - 2);
  if (quote != '"' && quote != '\'' && quote != '`') return raw;
  raw = raw.substr(1, raw.size() - 2);
  if (raw.find(quote) == std::string_view::npos) return raw;
  auto* to = static_cast<char*>(arena_.allocate(raw.size(), 1));
  size_t n = 0;
  for (size_t i = 0; i < raw.size(); ++i) {
    to[n++] = raw[i];
    if (raw[i] == quote) ++i;
  }
  return {to, n};
}

Name Parser::make_name(Token token) {
  Name name;
  name.span = {token.begin, token.end};
  switch (sql_[token.begin]) {
    case '"':
      name.quote = Quote::kDouble;
      break;
    case '\'':
      name.quote = Quote::kSingle;
      break;
    case '`':
      name.quote = Quote::kBacktick;
      break;
    case '[':
      name.quote = Quote::kBracket;
      break;
    default:
      name.text = text(token);
      return name;
  }
  name.text = unquote(token);
  return name;
}

Name Parser::take_name() {
  Name name = make_name(token_);
  advance();
  return name;
}

Name Parser::nm() {
  if (at_nm()) return take_name();
  syntax_error();
  return {};
}

Name Parser::ids() {
  if (at_ids() || at(T::kIndexed)) return take_name();
  syntax_error();
  return {};
}

void Parser::nm_dbnm(Name& schema, Name& name) {
  name = nm();
  if (accept(T::kDot)) {
    schema = name;
    name = nm();
  }
}

List<Name> Parser::id_list() {
  List<Name> names;
  do {
    names.push(arena_, nm());
  } while (accept(T::kComma));
  return names;
}

// SQLite's grammar allows COLLATE and a sort order here only to refuse them by name.
List<Name> Parser::parenthesised_names() {
  List<Name> names;
  expect(T::kLp);
  do {
    Name name = nm();
    names.push(arena_, name);
    bool extra = false;
    if (accept(T::kCollate)) {
      ids();
      extra = true;
    }
    if (accept(T::kAsc) || accept(T::kDesc)) extra = true;
    if (extra && !failed_) {
      fail_when_accepted("syntax error after column name \"" + std::string(name.span.in(sql_)) +
                         "\"");
    }
  } while (accept(T::kComma));
  expect(T::kRp);
  return names;
}

bool Parser::if_exists() {
  if (!accept(T::kIf)) return false;
  expect(T::kExists);
  return true;
}

bool Parser::if_not_exists() {
  if (!accept(T::kIf)) return false;
  expect(T::kNot);
  expect(T::kExists);
  return true;
}

// ---------------------------------------------------------------- statements

Statement* Parser::statement() {
  switch (token_.kind) {
    case T::kSelect:
    case T::kValues: {
      auto* node = arena_.make<SelectStatement>();
      node->select = select();
      return node;
    }
    case T::kWith: {
      With* with = with_clause();
      if (at(T::kInsert) || at(T::kReplace)) return insert(with, false);
      if (at(T::kUpdate)) return update(with, false);
      if (at(T::kDelete)) return delete_from(with, false);
      auto* node = arena_.make<SelectStatement>();
      node->select = select_no_with(with);
      return node;
    }
    case T::kInsert:
    case T::kReplace:
      return insert(nullptr, false);
    case T::kUpdate:
      return update(nullptr, false);
    case T::kDelete:
      return delete_from(nullptr, false);
    case T::kCreate:
      return create();
    case T::kDrop:
      return drop();
    case T::kAlter:
      return alter();
    case T::kBegin:
      return begin_statement();
    case T::kCommit:
    case T::kEndKw:
      advance();
      transaction_name();
      return arena_.make<CommitStatement>();
    case T::kRollback:
      return rollback_statement();
    case T::kSavepoint:
    case T::kRelease:
      return savepoint_or_release();
    case T::kPragma:
      return pragma_statement();
    case T::kAttach:
    case T::kDetach:
      return attach_statement();
    case T::kVacuum:
      return vacuum_statement();
    case T::kAnalyze:
    case T::kReindex:
      return analyze_or_reindex();
    default:
      syntax_error();
      return arena_.make<CommitStatement>();
  }
}

// trans_opt ::= | TRANSACTION | TRANSACTION nm
void Parser::transaction_name() {
  if (accept(T::kTransaction) && at_nm()) nm();
}

Statement* Parser::begin_statement() {
  advance();
  auto* node = arena_.make<BeginStatement>();
  if (accept(T::kDeferred)) {
    node->mode = BeginMode::kDeferred;
  } else if (accept(T::kImmediate)) {
    node->mode = BeginMode::kImmediate;
  } else if (accept(T::kExclusive)) {
    node->mode = BeginMode::kExclusive;
  }
  transaction_name();
  return node;
}

Statement* Parser::rollback_statement() {
  advance();
  auto* node = arena_.make<RollbackStatement>();
  transaction_name();
  if (accept(T::kTo)) {
    accept(T::kSavepoint);
    node->savepoint = nm();
  }
  return node;
}

Statement* Parser::savepoint_or_release() {
  if (accept(T::kSavepoint)) {
    auto* node = arena_.make<SavepointStatement>();
    node->name = nm();
    return node;
  }
  advance();
  accept(T::kSavepoint);
  auto* node = arena_.make<ReleaseStatement>();
  node->name = nm();
  return node;
}

Statement* Parser::pragma_statement() {
  advance();
  auto* node = arena_.make<PragmaStatement>();
  nm_dbnm(node->schema, node->name);
  if (accept(T::kEq)) {
    pragma_value(node);
  } else if (accept(T::kLp)) {
    pragma_value(node);
    expect(T::kRp);
  }
  return node;
}

void Parser::pragma_value(PragmaStatement* pragma) {
  pragma->has_value = true;
  bool sign = at(T::kMinus) || at(T::kPlus);
  pragma->negative = at(T::kMinus);
  if (sign) advance();
  bool number = at(T::kInteger) || at(T::kFloat);
  bool word = at_nm() || at(T::kOn) || at(T::kDelete) || at(T::kDefault);
  if (!number && (sign || !word)) return syntax_error();
  pragma->value = number ? text(token_) : unquote(token_);
  advance();
}

Statement* Parser::attach_statement() {
  bool attach = at(T::kAttach);
  advance();
  accept(T::kDatabase);
  if (!attach) {
    auto* node = arena_.make<DetachStatement>();
    node->schema = expr();
    return node;
  }
  auto* node = arena_.make<AttachStatement>();
  node->file = expr();
  expect(T::kAs);
  node->schema = expr();
  if (accept(T::kKey)) node->key = expr();
  return node;
}

Statement* Parser::vacuum_statement() {
  advance();
  auto* node = arena_.make<VacuumStatement>();
  if (at_nm()) node->schema = nm();
  if (accept(T::kInto)) node->into = expr();
  return node;
}

Statement* Parser::analyze_or_reindex() {
  bool analyze = at(T::kAnalyze);
  advance();
  Name schema;
  Name name;
  if (at_nm()) nm_dbnm(schema, name);
  if (analyze) {
    auto* node = arena_.make<AnalyzeStatement>();
    node->schema = schema;
    node->name = name;
    return node;
  }
  auto* node = arena_.make<ReindexStatement>();
  node->schema = schema;
  node->name = name;
  return node;
}

}  // namespace db::sql
