// Files that FleetDB and stock SQLite write in turn, in every journal mode and page shape.
#include "base/files.h"
#include "db/storage/test_records.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <map>

namespace db {
namespace {

struct FileShape {
  u32 page_bytes;
  u32 reserved;
  AutoVacuum mode;
  JournalMode journal;
};

std::unique_ptr<Store> open_store(const std::string& path) {
  StoreOptions options;
  options.pager.busy = [](int calls) {
    ::usleep(1000);
    return calls < 2000;
  };
  return Store::open(path, std::move(options)).value();
}

using Model = std::map<i64, std::string>;

// Every row as stock SQLite sees it.
Model stock_rows(Stock& stock) {
  Model rows;
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(stock.handle(), "SELECT id, a FROM t", -1, &statement, nullptr);
  while (sqlite3_step(statement) == SQLITE_ROW) {
    auto* blob = static_cast<const char*>(sqlite3_column_blob(statement, 1));
    std::string value(blob ? blob : "", static_cast<size_t>(sqlite3_column_bytes(statement, 1)));
    rows[sqlite3_column_int64(statement, 0)] = row_of(value);
  }
  sqlite3_finalize(statement);
  return rows;
}

Model our_rows(Store& store, PageNo root) {
  Model rows;
  store.begin_read().value();
  {
    Cursor cursor(store, root, nullptr);
    for (Hit hit = cursor.first(); hit == Hit::kRow; hit = cursor.next())
      rows[cursor.rowid()] = payload_of(cursor);
  }
  store.end_read();
  return rows;
}

class SharedFile : public ::testing::TestWithParam<FileShape> {};

TEST_P(SharedFile, BothEnginesReadWhatTheOtherWrote) {
  const FileShape& shape = GetParam();
  base::TempDir dir;
  std::string path = dir / "a.db";
  base::Rng rng(shape.page_bytes + shape.reserved + static_cast<u32>(shape.journal));
  auto store = open_store(path);
  store->set_page_size(shape.page_bytes, shape.reserved).value();
  store->set_auto_vacuum(shape.mode).value();
  store->pager().set_synchronous(Synchronous::kOff);
  store->begin_write().value();
  PageNo root = create_table_t(*store);
  store->commit().value();
  store->end_read();
  ASSERT_EQ(store->set_journal_mode(shape.journal).value(), shape.journal);
  Stock stock(path);
  stock.run("PRAGMA synchronous=OFF");
  if (shape.journal == JournalMode::kPersist) stock.run("PRAGMA journal_mode=PERSIST");
  if (shape.journal == JournalMode::kTruncate) stock.run("PRAGMA journal_mode=TRUNCATE");
  Model model;
  for (int round = 0; round < 12; round++) {
    // Ours.
    store->begin_write().value();
    {
      Cursor cursor(*store, root, nullptr);
      for (int i = 0; i < 60; i++) {
        i64 id = rng.between(1, 500);
        if (rng.chance(0.6)) {
          std::string row = row_of(random_text(rng, rng.chance(0.1) ? 30000 : 300));
          ASSERT_EQ(cursor.insert(id, bytes(row)), Hit::kRow);
          model[id] = row;
        } else if (cursor.seek_equal(id) == Hit::kRow) {
          ASSERT_EQ(cursor.erase(), Hit::kRow);
          model.erase(id);
        }
      }
    }
    if (round % 4 == 3) {
      store->rollback().value();
      model = stock_rows(stock);
    } else {
      store->commit().value();
    }
    store->end_read();
    ASSERT_EQ(stock_rows(stock), model) << "round " << round;
    ASSERT_EQ(stock.run("PRAGMA integrity_check"), "ok\n");
    // Theirs.
    std::string sql = "BEGIN;";
    for (int i = 0; i < 20; i++) {
      i64 id = rng.between(1, 500);
      if (rng.chance(0.6)) {
        sql += "INSERT OR REPLACE INTO t VALUES(" + std::to_string(id) + ",randomblob(" +
               std::to_string(rng.below(rng.chance(0.1) ? 20000 : 300)) + "));";
      } else {
        sql += "DELETE FROM t WHERE id=" + std::to_string(id) + ";";
      }
    }
    ASSERT_EQ(stock.run(sql + "COMMIT"), "");
    u32 version = store->data_version();
    model = stock_rows(stock);
    ASSERT_EQ(our_rows(*store, root), model) << "round " << round;
    EXPECT_NE(store->data_version(), version);
    if (shape.journal == JournalMode::kWal && round % 5 == 4) {
      CheckpointResult done = store->pager().checkpoint(CheckpointMode::kTruncate).value();
      EXPECT_FALSE(done.busy);
      ASSERT_EQ(our_rows(*store, root), model);
    }
  }
  EXPECT_EQ(stock.run("PRAGMA page_size"), std::to_string(shape.page_bytes) + "\n");
}

INSTANTIATE_TEST_SUITE_P(
    All, SharedFile,
    ::testing::Values(FileShape{4096, 0, AutoVacuum::kNone, JournalMode::kDelete},
                      FileShape{512, 0, AutoVacuum::kFull, JournalMode::kTruncate},
                      FileShape{1024, 16, AutoVacuum::kIncremental, JournalMode::kPersist},
                      FileShape{65536, 0, AutoVacuum::kNone, JournalMode::kDelete},
                      FileShape{2048, 0, AutoVacuum::kFull, JournalMode::kMemory},
                      FileShape{4096, 0, AutoVacuum::kNone, JournalMode::kWal},
                      FileShape{512, 0, AutoVacuum::kFull, JournalMode::kWal},
                      FileShape{32768, 8, AutoVacuum::kNone, JournalMode::kWal},
                      FileShape{65536, 0, AutoVacuum::kIncremental, JournalMode::kWal}));

TEST(StoreFile, WriterIsBusyWhileStockSqliteWrites) {
  base::TempDir dir;
  std::string path = dir / "a.db";
  Stock stock(path);
  for (const char* mode : {"DELETE", "WAL"}) {
    stock.run(std::string("PRAGMA journal_mode=") + mode);
    stock.run("CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, a BLOB); BEGIN IMMEDIATE");
    auto store = Store::open(path, {}).value();
    base::Status begun = store->begin_write();
    ASSERT_FALSE(begun.ok()) << mode;
    EXPECT_EQ(begun.error().code(), base::ErrorCode::kBusy);
    stock.run("COMMIT");
    store->begin_write().value();
    sqlite3_busy_timeout(stock.handle(), 0);
    EXPECT_EQ(stock.run("BEGIN IMMEDIATE"), "error: database is locked") << mode;
    store->commit().value();
    store->end_read();
    EXPECT_EQ(stock.run("BEGIN IMMEDIATE; COMMIT"), "") << mode;
  }
}

TEST(StoreFile, ReaderKeepsItsSnapshotWhileAnotherWritesInWalMode) {
  base::TempDir dir;
  std::string path = dir / "a.db";
  auto writer = open_store(path);
  writer->begin_write().value();
  PageNo root = create_table_t(*writer);
  writer->commit().value();
  writer->end_read();
  ASSERT_EQ(writer->set_journal_mode(JournalMode::kWal).value(), JournalMode::kWal);
  auto reader = open_store(path);
  reader->begin_read().value();
  for (int i = 1; i <= 100; i++) {
    writer->begin_write().value();
    Cursor cursor(*writer, root, nullptr);
    ASSERT_EQ(cursor.insert(i, bytes(row_of("value"))), Hit::kRow);
    writer->commit().value();
    writer->end_read();
    Cursor seen(*reader, root, nullptr);
    ASSERT_EQ(seen.count().value(), 0);
  }
  base::Status late = reader->begin_write();
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), base::ErrorCode::kConflict);
  reader->end_read();
  EXPECT_EQ(our_rows(*reader, root).size(), 100u);
}

TEST(StoreFile, LastOneOutRemovesTheLog) {
  base::TempDir dir;
  std::string path = dir / "a.db";
  auto store = open_store(path);
  ASSERT_EQ(store->set_journal_mode(JournalMode::kWal).value(), JournalMode::kWal);
  store->begin_write().value();
  create_table_t(*store);
  store->commit().value();
  store->end_read();
  EXPECT_TRUE(base::file_exists(path + "-wal"));
  store = nullptr;
  EXPECT_FALSE(base::file_exists(path + "-wal"));
  EXPECT_FALSE(base::file_exists(path + "-shm"));
  Stock stock(path);
  EXPECT_EQ(stock.run("PRAGMA journal_mode; SELECT count(*) FROM t"), "wal\n0\n");
}

// System calls of one statement, as the vfs counts them. Stock SQLite 3.53 on the same work, by
// strace: a read costs 4 locks, 3 stats and 1 read with a rollback journal, 2 locks and 1 stat with
// a log; an update 10 writes, 4 syncs, 9 locks, 6 stats, 2 opens, or 2 writes, 1 sync, 6 locks.
VfsCounts calls_of(const std::function<void()>& work) {
  VfsCounts before = posix_vfs().counts();
  work();
  VfsCounts after = posix_vfs().counts();
  return {after.reads - before.reads,     after.writes - before.writes,
          after.syncs - before.syncs,     after.locks - before.locks,
          after.stats - before.stats,     after.opens - before.opens,
          after.removes - before.removes, after.truncates - before.truncates};
}

TEST(SystemCalls, AreFewerThanStockSqliteMakes) {
  for (JournalMode mode : {JournalMode::kDelete, JournalMode::kWal}) {
    const bool log = mode == JournalMode::kWal;
    base::TempDir dir;
    auto store = open_store(dir / "a.db");
    store->begin_write().value();
    PageNo root = create_table_t(*store);
    {
      Cursor cursor(*store, root, nullptr);
      for (int i = 1; i <= 20; i++) ASSERT_EQ(cursor.insert(i, bytes(row_of("old"))), Hit::kRow);
    }
    store->commit().value();
    store->end_read();
    ASSERT_TRUE(store->set_journal_mode(mode).ok());
    auto read = [&] {
      store->begin_read().value();
      Cursor cursor(*store, root, nullptr);
      ASSERT_EQ(cursor.seek_equal(7), Hit::kRow);
      cursor.close();
      store->end_read();
    };
    std::string text = "new";
    auto update = [&] {
      store->begin_write().value();
      Cursor cursor(*store, root, nullptr);
      text += "er";
      ASSERT_EQ(cursor.insert(7, bytes(row_of(text))), Hit::kRow);
      cursor.close();
      store->commit().value();
      store->end_read();
    };
    update();
    read();
    VfsCounts one = calls_of(read);
    EXPECT_EQ(one.locks, log ? 2u : 3u);
    EXPECT_EQ(one.stats, log ? 0u : 1u);
    EXPECT_EQ(one.reads, log ? 0u : 1u);
    VfsCounts change = calls_of(update);
    EXPECT_EQ(change.writes, log ? 1u : 3u);
    EXPECT_EQ(change.syncs, log ? 1u : 4u);
    EXPECT_LE(change.locks, log ? 4u : 8u);
    EXPECT_LE(change.stats, log ? 0u : 2u);
    EXPECT_LE(change.opens, log ? 0u : 1u);
  }
}

TEST(SystemCalls, ARowWrittenAsItIsWritesNoPage) {
  base::TempDir dir;
  auto store = open_store(dir / "a.db");
  store->begin_write().value();
  PageNo root = create_table_t(*store);
  store->commit().value();
  store->end_read();
  ASSERT_TRUE(store->set_journal_mode(JournalMode::kWal).ok());
  auto update = [&](const std::string& text) {
    store->begin_write().value();
    Cursor cursor(*store, root, nullptr);
    ASSERT_EQ(cursor.insert(7, bytes(row_of(text))), Hit::kRow);
    EXPECT_TRUE(cursor.on_row());
    cursor.close();
    store->commit().value();
    store->end_read();
  };
  update("one");
  EXPECT_EQ(calls_of([&] { update("one"); }).writes, 0u);
  EXPECT_EQ(calls_of([&] { update("two"); }).writes, 1u);
}

// A checkpoint looks at the newest commit before it finds that another one is running. The pages in
// the cache are of the snapshot before: the next read must not take them for the newest.
TEST(Wal, ACheckpointThatMeetsAnotherDoesNotPassOffOldPagesAsNew) {
  base::TempDir dir;
  const std::string path = dir / "a.db";
  auto a = open_store(path);
  a->begin_write().value();
  PageNo root = create_table_t(*a);
  a->commit().value();
  a->end_read();
  ASSERT_TRUE(a->set_journal_mode(JournalMode::kWal).ok());
  auto b = open_store(path);
  auto put = [&](Store& store, const std::string& text) {
    store.begin_write().value();
    Cursor cursor(store, root, nullptr);
    ASSERT_EQ(cursor.insert(1, bytes(row_of(text))), Hit::kRow);
    cursor.close();
    store.commit().value();
    store.end_read();
  };
  put(*a, "old");
  put(*b, "new");
  auto other = posix_vfs().open(path, {}).value();
  ASSERT_NE(other->shm_region(0, false).value(), nullptr);
  constexpr u32 kCheckpointLock = 1;
  other->shm_lock(kCheckpointLock, 1, true).value();
  EXPECT_TRUE(a->pager().checkpoint(CheckpointMode::kPassive).value().busy);
  other->shm_unlock(kCheckpointLock, 1, true).value();
  a->begin_read().value();
  Cursor cursor(*a, root, nullptr);
  ASSERT_EQ(cursor.seek_equal(1), Hit::kRow);
  EXPECT_EQ(payload_of(cursor), row_of("new"));
  cursor.close();
  a->end_read();
}

}  // namespace
}  // namespace db
