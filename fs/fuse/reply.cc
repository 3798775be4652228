#include "fs/fuse/reply.h"

#include "base/check.h"

#include <cstring>

namespace fs::fuse {

using base::ByteView;

Reply::Reply(size_t payload_bytes_max)
    : buffer_(new u8[sizeof(OutHeader) + payload_bytes_max]),
      capacity_(sizeof(OutHeader) + payload_bytes_max) {}

void Reply::start(u64 unique) {
  unique_ = unique;
  error_ = 0;
  used_ = sizeof(OutHeader);
  attached_ = {};
}

void Reply::error(int errno_value) {
  error_ = errno_value;
  used_ = sizeof(OutHeader);
  attached_ = {};
}

void Reply::put_bytes(ByteView bytes) {
  CHECK(bytes.size() <= capacity_ - used_);
  if (!bytes.empty()) std::memcpy(buffer_.get() + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
}

ByteView Reply::head() {
  OutHeader header{static_cast<u32>(used_ + attached_.size()), -error_, unique_};
  std::memcpy(buffer_.get(), &header, sizeof(header));
  return {buffer_.get(), used_};
}

std::vector<u8> Reply::copy() {
  ByteView first = head();
  std::vector<u8> all(first.begin(), first.end());
  all.insert(all.end(), attached_.begin(), attached_.end());
  return all;
}

namespace {
constexpr size_t padded(size_t bytes) {
  return (bytes + 7) & ~size_t{7};
}

// Writes the dirent and its padded name at `at`.
void write_dirent(u8* at, const Dirent& dirent, std::string_view name) {
  std::memcpy(at, &dirent, sizeof(dirent));
  std::memcpy(at + sizeof(dirent), name.data(), name.size());
  size_t end = sizeof(dirent) + name.size();
  std::memset(at + end, 0, padded(end) - end);
}
}  // namespace

bool DirentWriter::add(std::string_view name, u64 ino, u32 type, u64 next_offset) {
  size_t bytes = padded(sizeof(Dirent) + name.size());
  if (!fits(bytes)) return false;
  write_dirent(reply_.room().data(), {ino, next_offset, static_cast<u32>(name.size()), type}, name);
  reply_.commit(bytes);
  left_ -= bytes;
  return true;
}

bool DirentWriter::add_plus(std::string_view name, u32 type, u64 next_offset,
                            const EntryOut& entry) {
  size_t bytes = padded(sizeof(DirentPlus) + name.size());
  if (!fits(bytes)) return false;
  u8* at = reply_.room().data();
  std::memcpy(at, &entry, sizeof(entry));
  write_dirent(at + sizeof(entry),
               {entry.attr.ino, next_offset, static_cast<u32>(name.size()), type}, name);
  reply_.commit(bytes);
  left_ -= bytes;
  return true;
}

namespace {

template <class T>
std::vector<u8> notification(Notify code, const T& body, ByteView tail, bool nul) {
  size_t bytes = sizeof(OutHeader) + sizeof(T) + tail.size() + (nul ? 1 : 0);
  std::vector<u8> message(bytes, 0);
  OutHeader header{static_cast<u32>(bytes), static_cast<i32>(code), 0};
  std::memcpy(message.data(), &header, sizeof(header));
  std::memcpy(message.data() + sizeof(header), &body, sizeof(T));
  if (!tail.empty()) {
    std::memcpy(message.data() + sizeof(header) + sizeof(T), tail.data(), tail.size());
  }
  return message;
}

std::vector<u8> bare_notification(Notify code) {
  std::vector<u8> message(sizeof(OutHeader));
  OutHeader header{sizeof(OutHeader), static_cast<i32>(code), 0};
  std::memcpy(message.data(), &header, sizeof(header));
  return message;
}

}  // namespace

std::vector<u8> encode_inval_inode(u64 node, i64 offset, i64 length) {
  return notification(Notify::kInvalInode, NotifyInvalInode{node, offset, length}, {}, false);
}

std::vector<u8> encode_inval_entry(u64 parent, std::string_view name, bool expire_only) {
  NotifyInvalEntry body{parent, static_cast<u32>(name.size()), expire_only ? 1u : 0u};
  return notification(Notify::kInvalEntry, body, base::as_bytes(name), true);
}

std::vector<u8> encode_delete(u64 parent, u64 child, std::string_view name) {
  NotifyDelete body{parent, child, static_cast<u32>(name.size()), 0};
  return notification(Notify::kDelete, body, base::as_bytes(name), true);
}

std::vector<u8> encode_store(u64 node, u64 offset, ByteView data) {
  NotifyStore body{node, offset, static_cast<u32>(data.size()), 0};
  return notification(Notify::kStore, body, data, false);
}

std::vector<u8> encode_inc_epoch() {
  return bare_notification(Notify::kIncEpoch);
}
std::vector<u8> encode_resend() {
  return bare_notification(Notify::kResend);
}

std::vector<u8> encode_prune(const std::vector<u64>& nodes) {
  NotifyPrune body{static_cast<u32>(nodes.size()), 0, 0};
  ByteView list{reinterpret_cast<const u8*>(nodes.data()), nodes.size() * sizeof(u64)};
  return notification(Notify::kPrune, body, list, false);
}

}  // namespace fs::fuse
