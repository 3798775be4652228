// Index entries that are too short, as a damaged file may have them: an error, not a read behind
// them.
#include "base/files.h"
#include "db/capi/sqlite3.h"
#include "db/storage/btree.h"

#include <gtest/gtest.h>

namespace {

struct BytewiseOrder final : db::KeyOrder {
  int compare(base::ByteView a, base::ByteView b) const override {
    return base::as_text(a).compare(base::as_text(b));
  }
};

db::Hit insert(db::Cursor& entries, std::string_view record) {
  return entries.insert(base::as_bytes(record));
}

TEST(DamagedEntry, AnIndexEntryWithoutItsRowidIsMalformed) {
  base::TempDir folder;
  const std::string path = folder / "x.db";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  auto run = [&](const char* sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr); };
  ASSERT_EQ(run("CREATE TABLE t(a); CREATE UNIQUE INDEX i ON t(a)"), SQLITE_OK);
  ASSERT_EQ(sqlite3_close(db), SQLITE_OK);
  {
    const BytewiseOrder order;
    auto store = db::Store::open(path, {}).value();
    store->begin_write().value();
    db::Cursor entries(*store, 3, &order);
    // A record of one column, the integer 1.
    ASSERT_EQ(insert(entries, "\x02\x09"), db::Hit::kRow);
    entries.close();
    store->commit().value();
  }
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(run("INSERT INTO t VALUES(1)"), SQLITE_CORRUPT);
  EXPECT_STREQ(sqlite3_errmsg(db), "database disk image is malformed");
  EXPECT_EQ(run("ANALYZE"), SQLITE_OK);
  EXPECT_EQ(sqlite3_close(db), SQLITE_OK);
}

// ANALYZE counts the columns that an entry does not have as NULL.
TEST(DamagedEntry, AnalyzeGoesOnBehindAnEmptyEntry) {
  base::TempDir folder;
  const std::string path = folder / "x.db";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  auto run = [&](const char* sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr); };
  ASSERT_EQ(run("CREATE TABLE t(a, b); CREATE INDEX i ON t(a, b)"), SQLITE_OK);
  ASSERT_EQ(sqlite3_close(db), SQLITE_OK);
  {
    const BytewiseOrder order;
    auto store = db::Store::open(path, {}).value();
    store->begin_write().value();
    db::Cursor entries(*store, 3, &order);
    ASSERT_EQ(insert(entries, "\x01"), db::Hit::kRow);
    ASSERT_EQ(insert(entries, "\x02\x09"), db::Hit::kRow);
    entries.close();
    store->commit().value();
  }
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(run("ANALYZE"), SQLITE_OK);
  EXPECT_EQ(sqlite3_close(db), SQLITE_OK);
}

}  // namespace
