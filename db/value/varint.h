// SQLite's varint: 1 to 9 bytes, seven bits each, high bits first; the ninth byte gives eight bits.
#pragma once

#include "base/types.h"

namespace db {

inline constexpr int kVarintBytesMax = 9;

int get_varint_slow(const u8* at, u64* value);
// Reads without a bound; the caller knows that nine bytes are readable or that the varint ends.
inline int get_varint(const u8* at, u64* value) {
  if (at[0] < 0x80) {
    *value = at[0];
    return 1;
  }
  if (at[1] < 0x80) {
    *value = (u64(at[0] & 0x7f) << 7) | at[1];
    return 2;
  }
  return get_varint_slow(at, value);
}
// Reads at most up to `end`; returns 0 when the varint is cut off.
int get_varint_checked(const u8* at, const u8* end, u64* value);
int put_varint(u8* at, u64 value);
int varint_size(u64 value);

}  // namespace db
