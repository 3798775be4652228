// Layout of the log's header, its frames and its index in shared memory; checksums. No I/O, no
// state.
#pragma once

#include "base/bytes.h"
#include "db/storage/format.h"

namespace db {

inline constexpr u32 kWalMagic = 0x377f0682;  // lowest bit: checksums over big-endian words
inline constexpr u32 kWalVersion = 3007000;
inline constexpr u32 kWalHeaderBytes = 32;
inline constexpr u32 kWalFrameHeaderBytes = 24;

// Lock bytes of the index.
inline constexpr u32 kWalWriteLock = 0;
inline constexpr u32 kWalCheckpointLock = 1;
inline constexpr u32 kWalRecoverLock = 2;
inline constexpr u32 kWalReadLock = 3;  // of read mark 0; 4 to 7 follow
inline constexpr u32 kReadMarks = 5;
inline constexpr u32 kReadMarkUnused = 0xffffffff;

// Native byte order.
struct WalIndexHeader {
  u32 version;
  u32 unused;
  u32 change;  // grows with every transaction
  u8 initialised;
  u8 big_endian;   // log checksums are over big-endian words
  u16 page_bytes;  // 1 for 65536
  u32 max_frame;   // the last valid frame
  u32 page_count;  // of the database, after it
  u32 frame_checksum[2];
  u32 salt[2];      // as they lie in the log
  u32 checksum[2];  // of all before

  bool operator==(const WalIndexHeader&) const = default;
};
static_assert(sizeof(WalIndexHeader) == 48);

struct WalCheckpointInfo {
  u32 backfilled;  // frames copied back
  u32 read_mark[kReadMarks];
  u8 locks[8];  // the lock bytes lie here; nobody writes them
  u32 backfill_attempted;
  u32 unused;
};
static_assert(sizeof(WalCheckpointInfo) == 40);

inline constexpr u32 kWalIndexHeaderBytes = 2 * sizeof(WalIndexHeader) + sizeof(WalCheckpointInfo);
inline constexpr u32 kBlockFrames = 4096;
inline constexpr u32 kBlockSlots = 8192;
inline constexpr u32 kFirstBlockFrames = kBlockFrames - kWalIndexHeaderBytes / 4;

// One block: page numbers of frames first + 1, first + 2 ..., and a hash table over them.
struct WalBlock {
  u32* pages = nullptr;  // null: the block is not there
  u16* slots = nullptr;
  u32 first = 0;
  u32 capacity = 0;
};

inline u32 block_of(u32 frame) {
  return (frame + kBlockFrames - kFirstBlockFrames - 1) / kBlockFrames;
}
inline u32 slot_of(PageNo number) {
  return number * 383 & (kBlockSlots - 1);
}
inline u32 next_slot(u32 slot) {
  return (slot + 1) & (kBlockSlots - 1);
}

// Runs the checksum on over `bytes` (a multiple of 8), of words in the given order.
void wal_checksum(const u8* at, size_t bytes, bool big_endian, u32 sums[2]);

}  // namespace db
