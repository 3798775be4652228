// One page in memory: its bytes, its pin count, its place in the transaction's undo log, and the
// decoded b-tree header, so that a descent touches no bytes twice. Pager owns pages; a Page* is
// good while it is pinned (or, for page 1, inside a transaction). Single-threaded.
#pragma once

#include "base/types.h"
#include "db/storage/format.h"

namespace db {

struct Page {
  u8* data = nullptr;
  u32 mask = 0;  // page size - 1: keeps cell offsets of malformed pages inside the buffer
  PageNo number = 0;
  u32 pins = 0;
  // Newest savepoint (or transaction) in which it was made writable. At least the transaction's
  // epoch: the page differs from the file, or may.
  u64 saved_epoch = 0;
  bool referenced = false;  // since the cache's clock hand passed
  // The b-tree header, valid when `decoded`. Counts and offsets in bytes from `data`.
  bool decoded = false;
  bool leaf = false;
  bool table = false;  // keyed by rowid
  u8 header_at = 0;
  u8 child_bytes = 0;  // 4 on interior pages: the child pointer ahead of each cell
  u16 max_local = 0;
  u16 min_local = 0;
  u32 cell_count = 0;
  u32 pointers_at = 0;  // of the cell pointer array
  i32 free_bytes = -1;  // total free space; -1: not yet counted
  i64* keys = nullptr;  // rowids of an interior table page, cell_count of them, or null
  u32 cache_slot = 0;   // in the pager's clock

  const u8* cell_at(u32 index) const {
    return data + (base::load_be16(data + pointers_at + 2 * index) & mask);
  }
  PageNo child_at(u32 index) const {
    if (index >= cell_count) return base::load_be32(data + header_at + kAtRightChild);
    return base::load_be32(cell_at(index));
  }
};

// Bytes behind each page's own that may be read (never written), so that varints of a malformed
// cell at the very end stay inside the buffer.
inline constexpr u32 kPagePadding = 32;

}  // namespace db
