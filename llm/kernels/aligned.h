// Memory for weights, caches and step buffers: zeroed, aligned to a cache line, in large pages when
// it is big. Allocated at load time only. Single owner; thread-compatible.
#pragma once

#include "base/types.h"

#include <utility>

namespace llm {

class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(u64 size);
  ~AlignedBytes();
  AlignedBytes(AlignedBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBytes& operator=(AlignedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  u8* data() const { return data_; }
  u64 size() const { return size_; }

 private:
  u8* data_ = nullptr;
  u64 size_ = 0;
};

// A fixed-size array of plain values in such memory.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(u64 count) : bytes_(count * sizeof(T)), count_(count) {}
  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  u64 size() const { return count_; }
  T& operator[](u64 i) const { return data()[i]; }

 private:
  AlignedBytes bytes_;
  u64 count_ = 0;
};

}  // namespace llm
