// What POSIX and Linux promise about files: bytes, sizes, times, modes, attributes, locks,
// mappings.
#include "fs/tests/posix_fixture.h"

#include <linux/falloc.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <cstring>

namespace fs::testing {
namespace {

using Files = PosixTest;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) { EXPECT_GE(fd, 0) << "open failed with errno " << errno; }
  ~Fd() { ::close(fd_); }
  operator int() const { return fd_; }

 private:
  int fd_;
};

std::string bytes_of(int fd, off_t offset, size_t length) {
  std::string out(length, '?');
  ssize_t got = ::pread(fd, out.data(), length, offset);
  out.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return out;
}

TEST_F(Files, HolesReadAsZerosAndAreFoundBySeek) {
  Fd fd(::open(at("sparse").c_str(), O_CREAT | O_RDWR, 0644));
  EXPECT_EQ(::pwrite(fd, "tail", 4, 1 << 20), 4);
  EXPECT_EQ(stat_of("sparse").st_size, (1 << 20) + 4);
  EXPECT_LT(stat_of("sparse").st_blocks, 64) << "the hole takes no space";
  EXPECT_EQ(bytes_of(fd, 100, 8), std::string(8, '\0'));
  EXPECT_EQ(::lseek(fd, 0, SEEK_DATA), 1 << 20);
  EXPECT_EQ(::lseek(fd, 0, SEEK_HOLE), 0);
  EXPECT_EQ(::lseek(fd, 1 << 20, SEEK_HOLE), (1 << 20) + 4);
  EXPECT_EQ(result(::lseek(fd, (1 << 20) + 4, SEEK_DATA)), -ENXIO);
}

TEST_F(Files, ShrinkAndGrowShowsNoOldBytes) {
  Fd fd(::open(at("f").c_str(), O_CREAT | O_RDWR, 0644));
  std::string text(10000, 'x');
  ASSERT_EQ(::write(fd, text.data(), text.size()), 10000);
  EXPECT_EQ(::ftruncate(fd, 5), 0);
  EXPECT_EQ(::ftruncate(fd, 9000), 0);
  EXPECT_EQ(bytes_of(fd, 0, 10), std::string("xxxxx") + std::string(5, '\0'));
  EXPECT_EQ(bytes_of(fd, 4090, 10), std::string(10, '\0'));
  EXPECT_EQ(stat_of("f").st_size, 9000);
  EXPECT_EQ(result(::truncate(here_.c_str(), 1)), -EISDIR);
  EXPECT_EQ(result(::ftruncate(fd, -1)), -EINVAL);
}

TEST_F(Files, OverwritesInTheMiddleKeepBothSides) {
  Fd fd(::open(at("f").c_str(), O_CREAT | O_RDWR, 0644));
  std::string text(20000, 'a');
  ASSERT_EQ(::write(fd, text.data(), text.size()), 20000);
  ASSERT_EQ(::pwrite(fd, "BBBB", 4, 9998), 4);
  ASSERT_EQ(::pwrite(fd, "CC", 2, 0), 2);
  text.replace(9998, 4, "BBBB").replace(0, 2, "CC");
  EXPECT_EQ(read("f"), text);
}

TEST_F(Files, AppendGoesToTheEndOfWhateverIsThere) {
  write("log", "1");
  Fd a(::open(at("log").c_str(), O_WRONLY | O_APPEND));
  Fd b(::open(at("log").c_str(), O_WRONLY | O_APPEND));
  EXPECT_EQ(::write(a, "2", 1), 1);
  EXPECT_EQ(::write(b, "3", 1), 1);
  EXPECT_EQ(::write(a, "4", 1), 1);
  EXPECT_EQ(read("log"), "1234");
}

TEST_F(Files, OpenTruncatesWhenAsked) {
  write("f", "long content");
  Fd fd(::open(at("f").c_str(), O_WRONLY | O_TRUNC));
  EXPECT_EQ(stat_of("f").st_size, 0);
  EXPECT_EQ(::write(fd, "new", 3), 3);
  EXPECT_EQ(read("f"), "new");
}

TEST_F(Files, BigWritesComeBackWhole) {
  std::string text(5 << 20, 0);
  for (size_t i = 0; i < text.size(); i++) text[i] = static_cast<char>(i * 2654435761u >> 24);
  write("big", text);
  EXPECT_TRUE(read("big") == text);
  Fd fd(::open(at("big").c_str(), O_RDONLY));
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  EXPECT_TRUE(read("big") == text) << "also when it comes from the daemon again";
}

TEST_F(Files, FallocateReservesPunchesAndZeroes) {
  Fd fd(::open(at("f").c_str(), O_CREAT | O_RDWR, 0644));
  std::string text(16384, 'x');
  ASSERT_EQ(::write(fd, text.data(), text.size()), 16384);
  EXPECT_EQ(::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100000), 0);
  EXPECT_EQ(stat_of("f").st_size, 16384);
  EXPECT_EQ(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096), 0);
  EXPECT_EQ(bytes_of(fd, 4095, 3), std::string("x\0\0", 3));
  EXPECT_EQ(bytes_of(fd, 8191, 2), std::string("\0x", 2));
  EXPECT_EQ(::fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 10), 0);
  EXPECT_EQ(bytes_of(fd, 0, 11), std::string(10, '\0') + "x");
  EXPECT_EQ(::fallocate(fd, 0, 0, 20000), 0);
  EXPECT_EQ(stat_of("f").st_size, 20000);
}

TEST_F(Files, CopyFileRangeCopies) {
  std::string text(300000, 0);
  for (size_t i = 0; i < text.size(); i++) text[i] = static_cast<char>(i % 251);
  write("from", text);
  Fd from(::open(at("from").c_str(), O_RDONLY));
  Fd to(::open(at("to").c_str(), O_CREAT | O_RDWR, 0644));
  off_t in = 1000, out = 0;
  ssize_t copied = 0;
  while (copied < 200000) {
    ssize_t n = ::copy_file_range(from, &in, to, &out, static_cast<size_t>(200000 - copied), 0);
    ASSERT_GT(n, 0) << errno;
    copied += n;
  }
  EXPECT_TRUE(read("to") == text.substr(1000, 200000));
  write("from", "changed");
  EXPECT_TRUE(read("to") == text.substr(1000, 200000)) << "the copy does not follow its source";
}

TEST_F(Files, TimesHaveNanosecondsAndCanBeSet) {
  write("f", "");
  timespec times[2] = {{1111111111, 123456789}, {-5, 987654321}};
  EXPECT_EQ(::utimensat(AT_FDCWD, at("f").c_str(), times, 0), 0);
  EXPECT_EQ(nanoseconds(stat_of("f").st_atim), 1111111111123456789);
  EXPECT_EQ(nanoseconds(stat_of("f").st_mtim), -5 * 1'000'000'000ll + 987654321);
  timespec omit[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  EXPECT_EQ(::utimensat(AT_FDCWD, at("f").c_str(), omit, 0), 0);
  EXPECT_EQ(nanoseconds(stat_of("f").st_atim), 1111111111123456789);
  EXPECT_GT(stat_of("f").st_mtim.tv_sec, 1600000000);
}

TEST_F(Files, ChangesMoveTheTimesThatPosixNames) {
  write("f", "x");
  auto before = stat_of("f");
  auto folder_before = stat_of("");
  EXPECT_EQ(::chmod(at("f").c_str(), 0600), 0);
  auto after = stat_of("f");
  EXPECT_GT(nanoseconds(after.st_ctim), nanoseconds(before.st_ctim));
  EXPECT_EQ(nanoseconds(after.st_mtim), nanoseconds(before.st_mtim));
  write("f", "yy");
  EXPECT_GT(nanoseconds(stat_of("f").st_mtim), nanoseconds(after.st_mtim));
  EXPECT_EQ(nanoseconds(stat_of("").st_mtim), nanoseconds(folder_before.st_mtim));
  write("g", "");
  EXPECT_GT(nanoseconds(stat_of("").st_mtim), nanoseconds(folder_before.st_mtim));
  auto g = stat_of("g");
  EXPECT_EQ(::link(at("g").c_str(), at("h").c_str()), 0);
  EXPECT_GT(nanoseconds(stat_of("g").st_ctim), nanoseconds(g.st_ctim));
}

TEST_F(Files, ModesAndOwnersChange) {
  write("f", "");
  EXPECT_EQ(::chmod(at("f").c_str(), 06755), 0);
  EXPECT_EQ(stat_of("f").st_mode & 07777, 06755u);
  if (::geteuid() != 0) return;
  EXPECT_EQ(::chown(at("f").c_str(), 1234, 5678), 0);
  EXPECT_EQ(stat_of("f").st_uid, 1234u);
  EXPECT_EQ(stat_of("f").st_gid, 5678u);
  EXPECT_EQ(stat_of("f").st_mode & 07777, 0755u) << "chown takes set-user-id away";
  EXPECT_EQ(::chown(at("f").c_str(), static_cast<uid_t>(-1), 99), 0);
  EXPECT_EQ(stat_of("f").st_uid, 1234u);
}

TEST_F(Files, OthersAreKeptOutByModes) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  write("secret", "s");
  ASSERT_EQ(::chmod(at("secret").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir(at("sticky").c_str(), 0777), 0);
  ASSERT_EQ(::chmod(at("sticky").c_str(), 01777), 0);
  write("sticky/mine", "");
  pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(9);
    if (result(::open(at("secret").c_str(), O_RDONLY)) != -EACCES) ::_exit(1);
    if (result(::open(at("new").c_str(), O_CREAT | O_WRONLY, 0644)) != -EACCES) ::_exit(2);
    long removed = result(::unlink(at("sticky/mine").c_str()));
    if (removed != -EPERM && removed != -EACCES) ::_exit(3);
    if (result(::chmod(at("sticky/mine").c_str(), 0777)) != -EPERM) ::_exit(4);
    int fd = ::open(at("sticky/theirs").c_str(), O_CREAT | O_WRONLY, 0644);
    ::_exit(fd >= 0 && ::unlink(at("sticky/theirs").c_str()) == 0 ? 0 : 5);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Files, WritingTakesSetUserIdAway) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  write("tool", "x");
  ASSERT_EQ(::chown(at("tool").c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(at("tool").c_str(), 06777), 0);
  pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(9);
    int fd = ::open(at("tool").c_str(), O_WRONLY);
    ::_exit(fd >= 0 && ::write(fd, "y", 1) == 1 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(stat_of("tool").st_mode & 07777, 0777u);
}

TEST_F(Files, ExtendedAttributesComeAndGo) {
  write("f", "");
  const char* file = nullptr;
  std::string path = at("f");
  file = path.c_str();
  EXPECT_EQ(result(::getxattr(file, "user.none", nullptr, 0)), -ENODATA);
  EXPECT_EQ(::setxattr(file, "user.a", "value", 5, 0), 0);
  EXPECT_EQ(::setxattr(file, "user.empty", "", 0, 0), 0);
  char buffer[256];
  EXPECT_EQ(::getxattr(file, "user.a", buffer, sizeof(buffer)), 5);
  EXPECT_EQ(std::string(buffer, 5), "value");
  EXPECT_EQ(::getxattr(file, "user.a", nullptr, 0), 5);
  EXPECT_EQ(result(::getxattr(file, "user.a", buffer, 3)), -ERANGE);
  EXPECT_EQ(::getxattr(file, "user.empty", buffer, sizeof(buffer)), 0);
  EXPECT_EQ(result(::setxattr(file, "user.a", "x", 1, XATTR_CREATE)), -EEXIST);
  EXPECT_EQ(result(::setxattr(file, "user.b", "x", 1, XATTR_REPLACE)), -ENODATA);
  ssize_t listed = ::listxattr(file, buffer, sizeof(buffer));
  EXPECT_EQ(listed, static_cast<ssize_t>(sizeof("user.a") + sizeof("user.empty")));
  EXPECT_EQ(::removexattr(file, "user.a"), 0);
  EXPECT_EQ(result(::removexattr(file, "user.a")), -ENODATA);
}

TEST_F(Files, SharedMappingsSeeAndMakeChanges) {
  write("f", std::string(8192, 'a'));
  Fd fd(::open(at("f").c_str(), O_RDWR));
  void* memory = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* bytes = static_cast<char*>(memory);
  EXPECT_EQ(::pwrite(fd, "b", 1, 10), 1);
  EXPECT_EQ(bytes[10], 'b');
  bytes[5000] = 'c';
  EXPECT_EQ(::msync(memory, 8192, MS_SYNC), 0);
  EXPECT_EQ(bytes_of(fd, 5000, 1), "c");
  ::munmap(memory, 8192);
  EXPECT_EQ(read("f")[5000], 'c');
}

TEST_F(Files, MappedProgramsSurviveTheirUnlink) {
  std::string program = base::read_file("/bin/true").value_or("");
  write("true", program);
  ASSERT_EQ(::chmod(at("true").c_str(), 0755), 0);
  base::ProcessSpec spec;
  spec.argv = {at("true")};
  EXPECT_TRUE(base::run_process(spec)->ok());
  Fd fd(::open(at("true").c_str(), O_RDONLY));
  void* memory = ::mmap(nullptr, program.size(), PROT_READ, MAP_PRIVATE, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::unlink(at("true").c_str()), 0);
  EXPECT_EQ(std::memcmp(memory, program.data(), program.size()), 0);
  ::munmap(memory, program.size());
}

// Whether another process gets this lock at once.
bool other_gets_lock(const std::string& path, short type, off_t start, off_t length) {
  pid_t child = ::fork();
  if (child == 0) {
    int fd = ::open(path.c_str(), O_RDWR);
    struct flock lock{};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = start;
    lock.l_len = length;
    ::_exit(::fcntl(fd, F_SETLK, &lock) == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status) == 0;
}

TEST_F(Files, ByteRangeLocksKeepOthersOut) {
  write("f", std::string(100, 'x'));
  Fd fd(::open(at("f").c_str(), O_RDWR));
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 10;
  lock.l_len = 10;
  ASSERT_EQ(::fcntl(fd, F_SETLK, &lock), 0);
  EXPECT_FALSE(other_gets_lock(at("f"), F_WRLCK, 15, 1));
  EXPECT_FALSE(other_gets_lock(at("f"), F_RDLCK, 0, 0));
  EXPECT_TRUE(other_gets_lock(at("f"), F_WRLCK, 20, 10));
  lock.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(fd, F_SETLK, &lock), 0);
  EXPECT_TRUE(other_gets_lock(at("f"), F_WRLCK, 0, 0));
}

TEST_F(Files, FlockKeepsOthersOut) {
  write("f", "");
  Fd a(::open(at("f").c_str(), O_RDWR));
  Fd b(::open(at("f").c_str(), O_RDWR));
  EXPECT_EQ(::flock(a, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(result(::flock(b, LOCK_SH | LOCK_NB)), -EWOULDBLOCK);
  EXPECT_EQ(::flock(a, LOCK_UN), 0);
  EXPECT_EQ(::flock(b, LOCK_SH | LOCK_NB), 0);
}

TEST_F(Files, OpensSayWhatIsWrong) {
  write("f", "");
  EXPECT_EQ(result(::open(at("f/x").c_str(), O_RDONLY)), -ENOTDIR);
  EXPECT_EQ(result(::open(at("none").c_str(), O_RDONLY)), -ENOENT);
  EXPECT_EQ(result(::open(here_.c_str(), O_WRONLY)), -EISDIR);
  EXPECT_EQ(result(::open(at("f").c_str(), O_RDONLY | O_DIRECTORY)), -ENOTDIR);
  ASSERT_EQ(::symlink("f", at("s").c_str()), 0);
  EXPECT_EQ(result(::open(at("s").c_str(), O_RDONLY | O_NOFOLLOW)), -ELOOP);
  Fd fd(::open(at("f").c_str(), O_RDONLY));
  EXPECT_EQ(result(::write(fd, "x", 1)), -EBADF);
}

TEST_F(Files, SyncCallsSucceed) {
  write("f", "x");
  Fd fd(::open(at("f").c_str(), O_RDWR));
  EXPECT_EQ(::write(fd, "y", 1), 1);
  EXPECT_EQ(::fsync(fd), 0);
  EXPECT_EQ(::fdatasync(fd), 0);
  EXPECT_EQ(::syncfs(fd), 0);
  Fd folder(::open(here_.c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(::fsync(folder), 0);
}

TEST_F(Files, StatvfsTellsLimits) {
  struct statvfs info{};
  ASSERT_EQ(::statvfs(here_.c_str(), &info), 0);
  EXPECT_EQ(info.f_namemax, 255u);
  EXPECT_GT(info.f_blocks, 0u);
  EXPECT_GE(info.f_blocks, info.f_bfree);
}

TEST_F(Files, OneDeviceForAllAndInodesAreTheirOwn) {
  write("a", "");
  write("b", "");
  EXPECT_EQ(stat_of("a").st_dev, stat_of("").st_dev);
  EXPECT_NE(stat_of("a").st_ino, stat_of("b").st_ino);
  ino_t ino = stat_of("a").st_ino;
  EXPECT_EQ(::rename(at("a").c_str(), at("c").c_str()), 0);
  EXPECT_EQ(stat_of("c").st_ino, ino);
}

}  // namespace
}  // namespace fs::testing
