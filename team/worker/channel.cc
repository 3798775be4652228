#include "team/worker/channel.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;

constexpr size_t kHeadBytes = 8;
constexpr u32 kPartBytesMax = 256u << 20;

void put_u32(std::string& to, u32 value) {
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(value >> shift & 0xff);
}

u32 get_u32(std::string_view from) {
  u32 value = 0;
  for (int i = 3; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(from[static_cast<size_t>(i)]);
  return value;
}

Error gone() {
  return Error(ErrorCode::kUnavailable, "the other side of the worker's channel is gone");
}

}  // namespace

Channel::~Channel() {
  close();
}

void Channel::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

base::Result<std::pair<int, int>> Channel::make_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::errno_error(errno, "making a channel to a worker");
  }
  return std::pair(ends[0], ends[1]);
}

base::Status Channel::send(const base::Json& head, std::string_view bytes) {
  const std::string text = head.dump();
  if (text.size() > kPartBytesMax || bytes.size() > kPartBytesMax) {
    return Error(ErrorCode::kLimit, "a message between orchestrator and worker is over 256 MiB");
  }
  std::string out;
  out.reserve(kHeadBytes + text.size() + bytes.size());
  put_u32(out, static_cast<u32>(text.size()));
  put_u32(out, static_cast<u32>(bytes.size()));
  out += text;
  out += bytes;
  std::lock_guard lock(sending_);
  for (size_t at = 0; at < out.size();) {
    const ssize_t sent = ::send(fd_, out.data() + at, out.size() - at, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return gone();
    at += static_cast<size_t>(sent);
  }
  return {};
}

base::Status Channel::read_some(i64 end_us) {
  for (;;) {
    i64 wait_ms = -1;
    if (end_us >= 0) {
      wait_ms = (end_us - base::system_clock().monotonic_us() + 999) / 1'000;
      if (wait_ms <= 0) return Error(ErrorCode::kDeadline, "nothing was heard in time");
    }
    pollfd polled{fd_, POLLIN, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::min<i64>(wait_ms, 1'000'000)));
    if (ready < 0 && errno != EINTR) return base::errno_error(errno, "waiting for a worker");
    if (ready <= 0) continue;
    char piece[65'536];
    const ssize_t got = ::recv(fd_, piece, sizeof piece, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return gone();
    buffer_.append(piece, static_cast<size_t>(got));
    return {};
  }
}

base::Result<Frame> Channel::receive(i64 timeout_ms) {
  const i64 end_us = timeout_ms < 0 ? -1 : base::system_clock().monotonic_us() + timeout_ms * 1'000;
  while (buffer_.size() < kHeadBytes) TRY(read_some(end_us));
  const u32 text = get_u32(buffer_);
  const u32 bytes = get_u32(std::string_view(buffer_).substr(4));
  if (text > kPartBytesMax || bytes > kPartBytesMax) {
    return Error(ErrorCode::kCorruption, "the worker's channel carries bytes that are no frame");
  }
  const size_t whole = kHeadBytes + text + bytes;
  while (buffer_.size() < whole) TRY(read_some(end_us));
  auto head =
      base::Json::parse(std::string_view(buffer_).substr(kHeadBytes, text), {.depth_max = 256});
  Frame frame;
  frame.bytes = buffer_.substr(kHeadBytes + text, bytes);
  buffer_.erase(0, whole);
  if (!head.ok()) {
    return Error(ErrorCode::kCorruption, "the worker's channel carries a frame that is not JSON: " +
                                             head.error().message());
  }
  frame.head = std::move(*head);
  return frame;
}

}  // namespace team
