#include "team/sandbox/beneath.h"

#include "base/types.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace team {
namespace {

base::Error path_error(int error, const std::string& relative) {
  if (error == EXDEV || error == ELOOP) {
    return base::Error(base::ErrorCode::kPermission,
                       "'" + relative + "' leads out of the workspace; use a path inside it");
  }
  return base::errno_error(error, relative);
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

base::Result<Fd> open_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return base::errno_error(errno, "opening " + path);
  return Fd(fd);
}

base::Result<Fd> open_beneath(const Fd& folder, const std::string& relative, int flags, int mode) {
  if (relative.empty() || relative.find('\0') != std::string::npos) {
    return base::Error(base::ErrorCode::kInvalidArgument, "an empty path is not a file");
  }
  open_how how{};
  how.flags = static_cast<u64>(flags | O_CLOEXEC);
  how.mode = static_cast<u64>(mode);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, folder.get(), relative.c_str(), &how, sizeof how);
  if (fd < 0) return path_error(errno, relative);
  return Fd(static_cast<int>(fd));
}

base::Result<Fd> open_parent_beneath(const Fd& folder, const std::string& relative, bool make) {
  size_t slash = 0;
  while (make && (slash = relative.find('/', slash + 1)) != std::string::npos) {
    const std::string part = relative.substr(0, slash);
    Fd parent = TRY(open_parent_beneath(folder, part, false));
    const std::string name = last_component(part);
    if (name == ".." || name == "." || name.empty()) continue;  // the final open judges these
    if (::mkdirat(parent.get(), name.c_str(), 0755) != 0 && errno != EEXIST) {
      return path_error(errno, part);
    }
  }
  const size_t last = relative.rfind('/');
  const std::string parent = last == std::string::npos ? "." : relative.substr(0, last);
  return open_beneath(folder, parent.empty() ? "/" : parent, O_RDONLY | O_DIRECTORY);
}

std::string last_component(const std::string& relative) {
  const size_t last = relative.rfind('/');
  return last == std::string::npos ? relative : relative.substr(last + 1);
}

}  // namespace team
