#include "team/gate/net_fault.h"

#include "base/clock.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace team {
namespace {

bool fill_address(const std::string& path, sockaddr_un& address) {
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return true;
}

int connect_to(const std::string& path) {
  sockaddr_un address{};
  if (!fill_address(path, address)) return -1;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

bool write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(fd, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

}  // namespace

NetFault::NetFault(int socket, std::string socket_path, std::string target_path, u64 seed)
    : socket_(socket),
      stop_event_(::eventfd(0, EFD_CLOEXEC)),
      socket_path_(std::move(socket_path)),
      target_path_(std::move(target_path)),
      rng_(seed) {
  thread_ = std::thread([this] { serve(); });
}

NetFault::~NetFault() {
  const u64 one = 1;
  [[maybe_unused]] const ssize_t told = ::write(stop_event_, &one, sizeof one);
  thread_.join();
  ::close(socket_);
  ::close(stop_event_);
  ::unlink(socket_path_.c_str());
}

base::Result<std::unique_ptr<NetFault>> NetFault::start(const std::string& socket_path,
                                                        const std::string& target_path, u64 seed) {
  sockaddr_un address{};
  if (!fill_address(socket_path, address)) {
    return base::Error(base::ErrorCode::kInvalidArgument,
                       "the path " + socket_path + " is too long for a Unix socket");
  }
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return base::errno_error(errno, "making a socket");
  ::unlink(socket_path.c_str());
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, 16) != 0) {
    const int error = errno;
    ::close(fd);
    return base::errno_error(error, "listening on " + socket_path);
  }
  return std::unique_ptr<NetFault>(new NetFault(fd, socket_path, target_path, seed));
}

void NetFault::set(const NetMode& mode) {
  std::lock_guard lock(mutex_);
  mode_ = mode;
}

base::Status NetFault::obey(std::string_view order) {
  const size_t space = std::min(order.find(' '), order.size());
  const std::string_view word = order.substr(0, space);
  i64 number = 0;
  if (space < order.size()) {
    std::from_chars(order.data() + space + 1, order.data() + order.size(), number);
  }
  NetMode mode;
  if (word == "delay" && number > 0) {
    mode.delay_ms = number;
  } else if (word == "loss" && number > 0 && number < 100) {
    mode.loss = static_cast<f64>(number) / 100;
    mode.piece_bytes = 512;
  } else if (word == "chop") {
    mode.piece_bytes = 1;
  } else if (word == "cut" && number > 0) {
    mode.cut_after_bytes = number;
  } else if (word != "ok") {
    return base::Error(base::ErrorCode::kInvalidArgument,
                       "unknown network order '" + std::string(order) +
                           "'; use delay MS, loss PERCENT, chop, cut BYTES or ok");
  }
  set(mode);
  return {};
}

void NetFault::serve() {
  std::vector<std::thread> carriers;
  for (;;) {
    pollfd polled[2] = {{stop_event_, POLLIN, 0}, {socket_, POLLIN, 0}};
    if (::poll(polled, 2, -1) < 0 && errno != EINTR) break;
    if (polled[0].revents != 0) break;
    if (polled[1].revents == 0) continue;
    const int client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    ++connections_;
    carriers.emplace_back([this, client] { carry(client); });
  }
  for (std::thread& carrier : carriers) carrier.join();
}

void NetFault::carry(int client) {
  const int service = connect_to(target_path_);
  i64 client_bytes = 0;
  while (service >= 0) {
    pollfd polled[3] = {{stop_event_, POLLIN, 0}, {client, POLLIN, 0}, {service, POLLIN, 0}};
    if (::poll(polled, 3, -1) < 0 && errno != EINTR) break;
    if (polled[0].revents != 0) break;
    if (polled[1].revents != 0 && !pass(client, service, client_bytes, true)) break;
    if (polled[2].revents != 0 && !pass(service, client, client_bytes, false)) break;
  }
  ::close(client);
  if (service >= 0) ::close(service);
}

bool NetFault::pass(int from, int to, i64& client_bytes, bool from_client) {
  char buffer[4'096];
  NetMode mode;
  bool lost = false;
  {
    std::lock_guard lock(mutex_);
    mode = mode_;
    lost = mode.loss > 0 && rng_.chance(mode.loss);
  }
  const ssize_t got = ::recv(from, buffer, std::min(mode.piece_bytes, sizeof buffer), 0);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  const i64 wait_ms = mode.delay_ms + (lost ? mode.retransmit_ms : 0);
  lost_ += lost;
  if (wait_ms > 0) base::system_clock().sleep_us(wait_ms * 1'000);
  size_t size = static_cast<size_t>(got);
  if (from_client && mode.cut_after_bytes > 0) {
    const i64 left = std::max<i64>(0, mode.cut_after_bytes - client_bytes);
    size = std::min(size, static_cast<size_t>(left));
  }
  client_bytes += from_client ? static_cast<i64>(size) : 0;
  return write_all(to, buffer, size) && size == static_cast<size_t>(got);
}

}  // namespace team
