// A file mapped read-only. The pages are shared with the page cache and with other processes.
#pragma once

#include "base/bytes.h"
#include "base/result.h"

#include <memory>
#include <string>

namespace llm {

// Thread-compatible. The bytes live as long as the object.
class MappedFile {
 public:
  // Errors: kNotFound, kPermission, kIo; kInvalidArgument for an empty file or a folder.
  static base::Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  base::ByteView bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, const u8* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const u8* data_;
  size_t size_;
};

}  // namespace llm
