// Counts allocations, for the ablation's column.
#include "llm/cli/ablation.h"

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define LLM_FOREIGN_ALLOCATOR
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LLM_FOREIGN_ALLOCATOR
#endif

namespace llm {
namespace {
std::atomic<u64> g_allocations{0};
}  // namespace

u64 allocations() {
  return g_allocations.load(std::memory_order_relaxed);
}

#ifndef LLM_FOREIGN_ALLOCATOR
void* counted_allocation(std::size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  void* at = std::malloc(size == 0 ? 1 : size);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
#endif

}  // namespace llm

#ifndef LLM_FOREIGN_ALLOCATOR
void* operator new(std::size_t size) {
  return llm::counted_allocation(size);
}
void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}
#endif
