#include "base/random.h"
#include "base/sim_disk.h"
#include "fs/blob/folder_blobs.h"
#include "fs/pack/pack_set.h"
#include "fs/seal/key_file.h"

#include <gtest/gtest.h>

namespace fs {
namespace {

// Plain and encrypted.
class PackTest : public ::testing::TestWithParam<bool> {
 protected:
  PackTest() : disk_({}) {
    EXPECT_TRUE(disk_.make_directory("packs").ok());
    key_.fill(7);
    if (GetParam()) seal_ = std::make_shared<const StoreSeal>(random_data_key());
  }
  std::string bytes_of(u64 id) {
    base::Rng rng(id);
    std::string bytes(rng.below(5000), 'z');
    if (id % 2)
      for (char& c : bytes) c = static_cast<char>(rng.next());
    return bytes;
  }
  void write(const std::string& name, u64 first, u64 last) {
    PackWriter writer(blobs_, name, key_, seal_);
    for (u64 id = last; id >= first; --id) writer.add(id, bytes_of(id));
    ASSERT_TRUE(writer.finish().ok());
  }
  base::SimDisk disk_;
  FolderBlobs blobs_{disk_, "packs"};
  StoreKey key_;
  SealPointer seal_;  // null: plain
};

INSTANTIATE_TEST_SUITE_P(Packs, PackTest, ::testing::Values(false, true), [](const auto& test) {
  return std::string(test.param ? "Encrypted" : "Plain");
});

TEST_P(PackTest, GivesBackEverySlot) {
  write("p", 10, 200);
  auto pack = PackReader::open(blobs_, "p", key_, seal_);
  ASSERT_TRUE(pack.ok()) << pack.error().message();
  for (u64 id = 10; id <= 200; ++id) EXPECT_EQ(**(*pack)->read(id), bytes_of(id));
  EXPECT_FALSE((*pack)->read(9)->has_value());
}

TEST_P(PackTest, EveryFlippedBitIsNoticed) {
  write("p", 1, 3);
  size_t size = disk_.contents("packs/p")->size();
  base::Rng rng(1);
  for (size_t at = 64; at < size; at += 1 + rng.below(40)) {
    u8 mask = static_cast<u8>(1u << rng.below(8));
    disk_.corrupt("packs/p", at, mask);
    bool noticed = false;
    auto pack = PackReader::open(blobs_, "p", key_, seal_);
    if (!pack.ok()) {
      noticed = true;
    } else {
      for (u64 id = 1; id <= 3; ++id) {
        auto read = (*pack)->read(id);
        if (!read.ok() || !read->has_value()) noticed = true;
      }
    }
    EXPECT_TRUE(noticed) << "byte " << at;
    disk_.corrupt("packs/p", at, mask);
  }
}

TEST_P(PackTest, AnotherKeyDoesNotVerify) {
  write("p", 1, 3);
  StoreKey other{};
  SealPointer other_seal;
  if (GetParam()) other_seal = std::make_shared<const StoreSeal>(random_data_key());
  EXPECT_FALSE((*PackReader::open(blobs_, "p", other, other_seal))->read(1).ok());
}

TEST_P(PackTest, ShowsItsContentsOnlyWithoutEncryption) {
  PackWriter writer(blobs_, "p", key_, seal_);
  for (u64 id = 1; id <= 2; ++id) writer.add(id, "a name of a file");
  writer.add(3, "");
  writer.add(4, "");
  ASSERT_TRUE(writer.finish().ok());
  auto contents = *disk_.contents("packs/p");
  EXPECT_EQ(base::as_text(contents).find("a name") != std::string::npos, !GetParam());
  auto same = base::as_text(contents).substr(64, 16) == base::as_text(contents).substr(80, 16);
  EXPECT_EQ(same, !GetParam()) << "equal slots look equal only when they are readable";
  auto pack = PackReader::open(blobs_, "p", key_, seal_);
  EXPECT_EQ(**(*pack)->read(2), "a name of a file");
  EXPECT_EQ(**(*pack)->read(4), "");
  SealPointer wrong = seal_ ? nullptr : std::make_shared<const StoreSeal>(random_data_key());
  auto opened = PackReader::open(blobs_, "p", key_, wrong);
  EXPECT_FALSE(opened.ok() && (*opened)->read(2).ok());
}

TEST_P(PackTest, SetFindsIdsInOverlappingPacksAndReloadsWhenOneIsGone) {
  PackSet set({&blobs_, key_, 1000, seal_}, [] { return std::vector<PackInfo>{{3, {{1, 50}}}}; });
  write(PackSet::name_of(1), 1, 20);
  write(PackSet::name_of(2), 15, 50);
  write(PackSet::name_of(3), 1, 50);
  set.add({1, {{1, 20}}});
  set.add({2, {{15, 50}}});
  for (u64 id = 1; id <= 50; ++id) EXPECT_EQ(**set.read(id), bytes_of(id));
  PackSet stale({&blobs_, key_, 1000, seal_}, [] { return std::vector<PackInfo>{{3, {{1, 50}}}}; });
  stale.add({1, {{1, 20}}});
  ASSERT_TRUE(blobs_.remove(PackSet::name_of(1)).ok());
  EXPECT_EQ(**stale.read(5), bytes_of(5));
  EXPECT_EQ(stale.read(51).error().code(), base::ErrorCode::kCorruption);
}

}  // namespace
}  // namespace fs
