// One contract for every Disk, then what only the simulated one does.
#include "base/disk.h"

#include "base/files.h"
#include "base/sim_disk.h"

#include <gtest/gtest.h>

namespace base {
namespace {

std::string read_all(Disk& disk, const std::string& path) {
  auto file = disk.open(path, {.read_only = true}).value();
  std::string text(file->size().value(), '\0');
  EXPECT_EQ(file->read_at(0, {reinterpret_cast<u8*>(text.data()), text.size()}).value(),
            text.size());
  return text;
}

class DiskContract : public testing::TestWithParam<bool> {
 protected:
  DiskContract() : sim_({.seed = 1}) { EXPECT_TRUE(sim_.make_directory(dir_.path()).ok()); }
  Disk& disk() { return GetParam() ? static_cast<Disk&>(sim_) : posix_disk(); }
  TempDir dir_;
  SimDisk sim_;
};

TEST_P(DiskContract, WritesPastTheEndLeaveZeros) {
  auto file = disk().open(dir_ / "a", {.create = true}).value();
  ASSERT_TRUE(file->write_at(3, as_bytes("x")).ok());
  EXPECT_EQ(file->size().value(), 4u);
  EXPECT_EQ(read_all(disk(), dir_ / "a"), std::string("\0\0\0x", 4));
}

TEST_P(DiskContract, ReadsStopAtTheEnd) {
  auto file = disk().open(dir_ / "a", {.create = true}).value();
  ASSERT_TRUE(file->write_at(0, as_bytes("abc")).ok());
  u8 buffer[8];
  EXPECT_EQ(file->read_at(1, buffer).value(), 2u);
  EXPECT_EQ(file->read_at(9, buffer).value(), 0u);
}

TEST_P(DiskContract, NamesBehaveLikePosix) {
  EXPECT_EQ(disk().open(dir_ / "a", {}).error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(disk().open(dir_ / "a", {.create = true}).value()->write_at(0, as_bytes("1")).ok());
  EXPECT_EQ(disk().open(dir_ / "a", {.create = true, .exclusive = true}).error().code(),
            ErrorCode::kExists);
  ASSERT_TRUE(disk().rename(dir_ / "a", dir_ / "b").ok());
  EXPECT_FALSE(disk().exists(dir_ / "a").value());
  EXPECT_EQ(disk().list(dir_.path()).value(), std::vector<std::string>{"b"});
  ASSERT_TRUE(disk().remove(dir_ / "b").ok());
  EXPECT_EQ(disk().remove(dir_ / "b").error().code(), ErrorCode::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(EveryDisk, DiskContract, testing::Bool(),
                         [](const auto& info) { return info.param ? "Sim" : "Posix"; });

TEST(SimDisk, SyncedBytesSurviveEveryCrash) {
  for (u64 seed = 1; seed <= 200; ++seed) {
    SimDisk disk({.seed = seed});
    auto file = disk.open("d/a", {.create = true}).value();
    ASSERT_TRUE(file->write_at(0, as_bytes(std::string(2000, 's'))).ok());
    ASSERT_TRUE(file->sync().ok());
    ASSERT_TRUE(disk.sync_directory("d").ok());
    ASSERT_TRUE(file->write_at(4096, as_bytes(std::string(2000, 'u'))).ok());
    disk.crash();
    EXPECT_EQ(read_all(disk, "d/a").substr(0, 2000), std::string(2000, 's')) << "seed " << seed;
    EXPECT_FALSE(file->sync().ok()) << "files opened before the crash are dead";
  }
}

TEST(SimDisk, UnsyncedSectorsAreLostIndependently) {
  bool torn = false, lost_name = false;
  for (u64 seed = 1; seed <= 200; ++seed) {
    SimDisk disk({.seed = seed});
    auto file = disk.open("d/a", {.create = true}).value();
    ASSERT_TRUE(file->write_at(0, as_bytes(std::string(2048, 'o'))).ok());
    ASSERT_TRUE(file->sync().ok());
    ASSERT_TRUE(file->write_at(0, as_bytes(std::string(2048, 'n'))).ok());
    disk.crash();
    if (!disk.exists("d/a").value()) {
      lost_name = true;
      continue;
    }
    std::string text = read_all(disk, "d/a");
    torn |= text.find('o') != std::string::npos && text.find('n') != std::string::npos;
  }
  EXPECT_TRUE(torn);
  EXPECT_TRUE(lost_name);
}

TEST(SimDisk, PowerOffStopsEverythingUntilTheCrash) {
  SimDisk disk({.seed = 5});
  auto file = disk.open("d/a", {.create = true}).value();
  disk.power_off_at(disk.operations() + 1);
  EXPECT_TRUE(file->write_at(0, as_bytes("1")).ok());
  EXPECT_FALSE(file->write_at(0, as_bytes("2")).ok());
  EXPECT_FALSE(disk.open("d/b", {.create = true}).ok());
  disk.crash();
  EXPECT_TRUE(disk.open("d/b", {.create = true}).ok());
}

TEST(SimDisk, FullAndFailingCallsAreReported) {
  SimDisk disk({.seed = 5, .capacity_bytes = 100});
  auto file = disk.open("a", {.create = true}).value();
  EXPECT_EQ(file->write_at(0, as_bytes(std::string(101, 'x'))).error().code(), ErrorCode::kFull);
  disk.fail_at(disk.operations(), ErrorCode::kIo);
  EXPECT_EQ(file->sync().error().code(), ErrorCode::kIo);
  EXPECT_TRUE(file->sync().ok());
}

}  // namespace
}  // namespace base
