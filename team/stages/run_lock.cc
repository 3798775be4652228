#include "team/stages/run_lock.h"

#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace team {

base::Result<std::unique_ptr<RunLock>> RunLock::take(const std::string& folder) {
  const std::string path = folder + "/run.lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return base::errno_error(errno, "opening " + path);
  std::unique_ptr<RunLock> lock(new RunLock(fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    std::string holder = base::read_file(path).value_or("");
    holder = holder.substr(0, holder.find('\n'));
    return base::Error(base::ErrorCode::kBusy,
                       "this run is being worked on by process " + (holder.empty() ? "?" : holder) +
                           "; follow it with fleet watch, or stop that process first");
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    return base::errno_error(errno, "writing " + path);
  }
  return lock;
}

RunLock::~RunLock() {
  ::close(fd_);
}

}  // namespace team
