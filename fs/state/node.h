// A resident inode: attributes, and what of it has been paged in. Copyable, for the explorer.
// Memory: about 200 bytes plus 8 to 30 bytes an entry for directories. Thread-compatible.
#pragma once

#include "fs/state/directory.h"
#include "fs/state/inode.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fs {

// An owned T that may be absent and copies deeply.
template <class T>
class Box {
 public:
  Box() = default;
  Box(const Box& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Box(Box&&) noexcept = default;
  Box& operator=(Box other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~Box() = default;
  explicit operator bool() const { return value_ != nullptr; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T& emplace() {
    value_ = std::make_unique<T>();
    return *value_;
  }

 private:
  std::unique_ptr<T> value_;
};

struct Node {
  Attributes attr;
  u64 references = 0;  // of all sessions
  Seq changed = 0;     // last record that touched any of it
  bool extents_loaded = false;
  std::vector<Extent> extents;
  std::string symlink;
  Box<Directory> entries;                          // absent: not paged in
  Box<std::map<std::string, std::string>> xattrs;  // absent: not paged in
};

}  // namespace fs
