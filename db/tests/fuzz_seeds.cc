// Writes the first inputs of the fuzz targets into FOLDER/<target>: databases of several page sizes
// and vacuum modes with WALs and hot journals, and SQL of every kind.
//
//   db_fuzz_seeds FOLDER
#include "base/check.h"
#include "base/files.h"
#include "db/capi/sqlite3.h"
#include "db/tests/malformed_file.h"
#include "db/tests/random_sql.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

void write(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read(const std::string& path) {
  base::Result<std::string> bytes = base::read_file(path);
  return bytes.ok() ? bytes.value() : std::string();
}

void must(sqlite3* db, const std::string& sql) {
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return;
  std::fprintf(stderr, "%s\n", sqlite3_errmsg(db));
  std::exit(1);
}

constexpr const char* kRows =
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c BLOB);"
    "CREATE INDEX i ON t(b, c); CREATE TABLE w(k TEXT PRIMARY KEY, v REAL CHECK(v <> -5)) WITHOUT "
    "ROWID;"
    "CREATE VIEW v AS SELECT a, b FROM t WHERE c IS NOT NULL;"
    "CREATE TRIGGER r AFTER DELETE ON w BEGIN INSERT INTO t(b) VALUES(old.k); END;"
    "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM n WHERE x < 60)"
    " INSERT INTO t SELECT x, 'text ' || (x * 7919 % 61), CASE WHEN x % 9 = 0 THEN zeroblob(1500) "
    "ELSE x END FROM n;"
    "INSERT INTO w SELECT b, a FROM t WHERE a < 25; DELETE FROM t WHERE a % 4 = 0;";

void write_databases(const std::string& folder) {
  const std::string path = folder + "/making.db";
  int made = 0;
  for (const char* page : {"512", "1024", "4096"}) {
    for (const char* vacuum : {"0", "1", "2"}) {
      for (const char* mode : {"DELETE", "WAL"}) {
        for (const char* suffix : db_fuzz::kFileSuffixes) std::filesystem::remove(path + suffix);
        sqlite3* db = nullptr;
        CHECK(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
        must(db, std::string("PRAGMA page_size=") + page + "; PRAGMA auto_vacuum=" + vacuum +
                     (made % 3 == 2 ? "; PRAGMA encoding='UTF-16le'" : "") + ";" + kRows);
        must(db, std::string("PRAGMA journal_mode=") + mode + "; PRAGMA wal_autocheckpoint=0");
        const std::string before = read(path);
        must(db,
             "UPDATE t SET b = 'other ' || a WHERE a % 3 = 0; DELETE FROM w WHERE v > 10; DROP "
             "VIEW v");
        db_fuzz::DatabaseFiles files;
        files.database() = read(path);
        files.wal() = read(path + "-wal");
        std::string again = files.wal();
        db_fuzz::sign_wal(again);
        CHECK(again == files.wal());
        if (std::string(mode) == "DELETE") {
          files.journal() = db_fuzz::make_journal(before, db_fuzz::stated_page_bytes(before), 77);
        }
        write(folder + "/malformed_file_fuzz/" + std::to_string(made++), files.pack());
        sqlite3_close(db);
      }
    }
  }
  for (const char* suffix : db_fuzz::kFileSuffixes) std::filesystem::remove(path + suffix);
}

void write_sql(const std::string& folder) {
  db_fuzz::RandomSql random(1, true);
  (void)random.schema();
  for (int i = 0; i < 400; ++i) {
    write(folder + "/malformed_sql_fuzz/random" + std::to_string(i), random.statement());
  }
  static const char* const kByHand[] = {
      "WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n LIMIT 30) SELECT sum(x) OVER "
      "(ORDER BY x ROWS 2 PRECEDING) FROM n",
      "INSERT INTO t1 VALUES(1,'a',2) ON CONFLICT(x) DO UPDATE SET y = excluded.y || y WHERE z > 1 "
      "RETURNING *, x + 1",
      "SELECT json_extract('{\"a\":[1,{\"b\":2}]}', '$.a[1].b'), value FROM json_each('[1,2,[3]]')",
      "SELECT printf('%!.20g %,d %-10s|%q|%w|%05x', 1e300, 12345678, 'x', 'it''s', 'a\"b', 255)",
      "SELECT strftime('%Y-%m-%d %H:%M:%f', 2460000.5, '+1 month', 'weekday 3', 'start of year'), "
      "timediff('2024-02-29','2023-03-01')",
      "ALTER TABLE t0 RENAME COLUMN a TO aa; ALTER TABLE t0 DROP COLUMN d; ALTER TABLE t1 RENAME "
      "TO t2; SELECT * FROM v0",
      "CREATE TABLE n(a PRIMARY KEY, b REFERENCES n, c AS (a||b) STORED, CHECK(a<>b)) WITHOUT "
      "ROWID, STRICT",
      "CREATE TRIGGER q INSTEAD OF UPDATE OF p ON v0 BEGIN DELETE FROM t0 WHERE a = old.p; SELECT "
      "RAISE(ABORT,'no'); END; UPDATE v0 SET p = 2",
      "SAVEPOINT a; DELETE FROM t1; ROLLBACK TO a; RELEASE a; BEGIN IMMEDIATE; REPLACE INTO t1 "
      "DEFAULT VALUES; COMMIT; VACUUM",
      "PRAGMA table_xinfo(g); PRAGMA integrity_check; PRAGMA user_version=7; PRAGMA "
      "foreign_key_check; EXPLAIN QUERY PLAN SELECT * FROM t0, t1",
      "SELECT (a, b) = (1, 'one'), (a, c) IN (SELECT x, z FROM t1), a BETWEEN 1 AND 2, b LIKE "
      "'o%e' ESCAPE '!', b GLOB '[a-z]*' FROM t0",
      "SELECT * FROM t0 LEFT JOIN t1 ON a = x FULL JOIN w USING(k) NATURAL JOIN (SELECT 1 AS n) "
      "ORDER BY 1 COLLATE NOCASE DESC NULLS LAST LIMIT 3 OFFSET 1",
      "SELECT group_concat(DISTINCT b), max(a) FILTER (WHERE c > 0), string_agg(b, ',' ORDER BY a) "
      "FROM t0 GROUP BY d HAVING count(*) > 0 UNION SELECT 1,2,3 EXCEPT VALUES(4,5,6)"};
  int made = 0;
  for (const char* sql : kByHand)
    write(folder + "/malformed_sql_fuzz/hand" + std::to_string(made++), sql);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];
  std::filesystem::create_directories(folder);
  write_databases(folder);
  write_sql(folder);
  return 0;
}
