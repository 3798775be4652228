// Where packs lie, as a seam: a folder (fs/blob/folder_blobs.h) or an S3-compatible object store
// (fs/blob/s3_blobs.h). Objects are written whole, never changed, and their names are never used
// again, so readers need no locks and caches no expiry. Names are letters, digits, '.' and '-'.
//
// Errors: kNotFound, kIo, kFull, kPermission, kUnavailable (tried again for a while, in vain).
// Thread-safe.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "base/types.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fs {

class Blob {
 public:
  virtual ~Blob() = default;
  virtual base::Result<u64> size() = 0;
  // Bytes read: fewer than asked only at the end.
  virtual base::Result<size_t> read_at(u64 offset, base::Bytes out) = 0;
};

class BlobStore {
 public:
  virtual ~BlobStore() = default;
  // Whole and durable when it returns. After an error it may be there, in part or whole.
  virtual base::Status put(const std::string& name, std::string_view bytes) = 0;
  virtual base::Result<std::unique_ptr<Blob>> open(const std::string& name) = 0;
  // No error when it is not there.
  virtual base::Status remove(const std::string& name) = 0;
  // All names that begin with it; what was put before the call and not removed is among them.
  virtual base::Result<std::vector<std::string>> list(const std::string& prefix) = 0;
  // How people would name the object, for messages.
  virtual std::string address(const std::string& name) const = 0;
};

}  // namespace fs
