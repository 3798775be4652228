#include "fs/blob/folder_blobs.h"

#include <algorithm>

namespace fs {

using base::Result;
using base::Status;

namespace {

class FileBlob : public Blob {
 public:
  explicit FileBlob(std::unique_ptr<base::DiskFile> file) : file_(std::move(file)) {}
  Result<u64> size() override { return file_->size(); }
  Result<size_t> read_at(u64 offset, base::Bytes out) override {
    return file_->read_at(offset, out);
  }

 private:
  std::unique_ptr<base::DiskFile> file_;
};

}  // namespace

Status FolderBlobs::put(const std::string& name, std::string_view bytes) {
  auto file = TRY(disk_.open(address(name), {.create = true}));
  TRY(file->truncate(0));
  constexpr size_t piece = 1 << 20;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    TRY(file->write_at(at, base::as_bytes(bytes.substr(at, piece))));
  }
  TRY(file->sync());
  return disk_.sync_directory(folder_);
}

Result<std::unique_ptr<Blob>> FolderBlobs::open(const std::string& name) {
  auto file = TRY(disk_.open(address(name), {.read_only = true}));
  return std::unique_ptr<Blob>(std::make_unique<FileBlob>(std::move(file)));
}

Status FolderBlobs::remove(const std::string& name) {
  Status removed = disk_.remove(address(name));
  if (!removed.ok() && removed.error().code() == base::ErrorCode::kNotFound) return {};
  return removed;
}

Result<std::vector<std::string>> FolderBlobs::list(const std::string& prefix) {
  auto names = TRY(disk_.list(folder_));
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  return names;
}

}  // namespace fs
