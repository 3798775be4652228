#include "fs/store/store.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace fs {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    EXPECT_TRUE(Store::format(folder_.path(), {}).ok());
    reopen();
    EXPECT_TRUE(store_->create_workspace("main").ok());
    open("main");
  }
  void reopen() {
    workspace_.reset();
    store_.reset();
    auto opened = Store::open(folder_.path(), {});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    store_ = std::move(*opened);
  }
  void open(const std::string& name) {
    if (workspace_) EXPECT_TRUE(workspace_->close().ok());
    workspace_.reset();
    auto opened = store_->open_workspace(name, {});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    workspace_ = std::move(*opened);
  }
  int run(Operation operation, std::string_view data = {}) {
    Request request;
    request.now_ns = ++now_;
    request.operation = operation;
    workspace_->perform(request, base::as_bytes(data), effects_);
    EXPECT_TRUE(workspace_->commit().ok());
    return effects_.reply.error;
  }
  Ino find(std::string_view name, Ino parent = kRootIno) {
    return run(Lookup{parent, name}) == 0 ? effects_.reply.ino : 0;
  }
  void put(std::string_view name, std::string_view content, Ino parent = kRootIno) {
    ASSERT_EQ(run(Create{parent, name, 0644, false, true}), 0);
    ASSERT_EQ(run(Write{effects_.reply.ino, 0, static_cast<u32>(content.size())}, content), 0);
  }
  std::string content(std::string_view name, Ino parent = kRootIno) {
    Ino ino = find(name, parent);
    if (ino == 0) return "(missing)";
    EXPECT_EQ(run(Read{ino, 0, 1 << 20}), 0);
    std::string all;
    auto pieces = effects_.reply.pieces;
    for (const Piece& piece : pieces) {
      std::string part(piece.length, '?');
      auto read = workspace_->read(piece, {reinterpret_cast<u8*>(part.data()), part.size()});
      EXPECT_TRUE(read.ok()) << read.error().message();
      all += part;
    }
    return all;
  }
  base::TempDir folder_{"store"};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Workspace> workspace_;
  Effects effects_;
  i64 now_ = 1'000'000;
};

TEST_F(StoreTest, RefusesToFormatTwice) {
  auto again = Store::format(folder_.path(), {});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), base::ErrorCode::kExists);
}

TEST_F(StoreTest, KeepsFilesAcrossAKillAndAcrossACleanEnd) {
  put("a", "alpha");
  ASSERT_EQ(run(Rename{kRootIno, "a", kRootIno, "b"}), 0);
  put("gone", "x");
  ASSERT_EQ(run(Unlink{kRootIno, "gone"}), 0);
  reopen();  // no close: the lease is our own process's, which lives
  auto refused = store_->open_workspace("main", {});
  EXPECT_FALSE(refused.ok());
}

TEST_F(StoreTest, KeepsFilesAcrossACleanEnd) {
  put("a", "alpha");
  Ino before = find("a");
  ASSERT_TRUE(workspace_->close().ok());
  reopen();
  open("main");
  EXPECT_EQ(content("a"), "alpha");
  EXPECT_EQ(find("a"), before);
}

TEST_F(StoreTest, ForksAreIsolatedBothWaysAndKeepInodeNumbers) {
  put("a", "old");
  Ino ino = find("a");
  ASSERT_TRUE(workspace_->fork("copy").ok());
  put("a", "new");
  put("only-parent", "1");
  open("copy");
  EXPECT_EQ(content("a"), "old");
  EXPECT_EQ(find("a"), ino);
  EXPECT_EQ(content("only-parent"), "(missing)");
  put("a", "fork");
  put("b", "2");
  ASSERT_TRUE(workspace_->fork("grandchild").ok());
  put("a", "later");
  open("main");
  EXPECT_EQ(content("a"), "new");
  EXPECT_EQ(content("b"), "(missing)");
  open("grandchild");
  EXPECT_EQ(content("a"), "fork");
  EXPECT_EQ(content("b"), "2");
}

TEST_F(StoreTest, CheckpointsKeepContentAndDropTheLog) {
  std::string big(300'000, 'b');
  put("big", big);
  put("small", "s");
  put("dead", "d");
  ASSERT_EQ(run(Unlink{kRootIno, "dead"}), 0);
  ASSERT_TRUE(workspace_->checkpoint().ok());
  EXPECT_EQ(content("big"), big);
  put("after", "a");
  EXPECT_EQ(workspace_->info().root_seq + 2, workspace_->last_seq());
  ASSERT_TRUE(workspace_->checkpoint().ok());
  ASSERT_TRUE(workspace_->checkpoint().ok());
  open("main");
  EXPECT_EQ(content("big"), big);
  EXPECT_EQ(content("small"), "s");
  EXPECT_EQ(content("after"), "a");
  EXPECT_EQ(content("dead"), "(missing)");
  EXPECT_LE(base::list_directory(folder_ / "log")->size(), 3u);
  put("after", "changed");
  EXPECT_EQ(content("after"), "changed");
}

TEST_F(StoreTest, AForkOfAnUnfoldedTailOutlivesItsParentsCheckpoints) {
  put("a", "old");
  ASSERT_TRUE(workspace_->fork("copy").ok());
  ASSERT_TRUE(workspace_->snapshot("snap").ok());
  put("a", "new");
  ASSERT_TRUE(workspace_->checkpoint().ok());
  put("a", "newer");
  ASSERT_TRUE(workspace_->checkpoint().ok());
  open("copy");
  EXPECT_EQ(content("a"), "old");
  ASSERT_TRUE(workspace_->checkpoint().ok());
  EXPECT_EQ(content("a"), "old");
  ASSERT_TRUE(workspace_->close().ok());
  ASSERT_TRUE(store_->fork("main@snap", "from-snap").ok());
  open("from-snap");
  EXPECT_EQ(content("a"), "old");
  open("main");
  EXPECT_EQ(content("a"), "newer");
}

TEST_F(StoreTest, DiffNamesWhatChangedBetweenAForkAndItsParent) {
  ASSERT_EQ(run(Mkdir{kRootIno, "d"}), 0);
  Ino d = effects_.reply.ino;
  put("same", "s", d);
  put("edited", "1", d);
  put("removed", "r");
  ASSERT_TRUE(workspace_->checkpoint().ok());
  ASSERT_TRUE(workspace_->fork("copy").ok());
  open("copy");
  put("edited", "2", d);
  put("added", "a", d);
  ASSERT_EQ(run(Unlink{kRootIno, "removed"}), 0);
  for (bool folded : {false, true}) {
    if (folded) ASSERT_TRUE(workspace_->checkpoint().ok());
    auto diff = store_->diff("main", "copy");
    ASSERT_TRUE(diff.ok()) << diff.error().message();
    std::string text;
    for (const Difference& item : *diff) {
      text += std::string(1, "+-mt"[static_cast<int>(item.kind)]) + item.path + " ";
    }
    EXPECT_EQ(text, "+/d/added m/d/edited -/removed ");
  }
  EXPECT_TRUE(store_->diff("main", "main")->empty());
}

TEST_F(StoreTest, CollectionFreesWhatNothingReachesAndNothingElse) {
  put("keep", std::string(100'000, 'k'));
  ASSERT_TRUE(workspace_->checkpoint().ok());
  std::string noise;
  for (int i = 0; i < 200'000; ++i) noise += static_cast<char>(i * 7919 >> 3);
  put("big", noise);
  ASSERT_TRUE(workspace_->checkpoint().ok());
  ASSERT_TRUE(workspace_->snapshot("with-big").ok());
  ASSERT_EQ(run(Unlink{kRootIno, "big"}), 0);
  ASSERT_EQ(run(Forget{effects_.reply.ino, 100}), 0);
  open("main");
  ASSERT_TRUE(workspace_->checkpoint().ok());
  auto first = store_->gc();
  ASSERT_TRUE(first.ok()) << first.error().message();
  ASSERT_TRUE(store_->fork("main@with-big", "copy").ok());
  ASSERT_TRUE(store_->remove("main@with-big").ok());
  ASSERT_TRUE(store_->gc().ok());
  open("copy");
  EXPECT_EQ(content("big"), noise);
  ASSERT_TRUE(workspace_->close().ok());
  workspace_.reset();
  ASSERT_TRUE(store_->remove("copy").ok());
  auto last = store_->gc();
  ASSERT_TRUE(last.ok()) << last.error().message();
  EXPECT_GT(last->packs_deleted, 0u);
  EXPECT_GT(last->bytes_freed, 1000u);
  open("main");
  EXPECT_EQ(content("keep"), std::string(100'000, 'k'));
  auto report = store_->fsck();
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->problems.empty()) << report->problems.front();
  EXPECT_EQ(report->data, 1u);
}

TEST_F(StoreTest, FsckNamesADamagedPack) {
  put("f", std::string(50'000, 'x'));
  ASSERT_TRUE(workspace_->checkpoint().ok());
  EXPECT_TRUE(store_->fsck()->problems.empty());
  std::string path = (folder_ / "packs/") + base::list_directory(folder_ / "packs")->front();
  std::string bytes = *base::read_file(path);
  bytes[70] ^= 1;
  ASSERT_TRUE(base::write_file(path, bytes).ok());
  ASSERT_TRUE(workspace_->close().ok());
  reopen();
  auto report = store_->fsck();
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->problems.empty());
}

TEST_F(StoreTest, RollsBackToASnapshot) {
  put("a", "one");
  ASSERT_TRUE(workspace_->snapshot("s1").ok());
  put("a", "two");
  Ino later = (put("later", "x"), find("later"));
  ASSERT_TRUE(workspace_->close().ok());
  ASSERT_TRUE(store_->rollback("main", "s1").ok());
  open("main");
  EXPECT_EQ(content("a"), "one");
  EXPECT_EQ(content("later"), "(missing)");
  put("fresh", "y");
  EXPECT_NE(find("fresh"), later);
}

}  // namespace
}  // namespace fs
