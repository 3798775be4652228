// The kernel's FUSE wire format, protocol 7.31 to 7.45, written out by hand: Debian's headers stop
// at 7.38, the kernels that matter speak more. All fields little-endian (the host's order, in
// truth; the formats here assume little-endian hosts), all structs without padding holes, natural
// alignment.
//
// A request is InHeader, an argument struct that depends on the opcode, then names (each ending in
// NUL) or data. A reply is OutHeader and a struct or bytes. A notification is a reply with unique 0
// and the notify code in `error`. abi_test.cc compares all of it with the system's header.
#pragma once

#include "base/types.h"

namespace fs::fuse {

inline constexpr u32 kProtocolMajor = 7;
inline constexpr u32 kProtocolMinor = 45;     // the newest we know
inline constexpr u32 kProtocolMinorMin = 31;  // Linux 5.4; older kernels are refused

inline constexpr u64 kRootNode = 1;

enum class Op : u32 {
  kLookup = 1,
  kForget = 2,
  kGetattr = 3,
  kSetattr = 4,
  kReadlink = 5,
  kSymlink = 6,
  kMknod = 8,
  kMkdir = 9,
  kUnlink = 10,
  kRmdir = 11,
  kRename = 12,
  kLink = 13,
  kOpen = 14,
  kRead = 15,
  kWrite = 16,
  kStatfs = 17,
  kRelease = 18,
  kFsync = 20,
  kSetxattr = 21,
  kGetxattr = 22,
  kListxattr = 23,
  kRemovexattr = 24,
  kFlush = 25,
  kInit = 26,
  kOpendir = 27,
  kReaddir = 28,
  kReleasedir = 29,
  kFsyncdir = 30,
  kGetlk = 31,
  kSetlk = 32,
  kSetlkw = 33,
  kAccess = 34,
  kCreate = 35,
  kInterrupt = 36,
  kBmap = 37,
  kDestroy = 38,
  kIoctl = 39,
  kPoll = 40,
  kNotifyReply = 41,
  kBatchForget = 42,
  kFallocate = 43,
  kReaddirplus = 44,
  kRename2 = 45,
  kLseek = 46,
  kCopyFileRange = 47,
  kSyncfs = 50,
  kTmpfile = 51,
  kStatx = 52,
  kCopyFileRange64 = 53,
};
inline constexpr u32 kOpLimit = 64;  // every opcode we know is below

enum class Notify : i32 {
  kPoll = 1,
  kInvalInode = 2,
  kInvalEntry = 3,
  kStore = 4,
  kRetrieve = 5,
  kDelete = 6,
  kResend = 7,
  kIncEpoch = 8,  // 7.44
  kPrune = 9,     // 7.45
};

// InitIn.flags | InitIn.flags2 << 32.
namespace init {
inline constexpr u64 kAsyncRead = 1u << 0;
inline constexpr u64 kPosixLocks = 1u << 1;
inline constexpr u64 kAtomicOTrunc = 1u << 3;
inline constexpr u64 kExportSupport = 1u << 4;
inline constexpr u64 kBigWrites = 1u << 5;
inline constexpr u64 kDontMask = 1u << 6;
inline constexpr u64 kFlockLocks = 1u << 10;
inline constexpr u64 kAutoInvalData = 1u << 12;
inline constexpr u64 kDoReaddirplus = 1u << 13;
inline constexpr u64 kReaddirplusAuto = 1u << 14;
inline constexpr u64 kAsyncDio = 1u << 15;
inline constexpr u64 kWritebackCache = 1u << 16;
inline constexpr u64 kNoOpenSupport = 1u << 17;
inline constexpr u64 kParallelDirops = 1u << 18;
inline constexpr u64 kHandleKillpriv = 1u << 19;
inline constexpr u64 kPosixAcl = 1u << 20;
inline constexpr u64 kMaxPages = 1u << 22;
inline constexpr u64 kCacheSymlinks = 1u << 23;
inline constexpr u64 kNoOpendirSupport = 1u << 24;
inline constexpr u64 kExplicitInvalData = 1u << 25;
inline constexpr u64 kHandleKillprivV2 = 1u << 28;
inline constexpr u64 kSetxattrExt = 1u << 29;
inline constexpr u64 kInitExt = 1u << 30;
inline constexpr u64 kCreateSuppGroup = 1ull << 34;
inline constexpr u64 kHasExpireOnly = 1ull << 35;
inline constexpr u64 kPassthrough = 1ull << 37;
inline constexpr u64 kHasResend = 1ull << 39;
inline constexpr u64 kOverIoUring = 1ull << 41;
}  // namespace init

struct InHeader {
  u32 len;  // of the whole request, this header included
  u32 opcode;
  u64 unique;
  u64 node;
  u32 uid;
  u32 gid;
  u32 pid;
  u16 total_extlen;  // of extensions at the end, in 8-byte units
  u16 padding;
};
inline constexpr u64 kUniqueResend = 1ull << 63;

struct OutHeader {
  u32 len;
  i32 error;  // 0 or -errno
  u64 unique;
};

struct Attr {
  u64 ino;
  u64 size;
  u64 blocks;  // of 512 bytes
  i64 atime;
  i64 mtime;
  i64 ctime;
  u32 atime_ns;
  u32 mtime_ns;
  u32 ctime_ns;
  u32 mode;
  u32 nlink;
  u32 uid;
  u32 gid;
  u32 rdev;
  u32 blksize;
  u32 flags;
};

struct EntryOut {
  u64 node;  // 0: a negative entry, cached for entry_valid
  u64 generation;
  u64 entry_valid;
  u64 attr_valid;
  u32 entry_valid_ns;
  u32 attr_valid_ns;
  Attr attr;
};
struct AttrOut {
  u64 attr_valid;
  u32 attr_valid_ns;
  u32 dummy;
  Attr attr;
};

struct InitIn {
  u32 major;
  u32 minor;
  u32 max_readahead;
  u32 flags;
  u32 flags2;
  u32 unused[11];
};
inline constexpr u32 kInitInOldBytes = 16;  // before flags2 (kernels that lack kInitExt)
struct InitOut {
  u32 major;
  u32 minor;
  u32 max_readahead;
  u32 flags;
  u16 max_background;
  u16 congestion_threshold;
  u32 max_write;
  u32 time_gran;  // nanoseconds
  u16 max_pages;
  u16 map_alignment;
  u32 flags2;
  u32 max_stack_depth;
  u16 request_timeout;
  u16 unused[11];
};

struct ForgetIn {
  u64 nlookup;
};
struct BatchForgetIn {
  u32 count;
  u32 dummy;
};
struct ForgetOne {
  u64 node;
  u64 nlookup;
};
struct GetattrIn {
  u32 flags;
  u32 dummy;
  u64 fh;
};
inline constexpr u32 kGetattrFh = 1u << 0;

struct SetattrIn {
  u32 valid;
  u32 padding;
  u64 fh;
  u64 size;
  u64 lock_owner;
  i64 atime;
  i64 mtime;
  i64 ctime;
  u32 atime_ns;
  u32 mtime_ns;
  u32 ctime_ns;
  u32 mode;
  u32 unused4;
  u32 uid;
  u32 gid;
  u32 unused5;
};
namespace setattr {
inline constexpr u32 kMode = 1u << 0;
inline constexpr u32 kUid = 1u << 1;
inline constexpr u32 kGid = 1u << 2;
inline constexpr u32 kSize = 1u << 3;
inline constexpr u32 kAtime = 1u << 4;
inline constexpr u32 kMtime = 1u << 5;
inline constexpr u32 kFh = 1u << 6;
inline constexpr u32 kAtimeNow = 1u << 7;
inline constexpr u32 kMtimeNow = 1u << 8;
inline constexpr u32 kLockowner = 1u << 9;
inline constexpr u32 kCtime = 1u << 10;
inline constexpr u32 kKillSuidgid = 1u << 11;
}  // namespace setattr

struct MknodIn {
  u32 mode;
  u32 rdev;
  u32 umask;
  u32 padding;
};
struct MkdirIn {
  u32 mode;
  u32 umask;
};
struct RenameIn {
  u64 new_dir;
};
struct Rename2In {
  u64 new_dir;
  u32 flags;
  u32 padding;
};
struct LinkIn {
  u64 old_node;
};
struct OpenIn {
  u32 flags;
  u32 open_flags;
};
struct CreateIn {
  u32 flags;
  u32 mode;
  u32 umask;
  u32 open_flags;
};
struct OpenOut {
  u64 fh;
  u32 open_flags;
  i32 backing_id;
};
namespace open_flag {
inline constexpr u32 kDirectIo = 1u << 0;
inline constexpr u32 kKeepCache = 1u << 1;
inline constexpr u32 kNonseekable = 1u << 2;
inline constexpr u32 kCacheDir = 1u << 3;
inline constexpr u32 kStream = 1u << 4;
inline constexpr u32 kNoflush = 1u << 5;
inline constexpr u32 kParallelDirectWrites = 1u << 6;
inline constexpr u32 kPassthrough = 1u << 7;
}  // namespace open_flag

struct ReleaseIn {
  u64 fh;
  u32 flags;
  u32 release_flags;
  u64 lock_owner;
};
inline constexpr u32 kReleaseFlockUnlock = 1u << 1;
struct FlushIn {
  u64 fh;
  u32 unused;
  u32 padding;
  u64 lock_owner;
};
struct ReadIn {
  u64 fh;
  u64 offset;
  u32 size;
  u32 read_flags;
  u64 lock_owner;
  u32 flags;
  u32 padding;
};
struct WriteIn {
  u64 fh;
  u64 offset;
  u32 size;
  u32 write_flags;
  u64 lock_owner;
  u32 flags;
  u32 padding;
};
inline constexpr u32 kWriteKillSuidgid = 1u << 2;
struct WriteOut {
  u32 size;
  u32 padding;
};
struct Statfs {
  u64 blocks;
  u64 bfree;
  u64 bavail;
  u64 files;
  u64 ffree;
  u32 bsize;
  u32 namelen;
  u32 frsize;
  u32 padding;
  u32 spare[6];
};
struct FsyncIn {
  u64 fh;
  u32 fsync_flags;  // 1: data only
  u32 padding;
};
struct SetxattrIn {  // with init::kSetxattrExt; the first 8 bytes without
  u32 size;
  u32 flags;
  u32 setxattr_flags;
  u32 padding;
};
inline constexpr u32 kSetxattrInOldBytes = 8;
struct GetxattrIn {
  u32 size;  // 0: only the length is asked
  u32 padding;
};
struct GetxattrOut {
  u32 size;
  u32 padding;
};
struct FileLock {
  u64 start;
  u64 end;
  u32 type;
  u32 pid;
};
struct LockIn {
  u64 fh;
  u64 owner;
  FileLock lock;
  u32 lock_flags;  // 1: flock
  u32 padding;
};
struct LockOut {
  FileLock lock;
};
struct AccessIn {
  u32 mask;
  u32 padding;
};
struct InterruptIn {
  u64 unique;  // of the request to give up
};
struct IoctlIn {
  u64 fh;
  u32 flags;
  u32 cmd;
  u64 arg;
  u32 in_size;
  u32 out_size;
};
struct FallocateIn {
  u64 fh;
  u64 offset;
  u64 length;
  u32 mode;
  u32 padding;
};
struct LseekIn {
  u64 fh;
  u64 offset;
  u32 whence;
  u32 padding;
};
struct LseekOut {
  u64 offset;
};
struct CopyFileRangeIn {
  u64 fh_in;
  u64 offset_in;
  u64 node_out;
  u64 fh_out;
  u64 offset_out;
  u64 length;
  u64 flags;
};
struct CopyFileRangeOut {  // of kCopyFileRange64
  u64 bytes_copied;
};
struct SyncfsIn {
  u64 padding;
};

// A readdir reply is a run of these, each with its name, padded to 8 bytes.
struct Dirent {
  u64 ino;
  u64 offset;  // cookie of the next entry
  u32 name_len;
  u32 type;  // DT_*
};
struct DirentPlus {
  EntryOut entry;
  Dirent dirent;
};

struct NotifyInvalInode {
  u64 node;
  i64 offset;  // negative: attributes only
  i64 length;  // 0 or less: to the end
};
struct NotifyInvalEntry {
  u64 parent;
  u32 name_len;  // then the name and NUL
  u32 flags;     // 1: expire only
};
struct NotifyDelete {
  u64 parent;
  u64 child;
  u32 name_len;
  u32 padding;
};
struct NotifyStore {
  u64 node;
  u64 offset;
  u32 size;
  u32 padding;
};
struct NotifyPrune {  // then `count` node numbers
  u32 count;
  u32 padding;
  u64 spare;
};

// FUSE over io_uring (7.42): each ring entry is this header and a payload buffer.
struct UringEntry {
  u64 flags;
  u64 commit_id;
  u32 payload_size;
  u32 padding;
  u64 reserved;
};
struct UringHeader {
  u8 in_out[128];  // InHeader, or OutHeader in a reply
  u8 op_in[128];   // the opcode's argument struct
  UringEntry entry;
};
struct UringCommand {  // in the submission entry's 80 command bytes
  u64 flags;
  u64 commit_id;
  u16 queue;
  u8 padding[6];
};
inline constexpr u32 kUringRegister = 1;
inline constexpr u32 kUringCommitAndFetch = 2;

}  // namespace fs::fuse
