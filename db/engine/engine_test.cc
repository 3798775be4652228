#include "db/engine/connection.h"

#include <gtest/gtest.h>

namespace db {
namespace {

class Engine : public testing::Test {
 protected:
  void SetUp() override { connection_ = std::move(Connection::open(":memory:", {})).value(); }

  // Rows as "a|b" lines; an error as "! text".
  std::string run(std::string_view sql) {
    std::string out;
    Status done = connection_->execute(sql, [&](Statement& statement) {
      for (int i = 0; i < statement.column_count(); ++i) {
        if (i > 0) out += "|";
        out += statement.column(i).is_null() ? "NULL" : statement.column(i).to_text();
      }
      out += "\n";
      return true;
    });
    if (!done.ok()) out += "! " + done.error().message();
    return out;
  }

  std::unique_ptr<Connection> connection_;
};

TEST_F(Engine, AFailedStatementLeavesNothingBehindInATransaction) {
  run("CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE); INSERT INTO t VALUES(1,'x')");
  run("BEGIN");
  EXPECT_EQ(run("INSERT INTO t SELECT 2,'y' UNION ALL SELECT 3,'x'"),
            "! UNIQUE constraint failed: t.b");
  EXPECT_EQ(run("SELECT count(*) FROM t"), "1\n");
  EXPECT_EQ(run("INSERT OR FAIL INTO t SELECT 2,'y' UNION ALL SELECT 3,'x'"),
            "! UNIQUE constraint failed: t.b");
  EXPECT_EQ(run("SELECT count(*) FROM t"), "2\n");
  run("COMMIT");
  EXPECT_EQ(run("SELECT a,b FROM t ORDER BY a"), "1|x\n2|y\n");
}

TEST_F(Engine, RollbackTakesTheSchemaBackToo) {
  run("BEGIN; CREATE TABLE t(a); INSERT INTO t VALUES(1); ROLLBACK");
  EXPECT_EQ(run("SELECT * FROM t"), "! no such table: t");
  run("CREATE TABLE t(a, b); INSERT INTO t VALUES(1,2)");
  EXPECT_EQ(run("SELECT * FROM t"), "1|2\n");
}

TEST_F(Engine, OuterJoinsKeepUnmatchedRowsOfEitherSide) {
  run("CREATE TABLE l(a); CREATE TABLE r(b); INSERT INTO l VALUES(1),(2); INSERT INTO r "
      "VALUES(2),(3)");
  EXPECT_EQ(run("SELECT a,b FROM l LEFT JOIN r ON a=b"), "1|NULL\n2|2\n");
  EXPECT_EQ(run("SELECT a,b FROM l RIGHT JOIN r ON a=b"), "2|2\nNULL|3\n");
  EXPECT_EQ(run("SELECT a,b FROM l FULL JOIN r ON a=b"), "1|NULL\n2|2\nNULL|3\n");
}

TEST_F(Engine, ARemainderTakesTheDigitsInFrontOfAnExponentInText) {
  EXPECT_EQ(run("SELECT '302E35' % 100, '1e5' % 7, '1e400' % 7, x'333032453335' % 100, 5 % '2e9'"),
            "2.0|1.0|1.0|2.0|1.0\n");
  EXPECT_EQ(run("SELECT '2.5' % 2, '12abc' % 7, '99999999999999999999' % 10, 1e30 % 7, 7 % '0.5'"),
            "0.0|5|7.0|0.0|NULL\n");
  run("CREATE TABLE t(a TEXT); INSERT INTO t VALUES('302E35'),('-7e1'),('8')");
  for (const char* executor : {"row", "vector"}) {
    run(std::string("PRAGMA fleet_executor=") + executor);
    EXPECT_EQ(run("SELECT a % 100 FROM t"), "2.0\n-7.0\n8\n") << executor;
  }
}

TEST_F(Engine, AnIndexChangesNoAnswer) {
  run("CREATE TABLE t(a, b TEXT, c REAL)");
  run("INSERT INTO t VALUES(1,'5',5),(2,NULL,NULL),('x','a',-1.5),(4,'B',1e3)");
  const char* queries[] = {"SELECT rowid FROM t WHERE b=5 ORDER BY rowid",
                           "SELECT rowid FROM t WHERE c>'0' ORDER BY rowid",
                           "SELECT rowid FROM t WHERE a IN (1,'x',NULL) ORDER BY rowid",
                           "SELECT rowid FROM t WHERE b IS NULL OR c<0 ORDER BY rowid",
                           "SELECT b FROM t WHERE b>'1' ORDER BY b DESC"};
  std::vector<std::string> before;
  for (const char* query : queries) before.push_back(run(query));
  run("CREATE INDEX ta ON t(a DESC); CREATE INDEX tb ON t(b); CREATE INDEX tc ON t(c,a)");
  for (size_t i = 0; i < std::size(queries); ++i)
    EXPECT_EQ(run(queries[i]), before[i]) << queries[i];
  EXPECT_EQ(run("PRAGMA integrity_check"), "ok\n");
}

TEST_F(Engine, ForeignKeysRefuseOrphansAndCascade) {
  run("PRAGMA foreign_keys=ON; CREATE TABLE p(id INTEGER PRIMARY KEY);"
      "CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE)");
  EXPECT_EQ(run("INSERT INTO c VALUES(1,7)"), "! FOREIGN KEY constraint failed");
  run("INSERT INTO p VALUES(7); INSERT INTO c VALUES(1,7)");
  run("DELETE FROM p");
  EXPECT_EQ(run("SELECT count(*) FROM c"), "0\n");
}

TEST_F(Engine, APreparedStatementSurvivesASchemaChange) {
  run("CREATE TABLE t(a); INSERT INTO t VALUES(1)");
  auto prepared = connection_->prepare("SELECT * FROM t");
  ASSERT_TRUE(prepared.ok());
  Statement& statement = *prepared->statement;
  EXPECT_EQ(statement.step(), rc::kRow);
  EXPECT_EQ(statement.reset(), rc::kOk);
  run("ALTER TABLE t ADD COLUMN b DEFAULT 'new'");
  ASSERT_EQ(statement.step(), rc::kRow);
  EXPECT_EQ(statement.column_count(), 2);
  EXPECT_EQ(statement.column(1).to_text(), "new");
}

TEST_F(Engine, RecursiveQueriesAndWindowsAgreeWithArithmetic) {
  EXPECT_EQ(run("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<100) "
                "SELECT sum(x), count(*) FROM n"),
            "5050|100\n");
  EXPECT_EQ(
      run("SELECT sum(column1) OVER (ORDER BY column1 ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) "
          "FROM (VALUES(1),(2),(4))"),
      "3\n7\n6\n");
}

TEST_F(Engine, AnIndexBuiltAtOnceIsTheOneThatGrewRowByRow) {
  run("CREATE TABLE a(id INTEGER PRIMARY KEY, t TEXT COLLATE NOCASE, n, r REAL, b BLOB)");
  run("CREATE TABLE k(x TEXT, y INT, z REAL, PRIMARY KEY(y, x)) WITHOUT ROWID");
  run("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3000) "
      "INSERT INTO a SELECT i, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN upper(hex(i * 7919 % 1000)) "
      "WHEN 2 THEN lower(hex(i * 7919 % 1000)) ELSE hex(i * 104729) || 'tail' || i END, "
      "CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN i % 10 WHEN 2 THEN i / 3.0 WHEN 3 THEN 'x' || i "
      "WHEN 4 THEN -i WHEN 5 THEN 1e300 * i ELSE 9007199254740993 + i % 3 END, i % 50 / 2.0, "
      "CASE WHEN i % 3 THEN zeroblob(i % 40) ELSE NULL END FROM c");
  run("INSERT INTO k SELECT t || '', id % 90, r FROM a WHERE t IS NOT NULL");
  run("ALTER TABLE a ADD COLUMN late DEFAULT 1.0");
  const char* kIndexes[] = {"a(t)",         "a(n)",
                            "a(n DESC, t)", "a(r, b DESC)",
                            "a(id)",        "a(late, r, id)",
                            "a(b)",         "a(t COLLATE RTRIM DESC)",
                            "a(n + 1)",     "a(t) WHERE n > 5",
                            "k(z)",         "k(x DESC, z)"};
  int number = 0;
  for (const char* index : kIndexes) {
    run("CREATE INDEX i" + std::to_string(number++) + " ON " + index);
    EXPECT_EQ(run("PRAGMA integrity_check"), "ok\n") << index;
  }
  EXPECT_EQ(run("CREATE UNIQUE INDEX u ON a(r)"), "! UNIQUE constraint failed: a.r");
  EXPECT_EQ(run("CREATE UNIQUE INDEX u ON a(t, n, id)"), "");
  const std::string all = "SELECT group_concat(id) FROM (SELECT id FROM a ORDER BY n, t, id)";
  std::string grown = run(all);
  run("CREATE TABLE copy AS SELECT * FROM a; DELETE FROM a; INSERT INTO a SELECT * FROM copy");
  EXPECT_EQ(run("PRAGMA integrity_check"), "ok\n");
  EXPECT_EQ(run(all), grown);
}

TEST_F(Engine, AnInsertNeverReadsItsOwnRows) {
  run("CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES(1,1),(2,2),(3,3)");
  run("CREATE VIEW v AS SELECT b FROM t; CREATE TABLE other(b)");
  run("INSERT INTO t(b) SELECT b FROM t");
  EXPECT_EQ(run("SELECT count(*) FROM t"), "6\n");
  run("INSERT INTO t(b) SELECT b FROM v");
  EXPECT_EQ(run("SELECT count(*) FROM t"), "12\n");
  run("INSERT INTO other SELECT 1 FROM t WHERE a <= (SELECT count(*) FROM other) + 1");
  EXPECT_EQ(run("SELECT count(*) FROM other"), "1\n");
  run("INSERT INTO t(b) SELECT (SELECT max(a) FROM t) FROM other, t WHERE t.a <= 2");
  EXPECT_EQ(run("SELECT a, b FROM t WHERE a > 12"), "13|12\n14|12\n");
}

TEST_F(Engine, AnEmptyDatabaseHasASchemaWithoutRows) {
  EXPECT_EQ(run("SELECT * FROM sqlite_schema"), "");
  EXPECT_EQ(run("SELECT count(*) FROM sqlite_temp_schema"), "0\n");
  EXPECT_EQ(run("SELECT name FROM sqlite_schema WHERE rowid = 1 UNION ALL SELECT name FROM "
                "sqlite_temp_schema ORDER BY 1"),
            "");
}

TEST_F(Engine, DdlIsCheckedWhenItIsPrepared) {
  run("CREATE TABLE t(a)");
  for (const char* wrong : {"CREATE TABLE t(b)", "CREATE INDEX i ON nosuch(a)", "DROP TABLE nosuch",
                            "ALTER TABLE t RENAME COLUMN b TO c", "ANALYZE nosuch"}) {
    EXPECT_FALSE(connection_->prepare(wrong).ok()) << wrong;
  }
  auto prepared = connection_->prepare("CREATE TABLE u(a)");
  ASSERT_TRUE(prepared.ok());
  run("CREATE TABLE u(z)");
  EXPECT_EQ(prepared->statement->step(), rc::kError);  // somebody was faster
  EXPECT_EQ(connection_->error_message(), "table u already exists");
}

TEST_F(Engine, ExplainShowsAProgramInEightColumns) {
  run("CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  auto prepared = connection_->prepare("EXPLAIN SELECT b FROM t WHERE a = 5");
  ASSERT_TRUE(prepared.ok());
  ASSERT_EQ(prepared->statement->column_count(), 8);
  EXPECT_EQ(prepared->statement->column_name(1), "opcode");
  std::string opcodes;
  while (prepared->statement->step() == rc::kRow)
    opcodes += prepared->statement->column(1).to_text() + " ";
  EXPECT_EQ(opcodes, "Init OpenRead SeekRowid ResultRow Next Halt Transaction Goto ");
  EXPECT_EQ(run("SELECT count(*) FROM t"), "0\n");  // EXPLAIN of a change changes nothing
  run("EXPLAIN INSERT INTO t VALUES(1, 2)");
  EXPECT_EQ(run("SELECT count(*) FROM t"), "0\n");
}

// SQLite 3.53's lines.
TEST_F(Engine, AQueryPlanShowsTheSubqueriesThatLookupsTakeTheirValuesFrom) {
  run("CREATE TABLE a(x INTEGER PRIMARY KEY, y); CREATE TABLE b(p, q); CREATE INDEX bp ON b(p)");
  auto lines = [&](const std::string& sql) {
    const std::string plan = run("EXPLAIN QUERY PLAN " + sql);
    std::string out;
    for (size_t at = 0, end = 0; (end = plan.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string line = plan.substr(at, end - at);
      out += line.substr(line.rfind('|') + 1) + "; ";
    }
    return out;
  };
  EXPECT_EQ(lines("SELECT * FROM a WHERE x=(SELECT q FROM b WHERE p=1)"),
            "SEARCH a USING INTEGER PRIMARY KEY (rowid=?); SCALAR SUBQUERY 1; "
            "SEARCH b USING INDEX bp (p=?); ");
  EXPECT_EQ(lines("SELECT * FROM a WHERE x IN (SELECT q FROM b)"),
            "SEARCH a USING INTEGER PRIMARY KEY (rowid=?); LIST SUBQUERY 1; SCAN b; ");
  EXPECT_EQ(lines("SELECT * FROM a WHERE x>(SELECT q FROM b WHERE p=1)"),
            "SEARCH a USING INTEGER PRIMARY KEY (rowid>?); SCALAR SUBQUERY 1; "
            "SEARCH b USING INDEX bp (p=?); ");
}

TEST_F(Engine, ASubqueryColumnHasACollationAndAScalarSubqueryHasNone) {
  run("CREATE TABLE n(y TEXT COLLATE NOCASE, z TEXT); INSERT INTO n VALUES('a','A')");
  EXPECT_EQ(run("SELECT 1 FROM (SELECT 'A' AS x) s, n WHERE s.x = y"), "");
  EXPECT_EQ(run("SELECT 1 FROM n WHERE y = 'A'"), "1\n");
  EXPECT_EQ(run("SELECT (SELECT y FROM n) = 'A'"), "0\n");
  EXPECT_EQ(run("SELECT k FROM (SELECT y AS k FROM n) WHERE k = 'A'"), "a\n");
  EXPECT_EQ(run("SELECT CASE WHEN 1 THEN z ELSE z COLLATE NOCASE END FROM n UNION SELECT 'a'"),
            "a\n");
  EXPECT_EQ(run("SELECT 1 UNION SELECT 1.0"), "1.0\n");
}

}  // namespace
}  // namespace db
