#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace base {
namespace stdfs = std::filesystem;
namespace {

// Closes on scope exit.
struct Descriptor {
  int fd;
  explicit Descriptor(int f) : fd(f) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

Status write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    ssize_t wrote = ::write(fd, content.data(), content.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return errno_error(errno, "writing " + path);
    }
    content.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

Status write_with_flags(const std::string& path, std::string_view content, int flags) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644));
  if (file.fd < 0) return errno_error(errno, "opening " + path + " to write");
  return write_all(file.fd, content, path);
}

std::string parent_of(const std::string& path) {
  std::string parent = stdfs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) return errno_error(errno, "opening " + path);
  std::string content;
  char buffer[65536];
  while (true) {
    ssize_t got = ::read(file.fd, buffer, sizeof buffer);
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno_error(errno, "reading " + path);
    }
    if (got == 0) return content;
    content.append(buffer, static_cast<size_t>(got));
  }
}

Status write_file(const std::string& path, std::string_view content) {
  return write_with_flags(path, content, O_TRUNC);
}

Status append_file(const std::string& path, std::string_view content) {
  return write_with_flags(path, content, O_APPEND);
}

Status replace_file(const std::string& path, std::string_view content) {
  const std::string beside = path + ".new." + std::to_string(::getpid());
  {
    Descriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.fd < 0) return errno_error(errno, "opening " + beside + " to write");
    Status written = write_all(file.fd, content, beside);
    if (written.ok() && ::fsync(file.fd) != 0) written = errno_error(errno, "syncing " + beside);
    if (!written.ok()) {
      ::unlink(beside.c_str());
      return written;
    }
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    return errno_error(error, "renaming to " + path);
  }
  Descriptor folder(::open(parent_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd < 0 || ::fsync(folder.fd) != 0)
    return errno_error(errno, "syncing the folder of " + path);
  return {};
}

bool file_exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

bool is_directory(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Status make_directories(const std::string& path) {
  std::error_code error;
  stdfs::create_directories(path, error);
  if (error) return errno_error(error.value(), "making the folder " + path);
  return {};
}

Status remove_tree(const std::string& path) {
  std::error_code error;
  stdfs::remove_all(path, error);
  if (error) return errno_error(error.value(), "removing " + path);
  return {};
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return errno_error(errno, "listing " + path);
  std::vector<std::string> names;
  while (dirent* entry = ::readdir(folder)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::string>> list_tree(const std::string& path) {
  std::error_code error;
  std::vector<std::string> files;
  auto walk = stdfs::recursive_directory_iterator(path, error);
  for (; !error && walk != stdfs::recursive_directory_iterator(); walk.increment(error)) {
    if (walk->is_regular_file(error))
      files.push_back(walk->path().lexically_relative(path).string());
  }
  if (error) return errno_error(error.value(), "listing " + path);
  std::sort(files.begin(), files.end());
  return files;
}

TempDir::TempDir(std::string_view prefix) {
  const char* parent = std::getenv("TMPDIR");
  path_ = std::string(parent != nullptr && *parent != 0 ? parent : "/tmp") + "/" +
          std::string(prefix) + ".XXXXXX";
  CHECK(::mkdtemp(path_.data()) != nullptr);
}

TempDir::~TempDir() {
  Status removed = remove_tree(path_);
  (void)removed.ok();  // a leftover in the temporary folder is no reason to fail
}

}  // namespace base
