#include "fs/blob/cached_blobs.h"

#include "base/disk.h"
#include "base/files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace fs {

using base::Result;
using base::Status;
namespace files = std::filesystem;

// No file stays open, so that what is evicted takes no room.
class CachedBlob : public Blob {
 public:
  CachedBlob(CachedBlobs& cache, std::string name, std::unique_ptr<Blob> there, u64 size)
      : cache_(cache), name_(std::move(name)), there_(std::move(there)), size_(size) {}

  Result<u64> size() override { return size_; }

  Result<size_t> read_at(u64 offset, base::Bytes out) override {
    auto file = base::posix_disk().open(cache_.path_of(name_), {.read_only = true});
    if (file.ok() && (*file)->size().value_or(size_ + 1) == size_) {
      auto got = (*file)->read_at(offset, out);
      if (got.ok()) return got;
    }
    std::string bytes(size_, '\0');
    size_t got = TRY(there_->read_at(0, {reinterpret_cast<u8*>(bytes.data()), bytes.size()}));
    if (got != size_) {
      return base::Error(
          base::ErrorCode::kCorruption,
          cache_.address(name_) + " is shorter than it says; look at the store's own log");
    }
    cache_.keep(name_, bytes);
    if (offset >= size_) return size_t{0};
    size_t length = std::min<u64>(out.size(), size_ - offset);
    std::memcpy(out.data(), bytes.data() + offset, length);
    return length;
  }

 private:
  CachedBlobs& cache_;
  std::string name_;
  std::unique_ptr<Blob> there_;
  u64 size_;
};

CachedBlobs::CachedBlobs(std::unique_ptr<BlobStore> store, std::string folder, u64 bytes_max)
    : store_(std::move(store)), folder_(std::move(folder)), bytes_max_(bytes_max) {
  std::error_code ignored;  // without the folder nothing is kept
  files::create_directory(folder_, ignored);
  files::permissions(folder_, files::perms::owner_all, ignored);
}

Status CachedBlobs::put(const std::string& name, std::string_view bytes) {
  TRY(store_->put(name, bytes));
  keep(name, bytes);
  return {};
}

// Asks the store, too: a pack that another server has collected must not be found here.
Result<std::unique_ptr<Blob>> CachedBlobs::open(const std::string& name) {
  auto there = TRY(store_->open(name));
  u64 size = TRY(there->size());
  std::error_code ignored;
  files::last_write_time(path_of(name), files::file_time_type::clock::now(), ignored);
  return std::unique_ptr<Blob>(std::make_unique<CachedBlob>(*this, name, std::move(there), size));
}

Status CachedBlobs::remove(const std::string& name) {
  std::error_code ignored;
  files::remove(path_of(name), ignored);
  return store_->remove(name);
}

void CachedBlobs::keep(const std::string& name, std::string_view bytes) {
  if (bytes.size() > bytes_max_) return;
  std::lock_guard lock(mutex_);
  // A failure costs one more fetch.
  if (base::replace_file(path_of(name), bytes).ok()) evict();
}

void CachedBlobs::evict() {
  struct Kept {
    files::file_time_type used;
    u64 bytes;
    files::path path;
  };
  std::vector<Kept> all;
  u64 total = 0;
  std::error_code failed;
  for (files::directory_iterator at(folder_, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::error_code gone;  // by another process
    Kept one{at->last_write_time(gone), at->file_size(gone), at->path()};
    if (gone) continue;
    total += one.bytes;
    all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const Kept& one : all) {
    if (total <= bytes_max_) return;
    files::remove(one.path, failed);
    total -= one.bytes;
  }
}

}  // namespace fs
