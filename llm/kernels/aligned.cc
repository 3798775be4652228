#include "llm/kernels/aligned.h"

#include "base/check.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace llm {

AlignedBytes::AlignedBytes(u64 size) : size_(size) {
  if (size == 0) return;
  constexpr u64 kLargePage = 2 << 20;
  const u64 alignment = size >= kLargePage ? kLargePage : 64;
  const u64 rounded = (size + alignment - 1) / alignment * alignment;
  data_ = static_cast<u8*>(std::aligned_alloc(alignment, rounded));
  CHECK(data_ != nullptr);
  if (alignment == kLargePage) ::madvise(data_, rounded, MADV_HUGEPAGE);
  std::memset(data_, 0, size);
}

AlignedBytes::~AlignedBytes() {
  std::free(data_);
}

}  // namespace llm
