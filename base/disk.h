// The disk as a seam. Storage code takes a Disk; it gets the machine's (posix_disk) when it ships
// and a SimDisk (base/sim_disk.h) in tests, where unsynced writes are lost, torn or reordered at a
// crash.
//
// Promise both keep: what was written before a successful sync() of the file is there after a
// crash; a created, renamed or removed name is durable after sync_directory() of its folder.
// Nothing else is. Errors: kNotFound, kExists, kFull, kIo, kPermission. Thread-safe.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "base/types.h"

#include <memory>
#include <string>
#include <vector>

namespace base {

class DiskFile {
 public:
  virtual ~DiskFile() = default;
  // Bytes read: fewer than asked only at the end of the file.
  virtual Result<size_t> read_at(u64 offset, Bytes out) = 0;
  // All of it or an error; after an error the range holds old bytes, new bytes or a mix.
  virtual Status write_at(u64 offset, ByteView data) = 0;
  virtual Status truncate(u64 size) = 0;
  virtual Result<u64> size() = 0;
  // Data and size are durable after it returns. After a failure nothing is known about unsynced
  // bytes: treat the file as damaged, do not retry (fsync drops dirty pages on error).
  virtual Status sync() = 0;
};

struct OpenMode {
  bool create = false;
  bool exclusive = false;  // with create: it must not be there yet
  bool read_only = false;
};

class Disk {
 public:
  virtual ~Disk() = default;
  virtual Result<std::unique_ptr<DiskFile>> open(const std::string& path, OpenMode mode) = 0;
  virtual Status remove(const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Result<bool> exists(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;
  virtual Status make_directory(const std::string& path) = 0;
  virtual Status sync_directory(const std::string& path) = 0;
};

Disk& posix_disk();

}  // namespace base
