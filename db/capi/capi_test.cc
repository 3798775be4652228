#include "base/types.h"
#include "db/capi/extension_table.h"
#include "db/capi/sqlite3.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

class CApi : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(sqlite3_open(":memory:", &db_), SQLITE_OK); }
  void TearDown() override { EXPECT_EQ(sqlite3_close(db_), SQLITE_OK) << sqlite3_errmsg(db_); }

  void run(const char* sql) {
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(db_, sql, nullptr, nullptr, &error), SQLITE_OK) << sql << ": " << error;
    sqlite3_free(error);
  }
  std::string one(const char* sql, sqlite3* db = nullptr) {
    if (db == nullptr) db = db_;
    sqlite3_stmt* stmt = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, sql, -1, &stmt, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    std::string out = "(none)";
    if (sqlite3_step(stmt) == SQLITE_ROW) {
      auto* text = reinterpret_cast<const char*>(sqlite3_column_text(stmt, 0));
      out = text == nullptr ? "NULL" : text;
    }
    sqlite3_finalize(stmt);
    return out;
  }

  sqlite3* db_ = nullptr;
};

TEST_F(CApi, BlobHandlesReadWriteAndExpire) {
  run("CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES(5, x'0102030405')");
  sqlite3_blob* blob = nullptr;
  ASSERT_EQ(sqlite3_blob_open(db_, "main", "t", "b", 5, 1, &blob), SQLITE_OK);
  EXPECT_EQ(sqlite3_blob_bytes(blob), 5);
  char bytes[3] = {};
  EXPECT_EQ(sqlite3_blob_read(blob, bytes, 3, 1), SQLITE_OK);
  EXPECT_EQ(std::string(bytes, 3), "\x02\x03\x04");
  EXPECT_EQ(sqlite3_blob_read(blob, bytes, 3, 3), SQLITE_ERROR);
  EXPECT_EQ(sqlite3_blob_write(blob, "zz", 2, 0), SQLITE_OK);
  EXPECT_EQ(one("SELECT hex(b) FROM t"), "7A7A030405");
  EXPECT_EQ(sqlite3_close(db_), SQLITE_BUSY) << "a blob handle keeps its connection";
  run("UPDATE t SET b = x'00'");
  EXPECT_EQ(sqlite3_blob_read(blob, bytes, 1, 0), SQLITE_ABORT);
  EXPECT_EQ(sqlite3_blob_close(blob), SQLITE_OK);
  EXPECT_EQ(sqlite3_blob_open(db_, "main", "t", "b", 6, 0, &blob), SQLITE_ERROR);
  EXPECT_STREQ(sqlite3_errmsg(db_), "no such rowid: 6");
}

TEST_F(CApi, BackupCopiesEveryPage) {
  run("CREATE TABLE t(a); INSERT INTO t SELECT value FROM json_each('[1,2,3]')");
  sqlite3* copy = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &copy), SQLITE_OK);
  sqlite3_backup* backup = sqlite3_backup_init(copy, "main", db_, "main");
  ASSERT_NE(backup, nullptr);
  EXPECT_EQ(sqlite3_backup_step(backup, 1), SQLITE_OK);
  EXPECT_EQ(sqlite3_backup_step(backup, -1), SQLITE_DONE);
  EXPECT_EQ(sqlite3_backup_remaining(backup), 0);
  EXPECT_EQ(sqlite3_backup_finish(backup), SQLITE_OK);
  EXPECT_EQ(one("SELECT sum(a) FROM t", copy), "6");
  EXPECT_EQ(sqlite3_close(copy), SQLITE_OK);
}

TEST_F(CApi, SerializeAndDeserializeRoundTrip) {
  run("CREATE TABLE t(a); INSERT INTO t VALUES('kept')");
  sqlite3_int64 size = 0;
  unsigned char* image = sqlite3_serialize(db_, "main", &size, 0);
  ASSERT_NE(image, nullptr);
  EXPECT_EQ(std::memcmp(image, "SQLite format 3", 16), 0);
  run("DELETE FROM t");
  EXPECT_EQ(sqlite3_deserialize(db_, "main", image, size, size, SQLITE_DESERIALIZE_FREEONCLOSE),
            SQLITE_OK);
  EXPECT_EQ(one("SELECT a FROM t"), "kept");
}

// A table of the numbers 0 .. 4.
struct Numbers {
  sqlite3_vtab_cursor base;
  int at;
};

const sqlite3_module& numbers_module() {
  static const sqlite3_module module = [] {
    sqlite3_module m{};
    m.xConnect = [](sqlite3* db, void*, int, const char* const*, sqlite3_vtab** table, char**) {
      *table = new sqlite3_vtab{};
      return sqlite3_declare_vtab(db, "CREATE TABLE x(n, square)");
    };
    m.xBestIndex = [](sqlite3_vtab*, sqlite3_index_info* info) {
      info->estimatedCost = 5;
      return SQLITE_OK;
    };
    m.xDisconnect = [](sqlite3_vtab* table) {
      delete table;
      return SQLITE_OK;
    };
    m.xOpen = [](sqlite3_vtab*, sqlite3_vtab_cursor** cursor) {
      *cursor = reinterpret_cast<sqlite3_vtab_cursor*>(new Numbers{});
      return SQLITE_OK;
    };
    m.xClose = [](sqlite3_vtab_cursor* cursor) {
      delete reinterpret_cast<Numbers*>(cursor);
      return SQLITE_OK;
    };
    m.xFilter = [](sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
      reinterpret_cast<Numbers*>(cursor)->at = 0;
      return SQLITE_OK;
    };
    m.xNext = [](sqlite3_vtab_cursor* cursor) {
      ++reinterpret_cast<Numbers*>(cursor)->at;
      return SQLITE_OK;
    };
    m.xEof = [](sqlite3_vtab_cursor* cursor) {
      return reinterpret_cast<Numbers*>(cursor)->at >= 5 ? 1 : 0;
    };
    m.xColumn = [](sqlite3_vtab_cursor* cursor, sqlite3_context* context, int column) {
      int n = reinterpret_cast<Numbers*>(cursor)->at;
      sqlite3_result_int(context, column == 0 ? n : n * n);
      return SQLITE_OK;
    };
    m.xRowid = [](sqlite3_vtab_cursor* cursor, sqlite3_int64* rowid) {
      *rowid = reinterpret_cast<Numbers*>(cursor)->at;
      return SQLITE_OK;
    };
    return m;
  }();
  return module;
}

TEST_F(CApi, VirtualTablesOfTheClientCanBeQueried) {
  int destroyed = 0;
  ASSERT_EQ(sqlite3_create_module_v2(db_, "numbers", &numbers_module(), &destroyed,
                                     [](void* data) { ++*static_cast<int*>(data); }),
            SQLITE_OK);
  EXPECT_EQ(one("SELECT group_concat(square) FROM numbers WHERE n > 1"), "4,9,16");
  EXPECT_EQ(one("SELECT sum(a.n * b.n) FROM numbers a JOIN numbers b ON a.n = b.n"), "30");
  EXPECT_EQ(sqlite3_close(db_), SQLITE_OK);
  EXPECT_EQ(destroyed, 1);
  ASSERT_EQ(sqlite3_open(":memory:", &db_), SQLITE_OK);
}

TEST_F(CApi, AuthorsOfExtensionsFindTheTableInOrder) {
  auto table = db::capi::extension_table();
  ASSERT_EQ(table.size(), 277u);
  EXPECT_EQ(table[0], reinterpret_cast<const void*>(&sqlite3_aggregate_context));
  EXPECT_EQ(table[239], reinterpret_cast<const void*>(&sqlite3_create_window_function));
}

TEST_F(CApi, LoadingAnExtensionIsRefusedUntilItIsEnabled) {
  char* error = nullptr;
  EXPECT_EQ(sqlite3_load_extension(db_, "nothing", nullptr, &error), SQLITE_ERROR);
  EXPECT_STREQ(error, "not authorized");
  sqlite3_free(error);
  sqlite3_enable_load_extension(db_, 1);
  EXPECT_EQ(sqlite3_load_extension(db_, "./nothing", nullptr, &error), SQLITE_ERROR);
  EXPECT_NE(std::string(error).find("nothing"), std::string::npos);
  sqlite3_free(error);
}

TEST_F(CApi, FileNamesCarryTheirParameters) {
  const char* parameters[] = {"mode", "ro", "n", "12"};
  const char* name = sqlite3_create_filename("f.db", "f.db-journal", "f.db-wal", 2, parameters);
  EXPECT_STREQ(sqlite3_uri_parameter(name, "mode"), "ro");
  EXPECT_EQ(sqlite3_uri_parameter(name, "other"), nullptr);
  EXPECT_EQ(sqlite3_uri_int64(name, "n", -1), 12);
  EXPECT_STREQ(sqlite3_uri_key(name, 1), "n");
  sqlite3_free_filename(name);
}

TEST(Library, TakesALogBeforeItStartsAndTellsItWhatFails) {
  static std::string logged;
  auto log = [](void*, int code, const char* text) {
    logged += std::to_string(code) + " " + text + "\n";
  };
  constexpr int kLog = 16, kMalloc = 4, kUri = 17;
  sqlite3_shutdown();
  ASSERT_EQ(sqlite3_config(kLog, static_cast<void (*)(void*, int, const char*)>(log), nullptr),
            SQLITE_OK);
  EXPECT_EQ(sqlite3_config(kUri, 1), SQLITE_OK);
  EXPECT_EQ(sqlite3_config(kMalloc, nullptr), SQLITE_ERROR);  // the allocator stays what it is
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_config(kUri, 1), SQLITE_MISUSE);
  EXPECT_EQ(sqlite3_exec(db, "SELECT nosuch", nullptr, nullptr, nullptr), SQLITE_ERROR);
  sqlite3_log(7, "%s %d", "seven", 8);
  EXPECT_EQ(logged, "1 no such column: nosuch\n7 seven 8\n");
  sqlite3_close(db);
  sqlite3_shutdown();
  sqlite3_config(kLog, static_cast<void (*)(void*, int, const char*)>(nullptr), nullptr);
}

TEST(Library, SaysThatAnotherVfsCannotTakePart) {
  sqlite3_vfs* own = sqlite3_vfs_find(nullptr);
  EXPECT_EQ(sqlite3_vfs_register(own, 1), SQLITE_OK);
  char other[200] = {};
  EXPECT_EQ(sqlite3_vfs_register(reinterpret_cast<sqlite3_vfs*>(other), 0), SQLITE_ERROR);
  EXPECT_EQ(sqlite3_test_control(22), 123410);
}

TEST(Library, MutexesAreRecursiveAndExclude) {
  sqlite3_mutex* mutex = sqlite3_mutex_alloc(0);
  constexpr int kThreads = 4, kRounds = 20000;
  i64 count = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < kRounds; ++round) {
          sqlite3_mutex_enter(mutex);
          EXPECT_EQ(sqlite3_mutex_try(mutex), SQLITE_OK);  // again, by its owner
          const i64 before = count;
          if (round % 64 == 0) std::this_thread::yield();
          count = before + 1;
          sqlite3_mutex_leave(mutex);
          sqlite3_mutex_leave(mutex);
        }
      });
    }
  }
  EXPECT_EQ(count, kThreads * kRounds);
  sqlite3_mutex_enter(mutex);
  std::jthread([&] { EXPECT_EQ(sqlite3_mutex_try(mutex), SQLITE_BUSY); }).join();
  sqlite3_mutex_leave(mutex);
  sqlite3_mutex_free(mutex);
}

}  // namespace
