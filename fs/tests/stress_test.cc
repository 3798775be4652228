// Loads in the manner of fsx and fsstress, on a mounted store that is checked at the end.
// AGENTFS_STRESS_SECONDS says how long each takes (2 here, 600 in the nightly run); AGENTFS_SEED
// repeats a run of the first kind.
#include "base/clock.h"
#include "base/random.h"
#include "fs/tests/mounted.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

namespace fs::testing {
namespace {

i64 seconds_each() {
  const char* text = std::getenv("AGENTFS_STRESS_SECONDS");
  return text == nullptr ? 2 : std::atoll(text);
}

class Deadline {
 public:
  Deadline() : end_us_(base::system_clock().monotonic_us() + seconds_each() * 1'000'000) {}
  bool passed() const { return base::system_clock().monotonic_us() >= end_us_; }

 private:
  i64 end_us_;
};

// A store with one mount, for as long as a test; fsck at the end, and again after a collection.
class Store {
 public:
  explicit Store(std::vector<std::string> options = {}) {
    agentfs({"format", place_ / "store"});
    mount_ = std::make_unique<Mount>(place_ / "store", std::move(options));
  }
  Mount& mount() { return *mount_; }
  void check() {
    mount_.reset();
    agentfs({"fsck", place_ / "store"});
    agentfs({"gc", place_ / "store"});
    agentfs({"fsck", place_ / "store"});
  }

 private:
  base::TempDir place_{"agentfs-stress"};
  std::unique_ptr<Mount> mount_;
};

// One file and what it must hold.
class OneFile {
 public:
  OneFile(std::string path, u64 seed) : path_(std::move(path)), rng_(seed) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
    EXPECT_GE(fd_, 0);
  }
  ~OneFile() { ::close(fd_); }
  OneFile(const OneFile&) = delete;
  OneFile& operator=(const OneFile&) = delete;

  // False after a difference.
  bool step() {
    size_t offset = rng_.below(kBytesMax), length = 1 + rng_.below(rng_.chance(0.5) ? 300 : 70000);
    switch (rng_.below(9)) {
      case 0:
      case 1:
        return write(offset, length);
      case 2:
        return mapped_write(offset, length);
      case 3:
        return truncate(offset);
      case 4:
        return punch(offset, length);
      case 5:
        return copy(offset, rng_.below(kBytesMax), length);
      case 6:
        return reopen();
      default:
        return read(offset, length);
    }
  }

 private:
  static constexpr size_t kBytesMax = 400'000;

  bool write(size_t offset, size_t length) {
    std::string data(length, static_cast<char>('A' + rng_.below(50)));
    for (size_t i = 0; i < length; i += 97) data[i] = static_cast<char>(rng_.next());
    if (::pwrite(fd_, data.data(), length, static_cast<off_t>(offset)) !=
        static_cast<ssize_t>(length)) {
      return false;
    }
    if (expected_.size() < offset + length) expected_.resize(offset + length, 0);
    expected_.replace(offset, length, data);
    return true;
  }
  bool mapped_write(size_t offset, size_t length) {
    if (offset >= expected_.size()) return true;
    length = std::min(length, expected_.size() - offset);
    void* memory = ::mmap(nullptr, expected_.size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (memory == MAP_FAILED) return false;
    char fill = static_cast<char>(rng_.next());
    std::memset(static_cast<char*>(memory) + offset, fill, length);
    ::munmap(memory, expected_.size());
    expected_.replace(offset, length, std::string(length, fill));
    return true;
  }
  bool truncate(size_t size) {
    expected_.resize(size, 0);
    return ::ftruncate(fd_, static_cast<off_t>(size)) == 0;
  }
  bool punch(size_t offset, size_t length) {
    if (::fallocate(fd_, 3, static_cast<off_t>(offset), static_cast<off_t>(length)) != 0) {
      return false;
    }
    if (offset >= expected_.size()) return true;
    length = std::min(length, expected_.size() - offset);
    expected_.replace(offset, length, std::string(length, '\0'));
    return true;
  }
  bool copy(size_t from, size_t to, size_t length) {
    if (from >= expected_.size()) return true;
    length = std::min(length, expected_.size() - from);
    if (from < to + length && to < from + length) return true;  // EINVAL: they overlap
    off_t in = static_cast<off_t>(from), out = static_cast<off_t>(to);
    for (size_t done = 0; done < length;) {
      ssize_t n = ::copy_file_range(fd_, &in, fd_, &out, length - done, 0);
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    if (expected_.size() < to + length) expected_.resize(to + length, 0);
    expected_.replace(to, length, expected_.substr(from, length));
    return true;
  }
  bool reopen() {
    ::fsync(fd_);
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd_);
    fd_ = ::open(path_.c_str(), O_RDWR);
    struct stat info{};
    return ::fstat(fd_, &info) == 0 && static_cast<size_t>(info.st_size) == expected_.size();
  }
  bool read(size_t offset, size_t length) {
    std::string got(length, '?');
    ssize_t n = ::pread(fd_, got.data(), length, static_cast<off_t>(offset));
    if (offset >= expected_.size()) return n == 0;
    size_t want = std::min(length, expected_.size() - offset);
    return n == static_cast<ssize_t>(want) && got.compare(0, want, expected_, offset, want) == 0;
  }

  std::string path_;
  base::Rng rng_;
  int fd_ = -1;
  std::string expected_;
};

TEST(Stress, OneFileHoldsWhatWasWrittenByEveryMeans) {
  if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
  Store store;
  Mount& mount = store.mount();
  Deadline deadline;
  const char* given = std::getenv("AGENTFS_SEED");
  u64 seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  for (; !deadline.passed(); seed++) {
    OneFile file(mount / "f", seed);
    for (int step = 0; step < 1000; step++) {
      ASSERT_TRUE(file.step()) << "seed " << seed << ", step " << step << ", errno " << errno;
    }
  }
  store.check();
}

// Random names in a small tree, from several threads: errors are expected, damage is not.
void disturb(const std::string& root, u64 seed, const Deadline& deadline) {
  base::Rng rng(seed);
  auto path = [&] {
    std::string out = root;
    for (u64 depth = 1 + rng.below(3); depth > 0; depth--) {
      out += "/" + std::string(1, static_cast<char>('a' + rng.below(6)));
    }
    return out;
  };
  while (!deadline.passed()) {
    std::string a = path(), b = path();
    // Renames into each other make trees ever deeper: now and then one goes, as with rm -rf.
    if (rng.below(10'000) == 0) (void)base::remove_tree(root + "/" + a.substr(root.size() + 1, 1));
    switch (rng.below(9)) {
      case 0:
        (void)::mkdir(a.c_str(), 0755);
        break;
      case 1:
        (void)::rmdir(a.c_str());
        break;
      case 2:
        (void)::unlink(a.c_str());
        break;
      case 3:
        (void)::link(a.c_str(), b.c_str());
        break;
      case 4:
        (void)::symlink("target", a.c_str());
        break;
      case 5:
      case 6:
        (void)::rename(a.c_str(), b.c_str());
        break;
      default: {
        int fd = ::open(a.c_str(), O_RDWR | O_CREAT, 0644);
        if (fd < 0) break;
        std::string data(rng.below(9000), 'd');
        (void)!::pwrite(fd, data.data(), data.size(), static_cast<off_t>(rng.below(20000)));
        ::close(fd);
      }
    }
  }
}

struct Census {
  u64 folders = 0;
  std::map<ino_t, std::pair<u64, u64>> files;  // seen, nlink
};

// Every name that is listed can be looked up, every folder counts its subfolders. Goes from folder
// to folder by descriptors: renames make trees that are deeper than a path can say. Closes `fd`.
void take_census(int fd, Census& census) {
  DIR* dir = ::fdopendir(fd);
  ASSERT_NE(dir, nullptr) << errno;
  std::vector<std::string> subfolders;
  while (dirent* entry = ::readdir(dir)) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info{};
    EXPECT_EQ(::fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW), 0) << name << ": " << errno;
    EXPECT_EQ(info.st_ino, entry->d_ino);
    if (S_ISDIR(info.st_mode)) {
      subfolders.push_back(name);
    } else {
      census.files[info.st_ino].first++;
      census.files[info.st_ino].second = info.st_nlink;
    }
  }
  struct stat info{};
  EXPECT_EQ(::fstat(fd, &info), 0);
  EXPECT_EQ(info.st_nlink, 2 + subfolders.size()) << "inode " << info.st_ino;
  census.folders++;
  for (const std::string& name : subfolders) {
    int below = ::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY);
    EXPECT_GE(below, 0) << name << ": " << errno;
    if (below >= 0) take_census(below, census);
  }
  ::closedir(dir);
}

TEST(Stress, ManyThreadsLeaveATreeWhoseCountsAddUp) {
  if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
  Store store({"--threads", "3"});
  Mount& mount = store.mount();
  {
    Deadline deadline;
    std::vector<std::jthread> threads;
    for (u64 i = 0; i < 4; i++) {
      threads.emplace_back([&, i] { disturb(mount.path(), i + 1, deadline); });
    }
  }
  Census census;
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  take_census(::open(mount.path().c_str(), O_RDONLY | O_DIRECTORY), census);
  EXPECT_GT(census.folders, 1u);
  for (const auto& [ino, count] : census.files) {
    EXPECT_EQ(count.first, count.second) << "inode " << ino << ": names and nlink";
  }
  EXPECT_TRUE(base::remove_tree(mount / "a").ok());
  store.check();
}

}  // namespace
}  // namespace fs::testing
