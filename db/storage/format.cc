#include "db/storage/format.h"

namespace db {

u32 read_varint_slow(const u8* at, u64* value) {
  u64 result = 0;
  for (u32 i = 0; i < 8; i++) {
    result = (result << 7) | (at[i] & 0x7f);
    if (at[i] < 0x80) {
      *value = result;
      return i + 1;
    }
  }
  *value = (result << 8) | at[8];
  return 9;
}

u32 write_varint(u8* at, u64 value) {
  if (value < 0x80) {
    at[0] = static_cast<u8>(value);
    return 1;
  }
  if (value < 0x4000) {
    at[0] = static_cast<u8>((value >> 7) | 0x80);
    at[1] = static_cast<u8>(value & 0x7f);
    return 2;
  }
  u32 bytes = varint_bytes(value);
  u32 i = bytes;
  if (bytes == 9) {
    at[--i] = static_cast<u8>(value);
    value >>= 8;
  } else {
    at[--i] = static_cast<u8>(value & 0x7f);
    value >>= 7;
  }
  while (i > 0) {
    at[--i] = static_cast<u8>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  return bytes;
}

}  // namespace db
