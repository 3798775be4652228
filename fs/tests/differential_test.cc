// The same random system calls on a mount and on tmpfs, which somebody else wrote: every result,
// errno and byte must agree, and so must the trees at the end. A seed that finds a difference
// prints the call and its number; AGENTFS_SEED=N runs that seed alone, AGENTFS_SEEDS=N more of
// them.
#include "base/random.h"
#include "fs/tests/mounted.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

namespace fs::testing {
namespace {

constexpr int kCalls = 1500;
constexpr size_t kFileBytesMax = 40000;
constexpr size_t kOpenMax = 6;

// What one call did: its result (or -errno) and the bytes it showed.
struct Outcome {
  long value = 0;
  std::string shown;
  bool operator==(const Outcome&) const = default;
};

// One side of the comparison.
class Side {
 public:
  // `second`: another view of a folder that is there.
  explicit Side(std::string root, bool second = false) : root_(std::move(root)), second_(second) {
    if (!second) {
      EXPECT_EQ(::mkdir(root_.c_str(), 0755), 0) << root_;
    }
  }
  ~Side() {
    for (auto& [slot, fd] : open_) ::close(fd);
    if (!second_) (void)base::remove_tree(root_);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  std::string at(const std::string& path) const { return root_ + "/" + path; }
  int fd(size_t slot) const {
    auto found = open_.find(slot);
    return found == open_.end() ? -1 : found->second;
  }
  Outcome open(size_t slot, const std::string& path, int flags) {
    if (fd(slot) >= 0) ::close(open_[slot]);
    open_.erase(slot);
    int opened = ::open(at(path).c_str(), flags | O_CLOEXEC, 0644);
    if (opened < 0) return {-errno, ""};
    open_[slot] = opened;
    return {0, ""};
  }

 private:
  std::string root_;
  bool second_;
  std::map<size_t, int> open_;
};

std::string shown_stat(const struct stat& info) {
  bool folder = S_ISDIR(info.st_mode);
  return std::to_string(info.st_mode) + " nlink " + std::to_string(info.st_nlink) + " size " +
         std::to_string(folder ? 0 : info.st_size) + " uid " + std::to_string(info.st_uid);
}

Outcome list(const std::string& folder) {
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) return {-errno, ""};
  std::set<std::string> names;
  while (dirent* entry = ::readdir(dir)) {
    names.insert(std::string(entry->d_name) + ":" + std::to_string(entry->d_type));
  }
  ::closedir(dir);
  std::string all;
  for (const std::string& name : names) all += name + "\n";
  return {static_cast<long>(names.size()), all};
}

// What is stored, not what the kernel remembers.
std::string stored_content(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY);
  if (fd < 0) return "?";
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
  return base::read_file(path).value_or("?");
}

// The whole tree as text: names, kinds, modes, links, contents.
void describe(const std::string& root, const std::string& path, std::string& out) {
  DIR* dir = ::opendir((root + path).c_str());
  ASSERT_NE(dir, nullptr) << path;
  std::set<std::string> names;
  while (dirent* entry = ::readdir(dir)) names.insert(entry->d_name);
  ::closedir(dir);
  for (const std::string& name : names) {
    if (name == "." || name == "..") continue;
    std::string below = path + "/" + name;
    struct stat info{};
    ASSERT_EQ(::lstat((root + below).c_str(), &info), 0) << below;
    out += below + " " + shown_stat(info);
    char target[4096];
    ssize_t length = ::readlink((root + below).c_str(), target, sizeof(target));
    if (length >= 0) out += " -> " + std::string(target, static_cast<size_t>(length));
    if (S_ISREG(info.st_mode)) out += " " + stored_content(root + below);
    out += "\n";
    if (S_ISDIR(info.st_mode)) describe(root, below, out);
  }
}

// A call drawn at random, to be made on each side with the same arguments.
struct Call {
  int kind;
  size_t slot;
  std::string path, other;
  u64 offset, length, bits;
  char fill;
};
constexpr int kKinds = 23;
constexpr const char* kKindNames[kKinds] = {
    "open",    "pwrite",   "pread",    "ftruncate",  "fstat",   "link",      "unlink", "mkdir",
    "rmdir",   "rename",   "exchange", "noreplace",  "symlink", "readlink",  "chmod",  "stat",
    "readdir", "setxattr", "getxattr", "mmap write", "copy",    "fallocate", "close"};

std::string random_path(base::Rng& rng) {
  static const char* const names[] = {"a", "b", "c", "dd", "e.lock"};
  std::string path = names[rng.below(5)];
  while (rng.chance(0.45) && path.size() < 12) path += std::string("/") + names[rng.below(5)];
  return path;
}

Call draw(base::Rng& rng) {
  Call call;
  call.kind = static_cast<int>(rng.below(kKinds));
  if (rng.chance(0.25)) call.kind = static_cast<int>(rng.below(3));  // more data than names
  if (call.kind == 22 && rng.chance(0.8)) call.kind = 0;             // closed slots test little
  call.slot = rng.below(kOpenMax);
  call.path = random_path(rng);
  call.other = random_path(rng);
  call.offset = rng.chance(0.3) ? rng.below(kFileBytesMax) & ~u64{4095} : rng.below(kFileBytesMax);
  call.length = rng.chance(0.5) ? rng.below(200) : rng.below(12000);
  call.bits = rng.next();
  call.fill = static_cast<char>('a' + rng.below(26));
  return call;
}

Outcome mapped_write(int fd, const Call& call) {
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return {-EBADF, ""};
  if (info.st_size == 0) return {0, "empty"};
  size_t size = static_cast<size_t>(info.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return {-errno, ""};
  char* bytes = static_cast<char*>(memory);
  bytes[call.offset % size] = call.fill;
  std::string shown(1, bytes[call.bits % size]);
  ::munmap(memory, size);
  return {1, shown};
}

Outcome with_descriptor(Side& side, const Call& call) {
  int fd = side.fd(call.slot);
  std::string data(call.length, call.fill);
  off_t offset = static_cast<off_t>(call.offset);
  switch (call.kind) {
    case 1:
      return {result(::pwrite(fd, data.data(), data.size(), offset)), ""};
    case 2: {
      // Half of the reads come from where the bytes are stored, not from the kernel's cache.
      if (call.bits % 2 == 0) ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      long got = result(::pread(fd, data.data(), data.size(), offset));
      return {got, got > 0 ? data.substr(0, static_cast<size_t>(got)) : ""};
    }
    case 3:
      return {result(::ftruncate(fd, offset)), ""};
    case 4: {
      struct stat info{};
      long value = result(::fstat(fd, &info));
      return {value, value == 0 ? shown_stat(info) : ""};
    }
    case 19:
      return mapped_write(fd, call);
    case 20: {
      off_t in = offset, out = static_cast<off_t>(call.bits % kFileBytesMax);
      int to = side.fd((call.slot + 1) % kOpenMax);
      return {result(::copy_file_range(fd, &in, to, &out, call.length, 0)), ""};
    }
    default: {
      static const int modes[] = {0, 1, 3};  // plain, keep size, punch hole
      if (call.length == 0) return {0, ""};
      return {
          result(::fallocate(fd, modes[call.bits % 3], offset, static_cast<off_t>(call.length))),
          ""};
    }
  }
}

Outcome with_names(Side& side, const Call& call) {
  std::string path = side.at(call.path), other = side.at(call.other);
  auto renameat2 = [&](unsigned flags) {
    return Outcome{
        result(::syscall(SYS_renameat2, AT_FDCWD, path.c_str(), AT_FDCWD, other.c_str(), flags)),
        ""};
  };
  char buffer[4096];
  struct stat info{};
  switch (call.kind) {
    case 5:
      return {result(::link(path.c_str(), other.c_str())), ""};
    case 6:
      return {result(::unlink(path.c_str())), ""};
    case 7:
      return {result(::mkdir(path.c_str(), 0700 | (call.bits & 077))), ""};
    case 8:
      return {result(::rmdir(path.c_str())), ""};
    case 9:
      return {result(::rename(path.c_str(), other.c_str())), ""};
    case 10:
      return renameat2(RENAME_EXCHANGE);
    case 11:
      return renameat2(RENAME_NOREPLACE);
    case 12:
      return {result(::symlink(call.other.c_str(), path.c_str())), ""};
    case 13: {
      long got = result(::readlink(path.c_str(), buffer, sizeof(buffer)));
      return {got, got > 0 ? std::string(buffer, static_cast<size_t>(got)) : ""};
    }
    case 14:
      return {result(::chmod(path.c_str(), 0600 | (call.bits & 0177))), ""};
    case 15: {
      long value = result(::lstat(path.c_str(), &info));
      return {value, value == 0 ? shown_stat(info) : ""};
    }
    case 16:
      return list(path);
    case 17:
      return {result(::setxattr(path.c_str(), "user.x", &call.fill, 1, call.bits % 3)), ""};
    default: {
      long got = result(::getxattr(path.c_str(), "user.x", buffer, sizeof(buffer)));
      return {got, got > 0 ? std::string(buffer, static_cast<size_t>(got)) : ""};
    }
  }
}

Outcome make(Side& side, const Call& call) {
  if (call.kind == 0) {
    static const int flags[] = {
        O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_EXCL,  O_RDWR | O_CREAT | O_TRUNC, O_RDWR,
        O_RDONLY,         O_RDWR | O_CREAT | O_APPEND};
    return side.open(call.slot, call.path, flags[call.bits % 6]);
  }
  if (call.kind == 22) return side.open(call.slot, "no/such/name", O_RDONLY);
  bool by_descriptor = call.kind <= 4 || (call.kind >= 19 && call.kind <= 21);
  return by_descriptor ? with_descriptor(side, call) : with_names(side, call);
}

// Makes one call on both and compares.
void compare(Side& mount, Side& reference, const Call& call, const std::string& when) {
  Outcome expected = make(reference, call);
  Outcome got = make(mount, call);
  ASSERT_EQ(got, expected) << when << kKindNames[call.kind] << " slot " << call.slot << " "
                           << call.path << " " << call.other << " at " << call.offset << "+"
                           << call.length << ": " << got.value << " '" << got.shown
                           << "' instead of " << expected.value << " '" << expected.shown << "'";
}

void compare_trees(const std::string& ours, const std::string& theirs, u64 seed) {
  std::string ours_text, theirs_text;
  describe(ours, "", ours_text);
  describe(theirs, "", theirs_text);
  ASSERT_EQ(ours_text, theirs_text) << "trees differ after seed " << seed;
}

std::string moment(u64 seed, int number) {
  return "seed " + std::to_string(seed) + ", call " + std::to_string(number) + ": ";
}

void run_seed(u64 seed, const std::string& ours, const std::string& theirs) {
  std::string name = "/diff" + std::to_string(seed);
  Side mount(ours + name), reference(theirs + name);
  base::Rng rng(seed);
  for (int number = 0; number < kCalls; number++) {
    compare(mount, reference, draw(rng), moment(seed, number));
    if (::testing::Test::HasFatalFailure()) return;
  }
  compare_trees(ours + name, theirs + name, seed);
}

// Every call on one of two mounts of one workspace: what the other did before must be seen.
void run_shared_seed(u64 seed, const std::string (&ours)[2], const std::string& theirs) {
  std::string name = "/diff" + std::to_string(seed);
  Side first(ours[0] + name), second(ours[1] + name, true);
  Side first_reference(theirs + name), second_reference(theirs + name, true);
  base::Rng rng(seed);
  for (int number = 0; number < kCalls / 3; number++) {
    Call call = draw(rng);
    // A mapping's stores reach the other mount when they are written back, not at once.
    if (call.kind == 19) call.kind = 2;
    bool on_first = rng.chance(0.5);
    // Linux cuts a copy at the size it remembers, without asking: a stat refreshes that (README,
    // limits).
    if (call.kind == 20) {
      Call look = call;
      look.kind = 4;
      make(on_first ? first : second, look);
    }
    compare(on_first ? first : second, on_first ? first_reference : second_reference, call,
            moment(seed, number));
    if (::testing::Test::HasFatalFailure()) return;
  }
  compare_trees(ours[0] + name, theirs + name, seed);
  compare_trees(ours[1] + name, theirs + name, seed);
}

u64 number_from(const char* variable, u64 otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Differential : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_mount()) GTEST_SKIP() << "this machine cannot mount FUSE";
    ASSERT_TRUE(base::is_directory("/dev/shm"));
    reference_ = "/dev/shm/agentfs-differential." + std::to_string(::getpid());
    ASSERT_TRUE(base::make_directories(reference_).ok());
  }
  void TearDown() override {
    if (!reference_.empty()) {
      EXPECT_TRUE(base::remove_tree(reference_).ok());
    }
  }
  template <class Run>
  void for_seeds(u64 otherwise, Run run) {
    u64 only = number_from("AGENTFS_SEED", 0);
    u64 seeds = number_from("AGENTFS_SEEDS", otherwise);
    for (u64 seed = 1; seed <= seeds && !HasFatalFailure(); seed++) {
      run(only != 0 ? only : seed);
      if (only != 0) break;
    }
  }
  std::string reference_;
};

TEST_F(Differential, AMountAndTmpfsAgreeOnEveryRandomCall) {
  Mount mount;
  for_seeds(60, [&](u64 seed) { run_seed(seed, mount.path(), reference_); });
}

TEST_F(Differential, AStoredMountAndTmpfsAgreeOnEveryRandomCall) {
  base::TempDir place("agentfs-store");
  agentfs({"format", place / "store"});
  Mount mount(place / "store");
  for_seeds(30, [&](u64 seed) { run_seed(seed, mount.path(), reference_); });
}

TEST_F(Differential, TwoMountsOfAServedWorkspaceAgreeWithTmpfsCallByCall) {
  base::TempDir place("agentfs-store");
  agentfs({"format", place / "store"});
  Served served(place / "store");
  std::string token = token_file(place, place / "store");
  Mount first(served.address(), {"--token-file", token});
  Mount second(served.address(), {"--token-file", token});
  const std::string roots[2] = {first.path(), second.path()};
  for_seeds(10, [&](u64 seed) { run_shared_seed(seed, roots, reference_); });
}

}  // namespace
}  // namespace fs::testing
