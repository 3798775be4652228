// What lies on one b-tree page: cells, their pointers, free blocks. Functions over a Page; they
// keep its decoded header up to date. Nothing here knows of other pages.
//
// Malformed bytes: the functions that return bool answer false and change nothing that matters; the
// caller reports kCorruption. `usable` is the page size less the reserved bytes. Single-threaded.
#pragma once

#include "db/storage/page.h"

#include <cstring>
#include <span>

namespace db {

// One cell, as it lies on its page.
struct Cell {
  i64 rowid = 0;                // table trees
  const u8* payload = nullptr;  // its first `local` bytes
  u32 size = 0;                 // of the whole payload
  u32 local = 0;                // bytes at `payload`; less than size when it overflows
  u32 bytes = 0;                // of the cell on the page, with its header

  bool overflows() const { return local < size; }
  PageNo first_overflow() const { return base::load_be32(payload + local); }
};

// A cell as bytes that lie somewhere.
struct CellRef {
  const u8* at;
  u32 bytes;
};

// Reads the header and checks the cell pointers.
bool decode_node(Page& page, u32 usable);
// An empty page of the given type; the decoded header is set.
void init_node(Page& page, u8 type, u32 usable);
// Fills free_bytes by walking the free blocks.
bool count_free(Page& page, u32 usable);

inline bool parse_cell(const Page& page, u32 usable, const u8* at, Cell* out) {
  const u8* c = at + page.child_bytes;
  u64 size = 0;
  u64 rowid = 0;
  if (page.table) {
    if (page.leaf) c += read_varint(c, &size);
    c += read_varint(c, &rowid);
    out->rowid = static_cast<i64>(rowid);
    if (!page.leaf) {
      *out = {.rowid = static_cast<i64>(rowid), .payload = c, .bytes = static_cast<u32>(c - at)};
      return c <= page.data + usable;
    }
  } else {
    c += read_varint(c, &size);
    out->rowid = 0;
  }
  if (size > 0x7fffffff) return false;
  out->payload = c;
  out->size = static_cast<u32>(size);
  u32 bytes;
  if (size <= page.max_local) [[likely]] {
    out->local = out->size;
    bytes = static_cast<u32>(c - at) + out->local;
    if (bytes < 4) bytes = 4;
  } else {
    out->local = local_bytes(size, page.min_local, page.max_local, usable);
    bytes = static_cast<u32>(c - at) + out->local + 4;
  }
  out->bytes = bytes;
  return at + bytes <= page.data + usable;
}

// The rowid of cell `index` of a table leaf.
inline i64 leaf_key(const Page& page, u32 index) {
  const u8* c = page.cell_at(index);
  u64 value;
  c += read_varint(c, &value);
  read_varint(c, &value);
  return static_cast<i64>(value);
}

// Makes room for a cell of `bytes` at `index` and answers where to write it; the caller has seen
// that free_bytes >= bytes + 2. `scratch` is a page of room. Null when the page is malformed.
u8* open_cell(Page& page, u32 usable, u32 index, u32 bytes, u8* scratch);
inline bool insert_cell(Page& page, u32 usable, u32 index, CellRef cell, u8* scratch) {
  u8* at = open_cell(page, usable, index, cell.bytes, scratch);
  if (at == nullptr) return false;
  std::memcpy(at, cell.at, cell.bytes);
  return true;
}
// Takes the cell at `index`, of `bytes` bytes, out.
bool drop_cell(Page& page, u32 usable, u32 index, u32 bytes);
// Fills a page of `type` with these cells, which must not lie on the page itself. False: no room.
bool fill_node(Page& page, u8 type, u32 usable, std::span<const CellRef> cells);

// Builds the decoded keys of an interior table page.
void build_keys(Page& page);
void forget_keys(Page& page);

// In a table leaf: the first index whose rowid is at least `rowid` (cell_count when none).
u32 leaf_lower_bound(const Page& page, i64 rowid);
// In an interior table page: which child holds `rowid`.
u32 interior_child_index(Page& page, i64 rowid);

}  // namespace db
