// Blobs as files of one folder, which must exist.
#pragma once

#include "base/disk.h"
#include "fs/blob/blob.h"

namespace fs {

class FolderBlobs : public BlobStore {
 public:
  // `disk` outlives it.
  FolderBlobs(base::Disk& disk, std::string folder) : disk_(disk), folder_(std::move(folder)) {}
  base::Status put(const std::string& name, std::string_view bytes) override;
  base::Result<std::unique_ptr<Blob>> open(const std::string& name) override;
  base::Status remove(const std::string& name) override;
  base::Result<std::vector<std::string>> list(const std::string& prefix) override;
  std::string address(const std::string& name) const override { return folder_ + "/" + name; }

 private:
  base::Disk& disk_;
  std::string folder_;
};

}  // namespace fs
