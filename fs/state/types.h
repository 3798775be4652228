// Numbers and small values that every stage of AgentFS shares.
//
// Ids are 64 bits: the high 24 name the workspace that made them, the low 40 count up and are never
// used again. Forks get a workspace number of their own, so ids of a fork and of its parent never
// meet, and what they share keeps its number (git's index stays warm in a fork).
// Times are nanoseconds since 1970 UTC. Errors towards the kernel are positive errno values.
#pragma once

#include "base/types.h"

#include <string>

namespace fs {

using Ino = u64;        // an inode; 0 is none
using DataId = u64;     // immutable bytes once written; 0 is a hole
using PageId = u64;     // an immutable tree page; 0 is the empty tree
using Seq = u64;        // position in a workspace's log; the first record is 1
using Epoch = u64;      // which authority wrote it; grows at every hand-over
using SessionId = u32;  // one mount

inline constexpr Ino kRootIno = 1;
inline constexpr int kCounterBits = 40;
inline constexpr u64 kCounterMask = (u64{1} << kCounterBits) - 1;
inline constexpr u32 kWorkspaceMax = (1u << 24) - 1;

// Page ids of a workspace begin in the upper half of its numbers, so they never meet its data ids.
inline constexpr u64 kFirstPage = (u64{1} << (kCounterBits - 1)) + 1;

inline u64 first_id_of(u32 workspace) {
  return u64{workspace} << kCounterBits;
}
inline u32 workspace_of(u64 id) {
  return static_cast<u32>(id >> kCounterBits);
}

inline constexpr size_t kNameBytesMax = 255;
inline constexpr size_t kSymlinkBytesMax = 4095;
inline constexpr size_t kXattrNameBytesMax = 255;
inline constexpr size_t kXattrValueBytesMax = 64 * 1024;
inline constexpr u32 kLinksMax = 65000;
inline constexpr u64 kFileBytesMax = u64{1} << 62;
inline constexpr u32 kWriteBytesMax = 4u << 20;  // one write, one piece of data

// Who asks. `gid` is the file-system group; supplementary groups are the kernel's business.
struct Credentials {
  u32 uid = 0;
  u32 gid = 0;
  u32 pid = 0;
};

// As in dirent's d_type.
enum class FileType : u8 {
  kUnknown = 0,
  kFifo = 1,
  kCharacter = 2,
  kDirectory = 4,
  kBlock = 6,
  kRegular = 8,
  kSymlink = 10,
  kSocket = 12,
};

inline FileType type_of_mode(u32 mode) {
  return static_cast<FileType>((mode >> 12) & 15);
}

}  // namespace fs
