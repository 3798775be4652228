#include "fs/wire/connection.h"

#include "base/clock.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fs::wire {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

constexpr size_t kReadBytes = 64 << 10;

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

Status resolve(const std::string& address, bool passive, AddressList& list) {
  size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) {
    return Error(ErrorCode::kInvalidArgument, "'" + address + "' is no address; write HOST:PORT");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  int failed = ::getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(),
                             &hints, &list.first);
  if (failed == 0) return {};
  return Error(ErrorCode::kUnavailable, "cannot find " + address + ": " + ::gai_strerror(failed));
}

constexpr char kTlsOnly[] =
    "it speaks TLS only: mount agentfs+tls://HOST:PORT/WORKSPACE, or use a token made since "
    "agentfs serve --tls";

// What welcome() sends to a client that expects TLS from a server that has none.
bool is_plain_refusal(std::string_view bytes) {
  constexpr u32 sentence_max = 1000;  // read as a length, TLS's first bytes are more
  if (bytes.size() < kHeaderBytes) return false;
  auto header = decode_header(bytes.substr(0, kHeaderBytes));
  return header && header->type == MessageType::kRefused && header->payload_bytes < sentence_max;
}

void set_option(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof(value));
}

}  // namespace

Connection::Connection(int fd) : fd_(fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kDeadAfterMs / 3000);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kDeadAfterMs / 3000);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kDeadAfterMs);
  // Both sides ping, so silence means that the other one is gone, or never meant to speak to us. A
  // peer that does not take what we send may hold a lock of ours up: it has less time.
  timeval silence{kDeadAfterMs / 1000, 0}, stuck{kExpelAfterMs / 1000, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &stuck, sizeof(stuck));
}

Connection::~Connection() {
  shutdown();
  if (drainer_.joinable()) drainer_.join();
  ::close(fd_);
}

void Connection::post(MessageType type, u64 id, std::string_view payload) {
  std::lock_guard lock(send_mutex_);
  auto sealed = sealed_frame(type, id, payload);
  if (!sealed.ok()) {
    ::shutdown(fd_, SHUT_RDWR);
    return;
  }
  const std::string& frame = *sealed;
  size_t taken = 0;
  if (backlog_.empty()) {
    ssize_t sent = ::send(fd_, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) taken = static_cast<size_t>(sent);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      ::shutdown(fd_, SHUT_RDWR);
      return;
    }
  }
  if (taken == frame.size() || closing_) return;
  backlog_.append(frame, taken);
  if (backlog_.size() > kBacklogBytesMax) ::shutdown(fd_, SHUT_RDWR);
  if (!drainer_.joinable()) drainer_ = std::thread([this] { drain(); });
  backlog_changed_.notify_all();
}

void Connection::drain() {
  std::unique_lock lock(send_mutex_);
  while (!closing_) {
    if (backlog_.empty()) {
      backlog_changed_.wait(lock);
      continue;
    }
    lock.unlock();
    pollfd wait{fd_, POLLOUT, 0};
    int ready = ::poll(&wait, 1, kExpelAfterMs);
    lock.lock();
    if (ready < 0 && errno == EINTR) continue;
    ssize_t sent = ready <= 0
                       ? -1
                       : ::send(fd_, backlog_.data(), backlog_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && ready > 0 && errno == EAGAIN) continue;
    if (sent < 0) {
      ::shutdown(fd_, SHUT_RDWR);  // the one who receives ends the session
      backlog_.clear();
      return;
    }
    backlog_.erase(0, static_cast<size_t>(sent));
  }
}

Result<std::unique_ptr<Connection>> Connection::dial(const std::string& addresses,
                                                     const TlsTrust& trust) {
  Shared context;
  if (trust.use) context = TRY(TlsContext::of_client(trust));
  for (size_t at = 0;;) {
    size_t comma = addresses.find(',', at);
    auto dialled = dial_one(addresses.substr(at, comma - at), context);
    if (dialled.ok() || comma == std::string::npos) return dialled;
    at = comma + 1;
  }
}

Result<std::unique_ptr<Connection>> Connection::dial_one(const std::string& address,
                                                         const Shared& context) {
  AddressList list;
  TRY(resolve(address, false, list));
  int why = ECONNREFUSED;
  for (addrinfo* at = list.first; at != nullptr; at = at->ai_next) {
    int fd = ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    if (::connect(fd, at->ai_addr, at->ai_addrlen) == 0) {
      return greet(std::make_unique<Connection>(fd), address, context);
    }
    why = errno;
    ::close(fd);
  }
  return Error(ErrorCode::kUnavailable,
               "cannot reach the server at " + address + " (errno " + std::to_string(why) + ")");
}

Result<std::unique_ptr<Connection>> Connection::greet(std::unique_ptr<Connection> connection,
                                                      const std::string& address,
                                                      const Shared& context) {
  if (context == nullptr) return connection;
  connection->tls_ = std::make_unique<TlsSession>(context, address.substr(0, address.rfind(':')));
  Status done = connection->shake_hands(address);
  if (done.ok()) return connection;
  return Error(done.error().code(), address + ": " + done.error().message());
}

Status Connection::welcome(Shared context) {
  while (buffer_.size() < kHeaderBytes) {
    std::string before = std::move(buffer_);
    TRY(read_socket());
    buffer_ = before + sealed_;
  }
  bool tls = starts_tls(buffer_);
  if (tls == (context != nullptr)) {
    if (!tls) return {};
    tls_ = std::make_unique<TlsSession>(std::move(context), "");
    tls_->feed(buffer_);
    buffer_.clear();
    return shake_hands("");
  }
  const char* sentence = tls ? "this server speaks no TLS" : kTlsOnly;
  (void)send(MessageType::kRefused, 0, sentence);
  return Error(ErrorCode::kUnsupported, sentence);
}

Status Connection::shake_hands(const std::string& address) {
  i64 end_us = base::system_clock().monotonic_us() + kHandshakeMs * 1000;
  for (bool first = !address.empty();;) {
    std::string out;
    auto done = tls_->handshake(out);
    // When it failed, this is what tells the other side why.
    Status sent = send_raw(out);
    TRY(done);
    TRY(sent);
    if (*done) return {};
    pollfd wait{fd_, POLLIN, 0};
    i64 left_ms = (end_us - base::system_clock().monotonic_us()) / 1000;
    if (left_ms <= 0 || ::poll(&wait, 1, static_cast<int>(left_ms)) == 0) {
      return Error(ErrorCode::kDeadline, "the other side does not finish the TLS handshake");
    }
    if (!read_socket().ok()) {
      return Error(ErrorCode::kUnavailable, "the other side ended the TLS handshake");
    }
    // Nobody has proved who says it, so its own words are not repeated.
    if (std::exchange(first, false) && is_plain_refusal(sealed_)) {
      return Error(ErrorCode::kUnsupported,
                   "the server speaks no TLS; start it with agentfs serve --tls, or mount "
                   "agentfs:// with a token made since it runs without");
    }
    tls_->feed(sealed_);
  }
}

Result<std::string> Connection::sealed_frame(MessageType type, u64 id, std::string_view payload) {
  std::string frame;
  frame.reserve(kHeaderBytes + payload.size());
  append_frame(frame, type, id, payload);
  if (tls_ == nullptr) return frame;
  std::string sealed;
  std::lock_guard lock(tls_mutex_);
  TRY(tls_->seal(frame, sealed));
  return sealed;
}

Status Connection::send_raw(std::string_view left) {
  while (!left.empty()) {
    ssize_t sent = ::send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return Error(ErrorCode::kUnavailable, "the connection broke while sending");
    left.remove_prefix(static_cast<size_t>(sent));
  }
  return {};
}

Status Connection::send(MessageType type, u64 id, std::string_view payload) {
  if (payload.size() > kPayloadBytesMax) {
    return Error(ErrorCode::kLimit, "a message of " + std::to_string(payload.size()) + " bytes");
  }
  std::lock_guard lock(send_mutex_);
  std::string frame = TRY(sealed_frame(type, id, payload));
  if (backlog_.empty()) return send_raw(frame);
  backlog_.append(frame);
  return {};
}

// Something new from the socket into `sealed_`.
Status Connection::read_socket() {
  sealed_.resize(kReadBytes);
  ssize_t got = 0;
  do {
    got = ::recv(fd_, sealed_.data(), sealed_.size(), 0);
  } while (got < 0 && errno == EINTR);
  sealed_.resize(got > 0 ? static_cast<size_t>(got) : 0);
  if (got > 0) return {};
  return Error(ErrorCode::kUnavailable, "the connection ended");
}

// Some plain bytes into `buffer_`, all of which was used.
Status Connection::read_more() {
  used_ = 0;
  buffer_.clear();
  if (tls_ == nullptr) {
    TRY(read_socket());
    std::swap(buffer_, sealed_);
    return {};
  }
  for (;;) {
    buffer_.resize(kReadBytes);
    std::unique_lock lock(tls_mutex_);
    auto opened = tls_->open(buffer_.data(), buffer_.size());
    lock.unlock();
    buffer_.resize(opened.ok() ? *opened : 0);
    TRY(opened);
    if (!buffer_.empty()) return {};
    TRY(read_socket());
    lock.lock();
    tls_->feed(sealed_);
  }
}

Status Connection::read_exactly(char* out, size_t length) {
  for (;;) {
    size_t have = std::min(length, buffer_.size() - used_);
    std::memcpy(out, buffer_.data() + used_, have);
    used_ += have;
    out += have;
    length -= have;
    if (length == 0) return {};
    TRY(read_more());
  }
}

Result<Frame> Connection::receive() {
  char bytes[kHeaderBytes];
  TRY(read_exactly(bytes, sizeof(bytes)));
  auto header = decode_header({bytes, sizeof(bytes)});
  if (!header) return Error(ErrorCode::kCorruption, "the other side does not speak AgentFS");
  Frame frame{*header, std::string(header->payload_bytes, 0)};
  TRY(read_exactly(frame.payload.data(), frame.payload.size()));
  return frame;
}

void Connection::shutdown() {
  ::shutdown(fd_, SHUT_RDWR);
  std::lock_guard lock(send_mutex_);
  closing_ = true;
  backlog_changed_.notify_all();
}

Result<std::unique_ptr<Listener>> Listener::open(const std::string& address) {
  AddressList list;
  TRY(resolve(address, true, list));
  int fd = ::socket(list.first->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return base::errno_error(errno, "making a socket");
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd, list.first->ai_addr, list.first->ai_addrlen) != 0 || ::listen(fd, 64) != 0) {
    int why = errno;
    ::close(fd);
    if (why == EADDRINUSE) {
      return Error(ErrorCode::kBusy, address + " is taken; choose another port");
    }
    return base::errno_error(why, "listening at " + address);
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  // The port is at the same place in both families' addresses.
  int port = ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  return std::unique_ptr<Listener>(new Listener(fd, ::eventfd(0, EFD_CLOEXEC), port));
}

Listener::~Listener() {
  ::close(fd_);
  ::close(stop_fd_);
}

std::unique_ptr<Connection> Listener::accept() {
  for (;;) {
    pollfd wait[2] = {{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    if (::poll(wait, 2, -1) < 0 && errno != EINTR) return nullptr;
    if (wait[1].revents != 0) return nullptr;
    int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) return std::make_unique<Connection>(fd);
  }
}

void Listener::stop() {
  u64 one = 1;
  if (::write(stop_fd_, &one, sizeof(one)) < 0) return;
}

}  // namespace fs::wire
