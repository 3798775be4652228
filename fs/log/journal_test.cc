#include "fs/log/journal.h"

#include "base/random.h"
#include "base/sim_disk.h"
#include "fs/log/segment.h"

#include <gtest/gtest.h>

namespace fs {
namespace {

std::string record_of(Seq seq, DataId data, u32 length) {
  std::string out;
  RecordWriter writer(out);
  writer.start();
  writer.put("key" + std::to_string(seq), "value");
  RecordHeader header;
  header.seq = seq;
  header.op = RecordOp::kWrite;
  header.data = data;
  header.data_length = length;
  writer.finish(header);
  return out;
}

std::string data_of(Seq seq, u32 length) {
  return std::string(length, static_cast<char>('a' + seq % 26));
}

struct Recovered {
  LogEnd end;
  std::vector<Seq> seen;
};

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() { reset(1); }
  void reset(u64 seed) {
    disk_ = std::make_unique<base::SimDisk>(base::SimDisk::Options{.seed = seed});
    ASSERT_TRUE(disk_->make_directory("log").ok());
    ASSERT_TRUE(disk_->sync_directory("").ok());
  }
  base::Result<Recovered> recover() {
    Recovered result;
    places_ = std::make_unique<DataPlaces>();
    LogScan scan;
    scan.disk = disk_.get();
    scan.folder = "log";
    scan.workspace = 1;
    scan.places = places_.get();
    scan.visit = [&](const RecordHeader& header, std::string_view record) -> base::Status {
      EXPECT_EQ(record, record_of(header.seq, header.data, header.data_length));
      result.seen.push_back(header.seq);
      return {};
    };
    result.end = TRY(scan_log(scan));
    return result;
  }
  base::Result<std::unique_ptr<Journal>> open(const LogEnd& end, u64 segment_bytes = 1 << 20) {
    return Journal::open({disk_.get(), "log", 1, ++epoch_, segment_bytes}, end, places_.get());
  }
  void append(Journal& journal, u32 length) {
    Seq seq = journal.appended() + 1;
    std::string record = record_of(seq, length > 0 ? 1000 + seq : 0, length);
    std::string data = data_of(seq, length);
    journal.append(*decode_header(record), record, base::as_bytes(data));
  }
  std::unique_ptr<base::SimDisk> disk_;
  std::unique_ptr<DataPlaces> places_;
  Epoch epoch_ = 0;
};

TEST_F(JournalTest, GivesBackWhatWasCommittedAcrossSegmentsAndReopenings) {
  for (int round = 0; round < 4; ++round) {
    auto recovered = recover();
    ASSERT_TRUE(recovered.ok()) << recovered.error().message();
    ASSERT_EQ(recovered->seen.size(), static_cast<size_t>(round) * 30);
    auto journal = open(recovered->end, 2000);
    ASSERT_TRUE(journal.ok()) << journal.error().message();
    for (u32 i = 0; i < 30; ++i) {
      append(**journal, i % 3 == 0 ? 100 + i : 0);
      if (i % 4 == 0) ASSERT_TRUE((*journal)->commit().ok());
    }
    ASSERT_TRUE((*journal)->commit().ok());
    ASSERT_TRUE((*journal)->sync().ok());
    std::string out(100, '\0');
    auto read = (*journal)->read(1000 + 1, 0, base::Bytes(reinterpret_cast<u8*>(out.data()), 100));
    ASSERT_TRUE(read.ok() && *read);
    EXPECT_EQ(out, data_of(1, 100));
  }
}

TEST_F(JournalTest, ReadsDataThatIsStillInTheBatch) {
  auto journal = open(recover()->end);
  append(**journal, 50);
  std::string out(20, '\0');
  auto read = (*journal)->read(1001, 10, base::Bytes(reinterpret_cast<u8*>(out.data()), 20));
  ASSERT_TRUE(read.ok() && *read);
  EXPECT_EQ(out, data_of(1, 20));
}

TEST_F(JournalTest, CallsDamageInDurableBytesCorruptionNotATornTail) {
  auto journal = open(recover()->end);
  for (int i = 0; i < 3; ++i) {
    append(**journal, 0);
    ASSERT_TRUE((*journal)->commit().ok());
    ASSERT_TRUE((*journal)->sync().ok());
  }
  auto path = list_segments(*disk_, "log")->front().path;
  disk_->corrupt(path, kSegmentHeaderBytes + 70, 1);
  auto recovered = recover();
  ASSERT_FALSE(recovered.ok());
  EXPECT_EQ(recovered.error().code(), base::ErrorCode::kCorruption);
}

TEST_F(JournalTest, DoesNotHearAFencedWriterThatGoesOn) {
  auto old_holder = open(recover()->end);
  append(**old_holder, 0);
  ASSERT_TRUE((*old_holder)->commit().ok());
  auto recovered = recover();
  auto new_holder = open(recovered->end);
  append(**old_holder, 0);
  ASSERT_TRUE((*old_holder)->commit().ok());
  append(**new_holder, 10);
  ASSERT_TRUE((*new_holder)->commit().ok());
  auto after = recover();
  ASSERT_TRUE(after.ok()) << after.error().message();
  EXPECT_EQ(after->seen, (std::vector<Seq>{1, 2}));
  std::string out(10, '\0');
  auto read = places_->read(1002, 0, base::Bytes(reinterpret_cast<u8*>(out.data()), 10));
  EXPECT_TRUE(read.ok() && *read);
}

TEST_F(JournalTest, DropsOnlyWholeSegmentsThatNobodyNeeds) {
  auto journal = open(recover()->end, 500);
  for (int i = 0; i < 20; ++i) {
    append(**journal, 0);
    ASSERT_TRUE((*journal)->commit().ok());
  }
  ASSERT_TRUE((*journal)->drop_segments_before(10).ok());
  auto segments = *list_segments(*disk_, "log");
  EXPECT_LE(segments.front().first, 10u);
  EXPECT_GT(segments.front().first, 1u);
}

// Crashes at every point of random runs: what comes back is a prefix, holds all that was synced,
// and the journal goes on from there.
TEST_F(JournalTest, RecoversAPrefixWithAllThatWasSyncedAfterAnyCrash) {
  for (u64 seed = 1; seed <= 400; ++seed) {
    base::Rng rng(seed);
    reset(seed);
    Seq synced = 0;
    for (int life = 0; life < 4; ++life) {
      disk_->power_off_at(disk_->operations() + 1 + rng.below(25));
      auto recovered = recover();
      auto journal = recovered.ok() ? open(recovered->end, 800)
                                    : base::Result<std::unique_ptr<Journal>>(recovered.error());
      for (int i = 0; journal.ok() && i < 40; ++i) {
        append(**journal, static_cast<u32>(rng.below(2) * rng.below(300)));
        if (rng.chance(0.5) && !(*journal)->commit().ok()) break;
        if (rng.chance(0.3)) {
          if (!(*journal)->sync().ok()) break;
          synced = std::max(synced, (*journal)->synced());
        }
      }
      disk_->crash();
      auto after = recover();
      ASSERT_TRUE(after.ok()) << "seed " << seed << ": " << after.error().message();
      ASSERT_GE(after->end.last, synced) << "seed " << seed;
      for (size_t i = 0; i < after->seen.size(); ++i) ASSERT_EQ(after->seen[i], i + 1);
    }
  }
}

}  // namespace
}  // namespace fs
