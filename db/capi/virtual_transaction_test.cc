// What virtual tables of the client hear about transactions. The expected calls are SQLite 3.53's.
#include "db/capi/sqlite3.h"

#include <gtest/gtest.h>

#include <string>

namespace {

// Everything that tables were told since the last look, and which call is to fail.
struct Log {
  std::string calls;
  std::string failing;

  int hear(const std::string& call) {
    calls += (calls.empty() ? "" : " ") + call;
    return call == failing ? SQLITE_ERROR : SQLITE_OK;
  }
};

struct Told : sqlite3_vtab {
  Log* log;
  sqlite3* db;
};

Log& log_of(sqlite3_vtab* table) {
  return *static_cast<Told*>(table)->log;
}

int connect(sqlite3* db, void* data, int, const char* const*, sqlite3_vtab** table, char**) {
  auto* told = new Told{};
  told->log = static_cast<Log*>(data);
  told->db = db;
  *table = told;
  return sqlite3_declare_vtab(db, "CREATE TABLE x(a)");
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Told*>(table);
  return SQLITE_OK;
}

// Empty when read; a write of 'bad' fails.
int update(sqlite3_vtab* table, int count, sqlite3_value** values, sqlite3_int64* rowid) {
  *rowid = 1;
  if (count < 3) return log_of(table).hear("delete");
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[2]));
  return log_of(table).hear(std::string("write:") + (text == nullptr ? "" : text));
}

// As full-text search does: what was gathered goes to an ordinary table now.
int sync(sqlite3_vtab* table) {
  auto* told = static_cast<Told*>(table);
  const int code = told->log->hear("sync");
  if (code != SQLITE_OK) return code;
  return sqlite3_exec(told->db, "INSERT INTO side SELECT count(*) FROM side", nullptr, nullptr,
                      nullptr);
}

const sqlite3_module& module() {
  static const sqlite3_module module = [] {
    sqlite3_module m{};
    m.iVersion = 2;
    m.xCreate = connect;
    m.xConnect = [](sqlite3* db, void* data, int count, const char* const* args,
                    sqlite3_vtab** table,
                    char** message) { return connect(db, data, count, args, table, message); };
    m.xBestIndex = [](sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; };
    m.xDisconnect = disconnect;
    m.xDestroy = disconnect;
    m.xOpen = [](sqlite3_vtab*, sqlite3_vtab_cursor** cursor) {
      *cursor = new sqlite3_vtab_cursor{};
      return SQLITE_OK;
    };
    m.xClose = [](sqlite3_vtab_cursor* cursor) {
      delete cursor;
      return SQLITE_OK;
    };
    m.xFilter = [](sqlite3_vtab_cursor*, int, const char*, int, sqlite3_value**) {
      return SQLITE_OK;
    };
    m.xNext = [](sqlite3_vtab_cursor*) { return SQLITE_OK; };
    m.xEof = [](sqlite3_vtab_cursor*) { return 1; };
    m.xColumn = [](sqlite3_vtab_cursor*, sqlite3_context*, int) { return SQLITE_OK; };
    m.xRowid = [](sqlite3_vtab_cursor*, sqlite3_int64*) { return SQLITE_OK; };
    m.xUpdate = update;
    m.xBegin = [](sqlite3_vtab* table) { return log_of(table).hear("begin"); };
    m.xSync = sync;
    m.xCommit = [](sqlite3_vtab* table) { return log_of(table).hear("commit"); };
    m.xRollback = [](sqlite3_vtab* table) { return log_of(table).hear("rollback"); };
    m.xSavepoint = [](sqlite3_vtab* table, int number) {
      return log_of(table).hear("savepoint:" + std::to_string(number));
    };
    m.xRelease = [](sqlite3_vtab* table, int number) {
      return log_of(table).hear("release:" + std::to_string(number));
    };
    m.xRollbackTo = [](sqlite3_vtab* table, int number) {
      return log_of(table).hear("to:" + std::to_string(number));
    };
    return m;
  }();
  return module;
}

class VirtualTransaction : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(sqlite3_open(":memory:", &db_), SQLITE_OK);
    ASSERT_EQ(sqlite3_create_module(db_, "told", &module(), &log_), SQLITE_OK);
    EXPECT_EQ(told("CREATE TABLE side(n)"), "");
    EXPECT_EQ(told("CREATE VIRTUAL TABLE t USING told"), "sync commit");
  }
  void TearDown() override { EXPECT_EQ(sqlite3_close(db_), SQLITE_OK) << sqlite3_errmsg(db_); }

  // What was heard while `sql` ran, and an exclamation mark when it failed.
  std::string told(const char* sql) {
    log_.calls.clear();
    const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
    return log_.calls + (code == SQLITE_OK ? "" : "!");
  }
  int side_rows() {
    sqlite3_stmt* stmt = nullptr;
    sqlite3_prepare_v2(db_, "SELECT count(*) FROM side", -1, &stmt, nullptr);
    sqlite3_step(stmt);
    const int rows = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    return rows;
  }

  sqlite3* db_ = nullptr;
  Log log_;
};

TEST_F(VirtualTransaction, AStatementAloneBeginsAndCommits) {
  EXPECT_EQ(told("INSERT INTO t VALUES('x')"), "begin write:x sync commit");
  EXPECT_EQ(told("INSERT INTO t VALUES('x'),('y')"), "begin write:x write:y sync commit");
  EXPECT_EQ(told("DELETE FROM t"), "begin sync commit");
  EXPECT_EQ(told("SELECT * FROM t"), "");
  EXPECT_EQ(side_rows(), 4) << "what a table writes while it syncs is committed with it";
}

TEST_F(VirtualTransaction, ABlockBeginsOnceAndEndsOnce) {
  EXPECT_EQ(told("BEGIN"), "");
  EXPECT_EQ(told("INSERT INTO t VALUES('x')"), "begin write:x");
  EXPECT_EQ(told("INSERT INTO t VALUES('y')"), "write:y");
  EXPECT_EQ(told("COMMIT"), "sync commit");
  EXPECT_EQ(told("BEGIN; INSERT INTO t VALUES('x'); ROLLBACK"), "begin write:x rollback");
  EXPECT_EQ(told("COMMIT"), "!");
}

TEST_F(VirtualTransaction, AFailureTakesTheTableBackWithTheRest) {
  log_.failing = "write:bad";
  EXPECT_EQ(told("INSERT INTO t VALUES('bad')"), "begin write:bad rollback!");
  log_.failing = "begin";
  EXPECT_EQ(told("INSERT INTO t VALUES('x')"), "begin!");
  log_.failing = "sync";
  const int before = side_rows();
  EXPECT_EQ(told("BEGIN; INSERT INTO side VALUES(9); INSERT INTO t VALUES('x'); COMMIT"),
            "begin write:x sync rollback!");
  EXPECT_NE(sqlite3_get_autocommit(db_), 0);
  EXPECT_EQ(side_rows(), before);
}

TEST_F(VirtualTransaction, SavepointsAreNumberedFromTheOutside) {
  EXPECT_EQ(told("BEGIN; INSERT INTO t VALUES('x')"), "begin write:x");
  EXPECT_EQ(told("SAVEPOINT a; SAVEPOINT b"), "savepoint:0 savepoint:1");
  EXPECT_EQ(told("ROLLBACK TO b"), "to:1");
  EXPECT_EQ(told("RELEASE b"), "release:1");
  EXPECT_EQ(told("ROLLBACK TO a"), "to:0");
  EXPECT_EQ(told("COMMIT"), "sync commit");
}

TEST_F(VirtualTransaction, ATableThatJoinsLateHearsOfTheInnermostSavepoint) {
  EXPECT_EQ(told("BEGIN; SAVEPOINT a; SAVEPOINT b"), "");
  EXPECT_EQ(told("INSERT INTO t VALUES('x')"), "begin savepoint:1 write:x");
  EXPECT_EQ(told("ROLLBACK TO a"), "to:0");
  EXPECT_EQ(told("ROLLBACK"), "rollback");
}

TEST_F(VirtualTransaction, ASavepointThatBeganTheTransactionEndsIt) {
  EXPECT_EQ(told("SAVEPOINT s; INSERT INTO t VALUES('x')"), "begin write:x");
  EXPECT_EQ(told("SAVEPOINT inner"), "savepoint:0");
  EXPECT_EQ(told("RELEASE inner"), "release:0");
  EXPECT_EQ(told("ROLLBACK TO s"), "to:-1");
  EXPECT_EQ(told("RELEASE s"), "sync commit");
}

TEST_F(VirtualTransaction, AStatementThatFailsHalfwayIsTakenBackAlone) {
  log_.failing = "write:bad";
  EXPECT_EQ(told("BEGIN; INSERT INTO t VALUES('x')"), "begin write:x");
  EXPECT_EQ(told("INSERT INTO t SELECT 'y' UNION ALL SELECT 'bad'"),
            "savepoint:0 write:y write:bad to:0 release:0!");
  EXPECT_EQ(told("INSERT INTO t SELECT 'y' UNION ALL SELECT 'z'"),
            "savepoint:0 write:y write:z release:0");
  EXPECT_EQ(told("COMMIT"), "sync commit");
}

TEST_F(VirtualTransaction, ATableDroppedOnTheWayHearsNothingMore) {
  EXPECT_EQ(told("BEGIN; INSERT INTO t VALUES('x')"), "begin write:x");
  EXPECT_EQ(sqlite3_exec(db_, "DROP TABLE t", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(told("COMMIT"), "");
}

}  // namespace
