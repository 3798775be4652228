#include "base/random.h"
#include "fs/state/directory.h"
#include "fs/state/inode.h"
#include "fs/state/keys.h"
#include "fs/state/lock_table.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace fs {
namespace {

TEST(Inode, SurvivesEncodingWithExtentsAndTarget) {
  Attributes attr;
  attr.mode = 0100644;
  attr.uid = 1000;
  attr.size = 1 << 20;
  attr.mtime_ns = -5;
  attr.extent_count = 2;
  std::vector<Extent> extents{{0, 10, 0, 77}, {100, 5, 3, 78}};
  std::string bytes;
  encode_inode(attr, "over/there", extents, bytes);
  auto back = decode_inode(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->attr, attr);
  EXPECT_EQ(back->symlink, "over/there");
  EXPECT_EQ(back->extents, extents);
}

TEST(Inode, RefusesEveryTruncationAndOverlappingExtents) {
  Attributes attr;
  attr.extent_count = 2;
  std::string bytes;
  encode_inode(attr, "", {{0, 10, 0, 77}, {10, 5, 0, 78}}, bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_inode(std::string_view(bytes).substr(0, length))) << length;
  }
  std::string overlapping;
  encode_inode(attr, "", {{0, 10, 0, 77}, {9, 5, 0, 78}}, overlapping);
  EXPECT_FALSE(decode_inode(overlapping));
}

TEST(Keys, ParseBackAndSortByDirectory) {
  std::string key = entry_key(0x0102030405060708, "name");
  auto parsed = parse_key(key);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->ino, 0x0102030405060708u);
  EXPECT_EQ(parsed->name, "name");
  EXPECT_LT(entry_key(1, "zzz"), entry_key(2, "a"));
  EXPECT_LT(extent_key(9, 255), extent_key(9, 256));
  for (std::string_view bad : {"", "D", "Z12345678", "I123456789", "C12345678", "D12345678"}) {
    EXPECT_FALSE(parse_key(bad)) << bad;
  }
}

TEST(Directory, BehavesLikeAMapUnderRandomChanges) {
  base::Rng rng(1);
  Directory directory;
  std::map<std::string, Ino> expected;
  u64 cookie = 3;
  for (int i = 0; i < 20000; ++i) {
    std::string name = "n" + std::to_string(rng.below(200));
    bool there = expected.contains(name);
    ASSERT_EQ(directory.find(name) != nullptr, there);
    if (there && rng.chance(0.6)) {
      directory.erase(name);
      expected.erase(name);
    } else if (!there) {
      directory.insert(name, i + 1, cookie++, FileType::kRegular);
      expected[name] = i + 1;
    }
  }
  ASSERT_EQ(directory.size(), expected.size());
  for (const auto& [name, ino] : expected) EXPECT_EQ(directory.find(name)->ino, ino);
}

TEST(Directory, ShowsLastingEntriesOnceWhileOthersComeAndGo) {
  base::Rng rng(2);
  Directory directory;
  u64 cookie = 3;
  for (int i = 0; i < 100; ++i) {
    directory.insert("keep" + std::to_string(i), i + 1, cookie++, FileType::kRegular);
    directory.insert("go" + std::to_string(i), i + 1001, cookie++, FileType::kRegular);
  }
  std::multiset<std::string> seen;
  u64 after = 0;
  for (int round = 0;; ++round) {
    size_t at = directory.first_after(after);
    if (at == directory.slots().size()) break;
    Directory::Slot slot = directory.slots()[at];
    after = slot.cookie;
    if (slot.ino != 0 && slot.name.starts_with("keep")) seen.insert(slot.name);
    std::string victim = "go" + std::to_string(rng.below(100));
    if (directory.find(victim) != nullptr) directory.erase(victim);
    if (round < 50) {
      directory.insert("new" + std::to_string(round), 5000 + round, cookie++, FileType::kRegular);
    }
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 100u);
}

HeldLock lock(u64 owner, u64 start, u64 last, bool write) {
  return {1, owner, start, last, write, 0};
}

TEST(LockTable, SplitsAndMergesRangesOfOneOwner) {
  LockTable table;
  auto space = LockTable::Space::kPosix;
  table.acquire(space, 5, lock(1, 0, 99, true));
  table.release(space, 5, lock(1, 40, 59, false));
  EXPECT_EQ(table.conflict(space, 5, lock(2, 40, 59, true)), nullptr);
  EXPECT_NE(table.conflict(space, 5, lock(2, 39, 39, false)), nullptr);
  EXPECT_NE(table.conflict(space, 5, lock(2, 60, 60, false)), nullptr);
  table.acquire(space, 5, lock(1, 40, 59, true));
  LockTable whole;
  whole.acquire(space, 5, lock(1, 0, 99, true));
  EXPECT_EQ(table.canonical(), whole.canonical());
}

TEST(LockTable, GrantsWaitersInOrderAndSeesDeadlocks) {
  LockTable table;
  auto space = LockTable::Space::kPosix;
  table.acquire(space, 1, lock(1, 0, 9, true));
  table.acquire(space, 2, lock(2, 0, 9, true));
  table.wait({100, space, 2, lock(1, 0, 9, true)});
  EXPECT_TRUE(table.would_deadlock(space, 1, lock(2, 0, 9, true)));
  EXPECT_FALSE(table.would_deadlock(space, 1, lock(3, 0, 9, true)));
  table.wait({101, space, 2, lock(3, 0, 9, true)});
  table.release(space, 2, lock(2, 0, 9, false));
  EXPECT_EQ(table.grant_waiters(), std::vector<u64>{100});
  table.end_session(1);
  EXPECT_TRUE(table.empty());
}

}  // namespace
}  // namespace fs
