// Every allocation of a statement fails, one after the other: the statement answers SQLITE_NOMEM or
// does without, the file is as before or as after it, and the connection goes on. The allocator of
// the whole program is ours, by the names that glibc keeps for that; not in sanitizer builds, whose
// allocator is theirs.
#include "base/files.h"
#include "db/capi/sqlite3.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FLEET_OWN_ALLOCATOR 0
#elif defined(__has_feature)
#define FLEET_OWN_ALLOCATOR (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define FLEET_OWN_ALLOCATOR 1
#endif

#if FLEET_OWN_ALLOCATOR

namespace {

// The allocation that fails, counted from arming; all later ones too when `onward`.
struct Shortage {
  bool armed = false, onward = false, hit = false;
  long seen = 0, at = 0;
  bool now() {
    if (!armed) return false;
    ++seen;
    const bool fails = onward ? seen >= at : seen == at;
    hit |= fails;
    return fails;
  }
};
thread_local Shortage shortage;

}  // namespace

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);

void* malloc(size_t size) {
  return shortage.now() ? nullptr : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  return shortage.now() ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* block, size_t size) {
  return shortage.now() ? nullptr : __libc_realloc(block, size);
}
}

namespace {

constexpr const char* kSetup = R"sql(
  CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
  CREATE INDEX t_b ON t(b);
  CREATE UNIQUE INDEX t_c ON t(c);
  CREATE TABLE u(k PRIMARY KEY, v) WITHOUT ROWID;
  CREATE TABLE child(id INTEGER PRIMARY KEY, a REFERENCES t(a) ON DELETE CASCADE);
  CREATE TABLE seen(what);
  CREATE TRIGGER t_up AFTER UPDATE ON t BEGIN INSERT INTO seen VALUES(old.b || new.b); END;
  CREATE VIEW w AS SELECT a, b, k FROM t JOIN u ON t.b = u.k;
  WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 300)
    INSERT INTO t SELECT i, 'name ' || (i * 7919 % 311), i * 1.5 FROM n;
  INSERT INTO u SELECT b, zeroblob(a) FROM t WHERE a % 3 = 0;
  INSERT INTO child SELECT a, a FROM t WHERE a % 2 = 0;
)sql";

struct Scenario {
  const char* name;
  const char* sql;
};
constexpr Scenario kScenarios[] = {
    {"insert", "INSERT INTO t VALUES(1000, 'new', 0.25)"},
    {"insert many", "INSERT INTO t SELECT a + 1000, b || b, c + 0.5 FROM t"},
    {"insert large", "INSERT INTO u VALUES('large', hex(zeroblob(30000)))"},
    {"replace", "REPLACE INTO t SELECT a, 'other', c + 1.5 FROM t WHERE a < 40"},
    {"upsert", "INSERT INTO u SELECT b, 1 FROM t WHERE true ON CONFLICT DO UPDATE SET v = 'again'"},
    {"update", "UPDATE t SET b = b || '!' WHERE a % 5 = 0"},
    {"update key", "UPDATE u SET k = k || '.'"},
    {"delete", "DELETE FROM t WHERE a BETWEEN 50 AND 250"},
    {"cascade", "PRAGMA foreign_keys = on; DELETE FROM t WHERE a < 60"},
    {"returning", "DELETE FROM u WHERE k > 'name 2' RETURNING k, length(v)"},
    {"transaction",
     "BEGIN; UPDATE t SET c = -c; DELETE FROM seen; INSERT INTO u VALUES(1, 2); COMMIT"},
    {"savepoint", "BEGIN; SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; DELETE FROM u; COMMIT"},
    {"create table", "CREATE TABLE more AS SELECT * FROM w"},
    {"create index", "CREATE INDEX t_bc ON t(b COLLATE nocase, c) WHERE a > 20"},
    {"drop", "DROP TABLE u"},
    {"add column", "ALTER TABLE t ADD COLUMN d DEFAULT 'x'"},
    {"rename column", "ALTER TABLE t RENAME COLUMN b TO bb"},
    {"vacuum", "VACUUM"},
    {"analyze", "ANALYZE"},
    {"join",
     "SELECT t.b, count(*), sum(length(v)) FROM t LEFT JOIN u ON b = k GROUP BY 1 ORDER BY 2, 1"},
    {"sort", "SELECT * FROM t ORDER BY c % 7, b DESC"},
    {"distinct",
     "SELECT DISTINCT substr(b, 1, 6) FROM t UNION SELECT k FROM u EXCEPT VALUES('name 1')"},
    {"window", "SELECT a, sum(c) OVER (PARTITION BY a % 4 ORDER BY b ROWS 2 PRECEDING) FROM t"},
    {"recursion",
     "WITH RECURSIVE f(i, s) AS (VALUES(1, '') UNION ALL SELECT i + 1, s || i FROM f "
     "WHERE i < 60) SELECT max(length(s)) FROM f"},
    {"json",
     "SELECT json_group_array(json_object('b', b)) FROM t; SELECT sum(j.value) FROM t, "
     "json_each(json_array(a, c)) AS j"},
    {"text",
     "SELECT printf('%s-%08.3f', upper(b), c), replace(b, 'name', 'title'), quote(c) FROM t"},
    {"date",
     "SELECT strftime('%Y-%m-%d', a, 'unixepoch') FROM t WHERE b LIKE '%9%' OR b GLOB '*1'"},
    {"subquery",
     "SELECT (SELECT max(k) FROM u WHERE k < b) FROM t WHERE EXISTS "
     "(SELECT 1 FROM child WHERE child.a = t.a)"},
    {"check", "PRAGMA integrity_check; PRAGMA foreign_key_check"},
    {"attach", "ATTACH ':memory:' AS m; CREATE TABLE m.x AS SELECT * FROM t"},
    {"error", "INSERT INTO t VALUES(7, 'twice', 7)"},
};

class OutOfMemory : public testing::TestWithParam<const char*> {
 protected:
  sqlite3* open(const std::string& file) {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
    return db;
  }
  std::string rows(sqlite3* db, const std::string& sql) {
    std::string out;
    char* error = nullptr;
    auto row = [](void* to, int count, char** cells, char**) {
      for (int i = 0; i < count; ++i)
        *static_cast<std::string*>(to) += (cells[i] ? cells[i] : "NULL") + std::string("|");
      return 0;
    };
    if (sqlite3_exec(db, sql.c_str(), row, &out, &error) != SQLITE_OK) out += error;
    sqlite3_free(error);
    return out;
  }
  // All that the file holds, but for random bytes.
  std::string content(sqlite3* db) {
    std::string out = rows(db, "SELECT sql FROM sqlite_schema ORDER BY name");
    const std::string tables =
        rows(db, "SELECT group_concat(quote(name), ' ') FROM sqlite_schema WHERE type = 'table'");
    for (const char* name : {"t", "u", "child", "seen", "more", "sqlite_stat1"}) {
      if (tables.find("'" + std::string(name) + "'") == std::string::npos) continue;
      out += rows(db, std::string("SELECT * FROM ") + name + " ORDER BY 1, 2");
    }
    return out;
  }
  std::string sound(const std::string& file) {
    sqlite3* db = open(file);
    const std::string said = rows(db, "PRAGMA integrity_check");
    EXPECT_EQ(sqlite3_close(db), SQLITE_OK);
    return said;
  }
  std::string content_of(const std::string& file) {
    sqlite3* db = open(file);
    std::string out = content(db);
    EXPECT_EQ(sqlite3_close(db), SQLITE_OK);
    return out;
  }
  void prepare(const std::string& file) {
    sqlite3* db = open(file);
    rows(db, std::string("PRAGMA page_size = 1024; PRAGMA journal_mode = ") + GetParam() + ";" +
                 kSetup);
    EXPECT_EQ(sqlite3_close(db), SQLITE_OK);
  }
  void copy_in(const std::string& bytes) {
    for (const char* tail : {"", "-journal", "-wal", "-shm"}) (void)base::remove_tree(file_ + tail);
    ASSERT_TRUE(base::write_file(file_, bytes).ok());
  }
  // One run with the shortage at `at`. False: it was over before that.
  bool short_at(const Scenario& s, long at, bool onward, const std::string& before,
                const std::string& after);

  base::TempDir dir_{"fleetdb-memory"};
  std::string file_ = dir_ / "db";
};

bool OutOfMemory::short_at(const Scenario& s, long at, bool onward, const std::string& before,
                           const std::string& after) {
  sqlite3* db = open(file_);
  rows(db, "SELECT count(*) FROM sqlite_schema");  // the schema is read
  shortage = {.armed = true, .onward = onward, .at = at};
  const int code = sqlite3_exec(db, s.sql, nullptr, nullptr, nullptr);
  shortage.armed = false;
  const bool expected = code == SQLITE_OK || code == SQLITE_NOMEM || code == SQLITE_IOERR_NOMEM ||
                        (code == SQLITE_CONSTRAINT && std::string(s.name) == "error");
  EXPECT_TRUE(expected) << s.name << " at " << at << ": " << code << " " << sqlite3_errmsg(db);
  EXPECT_EQ(rows(db, "SELECT count(*) > 3 FROM sqlite_schema"), "1|") << s.name << " at " << at;
  EXPECT_EQ(sqlite3_close(db), SQLITE_OK) << s.name << " at " << at;
  EXPECT_EQ(sound(file_), "ok|") << s.name << " at " << at;
  const std::string now = content_of(file_);
  EXPECT_TRUE(now == after || (code != SQLITE_OK && now == before))
      << s.name << " at " << at << (onward ? " onward" : "") << ", code " << code;
  return shortage.hit;
}

TEST_P(OutOfMemory, LeavesAllOrNothingAndAWorkingConnection) {
  // Of each scenario and kind; FLEETDB_MEMORY_POINTS=100000 tries every allocation.
  const char* wanted = std::getenv("FLEETDB_MEMORY_POINTS");
  const long points_max = wanted != nullptr ? std::atol(wanted) : 10;
  prepare(file_);
  const std::string bytes = *base::read_file(file_);
  const std::string before = content_of(file_);
  long points = 0;
  for (const Scenario& s : kScenarios) {
    copy_in(bytes);
    sqlite3* db = open(file_);
    rows(db, "SELECT count(*) FROM sqlite_schema");
    shortage = {.armed = true, .at = -1};
    sqlite3_exec(db, s.sql, nullptr, nullptr, nullptr);
    shortage.armed = false;
    const long all = shortage.seen;
    EXPECT_EQ(sqlite3_close(db), SQLITE_OK);
    const std::string after = content_of(file_);
    const long step = std::max(1L, all / points_max);
    for (const bool onward : {false, true}) {
      for (long at = 1 + (onward ? step / 2 : 0); at <= all; at += step, ++points) {
        copy_in(bytes);
        short_at(s, at, onward, before, after);
        if (HasFailure()) return;  // the first says enough
      }
    }
  }
  EXPECT_GT(points, 500);
}

INSTANTIATE_TEST_SUITE_P(Journals, OutOfMemory, testing::Values("delete", "wal"));

}  // namespace

#endif
