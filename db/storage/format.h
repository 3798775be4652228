// SQLite's file format as numbers: header offsets, page types, varints, payload split.
// Everything on disk is big-endian. Sizes are bytes. No state, no errors, no I/O.
#pragma once

#include "base/bytes.h"
#include "base/types.h"

namespace db {

// Pages are numbered from 1; 0 is "no page".
using PageNo = u32;

inline constexpr u32 kMinPageBytes = 512;
inline constexpr u32 kMaxPageBytes = 65536;
inline constexpr u32 kDefaultPageBytes = 4096;
inline constexpr char kFileMagic[16] = {'S', 'Q', 'L', 'i', 't', 'e', ' ', 'f',
                                        'o', 'r', 'm', 'a', 't', ' ', '3', '\0'};
// Written to offset 96 of every file we change; readers use it for diagnosis only.
inline constexpr u32 kLibraryVersion = 3053002;

// Offsets in the first 100 bytes of page 1.
inline constexpr u32 kFileHeaderBytes = 100;
inline constexpr u32 kAtPageBytes = 16;
inline constexpr u32 kAtWriteVersion = 18;
inline constexpr u32 kAtReadVersion = 19;
inline constexpr u32 kAtReservedBytes = 20;
inline constexpr u32 kAtChangeCounter = 24;
inline constexpr u32 kAtPageCount = 28;
inline constexpr u32 kAtFirstTrunk = 32;
inline constexpr u32 kAtFreeCount = 36;
inline constexpr u32 kAtMeta = 36;  // meta value i lies at kAtMeta + 4 * i
inline constexpr u32 kAtLargestRoot = 52;
inline constexpr u32 kAtIncremental = 64;
inline constexpr u32 kAtValidFor = 92;
inline constexpr u32 kAtLibraryVersion = 96;

// B-tree page types.
inline constexpr u8 kIndexInterior = 2;
inline constexpr u8 kTableInterior = 5;
inline constexpr u8 kIndexLeaf = 10;
inline constexpr u8 kTableLeaf = 13;

// Offsets in a b-tree page header (which starts at 100 on page 1, else at 0).
inline constexpr u32 kAtFirstFreeblock = 1;
inline constexpr u32 kAtCellCount = 3;
inline constexpr u32 kAtContentStart = 5;
inline constexpr u32 kAtFragments = 7;
inline constexpr u32 kAtRightChild = 8;

// Byte-range locks on the database file. The page that holds them is never used.
inline constexpr u64 kPendingByte = 0x40000000;
inline constexpr u64 kReservedByte = kPendingByte + 1;
inline constexpr u64 kSharedFirst = kPendingByte + 2;
inline constexpr u64 kSharedSize = 510;

inline PageNo lock_page(u32 page_bytes) {
  return static_cast<PageNo>(kPendingByte / page_bytes) + 1;
}

// Varints: 1 to 9 bytes, 7 bits each, high bits first; the ninth byte gives 8 bits.
inline constexpr u32 kMaxVarintBytes = 9;
u32 read_varint_slow(const u8* at, u64* value);
inline u32 read_varint(const u8* at, u64* value) {
  if (at[0] < 0x80) {
    *value = at[0];
    return 1;
  }
  if (at[1] < 0x80) {
    *value = (u64{at[0] & 0x7fu} << 7) | at[1];
    return 2;
  }
  if (at[2] < 0x80) {
    *value = (u64{at[0] & 0x7fu} << 14) | (u64{at[1] & 0x7fu} << 7) | at[2];
    return 3;
  }
  return read_varint_slow(at, value);
}
u32 write_varint(u8* at, u64 value);
inline u32 varint_bytes(u64 value) {
  if (value >> 56) return 9;
  u32 bytes = 1;
  while (value >>= 7) bytes++;
  return bytes;
}

// A big-endian u16 where 0 means 65536 (content start of an empty 64 KiB page).
inline u32 load_be16_or_64k(const u8* at) {
  return ((base::load_be16(at) - 1u) & 0xffffu) + 1u;
}

// Bytes of a payload that stay on the b-tree page; the rest goes to a chain of overflow pages.
inline u32 local_bytes(u64 payload, u32 min_local, u32 max_local, u32 usable) {
  if (payload <= max_local) return static_cast<u32>(payload);
  u32 surplus = min_local + static_cast<u32>((payload - min_local) % (usable - 4));
  return surplus <= max_local ? surplus : min_local;
}

}  // namespace db
