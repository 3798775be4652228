// Opening files below a folder, with the kernel (openat2, RESOLVE_BENEATH) refusing every way out:
// "..", absolute paths, symbolic links that lead outside, magic links. Thread-safe.
#pragma once

#include "base/result.h"

#include <string>

namespace team {

// Owns a file descriptor.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }

 private:
  int fd_;
};

base::Result<Fd> open_folder(const std::string& path);
// `flags` as for open(2). Errors: kPermission with a sentence when the path leads out; kNotFound;
// kIo.
base::Result<Fd> open_beneath(const Fd& folder, const std::string& relative, int flags,
                              int mode = 0);
// The folder that holds `relative`, made (with those above it) when `make` is set.
base::Result<Fd> open_parent_beneath(const Fd& folder, const std::string& relative, bool make);
std::string last_component(const std::string& relative);

}  // namespace team
