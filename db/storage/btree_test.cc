// B-trees in memory against std::map, and the bytes they make against stock SQLite's
// integrity_check.
#include "db/storage/btree.h"

#include "db/storage/test_records.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace db {
namespace {

const BytewiseOrder kOrder;

void expect_same(Cursor& cursor, const std::map<i64, std::string>& model) {
  auto it = model.begin();
  for (Hit hit = cursor.first(); hit == Hit::kRow; hit = cursor.next(), ++it) {
    ASSERT_NE(it, model.end());
    ASSERT_EQ(cursor.rowid(), it->first);
    ASSERT_EQ(payload_of(cursor), it->second);
  }
  ASSERT_EQ(it, model.end());
  auto back = model.rbegin();
  for (Hit hit = cursor.last(); hit == Hit::kRow; hit = cursor.previous(), ++back) {
    ASSERT_NE(back, model.rend());
    ASSERT_EQ(cursor.rowid(), back->first);
  }
  ASSERT_EQ(back, model.rend());
  ASSERT_EQ(cursor.count().value(), static_cast<i64>(model.size()));
}

void declare(Store& store, i64 rowid, PageNo root) {
  Cursor schema(store, 1, nullptr);
  ASSERT_EQ(schema.insert(rowid, bytes(schema_row("table", "t", "t", root, kTableSql))), Hit::kRow);
}

struct Shape {
  u32 page_bytes;
  u32 reserved;
  AutoVacuum mode;
};

class BtreeShapes : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    store_ = Store::open("", {}).value();
    store_->set_page_size(GetParam().page_bytes, GetParam().reserved).value();
    store_->set_auto_vacuum(GetParam().mode).value();
    store_->begin_write().value();
    // Format 4, UTF-8.
    store_->set_meta(Meta::kSchemaFormat, 4).value();
    store_->set_meta(Meta::kTextEncoding, 1).value();
  }
  std::unique_ptr<Store> store_;
};

TEST_P(BtreeShapes, TableTreeEqualsMapUnderRandomChanges) {
  base::Rng rng(GetParam().page_bytes + GetParam().reserved);
  PageNo root = store_->create_tree(TreeKind::kTable).value();
  declare(*store_, 1, root);
  std::map<i64, std::string> model;
  Cursor cursor(*store_, root, nullptr);
  for (int round = 0; round < 6; round++) {
    for (int i = 0; i < 500; i++) {
      i64 rowid = rng.between(-300, 3000);
      u64 what = rng.below(10);
      if (static_cast<int>(what) < 6 + (round % 3)) {
        std::string value = row_of(random_text(rng, rng.chance(0.05) ? 20000 : 200));
        ASSERT_EQ(cursor.insert(rowid, bytes(value)), Hit::kRow);
        ASSERT_EQ(cursor.restore(), Hit::kRow);
        ASSERT_EQ(cursor.rowid(), rowid);
        model[rowid] = value;
      } else {
        Hit hit = cursor.seek_at_least(rowid);
        auto it = model.lower_bound(rowid);
        ASSERT_EQ(hit == Hit::kRow, it != model.end());
        if (hit != Hit::kRow) continue;
        ASSERT_EQ(cursor.rowid(), it->first);
        ASSERT_EQ(cursor.erase(), Hit::kRow);
        it = model.erase(it);
        // next() after erase() gives the row behind it.
        ASSERT_EQ(cursor.next() == Hit::kRow, it != model.end());
        if (it != model.end()) ASSERT_EQ(cursor.rowid(), it->first);
      }
    }
    expect_same(cursor, model);
    if (round == 3) {
      while (model.size() > 40) {
        ASSERT_EQ(cursor.first(), Hit::kRow);
        for (int i = 0; i < 37 && model.size() > 40; i++) {
          ASSERT_EQ(cursor.erase(), Hit::kRow);
          model.erase(model.begin());
          (void)cursor.next();
        }
      }
    }
    ASSERT_EQ(stock_says(store_->serialize().value()), "ok\n");
    ASSERT_EQ(store_->integrity_check({root}).value(), std::vector<std::string>{});
  }
  store_->commit().value();
  EXPECT_EQ(stock_says(store_->serialize().value()), "ok\n");
  EXPECT_EQ(stock_says(store_->serialize().value(), "SELECT count(*) FROM t"),
            std::to_string(model.size()) + "\n");
}

TEST_P(BtreeShapes, IndexTreeEqualsMapUnderRandomChanges) {
  base::Rng rng(GetParam().page_bytes * 3 + GetParam().reserved);
  PageNo table = store_->create_tree(TreeKind::kTable).value();
  PageNo root = store_->create_tree(TreeKind::kIndex).value();
  declare(*store_, 1, table);
  std::map<std::string, int> model;
  Cursor cursor(*store_, root, &kOrder);
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < 600; i++) {
      std::string key = random_text(rng, rng.chance(0.03) ? 9000 : 30);
      if (rng.below(10) < 6) {
        ASSERT_EQ(cursor.insert(bytes(key)), Hit::kRow);
        model[key] = 1;
        ASSERT_EQ(cursor.restore(), Hit::kRow);
        ASSERT_EQ(payload_of(cursor), key);
      } else {
        struct Probe final : KeyProbe {
          std::string key;
          int compare(ByteView stored) const override { return kOrder.compare(stored, bytes(key)); }
        } probe;
        probe.key = key;
        Hit hit = cursor.seek_at_least(probe);
        auto it = model.lower_bound(key);
        ASSERT_EQ(hit == Hit::kRow, it != model.end());
        if (hit != Hit::kRow) continue;
        ASSERT_EQ(payload_of(cursor), it->first);
        ASSERT_EQ(cursor.erase(), Hit::kRow);
        it = model.erase(it);
        ASSERT_EQ(cursor.next() == Hit::kRow, it != model.end());
        if (it != model.end()) ASSERT_EQ(payload_of(cursor), it->first);
      }
    }
    // Equal keys go over the old ones, in leaves and in interior pages alike.
    for (const auto& [key, unused] : model) ASSERT_EQ(cursor.insert(bytes(key)), Hit::kRow);
    auto it = model.begin();
    for (Hit hit = cursor.first(); hit == Hit::kRow; hit = cursor.next(), ++it)
      ASSERT_EQ(payload_of(cursor), it->first);
    ASSERT_EQ(it, model.end());
    auto back = model.rbegin();
    for (Hit hit = cursor.last(); hit == Hit::kRow; hit = cursor.previous(), ++back)
      ASSERT_EQ(payload_of(cursor), back->first);
    ASSERT_EQ(back, model.rend());
    ASSERT_EQ(cursor.count().value(), static_cast<i64>(model.size()));
  }
}

TEST_P(BtreeShapes, SavepointsUndoWhatCameAfterThem) {
  base::Rng rng(7);
  PageNo root = store_->create_tree(TreeKind::kTable).value();
  declare(*store_, 1, root);
  store_->commit().value();
  std::map<i64, std::string> committed;
  Cursor cursor(*store_, root, nullptr);
  for (int round = 0; round < 30; round++) {
    store_->begin_write().value();
    std::vector<std::map<i64, std::string>> stack{committed};
    for (int step = 0; step < 25; step++) {
      u64 what = rng.below(10);
      if (what == 0 && stack.size() < 6) {
        ASSERT_EQ(store_->open_savepoint(), static_cast<int>(stack.size()) - 1);
        stack.push_back(stack.back());
      } else if (what == 1 && stack.size() > 1) {
        u64 index = rng.below(stack.size() - 1);
        store_->rollback_savepoint(static_cast<int>(index)).value();
        stack.resize(index + 2);
        stack.back() = stack[index];
        expect_same(cursor, stack.back());
      } else if (what == 2 && stack.size() > 1) {
        u64 index = rng.below(stack.size() - 1);
        store_->release_savepoint(static_cast<int>(index));
        stack[index] = stack.back();
        stack.resize(index + 1);
      } else if (what < 8) {
        i64 rowid = rng.between(1, 300);
        std::string value = row_of(random_text(rng, 3000));
        ASSERT_EQ(cursor.insert(rowid, bytes(value)), Hit::kRow);
        stack.back()[rowid] = value;
      } else if (cursor.seek_at_least(rng.between(1, 300)) == Hit::kRow) {
        stack.back().erase(cursor.rowid());
        ASSERT_EQ(cursor.erase(), Hit::kRow);
      }
    }
    if (rng.chance(0.3)) {
      store_->rollback(false).value();
      store_->end_read();
      store_->begin_read().value();
    } else {
      committed = stack.back();
      store_->commit().value();
    }
    expect_same(cursor, committed);
    ASSERT_EQ(stock_says(store_->serialize().value()), "ok\n");
  }
}

TEST_P(BtreeShapes, AscendingInsertsFillThePages) {
  PageNo root = store_->create_tree(TreeKind::kTable).value();
  PageNo before = store_->page_count();
  Cursor cursor(*store_, root, nullptr);
  std::string value = row_of(std::string(40, 'v'));
  const int rows = 5000;
  for (int i = 1; i <= rows; i++) ASSERT_EQ(cursor.insert(i, bytes(value)), Hit::kRow);
  ASSERT_EQ(cursor.count().value(), rows);
  // Cell: length, rowid (up to 2 bytes here), row; and its pointer.
  u32 usable = GetParam().page_bytes - GetParam().reserved;
  u32 rows_a_page = (usable - 8) / static_cast<u32>(value.size() + 5);
  EXPECT_LT(store_->page_count() - before, rows / rows_a_page * 1.03 + 5);
}

TEST_P(BtreeShapes, DroppedTreesLeaveNoPageUnused) {
  base::Rng rng(3);
  std::vector<PageNo> roots;
  for (int i = 0; i < 6; i++) {
    roots.push_back(store_->create_tree(TreeKind::kTable).value());
    Cursor cursor(*store_, roots.back(), nullptr);
    for (int row = 0; row < 50; row++)
      ASSERT_EQ(cursor.insert(row, bytes(row_of(random_text(rng, 4000)))), Hit::kRow);
  }
  while (roots.size() > 1) {
    size_t victim = rng.below(roots.size());
    PageNo gone = roots[victim];
    PageNo moved = store_->drop_tree(gone).value();
    roots.erase(roots.begin() + static_cast<std::ptrdiff_t>(victim));
    for (PageNo& root : roots)
      if (root == moved) root = gone;
  }
  declare(*store_, 1, roots[0]);
  EXPECT_EQ(stock_says(store_->serialize().value()), "ok\n");
  if (GetParam().mode == AutoVacuum::kIncremental) {
    EXPECT_GT(store_->incremental_vacuum(0).value(), 0u);
    EXPECT_EQ(store_->meta(Meta::kFreePages), 0u);
  }
  store_->commit().value();
  if (GetParam().mode == AutoVacuum::kFull) EXPECT_EQ(store_->meta(Meta::kFreePages), 0u);
  EXPECT_EQ(stock_says(store_->serialize().value()), "ok\n");
  EXPECT_EQ(stock_says(store_->serialize().value(), "SELECT count(*) FROM t"), "50\n");
}

INSTANTIATE_TEST_SUITE_P(
    All, BtreeShapes,
    ::testing::Values(Shape{512, 0, AutoVacuum::kNone}, Shape{512, 32, AutoVacuum::kFull},
                      Shape{1024, 0, AutoVacuum::kIncremental}, Shape{4096, 0, AutoVacuum::kNone},
                      Shape{4096, 8, AutoVacuum::kFull}, Shape{65536, 0, AutoVacuum::kNone}));

TEST(IntegrityCheck, NamesWhatIsWrong) {
  base::Rng rng(5);
  auto store = Store::open("", {}).value();
  store->begin_write().value();
  PageNo root = create_table_t(*store);
  {
    Cursor cursor(*store, root, nullptr);
    for (int i = 0; i < 300; i++)
      ASSERT_EQ(cursor.insert(i, bytes(row_of(random_text(rng, 9000)))), Hit::kRow);
  }
  store->commit().value();
  auto image = store->serialize().value();
  // Every damage that stock SQLite notices, we notice.
  int damaged = 0;
  for (int i = 0; i < 200; i++) {
    auto bad = image;
    for (int flips = 0; flips < 3; flips++) {
      size_t page = rng.below(image.size() / 4096);
      bad[page * 4096 + (page == 0 ? 100 : 0) + rng.below(40)] ^=
          static_cast<u8>(1 + rng.below(255));
    }
    std::string theirs = stock_says(bad);
    auto opened = Store::open_image(bad);
    if (!opened.ok()) continue;
    (*opened)->begin_read().value();
    auto ours = (*opened)->integrity_check({root}).value();
    if (theirs != "ok\n" && theirs.find("malformed") == std::string::npos) {
      damaged++;
      EXPECT_FALSE(ours.empty()) << theirs;
    }
    if (theirs == "ok\n") EXPECT_TRUE(ours.empty()) << ours[0];
  }
  EXPECT_GT(damaged, 50);
}

TEST(Cursor, KeepsItsPlaceWhenAnotherCursorChangesTheTree) {
  auto store = Store::open("", {}).value();
  store->begin_write().value();
  PageNo root = store->create_tree(TreeKind::kTable).value();
  Cursor writer(*store, root, nullptr);
  std::string value(100, 'v');
  for (int i = 0; i < 1000; i += 2) ASSERT_EQ(writer.insert(i, bytes(value)), Hit::kRow);
  Cursor reader(*store, root, nullptr);
  int seen = 0;
  for (Hit hit = reader.first(); hit == Hit::kRow; hit = reader.next()) {
    i64 here = reader.rowid();
    ASSERT_EQ(writer.insert(here + 1, bytes(value)), Hit::kRow);
    if (reader.next() != Hit::kRow) break;
    ASSERT_EQ(reader.rowid(), here + 1);
    ASSERT_EQ(writer.seek_equal(here + 1), Hit::kRow);
    ASSERT_EQ(writer.erase(), Hit::kRow);
    seen++;
  }
  EXPECT_EQ(seen, 500);
  EXPECT_EQ(writer.count().value(), 500);
}

}  // namespace
}  // namespace db
