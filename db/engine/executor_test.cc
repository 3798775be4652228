// The row and the vectorised executor under one plan: same rows, same order. Data have every type
// in every column, so that affinity, collation and NULL rules all take part.
#include "db/engine/connection.h"

#include <gtest/gtest.h>

namespace db {
namespace {

class Executors : public testing::Test {
 protected:
  void SetUp() override {
    connection_ = std::move(Connection::open(":memory:", {})).value();
    run("CREATE TABLE a(id INTEGER PRIMARY KEY, k INT, x REAL, s TEXT, t TEXT COLLATE NOCASE, n)");
    run("CREATE TABLE b(id INTEGER PRIMARY KEY, k NUMERIC, w INT, t TEXT)");
    run("CREATE INDEX b_k ON b(k)");
    run("WITH r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i<3000) INSERT INTO a "
        "SELECT i, CASE WHEN i%7=0 THEN NULL ELSE i%53 END, i*0.5, 's'||(i%11), "
        "CASE WHEN i%2 THEN 'Abc' ELSE 'aBC' END||(i%5), "
        "CASE i%5 WHEN 0 THEN NULL WHEN 1 THEN i WHEN 2 THEN i*1.5 WHEN 3 THEN 't'||i "
        "ELSE CAST('b'||i AS BLOB) END FROM r");
    run("WITH r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i<500) INSERT INTO b "
        "SELECT i, CASE WHEN i%3=0 THEN (i%60)||'' ELSE i%60 END, i%13, 'ABC'||(i%7) FROM r");
  }

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

  // Runs it under both and expects one answer with at least one row.
  std::string both(const std::string& sql) {
    run("PRAGMA fleet_executor=row");
    std::string rows = run(sql);
    run("PRAGMA fleet_executor=vector");
    std::string batches = run(sql);
    run("PRAGMA fleet_executor=auto");
    EXPECT_EQ(rows, batches) << sql;
    EXPECT_EQ(rows, run(sql)) << sql;
    EXPECT_NE(rows, "") << sql;
    return rows;
  }

  std::unique_ptr<Connection> connection_;
};

TEST_F(Executors, ThePragmaAnswersTheExecutorInForceAndIgnoresOthers) {
  EXPECT_EQ(run("PRAGMA fleet_executor"), "auto\n");
  run("PRAGMA fleet_executor=vector; PRAGMA fleet_executor=quick");
  EXPECT_EQ(run("PRAGMA fleet_executor"), "vector\n");
}

TEST_F(Executors, FiltersAgreeOnThreeValuedLogicAndAffinity) {
  both("SELECT id FROM a WHERE k>50 OR x<20 AND NOT (s='s3')");
  both("SELECT count(*) FROM a WHERE NOT (k=3 AND n>5)");
  both("SELECT count(*) FROM a WHERE n NOT BETWEEN 10 AND 200.5");
  both("SELECT count(*) FROM a WHERE k NOT IN (1,2,'3',4,5,NULL) OR s IN ('s1','s2')");
  both("SELECT count(*), sum(id) FROM a WHERE t='ABC1'");
  both("SELECT count(*) FROM a WHERE k IS NOT NULL AND s<t");
  both("SELECT sum(CASE WHEN n THEN 1 WHEN k IS NULL THEN 10 ELSE x END) FROM a");
  both("SELECT count(*) FROM a WHERE s LIKE '%1' AND abs(k-20)<9");
}

TEST_F(Executors, ArithmeticTurnsRealWhereIntegersOverflow) {
  both("SELECT sum(k*9223372036854775807), max(id-k), min(k/0), total(n+1) FROM a");
  EXPECT_EQ(both("SELECT sum(id+9223372036854770000) FROM a"), "! integer overflow");
}

TEST_F(Executors, JoinsAgreeInRowsAndOrder) {
  both("SELECT a.id,b.id FROM a,b WHERE a.k=b.k AND b.w<5");
  both("SELECT a.id,b.w FROM a JOIN b ON b.id=a.k WHERE a.x>300");
  both("SELECT a.id,b.id FROM a LEFT JOIN b ON b.k=a.k AND b.w=2 WHERE a.id<200");
  both("SELECT a.id,b.id FROM a LEFT JOIN b ON b.id=a.k AND b.w<a.id%9 WHERE a.id<200");
  both("SELECT count(*),count(b.id) FROM a LEFT JOIN b ON a.t=b.t AND a.id%500=b.id");
  both("SELECT count(*) FROM a x, a y WHERE x.n=y.n AND x.k IS y.k");
  both("SELECT count(*) FROM b x, b y, b z WHERE x.w=y.w AND y.k=z.id AND z.t=x.t");
}

// 3,000 rows look up 3,000 of 4,000 rowids: the table is held in memory from the first batch on.
TEST_F(Executors, ManyLookupsByRowidAgreeWithTheTree) {
  run("CREATE TABLE c(id INTEGER PRIMARY KEY, v, x REAL)");
  run("WITH r(i) AS (SELECT -20 UNION ALL SELECT i+1 FROM r WHERE i<3979) INSERT INTO c "
      "SELECT i, CASE i%3 WHEN 0 THEN NULL WHEN 1 THEN 'text '||i ELSE i END, i FROM r WHERE i%4");
  run("ALTER TABLE c ADD COLUMN late DEFAULT 'added'");
  run("UPDATE c SET late=hex(zeroblob(6000)) WHERE id=7");  // on overflow pages
  EXPECT_NE(run("EXPLAIN QUERY PLAN SELECT 1 FROM a CROSS JOIN c ON c.id=a.id+9").find("rowid="),
            std::string::npos);
  for (const char* sql :
       {"SELECT a.id,c.id,c.v,c.x,c.late FROM a CROSS JOIN c ON c.id=a.id-10",
        "SELECT a.id,c.id,c.v FROM a LEFT JOIN c ON c.id=a.id*3-50 ORDER BY a.s,a.id",
        "SELECT a.id,c.v FROM a LEFT JOIN c ON c.id=a.n",  // keys that are no integers
        "SELECT count(*),sum(c.x),max(c.v) FROM a CROSS JOIN c ON c.id=a.id/4 JOIN c d ON "
        "d.id=c.id+1",
        "SELECT count(*) FROM a CROSS JOIN c ON c.id=a.id+9"}) {
    both(sql);
  }
  run("INSERT INTO c VALUES(9223372036854775807,'last',1,0)");  // too far apart to hold
  both("SELECT a.id,c.id,c.v,c.x FROM a CROSS JOIN c ON c.id=a.id+9");
  run("DELETE FROM c WHERE id<>30");
  both("SELECT count(*),max(c.v) FROM a LEFT JOIN c ON c.id=a.id+9");
}

// Rows that are written while a statement reads show as they do without a table in memory.
TEST_F(Executors, LookupsInMemoryEndWhenSomebodyWrites) {
  run("PRAGMA fleet_executor=vector");
  run("CREATE TABLE c(id INTEGER PRIMARY KEY, v)");
  run("INSERT INTO c SELECT id,'old' FROM a UNION ALL SELECT id+3000,'old' FROM a");
  auto statement = connection_->prepare("SELECT a.id,c.v FROM a CROSS JOIN c ON c.id=a.id+9");
  ASSERT_TRUE(statement.ok());
  Statement& rows = *statement->statement;
  std::string last;
  for (int row = 1; rows.step() == rc::kRow; ++row) {
    if (row == 1) run("UPDATE c SET v='new'");
    last = rows.column(1).to_text();
  }
  EXPECT_EQ(last, "new");
}

TEST_F(Executors, GroupsAgreeIncludingTheRowThatBareColumnsComeFrom) {
  both("SELECT t,count(*),count(n),sum(n),avg(x),min(n),max(s) FROM a GROUP BY t");
  both("SELECT n,k,count(*) FROM a GROUP BY n,k ORDER BY 3 DESC,1,2 LIMIT 50");
  both("SELECT k,max(x),id,s FROM a GROUP BY k");
  both("SELECT k,s,id FROM a GROUP BY k HAVING count(*)>50");
  both("SELECT k,count(DISTINCT t),sum(DISTINCT n),group_concat(s,'+') FROM a GROUP BY k");
  both("SELECT k,count(*) FILTER (WHERE s='s1'), sum(x) FILTER (WHERE n>100) FROM a GROUP BY k");
  both("SELECT group_concat(id ORDER BY x DESC) FROM a WHERE k=5");
  both("SELECT DISTINCT t,k FROM a WHERE k<9");
}

TEST_F(Executors, CorrelatedSubqueriesSeeTheirOwnRow) {
  both("SELECT id,(SELECT count(*) FROM b WHERE b.w=a.k) FROM a WHERE id<300");
  both("SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.w=a.k AND b.id<>a.id)");
  both("SELECT sum(x) FROM a WHERE x<(SELECT avg(y.x) FROM a y WHERE y.s=a.s AND y.id<a.id+99)");
  both("SELECT count(*) FROM a WHERE k NOT IN (SELECT w FROM b WHERE b.id=a.id)");
}

// The kept hash table of a correlated subquery must not outlive the rows it was built from.
TEST_F(Executors, AKeptHashTableFollowsChangesAndParameters) {
  run("CREATE TABLE log(id INTEGER PRIMARY KEY, hits)");
  run("CREATE TRIGGER g AFTER UPDATE ON b BEGIN INSERT INTO log(hits) "
      "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.w=a.k); END");
  run("UPDATE b SET w=w+20 WHERE id IN (1,2,3)");
  std::string logged = run("SELECT hits FROM log");
  std::string now = run("SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.w=a.k)");
  ASSERT_GE(logged.size(), now.size());
  EXPECT_EQ(logged.substr(logged.size() - now.size()), now);
}

TEST_F(Executors, ReadingGoesOnOverRowsThatAreDeletedMeanwhile) {
  run("PRAGMA fleet_executor=vector");
  int rows = 0;
  auto statement = connection_->prepare("SELECT id,s FROM a");
  ASSERT_TRUE(statement.ok());
  while ((*statement.value().statement).step() == rc::kRow) {
    if (++rows == 1) run("DELETE FROM a WHERE id>1500");
    std::string id = statement.value().statement->column(0).to_text();
    EXPECT_EQ(statement.value().statement->column(1).to_text(),
              "s" + std::to_string(std::stoi(id) % 11));
  }
  EXPECT_LE(rows, 1500 + 1024);
}

TEST_F(Executors, RowsThatRunOverOntoOtherPagesReadWhole) {
  run("INSERT INTO a(id,k,s) SELECT id+5000,1,hex(zeroblob(id%4000)) FROM a WHERE id%9=0");
  both("SELECT count(*),sum(length(s)),max(s) FROM a WHERE k=1");
}

TEST_F(Executors, RangesOfRowidsBeginAndEndWhereTheyShould) {
  run("DELETE FROM a WHERE id BETWEEN 200 AND 1300 OR id%5=0");
  run("UPDATE a SET t=hex(zeroblob(9000)) WHERE id IN (101,1499,1501)");  // on overflow pages
  for (int low : {-7, 0, 1, 99, 100, 101, 199, 250, 1299, 1301, 1498, 2999, 3001}) {
    for (int rows : {-1, 0, 1, 2, 100, 1023, 1024, 1025, 4000}) {
      const std::string where = " FROM a WHERE id>=" + std::to_string(low) + " AND id<" +
                                std::to_string(low + rows) + ".5";
      both("SELECT count(*),sum(x),min(id),max(id),sum(length(t))" + where);
    }
  }
  both("SELECT count(*) FROM a WHERE id>'x'");
  both("SELECT count(*) FROM a WHERE id<'x' AND id>NULL");
  both("SELECT count(*) FROM a WHERE id>9223372036854775806.0");
}

// More rows than one batch, by paths that are not whole scans, under row-wise evaluation above.
TEST_F(Executors, IndexRangesOfSeveralBatchesAgree) {
  run("CREATE INDEX a_x ON a(x)");
  both("SELECT id FROM a WHERE x>100.0");
  both("SELECT id,s FROM a WHERE id>100 AND id<2900 ORDER BY s,id DESC");
  both("SELECT s,max(x),id FROM a WHERE x BETWEEN 10.0 AND 1400.0 GROUP BY s");
  both("SELECT count(*) FROM b, a WHERE a.x>b.id AND b.w=1 AND a.s||b.t<>'s1ABC1'");
}

TEST_F(Executors, ADeleteOfSeveralBatchesDeletesAll) {
  run("CREATE INDEX a_x ON a(x); PRAGMA fleet_executor=vector; DELETE FROM a WHERE x<=1400.0");
  EXPECT_EQ(run("SELECT count(*) FROM a"), "200\n");
}

TEST_F(Executors, ACommonTableReadTwiceIsComputedOnce) {
  both(
      "WITH g(k,n) AS (SELECT k,count(*) FROM a GROUP BY k) "
      "SELECT k,n FROM g WHERE n=(SELECT max(n) FROM g) ORDER BY k");
}

TEST_F(Executors, WholeTableCountsAndEndsComeOutRightWithNullsAndDescendingIndexes) {
  const char* query = "SELECT count(*),min(k),max(k),min(n),max(n),min(id),max(id) FROM a";
  std::string scanned = run(query);
  run("CREATE INDEX a_k ON a(k); CREATE INDEX a_n ON a(n DESC)");
  EXPECT_EQ(run(query), scanned);
  run("DELETE FROM a");
  EXPECT_EQ(run(query), "0|NULL|NULL|NULL|NULL|NULL|NULL\n");
}

}  // namespace
}  // namespace db
