// Requests as they come out of /dev/fuse, decoded without copying: names and data point into the
// buffer that was read. decode() trusts nothing: sizes, counts and terminators are checked against
// the bytes that are there, and what does not fit is kInvalidArgument. Pure; thread-safe.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "fs/fuse/abi.h"

#include <string_view>

namespace fs::fuse {

struct Request {
  InHeader header;
  Op op = Op::kInit;
  base::ByteView argument;  // the opcode's struct, or empty
  std::string_view
      name;  // of the first (lookup, unlink, old name of rename, symlink's name, xattr)
  std::string_view name2;  // rename's new name, symlink's target
  base::ByteView data;     // of write and setxattr, items of a batch forget

  // The opcode's argument. REQUIRES: T is the struct that belongs to `op`; shorter ones that old
  // kernels send are filled up with zeros.
  template <class T>
  T arg() const {
    T value{};
    std::memcpy(&value, argument.data(), std::min(sizeof(T), argument.size()));
    return value;
  }
};

struct DecodeOptions {
  bool setxattr_ext = true;  // as negotiated
};

base::Result<Request> decode(base::ByteView bytes, const DecodeOptions& options);

// "LOOKUP", or "?" for a number we do not know.
const char* name_of(Op op);

}  // namespace fs::fuse
