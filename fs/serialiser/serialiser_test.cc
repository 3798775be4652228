#include "fs/serialiser/serialiser.h"

#include "base/random.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

namespace fs {
namespace {

// A base state from a map, as a checkpoint would hold it.
class MapBase : public BaseState {
 public:
  explicit MapBase(std::map<std::string, std::string> all) : all_(std::move(all)) {}
  base::Result<std::optional<std::string>> get(std::string_view key) const override {
    auto at = all_.find(std::string(key));
    if (at == all_.end()) return std::optional<std::string>();
    return std::optional<std::string>(at->second);
  }
  base::Status scan(std::string_view prefix, const Visit& visit) const override {
    for (auto at = all_.lower_bound(std::string(prefix));
         at != all_.end() && at->first.starts_with(prefix); ++at) {
      visit(at->first, at->second);
    }
    return {};
  }

 private:
  std::map<std::string, std::string> all_;
};

class SerialiserTest : public ::testing::Test {
 protected:
  SerialiserTest() : state_({}, nullptr, 0) {
    state_.create_root({}, 0755, effects_);
    records_.push_back(effects_.record);
  }
  int run(Operation operation, Credentials who = {}) {
    Request request;
    request.id = ++request_id_;
    request.session = session_;
    request.who = who;
    request.now_ns = ++now_;
    request.operation = operation;
    state_.step(request, effects_);
    if (!effects_.record.empty()) records_.push_back(effects_.record);
    return effects_.reply.error;
  }
  Ino make(Operation operation) {
    EXPECT_EQ(run(operation), 0);
    return effects_.reply.ino;
  }
  std::map<std::string, std::string> replayed() {
    Serialiser other({}, nullptr, 0);
    for (const std::string& record : records_) EXPECT_TRUE(other.apply(record).ok());
    return *other.dump();
  }
  Serialiser state_;
  Effects effects_;
  std::vector<std::string> records_;
  SessionId session_ = 1;
  u64 request_id_ = 0;
  i64 now_ = 1000;
};

TEST_F(SerialiserTest, CreatesFindsAndRemovesAFile) {
  Ino ino = make(Create{kRootIno, "a"});
  EXPECT_EQ(run(Create{kRootIno, "a", 0644, true}), EEXIST);
  EXPECT_EQ(run(Lookup{kRootIno, "a"}), 0);
  EXPECT_EQ(effects_.reply.ino, ino);
  EXPECT_EQ(run(Forget{ino, 2}), 0);
  EXPECT_EQ(run(Unlink{kRootIno, "a"}), 0);
  EXPECT_EQ(run(Getattr{ino}), ESTALE);
  EXPECT_EQ(state_.usage().inodes, 1u);
}

TEST_F(SerialiserTest, KeepsAnUnlinkedFileUntilItsLastReferenceGoes) {
  Ino ino = make(Create{kRootIno, "a"});
  EXPECT_EQ(run(Unlink{kRootIno, "a"}), 0);
  EXPECT_EQ(run(Getattr{ino}), 0);
  EXPECT_EQ(effects_.reply.attr.nlink, 0u);
  EXPECT_EQ(run(Forget{ino, 1}), 0);
  EXPECT_FALSE(effects_.record.empty());
  EXPECT_EQ(run(Getattr{ino}), ESTALE);
}

TEST_F(SerialiserTest, EndOfSessionReclaimsItsOrphansOnly) {
  Ino ino = make(Create{kRootIno, "a"});
  session_ = 2;
  EXPECT_EQ(run(Lookup{kRootIno, "a"}), 0);
  EXPECT_EQ(run(Unlink{kRootIno, "a"}), 0);
  EXPECT_EQ(run(EndSession{}), 0);
  EXPECT_EQ(run(Getattr{ino}), 0);  // session 1 still has it
  session_ = 1;
  EXPECT_EQ(run(EndSession{}), 0);
  EXPECT_EQ(run(Getattr{ino}), ESTALE);
}

TEST_F(SerialiserTest, TmpfileBecomesALinkedFile) {
  Ino ino = make(Tmpfile{kRootIno, 0600});
  EXPECT_EQ(run(Link{ino, kRootIno, "named"}), 0);
  EXPECT_EQ(effects_.reply.attr.nlink, 1u);
  EXPECT_TRUE(state_.orphans()->empty());
}

TEST_F(SerialiserTest, RenameRefusesLoopsAndFullDirectories) {
  Ino a = make(Mkdir{kRootIno, "a"});
  Ino b = make(Mkdir{a, "b"});
  Ino c = make(Mkdir{b, "c"});
  EXPECT_EQ(run(Rename{kRootIno, "a", c, "x"}), EINVAL);
  EXPECT_EQ(run(Rename{b, "c", kRootIno, "a"}), ENOTEMPTY);
  EXPECT_EQ(run(Rename{kRootIno, "a", b, "c", kRenameExchange}), EINVAL);
  make(Create{kRootIno, "f"});
  EXPECT_EQ(run(Rename{kRootIno, "f", a, "b"}), EISDIR);
  EXPECT_EQ(run(Rename{a, "b", kRootIno, "f"}), ENOTDIR);
  EXPECT_EQ(run(Rename{kRootIno, "f", kRootIno, "a", kRenameNoReplace}), EEXIST);
  EXPECT_EQ(run(Rename{kRootIno, "f", a, "b", kRenameExchange}), 0);
  EXPECT_EQ(run(Getattr{kRootIno}), 0);
  EXPECT_EQ(effects_.reply.attr.nlink, 4u);  // ".", "a" and now "f"
  EXPECT_EQ(run(Getattr{a}), 0);
  EXPECT_EQ(effects_.reply.attr.nlink, 2u);
}

TEST_F(SerialiserTest, SetGroupIdDirectoriesPassTheirGroupOn) {
  Ino directory = make(Mkdir{kRootIno, "d", 0775});
  Setattr change{directory};
  change.gid = 50;
  change.mode = 02775;
  EXPECT_EQ(run(change), 0);
  EXPECT_EQ(run(Mkdir{directory, "sub", 0755}, {7, 8, 9}), 0);
  EXPECT_EQ(effects_.reply.attr.gid, 50u);
  EXPECT_TRUE(effects_.reply.attr.mode & S_ISGID);
  EXPECT_EQ(effects_.reply.attr.uid, 7u);
}

TEST_F(SerialiserTest, ChownTakesTheSuidBitAway) {
  Ino ino = make(Create{kRootIno, "f", 04755});
  Setattr change{ino};
  change.uid = 5;
  EXPECT_EQ(run(change), 0);
  EXPECT_EQ(effects_.reply.attr.mode & 07777, 0755u);
}

TEST_F(SerialiserTest, ShrinkAndGrowLeavesZerosNotOldBytes) {
  Ino ino = make(Create{kRootIno, "f"});
  EXPECT_EQ(run(Write{ino, 0, 100}), 0);
  DataId data = effects_.data;
  ASSERT_NE(data, 0u);
  Setattr size{ino};
  size.size = 40;
  EXPECT_EQ(run(size), 0);
  size.size = 100;
  EXPECT_EQ(run(size), 0);
  EXPECT_EQ(run(Read{ino, 0, 1000}), 0);
  EXPECT_EQ(effects_.reply.pieces, (std::vector<Piece>{{data, 0, 40}, {0, 0, 60}}));
}

TEST_F(SerialiserTest, OverwriteSplitsAnExtentInThree) {
  Ino ino = make(Create{kRootIno, "f"});
  EXPECT_EQ(run(Write{ino, 0, 100}), 0);
  DataId first = effects_.data;
  EXPECT_EQ(run(Write{ino, 30, 10}), 0);
  DataId second = effects_.data;
  EXPECT_EQ(run(Read{ino, 10, 80}), 0);
  EXPECT_EQ(effects_.reply.pieces,
            (std::vector<Piece>{{first, 10, 20}, {second, 0, 10}, {first, 40, 50}}));
  EXPECT_EQ(run(Getattr{ino}), 0);
  EXPECT_EQ(effects_.reply.attr.allocated, 100u);
}

TEST_F(SerialiserTest, SeeksDataAndHoles) {
  Ino ino = make(Create{kRootIno, "f"});
  EXPECT_EQ(run(Write{ino, 100, 10}), 0);
  EXPECT_EQ(run(Seek{ino, 0, false}), 0);
  EXPECT_EQ(effects_.reply.size, 100u);
  EXPECT_EQ(run(Seek{ino, 100, true}), 0);
  EXPECT_EQ(effects_.reply.size, 110u);
  EXPECT_EQ(run(Seek{ino, 110, false}), ENXIO);
}

TEST_F(SerialiserTest, QuotaIsAnsweredAtTheCall) {
  Serialiser::Options options;
  options.bytes_quota = 100;
  options.inodes_quota = 2;
  state_ = Serialiser(options, nullptr, 0);
  state_.create_root({}, 0755, effects_);
  Ino ino = make(Create{kRootIno, "f"});
  EXPECT_EQ(run(Create{kRootIno, "g"}), EDQUOT);
  EXPECT_EQ(run(Write{ino, 0, 101}), ENOSPC);
  EXPECT_EQ(run(Write{ino, 0, 100}), 0);
  EXPECT_EQ(run(Write{ino, 50, 50}), 0);  // replaces what is there
}

TEST_F(SerialiserTest, LocksWaitAndAreGranted) {
  Ino ino = make(Create{kRootIno, "f"});
  LockRange range{0, 9, LockType::kWrite, 1};
  EXPECT_EQ(run(Setlk{ino, 1, range}), 0);
  session_ = 2;
  EXPECT_EQ(run(Setlk{ino, 1, range}), EAGAIN);
  EXPECT_EQ(run(Setlk{ino, 1, range, false, true}), 0);
  EXPECT_TRUE(effects_.reply_later);
  u64 waiting = request_id_;
  session_ = 1;
  EXPECT_EQ(run(EndSession{}), 0);
  EXPECT_EQ(effects_.granted, std::vector<u64>{waiting});
}

TEST_F(SerialiserTest, ReaddirRespectsTheBuffer) {
  for (int i = 0; i < 10; ++i) make(Create{kRootIno, "file" + std::to_string(i)});
  Readdir list{kRootIno};
  list.bytes_max = 100;  // 32 bytes an entry
  std::vector<std::string> names;
  for (;;) {
    ASSERT_EQ(run(list), 0);
    for (const DirectoryEntry& entry : effects_.reply.entries) {
      names.emplace_back(entry.name);
      list.after = entry.cookie;
    }
    if (effects_.reply.end_of_directory) break;
    ASSERT_EQ(effects_.reply.entries.size(), 3u);
  }
  EXPECT_EQ(names.size(), 12u);
  EXPECT_EQ(names[2], "file0");
}

// Random programs over a small tree; whatever they do, three ways to the state agree: the live one,
// a replay of its records, and one that pages in from checkpoints and forgets in between.
class RandomRun : public SerialiserTest, public ::testing::WithParamInterface<u64> {
 protected:
  std::string name() { return std::string(1, static_cast<char>('a' + rng_.below(6))); }
  Ino any() { return inos_[rng_.below(inos_.size())]; }
  Operation next() {
    u64 length = 1 + rng_.below(50);
    u64 offset = rng_.below(200);
    names_[0] = name();
    names_[1] = name();
    switch (rng_.below(16)) {
      case 0:
      case 1:
        return Create{any(), names_[0]};
      case 2:
        return Mkdir{any(), names_[0]};
      case 3:
        return Unlink{any(), names_[0]};
      case 4:
        return Rmdir{any(), names_[0]};
      case 5:
        return Rename{any(), names_[0], any(), names_[1], static_cast<u32>(rng_.below(3))};
      case 6:
        return Link{any(), any(), names_[0]};
      case 7:
      case 8:
        return Write{any(), offset, static_cast<u32>(length)};
      case 9: {
        Setattr size{any()};
        size.size = offset;
        return size;
      }
      case 10:
        return Fallocate{any(), offset, length, kFallocKeepSize | kFallocPunchHole};
      case 11:
        return CopyRange{any(), offset, any(), rng_.below(200), length};
      case 12:
        return Setxattr{any(), "user.x", names_[0]};
      case 13:
        return Removexattr{any(), "user.x"};
      case 14:
        return Symlink{any(), names_[0], names_[1]};
      default:
        return Forget{any(), 1};
    }
  }
  base::Rng rng_{GetParam()};
  std::vector<Ino> inos_{kRootIno};
  std::string names_[2];
};

TEST_P(RandomRun, ReplayAndPagingAgreeWithTheLiveState) {
  Serialiser paged({}, nullptr, 0);
  EXPECT_TRUE(paged.apply(records_[0]).ok());
  for (int i = 0; i < 1500; ++i) {
    Operation operation = next();
    size_t before = records_.size();
    Request request;
    request.now_ns = now_ + 1;
    request.operation = operation;
    int error = run(operation);
    Effects other;
    request.id = request_id_;
    paged.step(request, other);
    ASSERT_EQ(other.reply.error, error);
    ASSERT_EQ(other.reply.pieces, effects_.reply.pieces);
    ASSERT_EQ(other.record.empty(), records_.size() == before)
        << "operation " << operation.index() << " at " << i;
    if (error == 0 && effects_.reply.created) inos_.push_back(effects_.reply.ino);
    if (i % 100 == 99) {
      paged.set_base(std::make_shared<MapBase>(*paged.dump()), paged.last_seq());
      paged.evict(1);
    }
  }
  auto live = *state_.dump();
  EXPECT_EQ(replayed(), live);
  // Reserved inode numbers are forgotten with the directory: all but the counter agrees.
  auto other = *paged.dump();
  EXPECT_EQ(other.size(), live.size());
  EXPECT_EQ(paged.usage().bytes, state_.usage().bytes);
  EXPECT_EQ(paged.usage().inodes, state_.usage().inodes);
  u64 bytes = 0;
  u64 inodes = 0;
  for (const auto& [key, value] : live) {
    if (key[0] != 'I') continue;
    ++inodes;
    bytes += decode_inode(value)->attr.allocated;
  }
  EXPECT_EQ(bytes, state_.usage().bytes);
  EXPECT_EQ(inodes, state_.usage().inodes);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRun, ::testing::Range<u64>(1, 21));

}  // namespace
}  // namespace fs
