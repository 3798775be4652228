#include "db/engine/plan_cache.h"

#include <gtest/gtest.h>

namespace db {
namespace {

std::string shape_of(std::string_view sql) {
  SqlShape shape;
  if (!find_shape(sql, &shape)) return "none";
  std::string out = shape.text;
  for (const Value& value : shape.values) out += " [" + value.to_text() + "]";
  return out;
}

TEST(SqlShape, LiteralsComparedByEqualityAndInValuesBecomeParameters) {
  EXPECT_EQ(shape_of("SELECT a FROM t WHERE id = 12"), "SELECT a FROM t WHERE id = ? [12]");
  EXPECT_EQ(shape_of("select a from t where b=='it''s' and id=7;"),
            "select a from t where b==? and id=?; [it's] [7]");
  EXPECT_EQ(shape_of("UPDATE t SET a = 1, b = b + 2 WHERE id = 3"),
            "UPDATE t SET a = ?, b = b + 2 WHERE id = ? [1] [3]");
  EXPECT_EQ(shape_of("INSERT INTO t VALUES (1, 'x', -3, 1.5, NULL, x'00'), (2,'',0,1e5,4,5)"),
            "INSERT INTO t VALUES (?, ?, -3, 1.5, NULL, x'00'), (?,?,?,1e5,?,?) [1] [x] [2] [] [0] "
            "[4] [5]");
}

TEST(SqlShape, WhatALiteralMayDecideStaysInTheText) {
  // Result columns take their names from the text; the others choose plans or are no values.
  for (const char* sql :
       {"SELECT a = 5 FROM t", "SELECT a FROM t WHERE a < 5", "SELECT a FROM t WHERE a <= 5",
        "SELECT a FROM t WHERE a != 5", "SELECT a FROM t WHERE a LIKE 'x%'",
        "SELECT a FROM t ORDER BY 1 LIMIT 2", "SELECT a FROM t WHERE a IN (SELECT 1 WHERE b = 5)",
        "SELECT a FROM t WHERE a = ?1 AND b = 5", "SELECT a FROM t WHERE a = 1 -- = 2",
        "SELECT a FROM t WHERE a = 5; SELECT 1", "CREATE TABLE t(a CHECK(a = 5))",
        "SELECT a FROM t WHERE a = 1234567890123456789", "SELECT a FROM t WHERE a = 0x10",
        "SELECT a FROM t WHERE a = 'open", "", ";", "EXPLAIN SELECT a FROM t WHERE a = 5"})
    EXPECT_EQ(shape_of(sql), "none") << sql;
}

class PlanReuse : public testing::Test {
 protected:
  void SetUp() override {
    connection_ = std::move(Connection::open(":memory:", {})).value();
    run("CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b INT)");
    run("INSERT INTO t VALUES(1,'one',10),(2,'two',20),(3,'3',30)");
  }
  std::string run(const std::string& sql) {
    std::string out;
    Status done = connection_->execute(sql, [&](Statement& statement) {
      for (int i = 0; i < statement.column_count(); ++i)
        out += (i > 0 ? "|" : "") + statement.column(i).to_text();
      out += ";";
      return true;
    });
    return done.ok() ? out : "! " + done.error().message();
  }
  std::unique_ptr<Connection> connection_;
};

TEST_F(PlanReuse, TheSameShapeGivesEachLiteralItsOwnAnswer) {
  for (int round = 0; round < 3; ++round) {
    for (auto [id, text] : {std::pair{"1", "one;"}, {"2", "two;"}, {"3", "3;"}, {"4", ""}})
      EXPECT_EQ(run(std::string("SELECT a FROM t WHERE id = ") + id), text);
  }
  // A text literal against an integer column, and the other way round.
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(run("SELECT b FROM t WHERE id = '2'"), "20;");
    EXPECT_EQ(run("SELECT b FROM t WHERE a = 3"), "30;");
    EXPECT_EQ(run("SELECT b FROM t WHERE a = 'two'"), "20;");
  }
}

TEST_F(PlanReuse, TheApplicationSeesItsOwnText) {
  for (int round = 0; round < 3; ++round) {
    const std::string sql = "SELECT a FROM t WHERE id = " + std::to_string(round + 1) + ";";
    Prepared prepared = std::move(connection_->prepare(sql + "  ")).value();
    ASSERT_NE(prepared.statement, nullptr);
    EXPECT_EQ(prepared.statement->sql(), sql);
    EXPECT_EQ(prepared.statement->expanded_sql(), sql);
    EXPECT_EQ(prepared.statement->parameter_count(), 0);
    EXPECT_EQ(prepared.statement->bind(1, Value::integer(9)), rc::kRange);
    prepared.statement->clear_bindings();
    ASSERT_EQ(prepared.statement->step(), rc::kRow);
  }
}

TEST_F(PlanReuse, AChangedSchemaIsSeen) {
  for (int round = 0; round < 3; ++round) run("SELECT * FROM t WHERE id = 1");
  run("ALTER TABLE t ADD COLUMN c DEFAULT 5");
  EXPECT_EQ(run("SELECT * FROM t WHERE id = 1"), "1|one|10|5;");
  EXPECT_EQ(run("SELECT * FROM t WHERE id = 2"), "2|two|20|5;");
  run("DROP TABLE t");
  EXPECT_EQ(run("SELECT * FROM t WHERE id = 1"), "! no such table: t");
}

TEST_F(PlanReuse, AKeptStatementForgetsItsParametersAndItsRun) {
  const std::string sql = "SELECT a FROM t WHERE id >= ?1 ORDER BY id";
  {
    Prepared first = std::move(connection_->prepare(sql)).value();
    first.statement->bind(1, Value::integer(2));
    ASSERT_EQ(first.statement->step(), rc::kRow);
    EXPECT_EQ(first.statement->column(0).to_text(), "two");
  }
  Prepared again = std::move(connection_->prepare(sql)).value();
  EXPECT_EQ(again.statement->step(), rc::kDone);  // NULL now
}

TEST_F(PlanReuse, WritesInValuesAreTheirOwn) {
  for (int i = 10; i < 16; ++i) {
    const std::string n = std::to_string(i);
    EXPECT_EQ(run("INSERT INTO t(id, a, b) VALUES(" + n + ", 'r" + n + "', " + n + ")"), "");
    EXPECT_EQ(run("UPDATE t SET b = " + std::to_string(100 + i) + " WHERE id = " + n), "");
  }
  EXPECT_EQ(run("SELECT a, b FROM t WHERE id >= 14"), "r14|114;r15|115;");
  EXPECT_EQ(run("INSERT INTO t(id) VALUES(10)"), "! UNIQUE constraint failed: t.id");
  EXPECT_EQ(run("INSERT INTO t(id) VALUES(11)"), "! UNIQUE constraint failed: t.id");
}

TEST_F(PlanReuse, AnAuthorizerIsAskedAboutEveryPrepare) {
  for (int round = 0; round < 3; ++round) run("SELECT a FROM t WHERE id = 1");
  connection_->hooks().authorizer = [](int, const char*, const char*, const char*, const char*) {
    return 1;
  };
  EXPECT_EQ(run("SELECT a FROM t WHERE id = 1"), "! not authorized");
}

TEST_F(PlanReuse, AnIndexThatALiteralMatchesIsStillUsed) {
  run("CREATE INDEX p ON t(b) WHERE a = 'two'");
  for (int round = 0; round < 3; ++round)
    EXPECT_EQ(run("SELECT b FROM t WHERE a = 'two' AND b = 20"), "20;");
}

}  // namespace
}  // namespace db
