#include "db/storage/wal_index.h"

namespace db {

// s0 += x[i] + s1; s1 += x[i+1] + s0: a chain of two additions a word. Unrolled, the loads and
// swaps run ahead of the chain.
template <bool kSwap>
static void run(const u8* at, size_t bytes, u32 sums[2]) {
  u32 s0 = sums[0];
  u32 s1 = sums[1];
  const u8* end = at + bytes;
  for (; at < end; at += 8) {
    u32 a = base::load_le<u32>(at);
    u32 b = base::load_le<u32>(at + 4);
    if (kSwap) {
      a = __builtin_bswap32(a);
      b = __builtin_bswap32(b);
    }
    s0 += a + s1;
    s1 += b + s0;
  }
  sums[0] = s0;
  sums[1] = s1;
}

void wal_checksum(const u8* at, size_t bytes, bool big_endian, u32 sums[2]) {
  if (big_endian) {
    run<true>(at, bytes, sums);
  } else {
    run<false>(at, bytes, sums);
  }
}

}  // namespace db
