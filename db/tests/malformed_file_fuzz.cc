// Damaged databases, WALs and journals through the C API: every statement ends with rows or an
// error.
#include "base/check.h"
#include "db/tests/fuzz_run.h"
#include "db/tests/malformed_file.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

using db_fuzz::DatabaseFiles;

extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(u8* data, size_t size, size_t max_size);

namespace {

// The database of this process, in memory where there is such a folder.
const std::string& database_path() {
  static const std::string path = [] {
    std::string folder =
        std::string(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + "/fleetdb-fuzz.XXXXXX";
    CHECK(mkdtemp(folder.data()) != nullptr);
    CHECK(chdir(folder.c_str()) == 0);
    return folder + "/x.db";
  }();
  return path;
}

void write_files(const DatabaseFiles& files) {
  (void)unlink((database_path() + "-shm").c_str());
  for (size_t i = 0; i < files.files.size(); ++i) {
    const std::string path = database_path() + db_fuzz::kFileSuffixes[i];
    (void)unlink(path.c_str());
    if (i > 0 && files.files[i].empty()) continue;
    FILE* out = std::fopen(path.c_str(), "wb");
    CHECK(out != nullptr);
    CHECK(std::fwrite(files.files[i].data(), 1, files.files[i].size(), out) ==
          files.files[i].size());
    CHECK(std::fclose(out) == 0);
  }
}

constexpr const char* kStatements[] = {
    "SELECT * FROM sqlite_schema; SELECT count(*) FROM t; SELECT * FROM t; SELECT * FROM w;"
    "SELECT a, b FROM t WHERE b > 'k' ORDER BY b DESC; SELECT sum(a), max(b) FROM t GROUP BY a % 7;"
    "SELECT t.a, w.v FROM t JOIN w ON w.k = t.b; SELECT length(c) FROM t WHERE rowid BETWEEN 5 AND "
    "30",
    "PRAGMA integrity_check; PRAGMA quick_check; PRAGMA foreign_key_check; PRAGMA table_xinfo(t)",
    "SAVEPOINT s; UPDATE t SET b = b || 'longer', c = zeroblob(3000) WHERE a % 3 = 0;"
    "DELETE FROM t WHERE a % 5 = 1; INSERT INTO t(b, c) SELECT k, v FROM w; ROLLBACK TO s;"
    "INSERT OR REPLACE INTO t VALUES(3, 'three', randomblob(2000)); RELEASE s",
    "INSERT OR REPLACE INTO w SELECT b, a FROM t; DELETE FROM w WHERE k < 'f'; UPDATE w SET v = v "
    "+ 1",
    "PRAGMA incremental_vacuum(2); ANALYZE; REINDEX; PRAGMA wal_checkpoint(TRUNCATE)",
    "ALTER TABLE t RENAME COLUMN b TO bb; ALTER TABLE t ADD COLUMN e DEFAULT 4; SELECT * FROM v",
    "DROP INDEX i; DROP TABLE w; CREATE TABLE n AS SELECT * FROM t; VACUUM; PRAGMA "
    "integrity_check"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, size_t size) {
  write_files(DatabaseFiles::unpack({reinterpret_cast<const char*>(data), size}));
  sqlite3* db = nullptr;
  if (sqlite3_open(database_path().c_str(), &db) == SQLITE_OK) {
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1'000'000);
    db_fuzz::Allowance allowance(db, 400);
    sqlite3_exec(db, "PRAGMA synchronous=OFF", nullptr, nullptr, nullptr);
    for (const char* sql : kStatements) db_fuzz::run_all(db, sql, allowance);
  }
  CHECK(sqlite3_close(db) == SQLITE_OK);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(u8* data, size_t size, size_t max_size, unsigned seed) {
  base::Rng rng(seed);
  if (rng.chance(0.1)) return LLVMFuzzerMutate(data, size, max_size);
  DatabaseFiles files = DatabaseFiles::unpack({reinterpret_cast<const char*>(data), size});
  db_fuzz::damage(files, rng);
  const std::string packed = files.pack();
  if (packed.size() > max_size) return size;
  std::memcpy(data, packed.data(), packed.size());
  return packed.size();
}
