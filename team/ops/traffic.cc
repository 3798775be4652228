#include "team/ops/traffic.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace team {

TrafficClient::~TrafficClient() {
  hang_up();
}

void TrafficClient::hang_up() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool TrafficClient::connect_now() {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<u16>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return true;
  hang_up();
  return false;
}

Answer TrafficClient::ask(const Exchange& exchange) {
  base::Clock& clock = base::system_clock();
  Answer answer;
  if (fd_ < 0 && !connect_now()) {
    answer.why = "nobody listens on the port";
    return answer;
  }
  const i64 begin_us = clock.monotonic_us();
  std::string got;
  const ssize_t put = ::send(fd_, exchange.send.data(), exchange.send.size(), MSG_NOSIGNAL);
  if (put != static_cast<ssize_t>(exchange.send.size())) answer.why = "the connection broke";
  while (answer.why.empty() && got.find(exchange.expect) == std::string::npos) {
    const i64 left_ms = timeout_ms_ - (clock.monotonic_us() - begin_us) / 1'000;
    pollfd waiting{fd_, POLLIN, 0};
    char piece[4096];
    if (left_ms <= 0 || ::poll(&waiting, 1, static_cast<int>(left_ms)) == 0) {
      answer.why = got.empty() ? "no answer in time" : "a wrong answer";
    } else if (const ssize_t size = ::read(fd_, piece, sizeof piece); size > 0) {
      got.append(piece, static_cast<size_t>(size));
      // A whole line that is not what was expected will not become it.
      const bool whole = got.ends_with("\n");
      if (whole && got.find(exchange.expect) == std::string::npos) answer.why = "a wrong answer";
    } else {
      answer.why = got.empty() ? "the connection was closed" : "a wrong answer";
    }
  }
  answer.us = clock.monotonic_us() - begin_us;
  answer.good = answer.why.empty();
  answer.seen = got.substr(0, 200);
  if (!answer.good) hang_up();  // what else comes on it would answer something else
  return answer;
}

}  // namespace team
