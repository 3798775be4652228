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

}  // namespace
}  // namespace db
