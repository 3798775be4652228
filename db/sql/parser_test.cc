#include "db/sql/parser.h"

#include "db/sql/lexer.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <array>
#include <random>
#include <string>
#include <vector>

namespace db::sql {
namespace {

std::string parse_error(std::string_view sql) {
  Arena arena;
  return parse(sql, arena).error;
}

Expr* parse_one(std::string_view text, Arena& arena) {
  ParsedExpr parsed = parse_expr(text, arena);
  EXPECT_EQ(parsed.error, "") << text;
  return parsed.expr;
}

// Writes an expression with every operator in parentheses.
std::string shape(const Expr* expr) {
  static constexpr std::array kUnary = {"-", "+", "~", "NOT ", "isnull ", "notnull "};
  static constexpr std::array kBinary = {
      "or", "and", "=",  "<>", "is", "isnot", "<", "<=", ">",  ">=", "&",
      "|",  "<<",  ">>", "+",  "-",  "*",     "/", "%",  "||", "->", "->>"};
  if (const auto* e = expr->is<UnaryExpr>()) {
    return "(" + std::string(kUnary[static_cast<size_t>(e->op)]) + shape(e->operand) + ")";
  }
  if (const auto* e = expr->is<BinaryExpr>()) {
    return "(" + shape(e->left) + " " + kBinary[static_cast<size_t>(e->op)] + " " +
           shape(e->right) + ")";
  }
  if (const auto* e = expr->is<BetweenExpr>()) {
    return "(" + shape(e->value) + (e->negated ? " not" : "") + " between " + shape(e->low) +
           " : " + shape(e->high) + ")";
  }
  if (const auto* e = expr->is<LikeExpr>()) {
    return "(" + shape(e->value) + (e->negated ? " not" : "") + " like " + shape(e->pattern) +
           (e->escape != nullptr ? " esc " + shape(e->escape) : "") + ")";
  }
  if (const auto* e = expr->is<CollateExpr>()) {
    return "(" + shape(e->value) + " collate " + std::string(e->collation.text) + ")";
  }
  if (const auto* e = expr->is<LiteralExpr>()) return std::string(e->text);
  if (const auto* e = expr->is<ColumnExpr>()) return std::string(e->column.text);
  if (const auto* e = expr->is<InExpr>()) {
    return "(" + shape(e->value) + (e->negated ? " not" : "") + " in)";
  }
  return "?";
}

TEST(Parser, BindsOperatorsAsSqliteDoes) {
  const std::array<std::array<const char*, 2>, 21> cases = {{
      {"1+2*3", "(1 + (2 * 3))"},
      {"1-2-3", "((1 - 2) - 3)"},
      {"a or b and c", "(a or (b and c))"},
      {"not a = b", "(NOT (a = b))"},
      {"a = not b = c", "(a = (NOT (b = c)))"},
      {"not a and b", "((NOT a) and b)"},
      {"a = b < c", "(a = (b < c))"},
      {"a < b = c", "((a < b) = c)"},
      {"a = b is c", "((a = b) is c)"},
      {"-a collate x", "((-a) collate x)"},
      {"a || b collate x", "(a || (b collate x))"},
      {"a * b || c", "(a * (b || c))"},
      {"a & b + c", "(a & (b + c))"},
      {"a between b and c and d", "((a between b : c) and d)"},
      {"a between b and c = d", "((a between b : c) = d)"},
      {"a = b not null", "(notnull (a = b))"},
      {"a and b not null", "(a and (notnull b))"},
      {"not a not like b", "(NOT (a not like b))"},
      {"a like b escape c = d", "((a like b esc c) = d)"},
      {"a not in (1) in (2)", "((a not in) in)"},
      {"- - ~ + 5", "(-(-(~(+5))))"},
  }};
  for (const auto& [text, expected] : cases) {
    Arena arena;
    EXPECT_EQ(shape(parse_one(text, arena)), expected) << text;
  }
}

TEST(Parser, KeepsTheSmallestIntegerAnInteger) {
  Arena arena;
  const auto* smallest = parse_one("-9223372036854775808", arena)->as<LiteralExpr>();
  EXPECT_EQ(smallest->type, LiteralType::kInteger);
  EXPECT_EQ(smallest->integer, INT64_MIN);
  EXPECT_EQ(parse_one("9223372036854775808", arena)->as<LiteralExpr>()->type, LiteralType::kReal);
  EXPECT_EQ(parse_one("0xffffffffffffffff", arena)->as<LiteralExpr>()->integer, -1);
  EXPECT_EQ(parse_one("1_000_000", arena)->as<LiteralExpr>()->integer, 1000000);
  EXPECT_EQ(parse_one("x'00fF'", arena)->as<LiteralExpr>()->text, std::string_view("\0\xff", 2));
  EXPECT_EQ(parse_one("'it''s'", arena)->as<LiteralExpr>()->text, "it's");
}

TEST(Parser, SaysWhereTheNextStatementBegins) {
  Arena arena;
  EXPECT_EQ(parse("SELECT 1; SELECT 2", arena).tail, 9u);
  EXPECT_EQ(parse(";;SELECT 1;x", arena).tail, 11u);
  EXPECT_EQ(parse("SELECT 1", arena).tail, 8u);
  Parsed blank = parse("  -- nothing\n ", arena);
  EXPECT_EQ(blank.statement, nullptr);
  EXPECT_FALSE(blank.failed);
}

TEST(Parser, NumbersParametersAsSqliteDoes) {
  Arena arena;
  Parsed parsed = parse("SELECT ?, :a, ?5, @b, :a, ?, $c::d(e)", arena);
  ASSERT_FALSE(parsed.failed) << parsed.error;
  EXPECT_EQ(parsed.param_count, 8u);
  ASSERT_EQ(parsed.params.size(), 4u);
  EXPECT_EQ(parsed.params[0].number, 2u);
  EXPECT_EQ(parsed.params[1].number, 5u);
  EXPECT_EQ(parsed.params[2].number, 6u);
  EXPECT_EQ(parsed.params[3].name, "$c::d(e)");
  EXPECT_EQ(parsed.params[3].number, 8u);
}

TEST(Parser, NamesResultColumnsByTheirText) {
  Arena arena;
  std::string_view sql = "SELECT  a + 1 , (b) x, t.* FROM t";
  const auto* select = parse(sql, arena).statement->as<SelectStatement>()->select;
  const auto& columns = select->arms[0].core->columns;
  EXPECT_EQ(columns[0].text.in(sql), "a + 1");
  EXPECT_EQ(columns[1].alias.text, "x");
  EXPECT_EQ(columns[2].kind, ResultKind::kTableStar);
}

TEST(Parser, KeepsTheTextThatCreateStores) {
  Arena arena;
  std::string_view sql =
      "CREATE TEMP TABLE IF NOT EXISTS main . t (a INT DEFAULT (1+ 2 ), CHECK(a>0) ) STRICT ; x";
  const auto* create = parse(sql, arena).statement->as<CreateTableStatement>();
  EXPECT_EQ(create->body.in(sql), "t (a INT DEFAULT (1+ 2 ), CHECK(a>0) ) STRICT");
  EXPECT_EQ(create->columns[0]->constraints[0]->text.in(sql), "1+ 2");
  EXPECT_TRUE(create->strict);
}

TEST(Parser, LimitsDepthInsteadOfCrashing) {
  std::string deep(100000, '(');
  EXPECT_EQ(parse_error("SELECT " + deep), "parser stack overflow");
  std::string chain = "SELECT 1";
  for (int i = 0; i < 1000; ++i) chain += "+1";
  EXPECT_EQ(parse_error(chain), "Expression tree is too large (maximum depth 1000)");
}

TEST(Parser, ReusesItsArenaWithoutAllocating) {
  Arena arena(1 << 16);
  parse("SELECT a, b FROM t WHERE c = ?", arena);
  void* first = arena.allocate(8);
  arena.reset();
  parse("SELECT a, b FROM t WHERE c = ?", arena);
  EXPECT_EQ(arena.allocate(8), first);
}

// ---------------------------------------------------------------- against SQLite's own parser

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> kSeeds = {
      "SELECT 1",
      "SELECT DISTINCT a, t.b AS x, count(*) 'n', \"q\" FROM t WHERE a IN (1,2,3) AND b NOT LIKE "
      "'x%' ESCAPE '!' GROUP BY a, b HAVING count(*) > 1 ORDER BY 1 DESC NULLS LAST, 2 LIMIT 5 "
      "OFFSET 2",
      "SELECT * FROM t AS x LEFT OUTER JOIN u y ON x.a = y.a NATURAL JOIN v CROSS JOIN w USING "
      "(a), (SELECT 1) z, (t JOIN u)",
      "SELECT CASE a WHEN 1 THEN 'x' WHEN 2 THEN NULL ELSE x'00' END, CASE WHEN a THEN b END, "
      "CAST(a AS VARCHAR(10, 2)), a COLLATE NOCASE FROM t",
      "SELECT a BETWEEN 1 AND 2 OR b IS NOT NULL AND c ISNULL OR NOT d NOTNULL, a IS NOT DISTINCT "
      "FROM b, -a + ~b * +c % d || e -> 'x' ->> 2",
      "SELECT sum(a) FILTER (WHERE b > 0) OVER (PARTITION BY c ORDER BY d ROWS BETWEEN 1 PRECEDING "
      "AND CURRENT ROW EXCLUDE TIES), rank() OVER w FROM t WINDOW w AS (ORDER BY a), v AS (w RANGE "
      "UNBOUNDED PRECEDING)",
      "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x<5), d AS NOT "
      "MATERIALIZED (SELECT 2) SELECT x FROM c UNION SELECT * FROM d EXCEPT SELECT 3 INTERSECT "
      "VALUES (4),(5) ORDER BY 1 LIMIT 2, 3",
      "SELECT EXISTS (SELECT 1), (SELECT 2), (1,2) = (SELECT 1,2), a IN t, a IN main.t, a NOT IN "
      "(SELECT b FROM u), ?1, :a, @b, $c, 0x1F, 1.5e-3, .5, 1.",
      "INSERT OR REPLACE INTO main.t AS k (a, b) VALUES (1, 2), (3, 4) ON CONFLICT (a) WHERE a > 0 "
      "DO UPDATE SET b = excluded.b, (a, c) = (1, 2) WHERE b < 5 ON CONFLICT DO NOTHING RETURNING "
      "a, *",
      "INSERT INTO t DEFAULT VALUES",
      "REPLACE INTO t SELECT a, b FROM u WHERE a",
      "WITH q AS (SELECT 1) INSERT INTO t SELECT * FROM q",
      "UPDATE OR IGNORE t INDEXED BY i SET a = 1, (b, c) = (2, 3) FROM u WHERE t.a = u.a RETURNING "
      "*",
      "UPDATE t SET a = a + 1 WHERE b ORDER BY c LIMIT 3",
      "DELETE FROM t AS x NOT INDEXED WHERE a = 1 RETURNING a AS b",
      "CREATE TABLE IF NOT EXISTS main.n (a INTEGER PRIMARY KEY DESC ON CONFLICT IGNORE "
      "AUTOINCREMENT, b VARCHAR(10) NOT NULL ON CONFLICT FAIL DEFAULT 'x' COLLATE nocase, c "
      "DEFAULT (1+2) CHECK (c > 0), d DEFAULT -5 UNIQUE, e REFERENCES t (a) ON DELETE SET NULL ON "
      "UPDATE CASCADE MATCH full DEFERRABLE INITIALLY DEFERRED, f GENERATED ALWAYS AS (a*2) "
      "STORED, g AS (b), CONSTRAINT k PRIMARY KEY (a ASC, b), UNIQUE (b) ON CONFLICT ROLLBACK, "
      "CHECK (a < 5), FOREIGN KEY (a, b) REFERENCES u NOT DEFERRABLE) WITHOUT ROWID, STRICT",
      "CREATE TEMP TABLE n AS SELECT 1 AS a",
      "CREATE UNIQUE INDEX IF NOT EXISTS main.i ON t (a COLLATE nocase DESC, b + 1) WHERE a > 0",
      "CREATE VIEW v2 (x, y) AS SELECT 1, 2",
      "CREATE TEMPORARY TRIGGER IF NOT EXISTS tr BEFORE UPDATE OF a, b ON t FOR EACH ROW WHEN "
      "new.a > 1 BEGIN UPDATE u SET a = 1 WHERE b; INSERT INTO u VALUES (1, RAISE(ABORT, 'no'), "
      "3); DELETE FROM u WHERE a = old.a; SELECT 1; END",
      "CREATE TRIGGER tr INSTEAD OF INSERT ON w BEGIN SELECT RAISE(IGNORE); END",
      "CREATE VIRTUAL TABLE IF NOT EXISTS f USING fts5 (a, b UNINDEXED, tokenize = 'x y (z)', "
      "k(1,2))",
      "DROP TABLE IF EXISTS main.t",
      "DROP INDEX i",
      "DROP VIEW IF EXISTS w",
      "DROP TRIGGER tr",
      "ALTER TABLE main.t RENAME TO t2",
      "ALTER TABLE t RENAME COLUMN a TO z",
      "ALTER TABLE t ADD COLUMN z INT DEFAULT 5 NOT NULL",
      "ALTER TABLE t DROP COLUMN b",
      "BEGIN IMMEDIATE TRANSACTION",
      "BEGIN",
      "COMMIT TRANSACTION x",
      "END",
      "ROLLBACK TRANSACTION TO SAVEPOINT s",
      "SAVEPOINT s",
      "RELEASE SAVEPOINT s",
      "PRAGMA main.cache_size = -2000",
      "PRAGMA table_info(t)",
      "PRAGMA synchronous = ON",
      "ATTACH DATABASE ':memory:' AS aux KEY 'k'",
      "DETACH DATABASE aux",
      "VACUUM main INTO 'f'",
      "ANALYZE main.t",
      "REINDEX t",
      "EXPLAIN QUERY PLAN SELECT 1",
      "EXPLAIN SELECT 2",
      "SELECT * FROM pragma_table_info('t') p, json_each('[1]') WHERE a GLOB 'x' AND b MATCH c AND "
      "c REGEXP d",
      "SELECT abort, key, [select], `from`, replace(a,b,c), 'a'.b, window, over, filter, rows FROM "
      "t cast",
      "SELECT 1 /* c */ -- d\n, 2",
      "SELECT 'open",
      "SELECT \"open",
      "SELECT [open",
      "SELECT x'0",
      "SELECT 12ab",
      "SELECT !",
      "SELECT a ! b",
      "SELECT $",
      "SELECT #1",
  };
  return kSeeds;
}

class Oracle {
 public:
  Oracle() {
    sqlite3_open(":memory:", &db_);
    sqlite3_exec(db_,
                 "CREATE TABLE t(a,b,c,d,e);CREATE TABLE u(a,b,c);CREATE TABLE w(a);"
                 "CREATE VIEW v AS SELECT a FROM t;CREATE INDEX i ON t(a)",
                 nullptr, nullptr, nullptr);
  }
  ~Oracle() { sqlite3_close(db_); }

  // "" when SQLite accepts the text, else its message.
  std::string error_of(const std::string& sql, size_t* tail) {
    sqlite3_stmt* stmt = nullptr;
    const char* rest = nullptr;
    int rc = sqlite3_prepare_v2(db_, sql.c_str(), -1, &stmt, &rest);
    std::string message = rc == SQLITE_OK ? "" : sqlite3_errmsg(db_);
    if (rest != nullptr) *tail = static_cast<size_t>(rest - sql.c_str());
    sqlite3_finalize(stmt);
    return message;
  }

 private:
  sqlite3* db_ = nullptr;
};

bool is_syntax_message(const std::string& message) {
  return message.ends_with("syntax error") || message == "incomplete input" ||
         message.starts_with("unrecognized token");
}

// Grammar that is younger than Debian's SQLite: the oracle may refuse what we accept.
bool younger_than_oracle(const std::string& sql, const std::string& theirs) {
  if (sqlite3_libversion_number() >= 3053000) return false;
  u32 at = 0;
  T before = T::kSemi;
  for (;;) {
    Token token = lex(sql, at);
    if (token.kind == T::kEof) return false;
    if (token.separators) return true;
    bool join_word = token.kind == T::kLeft || token.kind == T::kRight || token.kind == T::kCross ||
                     token.kind == T::kFull || token.kind == T::kInner ||
                     token.kind == T::kNatural || token.kind == T::kOuter;
    if (join_word && lex(sql, token.end).kind == T::kLp) return true;
    if (token.kind == T::kRaise || token.kind == T::kWithin) return true;
    if (before == T::kAlter && token.kind != T::kTable) return true;
    if (before == T::kAdd && (token.kind == T::kCheck || token.kind == T::kConstraint)) return true;
    if (before != T::kSemi && token.kind == T::kOrder && theirs == "near \"ORDER\": syntax error") {
      return true;
    }
    before = token.kind;
    at = token.end;
  }
}

void expect_same(Oracle& oracle, const std::string& sql, int* compared) {
  size_t tail = 0;
  std::string theirs = oracle.error_of(sql, &tail);
  Arena arena;
  Parsed ours = parse(sql, arena);
  if (theirs.empty()) {
    EXPECT_EQ(ours.error, "") << sql;
    if (!ours.failed) EXPECT_EQ(ours.tail, tail) << sql;
    ++*compared;
  } else if (is_syntax_message(theirs) &&
             !(ours.error != theirs && younger_than_oracle(sql, theirs))) {
    EXPECT_EQ(ours.error, theirs) << sql;
    ++*compared;
  }
}

TEST(ParserAgainstSqlite, AcceptsAndRefusesTheSameStatements) {
  Oracle oracle;
  int compared = 0;
  for (const std::string& sql : seeds()) expect_same(oracle, sql, &compared);
  EXPECT_GT(compared, 40);
}

TEST(ParserAgainstSqlite, AgreesOnEveryPrefixOfEveryStatement) {
  Oracle oracle;
  int compared = 0;
  for (const std::string& sql : seeds()) {
    for (size_t i = 0; i < sql.size(); ++i) expect_same(oracle, sql.substr(0, i), &compared);
  }
  EXPECT_GT(compared, 1500);
}

// Tokens of the seeds are dropped, doubled, swapped and replaced by others.
TEST(ParserAgainstSqlite, AgreesOnMutatedStatements) {
  Oracle oracle;
  std::mt19937 random(20240607);
  std::vector<std::string> pool;
  std::vector<std::vector<std::string>> split;
  for (const std::string& sql : seeds()) {
    std::vector<std::string> tokens;
    for (Token token = lex(sql, 0); token.kind != T::kEof; token = lex(sql, token.end)) {
      tokens.push_back(sql.substr(token.begin, token.end - token.begin));
      pool.push_back(tokens.back());
    }
    split.push_back(tokens);
  }
  for (int i = 0; i < kKeywordCount; ++i) pool.emplace_back(keyword_name(i));
  int compared = 0;
  for (int round = 0; round < 100000; ++round) {
    std::vector<std::string> tokens = split[random() % split.size()];
    for (unsigned edits = 1 + random() % 2; edits > 0; --edits) {
      size_t at = random() % tokens.size();
      switch (random() % 4) {
        case 0:
          tokens.erase(tokens.begin() + static_cast<long>(at));
          break;
        case 1:
          tokens.insert(tokens.begin() + static_cast<long>(at), tokens[random() % tokens.size()]);
          break;
        case 2:
          std::swap(tokens[at], tokens[random() % tokens.size()]);
          break;
        default:
          tokens[at] = pool[random() % pool.size()];
      }
      if (tokens.empty()) break;
    }
    std::string sql;
    for (const std::string& token : tokens) sql += token + " ";
    expect_same(oracle, sql, &compared);
  }
  EXPECT_GT(compared, 50000);
}

}  // namespace
}  // namespace db::sql
