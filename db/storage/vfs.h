// The machine as the pager sees it: files with byte-range locks, shared memory for the wal-index,
// and sync flags. posix_vfs() is the machine's; SimVfs (sim_vfs.h) is a disk in memory that loses,
// reorders and tears unsynced writes at a crash.
//
// Lock ranges are SQLite's own (format.h), so stock SQLite and FleetDB processes exclude each
// other. posix_vfs() uses locks that belong to the open file, not the process: each connection
// stands for itself, in one process or in many.
//
// Errors: kNotFound, kBusy (lock not granted), kFull, kIo, kPermission. A VfsFile is
// single-threaded; the Vfs is thread-safe.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "base/types.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace db {

using base::Bytes;
using base::ByteView;

enum class LockLevel : u8 { kNone = 0, kShared, kReserved, kPending, kExclusive };

// One range of a gathered write.
struct WritePiece {
  u64 offset;
  ByteView data;
};

// What the file system was asked to do, for tests and for comparison with stock SQLite.
struct VfsCounts {
  u64 reads = 0, writes = 0, syncs = 0, locks = 0, stats = 0, opens = 0, removes = 0, truncates = 0;
};

class VfsFile {
 public:
  virtual ~VfsFile() = default;
  // Bytes read; fewer than asked only at the end of the file.
  virtual base::Result<size_t> read_at(u64 offset, Bytes out) = 0;
  virtual base::Status write_at(u64 offset, ByteView data) = 0;
  // Adjacent pieces go out in one call.
  virtual base::Status write_pieces(std::span<const WritePiece> pieces) = 0;
  virtual base::Status truncate(u64 size) = 0;
  virtual base::Result<u64> size() = 0;
  // `data_only`: the size may be what it was. A failed sync is final: do not retry.
  virtual base::Status sync(bool data_only) = 0;

  // Database locks. Upgrades go kNone -> kShared -> kReserved -> kExclusive; kBusy when refused.
  virtual base::Status lock(LockLevel level) = 0;
  // Down to kShared or kNone.
  virtual base::Status unlock(LockLevel level) = 0;
  virtual LockLevel lock_level() const = 0;
  // Does anyone, here or elsewhere, hold kReserved or more?
  virtual base::Result<bool> reserved_by_anyone() = 0;

  // The wal-index: `region` counts 32 KiB blocks. Null when it is not there and `extend` is false.
  virtual base::Result<u8*> shm_region(u32 region, bool extend) = 0;
  // Lock bytes 0..7 (write, checkpoint, recover, five read marks).
  virtual base::Status shm_lock(u32 first, u32 count, bool exclusive) = 0;
  virtual base::Status shm_unlock(u32 first, u32 count, bool exclusive) = 0;
  virtual void shm_barrier() = 0;
  // Lets go of the wal-index; removes its file when told to and nobody else uses it.
  virtual void shm_unmap(bool remove) = 0;
};

struct VfsOpen {
  bool create = false;
  bool read_only = false;
  bool exclusive = false;  // with create: it must not be there yet
  u32 permissions = 0644;  // of a file that is created
};

class Vfs {
 public:
  virtual ~Vfs() = default;
  virtual base::Result<std::unique_ptr<VfsFile>> open(const std::string& path, VfsOpen mode) = 0;
  virtual base::Status remove(const std::string& path, bool sync_directory) = 0;
  virtual base::Result<bool> exists(const std::string& path) = 0;
  virtual base::Status sync_directory_of(const std::string& path) = 0;
  virtual std::string absolute(const std::string& path) = 0;
  virtual VfsCounts counts() const = 0;
};

Vfs& posix_vfs();

}  // namespace db
