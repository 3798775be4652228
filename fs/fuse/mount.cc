#include "fs/fuse/mount.h"

#include "base/process.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace fs::fuse {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Result<Device> mount_as_root(const std::string& folder, const MountOptions& options) {
  Device device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (device.fd() < 0) {
    return base::errno_error(errno, "opening /dev/fuse (is the fuse module loaded?)");
  }
  std::string data = "fd=" + std::to_string(device.fd()) +
                     ",rootmode=40000,user_id=" + std::to_string(::getuid()) +
                     ",group_id=" + std::to_string(::getgid()) + ",default_permissions";
  if (options.allow_other) data += ",allow_other";
  unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOATIME;
  if (options.read_only) flags |= MS_RDONLY;
  if (options.no_exec) flags |= MS_NOEXEC;
  if (::mount(options.source.c_str(), folder.c_str(), "fuse.agentfs", flags, data.c_str()) != 0) {
    return base::errno_error(errno, "mounting on " + folder);
  }
  return device;
}

// The descriptor that fusermount3 sends through the socket it inherits.
Result<Device> receive_device(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* first = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (first == nullptr || first->cmsg_type != SCM_RIGHTS) {
    return Error(
        ErrorCode::kPermission,
        "fusermount3 did not mount; its message is above (is the folder yours and empty?)");
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(first), sizeof(fd));
  return Device(fd);
}

Result<Device> mount_by_helper(const std::string& folder, const MountOptions& options) {
  auto helper = base::find_program("fusermount3");
  if (!helper) {
    return Error(ErrorCode::kNotFound,
                 "mounting without root needs the program fusermount3; install the package fuse3");
  }
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
    return base::errno_error(errno, "making a socket pair");
  }
  Device ours(pair[0]), theirs(pair[1]);
  std::string list = "nosuid,nodev,default_permissions,subtype=agentfs,fsname=" + options.source;
  if (options.allow_other) list += ",allow_other";
  if (options.read_only) list += ",ro";
  if (options.no_exec) list += ",noexec";
  ::fcntl(ours.fd(), F_SETFD, FD_CLOEXEC);
  pid_t child = ::fork();
  if (child < 0) return base::errno_error(errno, "starting fusermount3");
  if (child == 0) {
    ::setenv("_FUSE_COMMFD", std::to_string(theirs.fd()).c_str(), 1);
    ::execl(helper->c_str(), "fusermount3", "-o", list.c_str(), "--", folder.c_str(), nullptr);
    ::_exit(127);
  }
  theirs = Device();
  auto device = receive_device(ours.fd());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return device;
}

// Octal escapes of /proc/self/mountinfo.
std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

Device& Device::operator=(Device&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Device::~Device() {
  if (fd_ >= 0) ::close(fd_);
}

int Device::release() {
  int fd = fd_;
  fd_ = -1;
  return fd;
}

Result<Device> mount(const std::string& folder, const MountOptions& options) {
  struct stat info{};
  if (::stat(folder.c_str(), &info) != 0) {
    int why = errno;
    // A mount whose daemon died answers everything with ENOTCONN: clear it away.
    if (why != ENOTCONN || !unmount(folder, true).ok() || ::stat(folder.c_str(), &info) != 0) {
      return base::errno_error(why, "looking at the mount point " + folder);
    }
  }
  if (!S_ISDIR(info.st_mode)) {
    return Error(ErrorCode::kInvalidArgument,
                 folder + " is not a folder; give an empty folder to mount on");
  }
  return ::geteuid() == 0 ? mount_as_root(folder, options) : mount_by_helper(folder, options);
}

Status unmount(const std::string& folder, bool lazy) {
  if (::geteuid() == 0) {
    if (::umount2(folder.c_str(), (lazy ? MNT_DETACH : 0) | UMOUNT_NOFOLLOW) != 0) {
      return base::errno_error(errno, "unmounting " + folder);
    }
    return {};
  }
  base::ProcessSpec spec;
  spec.argv = {"fusermount3", "-u", folder};
  if (lazy) spec.argv.insert(spec.argv.begin() + 2, "-z");
  auto result = TRY(base::run_process(spec));
  if (!result.ok()) return Error(ErrorCode::kBusy, "fusermount3: " + result.err);
  return {};
}

std::optional<std::string> mounted_source(const std::string& folder) {
  char resolved[PATH_MAX];
  // realpath fails on a dead mount; then the name as given has to do.
  std::string wanted = ::realpath(folder.c_str(), resolved) != nullptr ? resolved : folder;
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream fields(line);
    std::string id, parent, device, root, place;
    fields >> id >> parent >> device >> root >> place;
    size_t type = line.find(" - fuse.agentfs ");
    if (type == std::string::npos || unescape(place) != wanted) continue;
    std::istringstream rest(line.substr(type + 3));
    std::string kind, source;
    rest >> kind >> source;
    return unescape(source);
  }
  return std::nullopt;
}

}  // namespace fs::fuse
