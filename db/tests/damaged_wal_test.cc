// WALs with right checksums and impossible contents.
#include "base/files.h"
#include "db/capi/sqlite3.h"
#include "db/tests/malformed_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace {

// SQLite refuses it too: the file would grow to 300 GB.
TEST(DamagedWal, ACommitThatStatesADatabaseFarLargerThanTheLogIsNotCopiedBack) {
  base::TempDir folder;
  const std::string made = folder / "made.db";
  const std::string path = folder / "x.db";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(made.c_str(), &db), SQLITE_OK);
  auto run = [&](const char* sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr); };
  ASSERT_EQ(run("PRAGMA page_size=512; PRAGMA journal_mode=WAL; CREATE TABLE t(a)"), SQLITE_OK);
  std::string wal = base::read_file(made + "-wal").value();
  wal[wal.size() - 512 - 24 + 4] = 0x20;  // the last frame's size of the database, in pages
  db_fuzz::sign_wal(wal);
  std::filesystem::copy_file(made, path);
  std::ofstream(path + "-wal", std::ios::binary) << wal;
  sqlite3_close(db);
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(run("SELECT * FROM t"), SQLITE_OK);  // the log is read
  EXPECT_EQ(run("PRAGMA wal_checkpoint"), SQLITE_CORRUPT);
  sqlite3_close(db);
  EXPECT_LT(std::filesystem::file_size(path), 5000u);
}

}  // namespace
