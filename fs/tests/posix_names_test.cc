// What POSIX and Linux promise about names: creating, linking, renaming, removing, listing.
#include "fs/tests/posix_fixture.h"

#include <dirent.h>
#include <linux/fs.h>
#include <sys/syscall.h>

#include <set>

namespace fs::testing {
namespace {

using Names = PosixTest;

long renameat2(const std::string& from, const std::string& to, unsigned flags) {
  return result(::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags));
}

std::set<std::string> list(const std::string& folder) {
  std::set<std::string> names;
  DIR* dir = ::opendir(folder.c_str());
  EXPECT_NE(dir, nullptr);
  if (dir == nullptr) return names;
  while (dirent* entry = ::readdir(dir)) {
    EXPECT_TRUE(names.insert(entry->d_name).second) << "listed twice: " << entry->d_name;
  }
  ::closedir(dir);
  names.erase(".");
  names.erase("..");
  return names;
}

TEST_F(Names, ExclusiveCreateHasOneWinner) {
  int fd = ::open(at("lock").c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644);
  ASSERT_GE(fd, 0);
  ::close(fd);
  EXPECT_EQ(result(::open(at("lock").c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644)), -EEXIST);
  EXPECT_EQ(::symlink("nowhere", at("link").c_str()), 0);
  EXPECT_EQ(result(::open(at("link").c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644)), -EEXIST);
}

TEST_F(Names, MissingNamesAreRememberedOnlyUntilTheyAppear) {
  struct stat info{};
  EXPECT_EQ(result(::stat(at("later").c_str(), &info)), -ENOENT);
  write("later", "x");
  EXPECT_EQ(::stat(at("later").c_str(), &info), 0);
  EXPECT_EQ(::unlink(at("later").c_str()), 0);
  EXPECT_EQ(result(::stat(at("later").c_str(), &info)), -ENOENT);
}

TEST_F(Names, MayHave255BytesAndAnythingButSlashAndNul) {
  std::string longest(255, 'n');
  write(longest, "x");
  EXPECT_TRUE(there(longest));
  EXPECT_EQ(result(::open(at(longest + "n").c_str(), O_CREAT | O_WRONLY, 0644)), -ENAMETOOLONG);
  EXPECT_EQ(result(::mkdir(at(longest + "n").c_str(), 0755)), -ENAMETOOLONG);
  std::string odd = "a\nb\t\x01\xff\xfe ' \" \\ *";
  write(odd, "odd");
  EXPECT_EQ(read(odd), "odd");
  EXPECT_EQ(list(here_), (std::set<std::string>{longest, odd}));
}

TEST_F(Names, FoldersCountTheirSubfoldersInNlink) {
  EXPECT_EQ(::mkdir(at("d").c_str(), 0755), 0);
  EXPECT_EQ(stat_of("d").st_nlink, 2u);
  EXPECT_EQ(::mkdir(at("d/a").c_str(), 0755), 0);
  EXPECT_EQ(::mkdir(at("d/b").c_str(), 0755), 0);
  write("d/file", "");
  EXPECT_EQ(stat_of("d").st_nlink, 4u);
  EXPECT_EQ(::rename(at("d/a").c_str(), at("a").c_str()), 0);
  EXPECT_EQ(stat_of("d").st_nlink, 3u);
  EXPECT_EQ(::rmdir(at("d/b").c_str()), 0);
  EXPECT_EQ(stat_of("d").st_nlink, 2u);
}

TEST_F(Names, MkdirAndRmdirSayWhatIsWrong) {
  EXPECT_EQ(::mkdir(at("d").c_str(), 0755), 0);
  EXPECT_EQ(result(::mkdir(at("d").c_str(), 0755)), -EEXIST);
  EXPECT_EQ(result(::mkdir(at("no/d").c_str(), 0755)), -ENOENT);
  write("f", "");
  EXPECT_EQ(result(::mkdir(at("f/d").c_str(), 0755)), -ENOTDIR);
  EXPECT_EQ(result(::rmdir(at("f").c_str())), -ENOTDIR);
  EXPECT_EQ(result(::unlink(at("d").c_str())), -EISDIR);
  write("d/f", "");
  EXPECT_EQ(result(::rmdir(at("d").c_str())), -ENOTEMPTY);
  EXPECT_EQ(result(::rmdir(at("d/.").c_str())), -EINVAL);
  EXPECT_EQ(result(::rmdir(at("gone").c_str())), -ENOENT);
}

TEST_F(Names, HardLinksShareOneInode) {
  write("a", "same");
  EXPECT_EQ(::link(at("a").c_str(), at("b").c_str()), 0);
  EXPECT_EQ(stat_of("a").st_ino, stat_of("b").st_ino);
  EXPECT_EQ(stat_of("a").st_nlink, 2u);
  write("b", "changed");
  EXPECT_EQ(read("a"), "changed");
  EXPECT_EQ(::unlink(at("a").c_str()), 0);
  EXPECT_EQ(stat_of("b").st_nlink, 1u);
  EXPECT_EQ(result(::link(at("gone").c_str(), at("c").c_str())), -ENOENT);
  EXPECT_EQ(::mkdir(at("d").c_str(), 0755), 0);
  EXPECT_EQ(result(::link(at("d").c_str(), at("e").c_str())), -EPERM);
  write("x", "");
  EXPECT_EQ(result(::link(at("b").c_str(), at("x").c_str())), -EEXIST);
}

TEST_F(Names, SymlinksKeepTheirTargetWhateverItIs) {
  std::string target(1000, 't');
  EXPECT_EQ(::symlink(target.c_str(), at("s").c_str()), 0);
  char buffer[2000];
  ASSERT_EQ(::readlink(at("s").c_str(), buffer, sizeof(buffer)), 1000);
  EXPECT_EQ(std::string(buffer, 1000), target);
  EXPECT_EQ(stat_of("s").st_size, 1000);
  EXPECT_TRUE(S_ISLNK(stat_of("s").st_mode));
  EXPECT_EQ(::symlink("s2", at("s2").c_str()), 0);
  struct stat info{};
  EXPECT_EQ(result(::stat(at("s2").c_str(), &info)), -ELOOP);
  write("f", "");
  EXPECT_EQ(result(::readlink(at("f").c_str(), buffer, sizeof(buffer))), -EINVAL);
}

TEST_F(Names, RenameReplacesAtomically) {
  write("old", "new content");
  write("target", "old content");
  ino_t ino = stat_of("old").st_ino;
  int fd = ::open(at("target").c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::rename(at("old").c_str(), at("target").c_str()), 0);
  EXPECT_EQ(read("target"), "new content");
  EXPECT_EQ(stat_of("target").st_ino, ino);
  EXPECT_FALSE(there("old"));
  char buffer[32];
  EXPECT_EQ(::read(fd, buffer, sizeof(buffer)), 11) << "the replaced file is still open";
  EXPECT_EQ(std::string(buffer, 11), "old content");
  struct stat info{};
  EXPECT_EQ(::fstat(fd, &info), 0);
  EXPECT_EQ(info.st_nlink, 0u);
  ::close(fd);
}

TEST_F(Names, RenameRefusesWhatMakesNoTree) {
  ASSERT_EQ(::mkdir(at("a").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(at("a/b").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(at("full").c_str(), 0755), 0);
  write("full/f", "");
  write("f", "");
  EXPECT_EQ(result(::rename(at("a").c_str(), at("a/b/c").c_str())), -EINVAL);
  EXPECT_EQ(result(::rename(at("a").c_str(), at("f").c_str())), -ENOTDIR);
  EXPECT_EQ(result(::rename(at("f").c_str(), at("a").c_str())), -EISDIR);
  EXPECT_EQ(result(::rename(at("a").c_str(), at("full").c_str())), -ENOTEMPTY);
  EXPECT_EQ(result(::rename(at("none").c_str(), at("x").c_str())), -ENOENT);
  EXPECT_EQ(::rename(at("a/b").c_str(), at("a").c_str()) == 0 ? 0 : errno, ENOTEMPTY);
}

TEST_F(Names, RenameMovesAFolderOverAnEmptyOne) {
  ASSERT_EQ(::mkdir(at("from").c_str(), 0755), 0);
  write("from/f", "inside");
  ASSERT_EQ(::mkdir(at("to").c_str(), 0755), 0);
  EXPECT_EQ(::rename(at("from").c_str(), at("to").c_str()), 0);
  EXPECT_EQ(read("to/f"), "inside");
  EXPECT_FALSE(there("from"));
}

TEST_F(Names, RenameOfTwoLinksToOneFileDoesNothing) {
  write("a", "x");
  ASSERT_EQ(::link(at("a").c_str(), at("b").c_str()), 0);
  EXPECT_EQ(::rename(at("a").c_str(), at("b").c_str()), 0);
  EXPECT_TRUE(there("a"));
  EXPECT_TRUE(there("b"));
}

TEST_F(Names, RenameNoReplaceAndExchange) {
  write("a", "A");
  write("b", "B");
  EXPECT_EQ(renameat2(at("a"), at("b"), RENAME_NOREPLACE), -EEXIST);
  EXPECT_EQ(renameat2(at("a"), at("c"), RENAME_NOREPLACE), 0);
  EXPECT_EQ(renameat2(at("c"), at("b"), RENAME_EXCHANGE), 0);
  EXPECT_EQ(read("c"), "B");
  EXPECT_EQ(read("b"), "A");
  EXPECT_EQ(renameat2(at("c"), at("none"), RENAME_EXCHANGE), -ENOENT);
  ASSERT_EQ(::mkdir(at("d").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(at("d/sub").c_str(), 0755), 0);
  EXPECT_EQ(renameat2(at("d/sub"), at("b"), RENAME_EXCHANGE), 0);
  EXPECT_EQ(read("d/sub"), "A");
  EXPECT_EQ(stat_of("d").st_nlink, 2u);
}

TEST_F(Names, ListingWhileRemovingSeesEveryNameOnce) {
  constexpr int count = 3000;
  for (int i = 0; i < count; i++) write("f" + std::to_string(i), "");
  DIR* dir = ::opendir(here_.c_str());
  ASSERT_NE(dir, nullptr);
  std::set<std::string> seen;
  while (dirent* entry = ::readdir(dir)) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    EXPECT_EQ(entry->d_type, DT_REG);
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_EQ(::unlink(at(name).c_str()), 0);
  }
  ::closedir(dir);
  EXPECT_EQ(seen.size(), size_t{count});
  EXPECT_TRUE(list(here_).empty());
}

TEST_F(Names, SeekdirComesBackToTheSameEntry) {
  for (int i = 0; i < 500; i++) write("f" + std::to_string(i), "");
  DIR* dir = ::opendir(here_.c_str());
  ASSERT_NE(dir, nullptr);
  for (int i = 0; i < 250; i++) ASSERT_NE(::readdir(dir), nullptr);
  long place = ::telldir(dir);
  std::string next = ::readdir(dir)->d_name;
  while (::readdir(dir) != nullptr) {
  }
  ::seekdir(dir, place);
  dirent* again = ::readdir(dir);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(next, again->d_name);
  ::closedir(dir);
}

TEST_F(Names, DotsNameTheFolderAndItsParent) {
  ASSERT_EQ(::mkdir(at("d").c_str(), 0755), 0);
  DIR* dir = ::opendir(at("d").c_str());
  ASSERT_NE(dir, nullptr);
  while (dirent* entry = ::readdir(dir)) {
    if (std::string(entry->d_name) == ".") {
      EXPECT_EQ(entry->d_ino, stat_of("d").st_ino);
    }
    if (std::string(entry->d_name) == "..") {
      EXPECT_EQ(entry->d_ino, stat_of("").st_ino);
    }
  }
  ::closedir(dir);
}

TEST_F(Names, SocketsAndPipesAreInodesAndDevicesAreRefused) {
  EXPECT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(S_ISFIFO(stat_of("pipe").st_mode));
  EXPECT_EQ(::mknod(at("socket").c_str(), S_IFSOCK | 0600, 0), 0);
  EXPECT_TRUE(S_ISSOCK(stat_of("socket").st_mode));
  EXPECT_EQ(::mknod(at("plain").c_str(), S_IFREG | 0640, 0), 0);
  EXPECT_EQ(stat_of("plain").st_mode & 07777, 0640u);
  if (std::getenv("AGENTFS_TEST_FOLDER") == nullptr) {
    EXPECT_EQ(result(::mknod(at("device").c_str(), S_IFCHR | 0600, 0x103)), -EPERM);
  }
}

TEST_F(Names, ModesFollowTheUmaskAndSetgidFolders) {
  mode_t old = ::umask(027);
  ASSERT_EQ(::mkdir(at("d").c_str(), 0777), 0);
  EXPECT_EQ(stat_of("d").st_mode & 07777, 0750u);
  int fd = ::open(at("f").c_str(), O_CREAT | O_WRONLY, 0666);
  ::close(fd);
  EXPECT_EQ(stat_of("f").st_mode & 07777, 0640u);
  ::umask(old);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(at("d").c_str(), 0, 4711), 0);
    ASSERT_EQ(::chmod(at("d").c_str(), 02755), 0);
    write("d/inherits", "");
    EXPECT_EQ(stat_of("d/inherits").st_gid, 4711u);
    ASSERT_EQ(::mkdir(at("d/sub").c_str(), 0755), 0);
    EXPECT_EQ(stat_of("d/sub").st_gid, 4711u);
    EXPECT_NE(stat_of("d/sub").st_mode & S_ISGID, 0u);
  }
}

TEST_F(Names, UnlinkedFilesLiveWhileTheyAreOpen) {
  write("f", "still here");
  int fd = ::open(at("f").c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::unlink(at("f").c_str()), 0);
  char buffer[32];
  EXPECT_EQ(::pread(fd, buffer, sizeof(buffer), 0), 10);
  EXPECT_EQ(::pwrite(fd, "written", 7, 10), 7);
  EXPECT_EQ(::ftruncate(fd, 12), 0);
  struct stat info{};
  EXPECT_EQ(::fstat(fd, &info), 0);
  EXPECT_EQ(info.st_size, 12);
  EXPECT_EQ(info.st_nlink, 0u);
  EXPECT_EQ(::fchmod(fd, 0600), 0);
  ::close(fd);
}

TEST_F(Names, TmpfileAppearsWhenLinked) {
  int fd = ::open(here_.c_str(), O_TMPFILE | O_RDWR, 0644);
  ASSERT_GE(fd, 0) << errno;
  EXPECT_EQ(::write(fd, "hidden", 6), 6);
  EXPECT_TRUE(list(here_).empty());
  std::string through = "/proc/self/fd/" + std::to_string(fd);
  EXPECT_EQ(::linkat(AT_FDCWD, through.c_str(), AT_FDCWD, at("shown").c_str(), AT_SYMLINK_FOLLOW),
            0);
  ::close(fd);
  EXPECT_EQ(read("shown"), "hidden");
  EXPECT_EQ(stat_of("shown").st_nlink, 1u);
}

TEST_F(Names, RemovedFoldersRefuseNewNames) {
  ASSERT_EQ(::mkdir(at("d").c_str(), 0755), 0);
  int fd = ::open(at("d").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::rmdir(at("d").c_str()), 0);
  EXPECT_EQ(result(::openat(fd, "f", O_CREAT | O_WRONLY, 0644)), -ENOENT);
  EXPECT_EQ(result(::mkdirat(fd, "e", 0755)), -ENOENT);
  ::close(fd);
}

TEST_F(Names, DeepTreesCanBeMadeAndRemoved) {
  std::string path = here_;
  for (int depth = 0; depth < 200; depth++) {
    path += "/d";
    ASSERT_EQ(::mkdir(path.c_str(), 0755), 0) << depth;
  }
  EXPECT_TRUE(base::remove_tree(at("d")).ok());
  EXPECT_FALSE(there("d"));
}

}  // namespace
}  // namespace fs::testing
