#include "llm/cli/memory_read.h"

#include "base/clock.h"

#include <unistd.h>

#include <algorithm>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace llm {
namespace {

constexpr u64 kChunk = 256;  // bytes a turn of the loops

u64 read_plain(const u8* at, u64 bytes) {
  const auto* words = reinterpret_cast<const u64*>(at);
  u64 sum = 0;
  for (u64 i = 0; i < bytes / sizeof(u64); ++i) sum |= words[i];
  return sum;
}

#if defined(__x86_64__)
// Asks 4 KiB ahead as the products of the kernels do.
__attribute__((target("avx2"))) u64 read_avx2(const u8* at, u64 bytes) {
  __m256i sums[4] = {};
  for (u64 i = 0; i < bytes; i += kChunk) {
    for (u64 line = 0; line < kChunk; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at + i + line + 4096), _MM_HINT_T0);
    }
    for (u64 part = 0; part < kChunk; part += 32) {
      __m256i& sum = sums[part / 32 % 4];
      sum =
          _mm256_or_si256(sum, _mm256_load_si256(reinterpret_cast<const __m256i*>(at + i + part)));
    }
  }
  const __m256i all =
      _mm256_or_si256(_mm256_or_si256(sums[0], sums[1]), _mm256_or_si256(sums[2], sums[3]));
  return _mm256_testz_si256(all, all) == 0 ? 1 : 0;
}
#endif

u64 read_all(const u8* at, u64 bytes) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  if (wide) return read_avx2(at, bytes);
#endif
  return read_plain(at, bytes);
}

}  // namespace

u64 uncached_bytes() {
  constexpr u64 kLeast = 512ull << 20;
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const u64 wanted = std::max(kLeast, cache > 0 ? 4 * static_cast<u64>(cache) : 0);
  const u64 memory = static_cast<u64>(std::max(::sysconf(_SC_PHYS_PAGES), 0l)) *
                     static_cast<u64>(::sysconf(_SC_PAGESIZE));
  return std::min(wanted, std::max(kLeast, memory / 4));
}

MemoryReader::MemoryReader(Crew* crew, u64 bytes)
    : crew_(*crew),
      share_(bytes / static_cast<u64>(crew->size()) / kChunk * kChunk),
      buffer_(share_ * static_cast<u64>(crew->size())),
      seen_(static_cast<size_t>(crew->size()) * 8) {}  // apart, for the caches' sake

f64 MemoryReader::read_gb_per_s() {
  const i64 start = base::system_clock().monotonic_us();
  auto read = [this](i32 thread) {
    const auto t = static_cast<u64>(thread);
    seen_[t * 8] |= read_all(buffer_.data() + t * share_, share_);
  };
  crew_.run(read);
  const i64 us = std::max<i64>(base::system_clock().monotonic_us() - start, 1);
  const u64 bytes = share_ * static_cast<u64>(crew_.size());
  // The buffer is zero; asking keeps the reads.
  return seen_[0] == 0 ? static_cast<f64>(bytes) / static_cast<f64>(us) / 1e3 : 0;
}

}  // namespace llm
