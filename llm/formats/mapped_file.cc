#include "llm/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace llm {

using base::Error;
using base::ErrorCode;

base::Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return base::errno_error(errno, "opening " + path);
  struct stat status{};
  if (::fstat(fd, &status) != 0) {
    const int saved = errno;
    ::close(fd);
    return base::errno_error(saved, "reading the size of " + path);
  }
  if (!S_ISREG(status.st_mode) || status.st_size == 0) {
    ::close(fd);
    return Error(ErrorCode::kInvalidArgument, path + " is not a file with content");
  }
  const auto size = static_cast<size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int saved = errno;
  ::close(fd);
  if (data == MAP_FAILED) return base::errno_error(saved, "mapping " + path);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const u8*>(data), size));
}

MappedFile::~MappedFile() {
  ::munmap(const_cast<u8*>(data_), size_);
}

}  // namespace llm
