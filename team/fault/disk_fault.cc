#include "team/fault/disk_fault.h"

#include "base/clock.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

namespace team {
namespace {

bool is_sync(int number) {
  return number == SYS_fsync || number == SYS_fdatasync || number == SYS_sync_file_range ||
         number == SYS_syncfs;
}

int receive_descriptor(int connection) {
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  if (::recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS) return -1;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  return descriptor;
}

}  // namespace

DiskFault::DiskFault(int socket, std::string socket_path, std::string folder)
    : socket_(socket),
      stop_event_(::eventfd(0, EFD_CLOEXEC)),
      socket_path_(std::move(socket_path)),
      folder_(std::move(folder)) {
  thread_ = std::thread([this] { serve(); });
}

DiskFault::~DiskFault() {
  const u64 one = 1;
  [[maybe_unused]] const ssize_t told = ::write(stop_event_, &one, sizeof one);
  thread_.join();
  ::close(socket_);
  ::close(stop_event_);
  ::unlink(socket_path_.c_str());
}

base::Result<std::unique_ptr<DiskFault>> DiskFault::start(const std::string& socket_path,
                                                          const std::string& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    return base::Error(base::ErrorCode::kInvalidArgument,
                       "the path " + socket_path + " is too long for a Unix socket");
  }
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return base::errno_error(errno, "making a socket");
  ::unlink(socket_path.c_str());
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, 4) != 0) {
    const int error = errno;
    ::close(fd);
    return base::errno_error(error, "listening on " + socket_path);
  }
  return std::unique_ptr<DiskFault>(new DiskFault(fd, socket_path, folder));
}

base::Status DiskFault::obey(std::string_view order) {
  i64 delay_ms = 0;
  if (order.starts_with("slow ")) {
    std::from_chars(order.data() + 5, order.data() + order.size(), delay_ms);
  }
  if (order == "ok") {
    set(DiskMode::kOk);
  } else if (order == "full") {
    set(DiskMode::kFull);
  } else if (order == "failing") {
    set(DiskMode::kFailing);
  } else if (delay_ms > 0) {
    set(DiskMode::kSlow, delay_ms);
  } else {
    return base::Error(
        base::ErrorCode::kInvalidArgument,
        "unknown disk order '" + std::string(order) + "'; use full, failing, slow MS or ok");
  }
  return {};
}

void DiskFault::set(DiskMode mode, i64 delay_ms) {
  delay_ms_ = delay_ms;
  mode_ = mode;
}

void DiskFault::serve() {
  std::vector<int> listeners;
  for (;;) {
    std::vector<pollfd> polled = {{stop_event_, POLLIN, 0}, {socket_, POLLIN, 0}};
    for (const int listener : listeners) polled.push_back({listener, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    if (polled[0].revents != 0) break;
    if (polled[1].revents != 0) {
      const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection >= 0) {
        if (const int listener = receive_descriptor(connection); listener >= 0) {
          listeners.push_back(listener);
        }
        ::close(connection);
      }
    }
    for (size_t i = 2; i < polled.size(); ++i) {
      if ((polled[i].revents & POLLIN) != 0) answer(polled[i].fd);
      if ((polled[i].revents & (POLLHUP | POLLERR)) != 0) {  // all its processes are gone
        ::close(polled[i].fd);
        std::erase(listeners, polled[i].fd);
      }
    }
  }
  // Closing a listener makes the calls that wait on it fail with ENOSYS; the service is being
  // ended.
  for (const int listener : listeners) ::close(listener);
}

bool DiskFault::concerns_folder(int pid, u64 descriptor) const {
  const std::string link =
      "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(static_cast<u32>(descriptor));
  std::array<char, 4096> target{};
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  if (size <= 0) return false;
  const std::string_view path(target.data(), static_cast<size_t>(size));
  return path.starts_with(folder_) &&
         (path.size() == folder_.size() || path[folder_.size()] == '/');
}

void DiskFault::answer(int listener) {
  seccomp_notif asked{};
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return;
  seccomp_notif_resp reply{};
  reply.id = asked.id;
  reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  const DiskMode mode = mode_;
  if (concerns_folder(static_cast<int>(asked.pid), asked.data.args[0])) {
    ++seen_;
    int error = 0;
    // A file cut off frees space, one made longer is a hole: neither fails on a full disk.
    const bool needs_space = !is_sync(asked.data.nr) && asked.data.nr != SYS_ftruncate;
    if (mode == DiskMode::kFull && needs_space) error = ENOSPC;
    if (mode == DiskMode::kFailing) error = EIO;
    if (mode == DiskMode::kSlow) {
      base::system_clock().sleep_us(delay_ms_ * 1'000);
      ++delayed_;
    }
    if (error != 0) {
      reply.flags = 0;
      reply.error = -error;
      ++refused_;
    }
  }
  ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);  // fails only when the caller is gone
}

}  // namespace team
