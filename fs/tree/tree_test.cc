#include "fs/tree/tree.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace fs {
namespace {

using KeyValues = std::map<std::string, std::string>;

class TreeTest : public ::testing::Test {
 protected:
  TreeTest() {
    source_ = std::make_shared<CachedPages>(
        [this](PageId id) -> base::Result<std::shared_ptr<const std::string>> {
          ++reads_;
          return std::make_shared<const std::string>(pages_.at(id));
        },
        4);
  }
  PageId fold_in(PageId root, const TreeChanges& changes) {
    auto folded = fold(*source_, root, changes, [this](std::string_view bytes) {
      pages_[++next_] = bytes;
      return base::Result<PageId>(next_);
    });
    EXPECT_TRUE(folded.ok());
    return *folded;
  }
  KeyValues all(PageId root) {
    KeyValues found;
    EXPECT_TRUE(Tree(source_, root)
                    .scan("", [&](std::string_view k, std::string_view v) { found.emplace(k, v); })
                    .ok());
    return found;
  }
  std::string key(u64 number) {
    std::string text = std::to_string(number);
    return "key" + std::string(6 - text.size(), '0') + text;
  }
  std::map<PageId, std::string> pages_;
  PageId next_ = 0;
  u64 reads_ = 0;
  std::shared_ptr<CachedPages> source_;
};

TEST_F(TreeTest, FoldsLikeAMapThroughRandomRounds) {
  base::Rng rng(3);
  KeyValues expected;
  PageId root = 0;
  for (int round = 0; round < 40; ++round) {
    TreeChanges changes;
    u64 count = round % 7 == 6 ? 3000 : 1 + rng.below(400);
    for (u64 i = 0; i < count; ++i) {
      std::string k = key(rng.below(5000));
      if (rng.chance(round % 7 == 6 ? 0.9 : 0.3)) {
        changes[k] = std::nullopt;
      } else {
        changes[k] = std::string(rng.below(200), 'v') + std::to_string(i);
      }
    }
    for (const auto& [k, v] : changes) {
      if (v)
        expected[k] = *v;
      else
        expected.erase(k);
    }
    root = fold_in(root, changes);
    ASSERT_EQ(all(root), expected) << round;
    std::string probe = key(rng.below(5000));
    auto got = Tree(source_, root).get(probe);
    ASSERT_EQ(got->has_value(), expected.contains(probe));
  }
  TreeChanges everything;
  for (const auto& [k, v] : expected) everything[k] = std::nullopt;
  EXPECT_EQ(fold_in(root, everything), 0u);
}

TEST_F(TreeTest, ASmallChangeWritesOnePathOnly) {
  TreeChanges changes;
  for (u64 i = 0; i < 50000; ++i) changes[key(i)] = std::string(100, 'x');
  PageId root = fold_in(0, changes);
  size_t before = pages_.size();
  EXPECT_GT(before, 300u);
  fold_in(root, {{key(25000), "changed"}});
  EXPECT_LE(pages_.size() - before, 3u);
}

TEST_F(TreeTest, ComparingReadsOnlyWhatDiffers) {
  TreeChanges changes;
  for (u64 i = 0; i < 50000; ++i) changes[key(i)] = std::string(100, 'x');
  PageId one = fold_in(0, changes);
  PageId two = fold_in(one, {{key(7), "changed"}, {key(40000), std::nullopt}, {"zzz", "new"}});
  reads_ = 0;
  std::string seen;
  ASSERT_TRUE(compare(*source_, one, two,
                      [&](std::string_view k, const std::string* a, const std::string* b) {
                        seen += std::string(k) + (a ? "-" : "") + (b ? "+" : "") + " ";
                        return base::Status();
                      })
                  .ok());
  EXPECT_EQ(seen, key(7) + "-+ " + key(40000) + "- zzz+ ");
  EXPECT_LT(reads_, 20u);
}

TEST_F(TreeTest, ComparesLikeMapsUnderRandomChanges) {
  base::Rng rng(5);
  PageId one = 0;
  TreeChanges changes;
  for (u64 i = 0; i < 3000; ++i) changes[key(rng.below(9000))] = std::string(rng.below(300), 'a');
  one = fold_in(0, changes);
  for (int round = 0; round < 30; ++round) {
    changes.clear();
    for (u64 i = 0; i < rng.below(1000); ++i) {
      changes[key(rng.below(9000))] =
          rng.chance(0.5) ? std::nullopt : std::optional<std::string>(std::to_string(rng.next()));
    }
    PageId two = fold_in(one, changes);
    KeyValues a = all(one);
    KeyValues b = all(two);
    std::set<std::string> expected;
    for (const auto& [k, v] : a)
      if (!b.contains(k) || b[k] != v) expected.insert(k);
    for (const auto& [k, v] : b)
      if (!a.contains(k)) expected.insert(k);
    std::set<std::string> seen;
    ASSERT_TRUE(compare(*source_, one, two,
                        [&](std::string_view k, const std::string*, const std::string*) {
                          seen.emplace(k);
                          return base::Status();
                        })
                    .ok());
    ASSERT_EQ(seen, expected);
    one = two;
  }
}

TEST_F(TreeTest, RefusesDamagedPages) {
  fold_in(0, {{"a", "1"}, {"b", "2"}});
  std::string good = pages_[1];
  for (size_t i = 0; i < good.size(); ++i) EXPECT_FALSE(decode_page(good.substr(0, i)));
  std::string swapped = good;
  std::swap(swapped[4], swapped[8]);
  auto page = decode_page(swapped);
  EXPECT_TRUE(!page || page->keys.size() == 2);
}

}  // namespace
}  // namespace fs
