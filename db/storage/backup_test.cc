#include "db/storage/backup.h"

#include "base/files.h"
#include "db/storage/test_records.h"

#include <gtest/gtest.h>

namespace db {
namespace {

void fill(Store& store, i64 from, i64 to) {
  store.begin_write().value();
  PageNo root = store.page_count() <= 1 ? create_table_t(store) : 2;
  Cursor cursor(store, root, nullptr);
  for (i64 i = from; i < to; i++)
    ASSERT_EQ(cursor.insert(i, bytes(row_of(std::string(300, 'x')))), Hit::kRow);
  cursor.close();
  store.commit().value();
  store.end_read();
}

TEST(Backup, CopiesInStepsAndStartsOverWhenTheSourceChanges) {
  base::TempDir dir;
  auto source = Store::open("", {}).value();
  fill(*source, 0, 1000);
  auto target = Store::open(dir / "copy.db", {}).value();
  Backup backup(*target, *source);
  EXPECT_TRUE(backup.step(5).value());
  EXPECT_EQ(backup.remaining(), backup.page_count() - 5);
  fill(*source, 1000, 1100);
  int steps = 0;
  while (backup.step(10).value()) steps++;
  EXPECT_GT(steps, 5);
  EXPECT_EQ(backup.remaining(), 0u);
  Stock stock(dir / "copy.db");
  EXPECT_EQ(stock.run("PRAGMA integrity_check; SELECT count(*) FROM t"), "ok\n1100\n");
}

TEST(Backup, AnAbandonedCopyLeavesTheTargetAsItWas) {
  base::TempDir dir;
  auto source = Store::open("", {}).value();
  fill(*source, 0, 1000);
  auto target = Store::open(dir / "copy.db", {}).value();
  fill(*target, 0, 7);
  {
    Backup backup(*target, *source);
    EXPECT_TRUE(backup.step(5).value());
  }
  Stock stock(dir / "copy.db");
  EXPECT_EQ(stock.run("PRAGMA integrity_check; SELECT count(*) FROM t"), "ok\n7\n");
}

// VACUUM's last step, with a change of page size.
TEST(ReplaceContent, TakesOverAnyPageSizeInRollbackMode) {
  for (u32 from : {512u, 4096u, 65536u}) {
    for (u32 to : {512u, 1024u, 65536u}) {
      base::TempDir dir;
      auto source = Store::open("", {}).value();
      source->set_page_size(to, 0).value();
      fill(*source, 0, 500);
      auto target = Store::open(dir / "a.db", {}).value();
      target->set_page_size(from, 0).value();
      fill(*target, 0, 900);
      Stock stock(dir / "a.db");
      EXPECT_EQ(stock.run("SELECT count(*) FROM t"), "900\n");
      source->begin_read().value();
      target->begin_write().value();
      target->replace_content(*source).value();
      target->commit().value();
      target->end_read();
      EXPECT_EQ(stock.run("PRAGMA integrity_check; SELECT count(*) FROM t"), "ok\n500\n")
          << from << to;
      fill(*target, 500, 600);
      EXPECT_EQ(target->page_bytes(), to);
      EXPECT_EQ(stock.run("PRAGMA integrity_check; SELECT count(*) FROM t"), "ok\n600\n")
          << from << to;
    }
  }
}

}  // namespace
}  // namespace db
