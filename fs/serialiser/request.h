// Typed requests and replies of the serialiser: one struct per POSIX operation.
//
// Views in a request need to live only for the call. The kernel has checked modes (mount option
// default_permissions); the serialiser enforces the tree's own rules: types, names, link counts,
// sticky-free structure, set-group-id inheritance, suid clearing, quota, loops, locks.
// Handing an inode out (lookup, create, mkdir, mknod, symlink, link, tmpfile, readdirplus) counts
// one reference of the session; Forget gives them back.
#pragma once

#include "base/bytes.h"
#include "fs/state/inode.h"
#include "fs/state/types.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fs {

struct Lookup {
  Ino parent = 0;
  std::string_view name;
};
struct Forget {
  Ino ino = 0;
  u64 count = 0;
};
struct Getattr {
  Ino ino = 0;
};
// Only what is set changes. `now_ns` of the request fills what POSIX says changes by itself.
struct Setattr {
  Ino ino = 0;
  std::optional<u32> mode;  // permission bits
  std::optional<u32> uid;
  std::optional<u32> gid;
  std::optional<u64> size;
  std::optional<i64> atime_ns;
  std::optional<i64> mtime_ns;
  std::optional<i64> ctime_ns;  // only a kernel with write-back caching sends it
  bool kill_suid_sgid = false;  // FATTR_KILL_SUIDGID
};
// Regular file. With an existing name: EEXIST if exclusive, else that file (truncated if asked).
struct Create {
  Ino parent = 0;
  std::string_view name;
  u32 mode = 0644;
  bool exclusive = false;
  bool truncate = false;
};
struct Mkdir {
  Ino parent = 0;
  std::string_view name;
  u32 mode = 0755;
};
// FIFO, socket or regular file; device nodes are refused with EPERM.
struct Mknod {
  Ino parent = 0;
  std::string_view name;
  u32 mode = 0;  // with S_IFMT
  u32 rdev = 0;
};
struct Symlink {
  Ino parent = 0;
  std::string_view name;
  std::string_view target;
};
struct Tmpfile {  // O_TMPFILE: an orphan until linked
  Ino parent = 0;
  u32 mode = 0600;
};
struct Link {
  Ino ino = 0;
  Ino new_parent = 0;
  std::string_view new_name;
};
struct Unlink {
  Ino parent = 0;
  std::string_view name;
};
struct Rmdir {
  Ino parent = 0;
  std::string_view name;
};
enum RenameFlags : u32 { kRenamePlain = 0, kRenameNoReplace = 1, kRenameExchange = 2 };
struct Rename {
  Ino parent = 0;
  std::string_view name;
  Ino new_parent = 0;
  std::string_view new_name;
  u32 flags = kRenamePlain;
};
struct Readlink {
  Ino ino = 0;
};
// Entries with cookies greater than `after`, oldest first; "." and ".." have cookies 1 and 2. The
// reply stops at `entries_max` or when names would need more than `bytes_max`, counting 24 bytes
// (plus: 152) and the padded name for each, as FUSE does.
struct Readdir {
  Ino ino = 0;
  u64 after = 0;
  u32 entries_max = 1u << 20;
  u32 bytes_max = 1u << 20;
  bool plus = false;  // attributes too; counts references except for "." and ".."
};
struct Read {
  Ino ino = 0;
  u64 offset = 0;
  u32 length = 0;
};
// The bytes travel beside the step: Effects::data says under which id the host must store them.
struct Write {
  Ino ino = 0;
  u64 offset = 0;
  u32 length = 0;
  bool append = false;  // at the end, whatever offset says
  bool kill_suid_sgid = false;
};
enum FallocateMode : u32 {  // as in <linux/falloc.h>
  kFallocKeepSize = 1,
  kFallocPunchHole = 2,
  kFallocZeroRange = 16,
};
struct Fallocate {
  Ino ino = 0;
  u64 offset = 0;
  u64 length = 0;
  u32 mode = 0;
};
// Shares the extents: costs nothing but log bytes. Reply.size is the length copied.
struct CopyRange {
  Ino from = 0;
  u64 from_offset = 0;
  Ino to = 0;
  u64 to_offset = 0;
  u64 length = 0;
};
struct Seek {
  Ino ino = 0;
  u64 offset = 0;
  bool hole = false;  // SEEK_HOLE, else SEEK_DATA
};
struct Getxattr {
  Ino ino = 0;
  std::string_view name;
};
enum XattrFlags : u32 { kXattrCreate = 1, kXattrReplace = 2 };
struct Setxattr {
  Ino ino = 0;
  std::string_view name;
  std::string_view value;
  u32 flags = 0;
};
struct Listxattr {  // Reply.text: names, each followed by a NUL
  Ino ino = 0;
};
struct Removexattr {
  Ino ino = 0;
  std::string_view name;
};
enum class LockType : u8 { kUnlock, kRead, kWrite };
struct LockRange {
  u64 start = 0;
  u64 last = ~u64{0};  // inclusive
  LockType type = LockType::kUnlock;
  u32 pid = 0;
  bool operator==(const LockRange&) const = default;
};
struct Getlk {  // Reply.lock: the lock in the way, or kUnlock
  Ino ino = 0;
  u64 owner = 0;
  LockRange lock;
};
struct Setlk {
  Ino ino = 0;
  u64 owner = 0;
  LockRange lock;
  bool flock = false;  // the whole file, a space of its own
  bool wait = false;   // no EAGAIN: the reply comes later, through Effects::granted
};
struct CancelLock {  // the waiting request `request_id` was interrupted
  u64 request_id = 0;
};
struct Statfs {};
// All references and locks of a session go; its orphans are reclaimed.
struct EndSession {};
// Replaces a range by the same bytes under one data id, to mend fragmented files. Changes no time
// stamp. The host read `length` bytes at `offset` and gives them; refused with EAGAIN unless the
// file's extents there are still those of `expected`.
struct Defragment {
  Ino ino = 0;
  u64 offset = 0;
  u32 length = 0;
  u64 expected = 0;  // fingerprint from Serialiser::extents_fingerprint
};

using Operation =
    std::variant<Lookup, Forget, Getattr, Setattr, Create, Mkdir, Mknod, Symlink, Tmpfile, Link,
                 Unlink, Rmdir, Rename, Readlink, Readdir, Read, Write, Fallocate, CopyRange, Seek,
                 Getxattr, Setxattr, Listxattr, Removexattr, Getlk, Setlk, CancelLock, Statfs,
                 EndSession, Defragment>;

struct Request {
  u64 id = 0;  // unique among a session's open requests (locks that wait are named by it)
  SessionId session = 1;
  Credentials who;
  i64 now_ns = 0;  // the host's clock; the serialiser has none
  Operation operation;
};

struct DirectoryEntry {
  std::string_view name;  // valid until the next step
  Ino ino = 0;
  u64 cookie = 0;
  FileType type = FileType::kUnknown;
  Attributes attr;  // with `plus`
};

// A stretch of a read: bytes of `data` from `data_offset` on, or zeros when data is 0.
struct Piece {
  DataId data = 0;
  u32 data_offset = 0;
  u32 length = 0;
  bool operator==(const Piece&) const = default;
};

struct StatfsReply {
  u64 bytes_total = 0;
  u64 bytes_used = 0;
  u64 inodes_total = 0;
  u64 inodes_used = 0;
};

// Which fields are filled follows from the operation; `error` 0 is success.
struct Reply {
  int error = 0;
  Ino ino = 0;           // lookup and whatever makes an entry
  Attributes attr;       // the same, getattr, setattr, write, fallocate
  bool created = false;  // create: it was not there before
  u64 size = 0;          // write, copy: bytes done; seek: offset
  std::string text;      // readlink, getxattr, listxattr
  std::vector<DirectoryEntry> entries;
  bool end_of_directory = false;
  std::vector<Piece> pieces;  // read: they add up to what is left of the file, at most `length`
  LockRange lock;
  StatfsReply statfs;
};

}  // namespace fs
