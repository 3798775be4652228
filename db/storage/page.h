// One page in memory: its bytes, its pin count, its place in the transaction's undo log, and the
// decoded b-tree header, so that a descent touches no bytes twice. Pager owns pages; a Page* is
// good while it is pinned (or, for page 1, inside a transaction). Single-threaded.
#pragma once

#include "base/types.h"
#include "db/storage/format.h"

namespace db {

struct Page {
  u8* data = nullptr;
  PageNo number = 0;
  u32 pins = 0;
  u64 saved_epoch = 0;  // its image is kept for every savepoint with an epoch up to this one
  bool dirty = false;
  bool in_journal = false;  // the original is part of the running transaction's rollback journal

  // The b-tree header, valid when `decoded`. Counts and offsets in bytes from `data`.
  bool decoded = false;
  bool leaf = false;
  bool table = false;  // keyed by rowid
  u8 header_at = 0;
  u8 child_bytes = 0;  // 4 on interior pages: the child pointer ahead of each cell
  bool cells_checked = false;
  u16 cell_count = 0;
  u16 max_local = 0;
  u16 min_local = 0;
  u32 pointers_at = 0;  // of the cell pointer array
  i32 free_bytes = -1;  // total free space; -1: not yet counted
  i64* keys = nullptr;  // rowids of an interior table page, cell_count of them, or null

  Page* older = nullptr;  // recency list of clean, unpinned pages (file databases)
  Page* newer = nullptr;
  bool in_recency = false;

  const u8* cell_at(u32 index) const {
    return data + base::load_be16(data + pointers_at + 2 * index);
  }
  PageNo child_at(u32 index) const {
    if (index >= cell_count) return base::load_be32(data + header_at + kAtRightChild);
    return base::load_be32(cell_at(index));
  }
};

}  // namespace db
