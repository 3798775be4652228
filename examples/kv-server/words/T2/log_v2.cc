#include "log.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace kv {
namespace {

// A record, little-endian:  u32 checksum of what follows | u32 payload bytes | payload.
// The payload is the words of the change, each as u32 length and its bytes. A record that is cut
// off or does not match its checksum ends the log: it was never acknowledged.
constexpr std::size_t kHeaderBytes = 8;

std::uint32_t checksum(const char* bytes, std::size_t size) {
  std::uint32_t sum = 2166136261u;  // FNV-1a
  for (std::size_t i = 0; i < size; ++i) {
    sum = (sum ^ static_cast<unsigned char>(bytes[i])) * 16777619u;
  }
  return sum;
}

void put_u32(std::string& out, std::uint32_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint32_t get_u32(const char* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

bool decode(const char* payload, std::size_t size, Command& change) {
  change.clear();
  std::size_t at = 0;
  while (at < size) {
    if (size - at < 4) return false;
    std::size_t length = get_u32(payload + at);
    at += 4;
    if (size - at < length) return false;
    change.emplace_back(payload + at, length);
    at += length;
  }
  return !change.empty();
}

}  // namespace

Log::~Log() {
  if (fd_ >= 0) close(fd_);
}

bool Log::open(const std::string& path, const std::function<void(const Command&)>& replay) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    error_ = path + ": " + std::strerror(errno);
    return false;
  }
  std::string content;
  char piece[65536];
  for (ssize_t got; (got = ::read(fd_, piece, sizeof piece)) > 0;) content.append(piece, got);
  std::size_t at = 0;
  Command change;
  while (content.size() - at >= kHeaderBytes) {
    std::size_t size = get_u32(content.data() + at + 4);
    if (content.size() - at - kHeaderBytes < size) break;
    const char* record = content.data() + at;
    if (checksum(record + 4, size + 4) != get_u32(record)) break;
    if (!decode(record + kHeaderBytes, size, change)) break;
    replay(change);
    at += kHeaderBytes + size;
  }
  size_ = static_cast<long long>(at);
  if (ftruncate(fd_, size_) != 0) {
    error_ = path + ": " + std::strerror(errno);
    return false;
  }
  return true;
}

void Log::append(const Command& change) {
  std::string payload;
  for (const std::string& word : change) {
    put_u32(payload, static_cast<std::uint32_t>(word.size()));
    payload += word;
  }
  std::string body;
  put_u32(body, static_cast<std::uint32_t>(payload.size()));
  body += payload;
  put_u32(pending_, checksum(body.data(), body.size()));
  pending_ += body;
}

bool Log::sync() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    ssize_t put = pwrite(fd_, pending_.data() + done, pending_.size() - done,
                         size_ + static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    done += static_cast<std::size_t>(put);
  }
  bool good = done == pending_.size() && fdatasync(fd_) == 0;
  if (good) {
    size_ += static_cast<long long>(done);
  } else {
    error_ = std::strerror(errno);
    if (ftruncate(fd_, size_) != 0) error_ += ", and the log could not be cut back";
  }
  pending_.clear();
  return good;
}

}  // namespace kv
