// Any bytes over a connection: the server answers in HTTP or hangs up, goes on serving others, and
// every request's pages come back. The input is sent as it is, up to its end; so a client that
// goes away in the middle is among the cases.
#include "base/check.h"
#include "llm/server/testing.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace {

std::string exchange(int port, std::string_view bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(fd >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<u16>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  // So that a close leaves no port waiting: thousands of connections a second would use them up.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // the server has seen enough
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  ::shutdown(fd, SHUT_WR);
  std::string reply;
  char buffer[4096];
  for (ssize_t got; (got = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) {
    reply.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(fd);
  return reply;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static llm::TinyServer server(64);
  const std::string reply =
      exchange(server.server_->port(), {reinterpret_cast<const char*>(data), size});
  CHECK(reply.empty() || reply.starts_with("HTTP/1."));
  if (size % 64 == 0) CHECK(server.send("/health", "").status == 200);
  for (int i = 0; i < 1'000'000; ++i) {
    const llm::EngineStats stats = server.engine_->stats();
    if (stats.running + stats.waiting == 0 && stats.requests == stats.finished) {
      CHECK(stats.pages_available == stats.pages_total);
      return 0;
    }
    std::this_thread::yield();
  }
  base::check_failed(__FILE__, __LINE__, "a request went on after its connection");
}
