// Building replies and notifications. A Reply is one fixed buffer for the header and small payloads
// plus, for file data, a span that is sent from where it lies. Pure: sending is the session's work.
//
//   reply.start(request.header.unique);
//   reply.error(ENOENT);            or
//   reply.put(entry_out);           or
//   reply.attach(file_bytes);
#pragma once

#include "base/bytes.h"
#include "fs/fuse/abi.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fs::fuse {

// Single-threaded.
class Reply {
 public:
  // Room for the header and the largest payload that is built in place (a readdir block, a read).
  explicit Reply(size_t payload_bytes_max);

  void start(u64 unique);
  void error(int errno_value);  // drops what was put
  template <class T>
  void put(const T& value) {
    put_bytes({reinterpret_cast<const u8*>(&value), sizeof(T)});
  }
  void put_bytes(base::ByteView bytes);  // REQUIRES: it fits
  // Unused room behind what was put; fill some of it and commit() that much.
  base::Bytes room() { return {buffer_.get() + used_, capacity_ - used_}; }
  void commit(size_t bytes) { used_ += bytes; }
  // Payload that stays where it is until the reply was sent. At most one, behind all that was put.
  void attach(base::ByteView data) { attached_ = data; }

  bool is_error() const { return error_ != 0; }
  int error_value() const { return error_; }
  u64 unique() const { return unique_; }
  size_t payload_bytes() const { return used_ - sizeof(OutHeader) + attached_.size(); }
  // Header (its length made right) and what was put; then `attached()`.
  base::ByteView head();
  base::ByteView attached() const { return attached_; }
  // Everything in one piece, for a reply that is sent later.
  std::vector<u8> copy();

 private:
  std::unique_ptr<u8[]> buffer_;
  size_t capacity_;
  size_t used_ = 0;
  u64 unique_ = 0;
  int error_ = 0;
  base::ByteView attached_;
};

// Fills the reply of READDIR or READDIRPLUS up to the size the kernel asked for.
class DirentWriter {
 public:
  DirentWriter(Reply& reply, u32 size_max) : reply_(reply), left_(size_max) {}
  // False: no room, the entry was not added. `next_offset` is the cookie behind this entry.
  bool add(std::string_view name, u64 ino, u32 type, u64 next_offset);
  // With attributes. An entry with node 0 ("." and "..") counts no lookup.
  bool add_plus(std::string_view name, u32 type, u64 next_offset, const EntryOut& entry);

 private:
  bool fits(size_t bytes) const { return bytes <= left_ && bytes <= reply_.room().size(); }
  Reply& reply_;
  size_t left_;
};

// Notifications, whole messages ready for the device.
std::vector<u8> encode_inval_inode(u64 node, i64 offset, i64 length);
std::vector<u8> encode_inval_entry(u64 parent, std::string_view name, bool expire_only);
std::vector<u8> encode_delete(u64 parent, u64 child, std::string_view name);
std::vector<u8> encode_store(u64 node, u64 offset, base::ByteView data);
std::vector<u8> encode_inc_epoch();
std::vector<u8> encode_resend();
std::vector<u8> encode_prune(const std::vector<u64>& nodes);

}  // namespace fs::fuse
