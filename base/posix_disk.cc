#include "base/disk.h"
#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace base {
namespace {

class PosixFile : public DiskFile {
 public:
  PosixFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~PosixFile() override { ::close(fd_); }

  Result<size_t> read_at(u64 offset, Bytes out) override {
    size_t done = 0;
    while (done < out.size()) {
      ssize_t got =
          ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error(errno, "reading " + path_);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  Status write_at(u64 offset, ByteView data) override {
    size_t done = 0;
    while (done < data.size()) {
      ssize_t wrote =
          ::pwrite(fd_, data.data() + done, data.size() - done, static_cast<off_t>(offset + done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return errno_error(errno, "writing " + path_);
      done += static_cast<size_t>(wrote);
    }
    return {};
  }

  Status truncate(u64 size) override {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0)
      return errno_error(errno, "truncating " + path_);
    return {};
  }

  Result<u64> size() override {
    struct stat info{};
    if (::fstat(fd_, &info) != 0) return errno_error(errno, "reading the size of " + path_);
    return static_cast<u64>(info.st_size);
  }

  Status sync() override {
    if (::fdatasync(fd_) != 0) return errno_error(errno, "syncing " + path_);
    return {};
  }

 private:
  int fd_;
  std::string path_;
};

class PosixDisk : public Disk {
 public:
  Result<std::unique_ptr<DiskFile>> open(const std::string& path, OpenMode mode) override {
    int flags = O_CLOEXEC | (mode.read_only ? O_RDONLY : O_RDWR);
    if (mode.create) flags |= O_CREAT;
    if (mode.exclusive) flags |= O_EXCL;
    int fd = ::open(path.c_str(), flags, 0644);
    if (fd < 0) return errno_error(errno, "opening " + path);
    return std::unique_ptr<DiskFile>(std::make_unique<PosixFile>(fd, path));
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return errno_error(errno, "removing " + path);
    return {};
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      return errno_error(errno, "renaming " + from + " to " + to);
    return {};
  }

  Result<bool> exists(const std::string& path) override {
    if (::access(path.c_str(), F_OK) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return errno_error(errno, "looking for " + path);
  }

  Result<std::vector<std::string>> list(const std::string& directory) override {
    return list_directory(directory);
  }

  Status make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0755) != 0) return errno_error(errno, "making the folder " + path);
    return {};
  }

  Status sync_directory(const std::string& path) override {
    int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno_error(errno, "opening the folder " + path);
    const int failed = ::fsync(fd) != 0 ? errno : 0;
    ::close(fd);
    if (failed != 0) return errno_error(failed, "syncing the folder " + path);
    return {};
  }
};

}  // namespace

Disk& posix_disk() {
  static PosixDisk disk;
  return disk;
}

}  // namespace base
