#include "fs/client/control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

constexpr size_t kLineBytesMax = 1 << 20;
constexpr int kClientTimeoutMs = 60'000;

// sun_path holds 107 bytes: longer folders are reached through a descriptor.
class SocketAddress {
 public:
  explicit SocketAddress(const std::string& path) {
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
    folder_fd_ = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    std::string through = "/proc/self/fd/" + std::to_string(folder_fd_) + "/" +
                          path.substr(slash == std::string::npos ? 0 : slash + 1);
    address_.sun_family = AF_UNIX;
    fits_ = folder_fd_ >= 0 && through.size() < sizeof(address_.sun_path);
    if (fits_) std::memcpy(address_.sun_path, through.c_str(), through.size() + 1);
  }
  ~SocketAddress() {
    if (folder_fd_ >= 0) ::close(folder_fd_);
  }
  SocketAddress(const SocketAddress&) = delete;
  SocketAddress& operator=(const SocketAddress&) = delete;
  bool fits() const { return fits_; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const { return sizeof(address_); }

 private:
  sockaddr_un address_{};
  int folder_fd_ = -1;
  bool fits_ = false;
};

// The line without its end; false when the other side went away or sent too much.
bool read_line(int fd, std::string& line) {
  char buffer[4096];
  for (;;) {
    ssize_t got = ::recv(fd, buffer, sizeof(buffer), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    line.append(buffer, static_cast<size_t>(got));
    size_t end = line.find('\n');
    if (end != std::string::npos) {
      line.resize(end);
      return true;
    }
    if (line.size() > kLineBytesMax) return false;
  }
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void limit_waiting(int fd, int timeout_ms) {
  timeval limit{timeout_ms / 1000, (timeout_ms % 1000) * 1000};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

Result<int> connect_to(const std::string& path) {
  SocketAddress address(path);
  if (!address.fits()) return Error(ErrorCode::kUnavailable, "no mount listens at " + path);
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return base::errno_error(errno, "making a socket");
  if (::connect(fd, address.get(), address.size()) != 0) {
    ::close(fd);
    return Error(ErrorCode::kUnavailable, "no mount listens at " + path);
  }
  limit_waiting(fd, kClientTimeoutMs);
  return fd;
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::start(const std::string& path,
                                                            Handler handler) {
  if (auto other = connect_to(path); other.ok()) {
    ::close(*other);
    return Error(ErrorCode::kBusy, "this workspace is already mounted by a running agentfs");
  }
  SocketAddress address(path);
  if (!address.fits()) {
    return Error(ErrorCode::kNotFound,
                 "the folder of the control socket " + path + " is not there");
  }
  ::unlink(path.c_str());
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return base::errno_error(errno, "making a socket");
  mode_t old_mask = ::umask(0177);
  bool bound = ::bind(fd, address.get(), address.size()) == 0 && ::listen(fd, 16) == 0;
  int why = errno;
  ::umask(old_mask);
  if (!bound) {
    ::close(fd);
    return base::errno_error(why, "listening at " + path);
  }
  int stop_fd = ::eventfd(0, EFD_CLOEXEC);
  return std::unique_ptr<ControlServer>(new ControlServer(path, fd, stop_fd, std::move(handler)));
}

ControlServer::ControlServer(std::string path, int fd, int stop_fd, Handler handler)
    : path_(std::move(path)), fd_(fd), stop_fd_(stop_fd), handler_(std::move(handler)) {
  thread_ = std::thread([this] { serve(); });
}

ControlServer::~ControlServer() {
  u64 one = 1;
  if (::write(stop_fd_, &one, sizeof(one)) == sizeof(one)) thread_.join();
  ::close(fd_);
  ::close(stop_fd_);
  ::unlink(path_.c_str());
}

void ControlServer::serve() {
  for (;;) {
    pollfd wait[2] = {{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (::poll(wait, 2, -1) < 0) continue;
    if (wait[1].revents != 0) return;
    int connection = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    limit_waiting(connection, 5000);
    serve_one(connection);
    ::close(connection);
  }
}

void ControlServer::serve_one(int connection) {
  std::string line;
  if (!read_line(connection, line)) return;
  auto request = Json::parse(line);
  Json reply = request.ok() ? handler_(*request)
                            : Json::object({{"ok", false}, {"error", request.error().message()}});
  write_all(connection, reply.dump() + "\n");
}

Result<Json> control_call(const std::string& path, const Json& request) {
  int fd = TRY(connect_to(path));
  std::string line;
  bool answered = write_all(fd, request.dump() + "\n") && read_line(fd, line);
  ::close(fd);
  if (!answered) return Error(ErrorCode::kUnavailable, "the mount did not answer; is it stuck?");
  Json reply = TRY(Json::parse(line));
  if (!reply["ok"].as_bool()) return Error(ErrorCode::kInternal, reply["error"].as_string());
  return reply;
}

}  // namespace fs
