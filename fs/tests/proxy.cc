#include "fs/tests/proxy.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace fs::testing {

namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<u16>(port));
  return address;
}

void no_delay(int fd) {
  int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

}  // namespace

Proxy::Proxy(int port) : server_port_(port) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0) return;
  ::listen(listener_, 16);
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

Proxy::~Proxy() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  cut();
  for (Pair& pair : pairs_) {
    for (std::thread& thread : pair.threads) thread.join();
    ::close(pair.client);
    ::close(pair.server);
  }
  ::close(listener_);
}

void Proxy::cut() {
  std::lock_guard lock(mutex_);
  for (Pair& pair : pairs_) {
    ::shutdown(pair.client, SHUT_RDWR);
    ::shutdown(pair.server, SHUT_RDWR);
  }
}

std::string Proxy::recorded() {
  std::lock_guard lock(mutex_);
  return recorded_;
}

void Proxy::accept_loop() {
  while (!stopping_) {
    int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(server_port_);
    if (::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      ::close(client);
      ::close(server);
      continue;
    }
    no_delay(client);
    no_delay(server);
    std::lock_guard lock(mutex_);
    Pair& pair = pairs_.emplace_back();
    pair.client = client;
    pair.server = server;
    pair.threads.emplace_back([this, client, server] { forward(client, server); });
    pair.threads.emplace_back([this, client, server] { forward(server, client); });
  }
}

void Proxy::forward(int from, int to) {
  char buffer[64 << 10];
  for (;;) {
    ssize_t got = ::recv(from, buffer, sizeof(buffer), 0);
    if (got <= 0) break;
    if (recording_) {
      std::lock_guard lock(mutex_);
      recorded_.append(buffer, static_cast<size_t>(got));
    }
    if (int late = delay_ms_.load(); late > 0) base::system_clock().sleep_us(late * 1000);
    while (partitioned_.load() && !stopping_) base::system_clock().sleep_us(20'000);
    for (ssize_t sent = 0; sent < got;) {
      ssize_t more = ::send(to, buffer + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
      if (more <= 0) break;
      sent += more;
    }
  }
  ::shutdown(from, SHUT_RDWR);
  ::shutdown(to, SHUT_RDWR);
}

}  // namespace fs::testing
