#include "fs/fuse/session.h"

#include "base/clock.h"
#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

namespace fs::fuse {
namespace {

using base::ByteView;
using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr size_t kRequestOverheadBytes = 4096;
constexpr int kWakeSignal = SIGUSR1;

}  // namespace

Session::Session(Device device, Handler& handler, Options options)
    : device_(std::move(device)), handler_(handler), options_(options) {
  // Polling needs reads that return; sleeping is one call less with reads that block.
  if (options_.spin_us > 0) {
    ::fcntl(device_.fd(), F_SETFL, ::fcntl(device_.fd(), F_GETFL) | O_NONBLOCK);
  }
  // Delivered only to end a blocking read; the handler has nothing to do.
  struct sigaction nothing{};
  nothing.sa_handler = [](int) {};
  ::sigaction(kWakeSignal, &nothing, nullptr);
}

Result<ByteView> Session::read_request(std::vector<u8>& buffer) {
  i64 spin_until_us = -1;
  while (!stopping_.load(std::memory_order_relaxed)) {
    ssize_t got = ::read(device_.fd(), buffer.data(), buffer.size());
    if (got > 0) return ByteView{buffer.data(), static_cast<size_t>(got)};
    if (got == 0 || errno == ENODEV) return ByteView{};  // unmounted
    if (errno == EINTR || errno == ENOENT) continue;     // ENOENT: interrupted before we read it
    if (errno != EAGAIN) return base::errno_error(errno, "reading a request from /dev/fuse");
    if (options_.spin_us > 0) {
      i64 now = base::system_clock().monotonic_us();
      if (spin_until_us < 0) spin_until_us = now + options_.spin_us;
      if (now < spin_until_us) continue;
    }
    pollfd wait{device_.fd(), POLLIN, 0};
    if (::poll(&wait, 1, -1) < 0 && errno != EINTR) {
      return base::errno_error(errno, "waiting for a request");
    }
    if (wait.revents & POLLERR) return ByteView{};  // the connection was aborted
  }
  return ByteView{};
}

void Session::send(ByteView head, ByteView tail) {
  iovec parts[2] = {{const_cast<u8*>(head.data()), head.size()},
                    {const_cast<u8*>(tail.data()), tail.size()}};
  // ENOENT: the caller was interrupted and no longer waits. ENODEV: unmounted. Both are fine.
  ssize_t sent = ::writev(device_.fd(), parts, tail.empty() ? 1 : 2);
  if (sent < 0 && errno != ENOENT && errno != ENODEV) {
    base::log_warn("fuse", "the kernel refused a reply",
                   {{"errno", errno}, {"bytes", u64{head.size() + tail.size()}}});
    OutHeader header = base::load_le<OutHeader>(head.data());
    header.len = sizeof(OutHeader);
    header.error = -EIO;
    if (::write(device_.fd(), &header, sizeof(header)) < 0) return;
  }
}

void Session::send_later(ByteView reply) {
  send(reply, {});
}

bool Session::notify(ByteView notification) {
  return ::write(device_.fd(), notification.data(), notification.size()) ==
         static_cast<ssize_t>(notification.size());
}

Status Session::start() {
  std::vector<u8> buffer((1 << 16) + kRequestOverheadBytes);
  Reply reply(sizeof(InitOut));
  for (;;) {
    ByteView bytes = TRY(read_request(buffer));
    if (bytes.empty()) return Error(ErrorCode::kUnavailable, "unmounted before the mount was up");
    Request request = TRY(decode(bytes, {}));
    reply.start(request.header.unique);
    if (request.op != Op::kInit) {
      reply.error(EIO);
      send(reply.head(), {});
      continue;
    }
    auto negotiated = negotiate(request.arg<InitIn>(), options_.wishes);
    if (!negotiated.ok()) {
      reply.error(EPROTO);
      send(reply.head(), {});
      return std::move(negotiated).error();
    }
    reply.put(negotiated->reply);
    send(reply.head(), {});
    if (negotiated->again) continue;
    agreement_ = negotiated->agreement;
    handler_.started(agreement_);
    return {};
  }
}

Status Session::resume(const Agreement& agreement) {
  agreement_ = agreement;
  handler_.started(agreement_);
  if (!notify(encode_resend())) {
    return base::errno_error(errno, "asking the kernel to send unanswered requests again");
  }
  return {};
}

void Session::answer(ByteView bytes, Reply& reply, CallerAffinity& affinity) {
  auto request = decode(bytes, {agreement_.has(init::kSetxattrExt)});
  if (!request.ok()) {
    base::log_warn("fuse", request.error().message());
    if (bytes.size() < sizeof(InHeader)) return;
    reply.start(base::load_le<InHeader>(bytes.data()).unique);
    reply.error(EIO);
    send(reply.head(), {});
    return;
  }
  reply.start(request->header.unique);
  served_.fetch_add(1, std::memory_order_relaxed);
  if (options_.follow_caller) affinity.served(request->header.pid);
  if (handler_.handle(*request, reply) == Answer::kSend) send(reply.head(), reply.attached());
}

Status Session::serve() {
  {
    std::lock_guard lock(threads_mutex_);
    threads_.push_back(::pthread_self());
  }
  std::vector<u8> buffer(agreement_.max_write_bytes + kRequestOverheadBytes);
  Reply reply(agreement_.max_write_bytes + kRequestOverheadBytes);
  Yielding yielding(device_.fd(), served_);
  CallerAffinity affinity(yielding, options_.threads == 1);
  Status ended;
  for (;;) {
    auto bytes = read_request(buffer);
    if (!bytes.ok()) ended = std::move(bytes).error();
    if (!bytes.ok() || bytes->empty()) break;
    answer(*bytes, reply, affinity);
  }
  {
    std::lock_guard lock(threads_mutex_);
    std::erase(threads_, ::pthread_self());
  }
  stopping_.store(true);
  return ended;
}

Status Session::run() {
  std::vector<std::jthread> helpers;
  for (int i = 1; i < options_.threads; i++) {
    helpers.emplace_back([this] {
      Status ended = serve();
      if (!ended.ok()) base::log_error("fuse", ended.error().message());
    });
  }
  Status ended = serve();
  stop();
  return ended;
}

void Session::stop() {
  stopping_.store(true);
  // A thread may be about to read when the signal comes: repeat until all are out.
  for (;;) {
    {
      std::lock_guard lock(threads_mutex_);
      if (threads_.empty()) return;
      for (pthread_t thread : threads_) ::pthread_kill(thread, kWakeSignal);
    }
    base::system_clock().sleep_us(2000);
  }
}

}  // namespace fs::fuse
