#include "team/fault/net_fault.h"

#include "base/clock.h"

#include <netinet/in.h>
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

// A socket and its address, ready to connect or to bind.
struct Opened {
  int fd = -1;
  sockaddr_storage address{};
  socklen_t size = 0;
  const sockaddr* at() const { return reinterpret_cast<const sockaddr*>(&address); }
};

base::Result<Opened> open_socket(const NetEnd& end) {
  Opened out;
  if (end.path.empty()) {
    auto& in = reinterpret_cast<sockaddr_in&>(out.address);
    in.sin_family = AF_INET;
    in.sin_port = htons(static_cast<u16>(end.port));
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    out.size = sizeof in;
  } else {
    auto& un = reinterpret_cast<sockaddr_un&>(out.address);
    if (end.path.size() >= sizeof un.sun_path) {
      return base::Error(base::ErrorCode::kInvalidArgument,
                         "the path " + end.path + " is too long for a Unix socket");
    }
    un.sun_family = AF_UNIX;
    std::memcpy(un.sun_path, end.path.c_str(), end.path.size() + 1);
    out.size = sizeof un;
  }
  out.fd = ::socket(out.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (out.fd < 0) return base::errno_error(errno, "making a socket");
  return out;
}

int connect_to(const NetEnd& end) {
  const auto opened = open_socket(end);
  if (!opened.ok()) return -1;
  if (::connect(opened->fd, opened->at(), opened->size) == 0) return opened->fd;
  ::close(opened->fd);
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

NetFault::NetFault(int socket, NetEnd here, NetEnd target, u64 seed)
    : socket_(socket),
      stop_event_(::eventfd(0, EFD_CLOEXEC)),
      here_(std::move(here)),
      target_(std::move(target)),
      rng_(seed) {
  thread_ = std::thread([this] { serve(); });
}

NetFault::~NetFault() {
  const u64 one = 1;
  [[maybe_unused]] const ssize_t told = ::write(stop_event_, &one, sizeof one);
  thread_.join();
  ::close(socket_);
  ::close(stop_event_);
  if (!here_.path.empty()) ::unlink(here_.path.c_str());
}

base::Result<std::unique_ptr<NetFault>> NetFault::start(const NetEnd& here, const NetEnd& target,
                                                        u64 seed) {
  const Opened opened = TRY(open_socket(here));
  if (!here.path.empty()) ::unlink(here.path.c_str());
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::bind(opened.fd, opened.at(), opened.size) != 0 || ::listen(opened.fd, 16) != 0 ||
      ::getsockname(opened.fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    const int error = errno;
    ::close(opened.fd);
    return base::errno_error(error, "listening on " + (here.path.empty() ? "loopback" : here.path));
  }
  NetEnd at = here;
  if (here.path.empty()) at.port = ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  return std::unique_ptr<NetFault>(new NetFault(opened.fd, at, target, seed));
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
  const int service = connect_to(target_);
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
