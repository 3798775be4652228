// Blobs of a slow place, kept whole in a folder of this machine as they are read and written. At
// most `bytes_max` of them, the least recently used go first; several processes may share the
// folder. Whatever is missing or of the wrong size there is fetched anew, whatever cannot be
// written there is only fetched. The folder holds nothing that is not in the store: it may be
// removed at any time.
#pragma once

#include "fs/blob/blob.h"

#include <mutex>

namespace fs {

class CachedBlobs : public BlobStore {
 public:
  CachedBlobs(std::unique_ptr<BlobStore> store, std::string folder, u64 bytes_max);
  base::Status put(const std::string& name, std::string_view bytes) override;
  base::Result<std::unique_ptr<Blob>> open(const std::string& name) override;
  base::Status remove(const std::string& name) override;
  base::Result<std::vector<std::string>> list(const std::string& prefix) override {
    return store_->list(prefix);
  }
  std::string address(const std::string& name) const override { return store_->address(name); }

 private:
  friend class CachedBlob;
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }
  void keep(const std::string& name, std::string_view bytes);
  void evict();

  std::unique_ptr<BlobStore> store_;
  std::string folder_;
  u64 bytes_max_;
  std::mutex mutex_;  // one writes into the folder
};

}  // namespace fs
