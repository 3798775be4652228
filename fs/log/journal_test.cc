#include "fs/log/journal.h"

#include "base/hash.h"
#include "base/random.h"
#include "base/sim_disk.h"
#include "fs/log/segment.h"
#include "fs/seal/key_file.h"

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

// Plain and encrypted.
class JournalTest : public ::testing::TestWithParam<bool> {
 protected:
  JournalTest() {
    if (GetParam()) seal_ = std::make_shared<const StoreSeal>(random_data_key());
    reset(1);
  }
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
    scan.seal = seal_;
    scan.visit = [&](const RecordHeader& header, std::string_view record) -> base::Status {
      EXPECT_EQ(record, record_of(header.seq, header.data, header.data_length));
      result.seen.push_back(header.seq);
      return {};
    };
    result.end = TRY(scan_log(scan));
    return result;
  }
  base::Result<std::unique_ptr<Journal>> open(const LogEnd& end, u64 segment_bytes = 1 << 20) {
    Journal::Options options{disk_.get(), "log", 1, ++epoch_, segment_bytes};
    options.seal = seal_;
    return Journal::open(options, end, places_.get());
  }
  void append(Journal& journal, u32 length) {
    Seq seq = journal.appended() + 1;
    std::string record = record_of(seq, length > 0 ? 1000 + seq : 0, length);
    std::string data = data_of(seq, length);
    journal.append(*decode_header(record), record, base::as_bytes(data));
  }
  std::unique_ptr<base::SimDisk> disk_;
  std::unique_ptr<DataPlaces> places_;
  SealPointer seal_;  // null: plain
  Epoch epoch_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Logs, JournalTest, ::testing::Values(false, true), [](const auto& test) {
  return std::string(test.param ? "Encrypted" : "Plain");
});

TEST_P(JournalTest, GivesBackWhatWasCommittedAcrossSegmentsAndReopenings) {
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

TEST_P(JournalTest, ReadsDataThatIsStillInTheBatch) {
  auto journal = open(recover()->end);
  append(**journal, 50);
  std::string out(20, '\0');
  auto read = (*journal)->read(1001, 10, base::Bytes(reinterpret_cast<u8*>(out.data()), 20));
  ASSERT_TRUE(read.ok() && *read);
  EXPECT_EQ(out, data_of(1, 20));
}

TEST_P(JournalTest, CallsDamageInDurableBytesCorruptionNotATornTail) {
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

TEST_P(JournalTest, DoesNotHearAFencedWriterThatGoesOn) {
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

TEST_P(JournalTest, DropsOnlyWholeSegmentsThatNobodyNeeds) {
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
TEST_P(JournalTest, RecoversAPrefixWithAllThatWasSyncedAfterAnyCrash) {
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

class SealedLog : public JournalTest {
 protected:
  // One batch of a record with data, as it lies on the disk.
  std::string write() {
    auto journal = open(recover()->end);
    append(**journal, 300);
    EXPECT_TRUE((*journal)->commit().ok());
    path_ = list_segments(*disk_, "log")->back().path;
    return std::string(base::as_text(*disk_->contents(path_)));
  }
  // The same bytes with a checksum and a chain as a forger would make them.
  void forge(std::string bytes) {
    std::string batch = bytes.substr(kSegmentHeaderBytes);
    u32 length = base::load_le<u32>(batch.data() + 20);
    Chain chain = next_chain({}, base::as_bytes(batch).subspan(kBatchHeaderBytes, length));
    std::memcpy(batch.data() + 40, chain.data(), chain.size());
    auto summed = base::as_bytes(batch).subspan(8, kBatchHeaderBytes - 8 + length);
    base::store_le<u32>(batch.data() + 4, base::crc32c(summed));
    auto file = disk_->open(path_, {});
    ASSERT_TRUE((*file)->write_at(kSegmentHeaderBytes, base::as_bytes(batch)).ok());
  }
  std::string path_;
};

INSTANTIATE_TEST_SUITE_P(Logs, SealedLog, ::testing::Values(true));

TEST_P(SealedLog, ShowsNothingOfWhatItHolds) {
  std::string bytes = write();
  EXPECT_EQ(bytes.find("key1"), std::string::npos);
  EXPECT_EQ(bytes.find("value"), std::string::npos);
  EXPECT_EQ(bytes.find("bbbbbbbb"), std::string::npos);
  seal_ = nullptr;
  auto without = recover();
  EXPECT_FALSE(without.ok()) << "a reader without the key says so";
}

TEST_P(SealedLog, TwoJournalsThatWriteTheSameNeverMakeTheSameBytes) {
  std::string one = write();
  reset(1);
  epoch_ = 0;
  std::string two = write();
  ASSERT_EQ(one.size(), two.size());
  EXPECT_EQ(one.substr(0, kSegmentHeaderBytes), two.substr(0, kSegmentHeaderBytes));
  constexpr size_t records_at = kSegmentHeaderBytes + kBatchHeaderBytes + kSaltBytes;
  size_t equal = 0;
  for (size_t i = records_at; i < records_at + 300; ++i) equal += one[i] == two[i] ? 1 : 0;
  EXPECT_LT(equal, 30u) << "as many as chance makes";
}

TEST_P(SealedLog, AForgerWhoKnowsChecksumsIsFoundOut) {
  std::string good = write();
  ASSERT_TRUE(recover().ok());
  for (size_t at : {16, 24, 32, 64, 90, 120}) {  // of the batch: count, lengths, synced, records
    std::string bytes = good;
    size_t place = kSegmentHeaderBytes + at;
    bytes[place] = static_cast<char>(bytes[place] ^ 1);
    forge(bytes);
    auto recovered = recover();
    // A length that leaves the file is a torn batch; whatever counts as whole is checked.
    EXPECT_TRUE(!recovered.ok() || recovered->seen.empty()) << at;
  }
  std::string bytes = good;
  bytes[good.size() - 100] ^= 1;  // of the data
  forge(bytes);
  EXPECT_TRUE(recover()->seen.empty()) << "the record is not taken without its data";
}

TEST_P(SealedLog, APlainBatchIsNotHeard) {
  SealPointer seal = std::exchange(seal_, nullptr);
  write();
  ASSERT_EQ(recover()->seen.size(), 1u);
  seal_ = seal;
  EXPECT_FALSE(recover().ok());
}

}  // namespace
}  // namespace fs
