// The INIT exchange: what the kernel offers against what the mount wants. Pure; thread-safe.
#pragma once

#include "base/result.h"
#include "fs/fuse/abi.h"

namespace fs::fuse {

// What a mount asks for. Wishes that the kernel cannot fulfil are dropped, never an error.
struct Wishes {
  bool write_back = false;  // the kernel keeps dirty pages and owns size and mtime
  bool no_open = true;      // OPEN and OPENDIR are answered ENOSYS (irrevocable for the mount)
  bool locks = false;       // forward POSIX and flock locks instead of leaving them to the kernel
  bool io_uring = false;
  u32 max_write_bytes = 1 << 20;
  u32 max_readahead_bytes = 1 << 20;
};

// What both sides agreed on.
struct Agreement {
  u32 minor = 0;  // of the protocol
  u64 flags = 0;  // init::*
  u32 max_write_bytes = 0;
  bool has(u64 flag) const { return (flags & flag) == flag; }
  bool no_open() const { return has(init::kNoOpenSupport); }
  bool no_opendir() const { return has(init::kNoOpendirSupport); }
  bool inc_epoch() const { return minor >= 44; }
  bool prune() const { return minor >= 45; }
};

struct Negotiation {
  InitOut reply{};
  // The kernel's major is newer: the reply only names ours and the kernel will ask again.
  bool again = false;
  Agreement agreement;
};

// Errors: kUnsupported for kernels older than protocol 7.31.
base::Result<Negotiation> negotiate(const InitIn& offer, const Wishes& wishes);

}  // namespace fs::fuse
