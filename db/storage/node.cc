#include "db/storage/node.h"

#include <algorithm>
#include <cstring>

namespace db {

using base::load_be16;
using base::store_be16;

// Sets the fields that follow from the type byte alone.
static bool set_type(Page& page, u8 type, u32 usable) {
  if (type != kIndexInterior && type != kTableInterior && type != kIndexLeaf && type != kTableLeaf)
    return false;
  page.header_at = page.number == 1 ? kFileHeaderBytes : 0;
  page.leaf = type == kIndexLeaf || type == kTableLeaf;
  page.table = type == kTableLeaf || type == kTableInterior;
  page.child_bytes = page.leaf ? 0 : 4;
  page.pointers_at = page.header_at + (page.leaf ? 8u : 12u);
  page.max_local = static_cast<u16>(page.table ? usable - 35 : (usable - 12) * 64 / 255 - 23);
  page.min_local = static_cast<u16>((usable - 12) * 32 / 255 - 23);
  return true;
}

bool decode_node(Page& page, u32 usable) {
  forget_keys(page);
  u32 header_at = page.number == 1 ? kFileHeaderBytes : 0;
  if (!set_type(page, page.data[header_at], usable)) return false;
  u32 count = load_be16(page.data + header_at + kAtCellCount);
  if (count > (usable - 8) / 6) return false;
  u32 pointers_end = page.pointers_at + 2 * count;
  if (pointers_end > usable) return false;
  const u8* pointers = page.data + page.pointers_at;
  bool good = true;
  for (u32 i = 0; i < count; i++) {
    u32 at = load_be16(pointers + 2 * i);
    good &= at >= pointers_end && at <= usable - 4;
  }
  if (!good) return false;
  page.cell_count = count;
  page.free_bytes = -1;
  page.decoded = true;
  return true;
}

void init_node(Page& page, u8 type, u32 usable) {
  forget_keys(page);
  set_type(page, type, usable);
  u8* header = page.data + page.header_at;
  header[0] = type;
  std::memset(header + 1, 0, page.leaf ? 7 : 11);
  store_be16(header + kAtContentStart, static_cast<u16>(usable));
  page.cell_count = 0;
  page.free_bytes = static_cast<i32>(usable - page.pointers_at);
  page.decoded = true;
}

bool count_free(Page& page, u32 usable) {
  const u8* header = page.data + page.header_at;
  u32 gap_from = page.pointers_at + 2 * page.cell_count;
  u32 content = load_be16_or_64k(header + kAtContentStart);
  if (content > usable || content < gap_from) return false;
  u32 total = content - gap_from + header[kAtFragments];
  u32 block = load_be16(header + kAtFirstFreeblock);
  u32 least = content;
  while (block != 0) {
    if (block < least || block > usable - 4) return false;
    u32 next = load_be16(page.data + block);
    u32 size = load_be16(page.data + block + 2);
    if (size < 4 || block + size > usable) return false;
    total += size;
    if (next != 0 && next <= block + size + 3) return false;
    least = block + size;
    block = next;
  }
  if (total > usable - page.pointers_at) return false;
  page.free_bytes = static_cast<i32>(total);
  return true;
}

// Moves all cells to the end of the page, so that the free space is one gap.
static bool defragment(Page& page, u32 usable, u8* scratch) {
  std::memcpy(scratch, page.data, usable + kPagePadding);
  Page from = page;
  from.data = scratch;
  u32 floor = page.pointers_at + 2 * page.cell_count;
  u32 top = usable;
  for (u32 i = 0; i < page.cell_count; i++) {
    const u8* at = from.cell_at(i);
    Cell cell;
    if (!parse_cell(from, usable, at, &cell) || top < floor + cell.bytes) return false;
    top -= cell.bytes;
    std::memcpy(page.data + top, at, cell.bytes);
    store_be16(page.data + page.pointers_at + 2 * i, static_cast<u16>(top));
  }
  u8* header = page.data + page.header_at;
  store_be16(header + kAtFirstFreeblock, 0);
  store_be16(header + kAtContentStart, static_cast<u16>(top));
  header[kAtFragments] = 0;
  return static_cast<i32>(top - floor) == page.free_bytes;
}

// Room for `bytes` from the free blocks: its offset, or 0 when none is large enough.
static u32 take_freeblock(Page& page, u32 usable, u32 bytes) {
  u8* header = page.data + page.header_at;
  u8* link = header + kAtFirstFreeblock;
  for (u32 block = load_be16(link); block != 0; block = load_be16(link)) {
    if (block > usable - 4) return 0;
    u8* at = page.data + block;
    u32 size = load_be16(at + 2);
    if (size >= bytes) {
      u32 rest = size - bytes;
      if (block + size > usable) return 0;
      if (rest >= 4) {
        store_be16(at + 2, static_cast<u16>(rest));
        return block + rest;
      }
      if (header[kAtFragments] + rest > 60) return 0;
      store_be16(link, load_be16(at));
      header[kAtFragments] = static_cast<u8>(header[kAtFragments] + rest);
      return block;
    }
    u32 next = load_be16(at);
    if (next != 0 && next <= block) return 0;
    link = at;
  }
  return 0;
}

u8* open_cell(Page& page, u32 usable, u32 index, u32 bytes, u8* scratch) {
  u8* header = page.data + page.header_at;
  u32 gap_from = page.pointers_at + 2 * page.cell_count;
  u32 content = load_be16_or_64k(header + kAtContentStart);
  if (content > usable) return nullptr;
  u32 at = 0;
  if (load_be16(header + kAtFirstFreeblock) != 0 && gap_from + 2 <= content)
    at = take_freeblock(page, usable, bytes);
  if (at == 0) {
    if (gap_from + 2 + bytes > content) {
      if (!defragment(page, usable, scratch)) return nullptr;
      content = load_be16_or_64k(header + kAtContentStart);
      if (gap_from + 2 + bytes > content) return nullptr;
    }
    at = content - bytes;
    store_be16(header + kAtContentStart, static_cast<u16>(at));
  }
  u8* pointer = page.data + page.pointers_at + 2 * index;
  if (index < page.cell_count) std::memmove(pointer + 2, pointer, 2 * (page.cell_count - index));
  store_be16(pointer, static_cast<u16>(at));
  page.cell_count++;
  store_be16(header + kAtCellCount, static_cast<u16>(page.cell_count));
  page.free_bytes -= static_cast<i32>(bytes + 2);
  if (page.keys != nullptr) forget_keys(page);
  return page.data + at;
}

// Gives `bytes` at `at` back: to a free block, merged with its neighbours, or to the gap.
static bool free_space(Page& page, u32 usable, u32 at, u32 bytes) {
  u8* header = page.data + page.header_at;
  u32 end = at + bytes;
  u32 previous = page.header_at + kAtFirstFreeblock;
  u32 next = load_be16(page.data + previous);
  while (next != 0 && next < at) {
    if (next <= previous && previous != page.header_at + kAtFirstFreeblock) return false;
    previous = next;
    next = load_be16(page.data + next);
  }
  if (next > usable - 4) return false;
  u32 fragments = 0;
  if (next != 0 && end + 3 >= next) {
    if (end > next) return false;
    fragments = next - end;
    end = next + load_be16(page.data + next + 2);
    if (end > usable) return false;
    next = load_be16(page.data + next);
  }
  u32 start = at;
  if (previous > page.header_at + kAtFirstFreeblock) {
    u32 previous_end = previous + load_be16(page.data + previous + 2);
    if (previous_end + 3 >= at) {
      if (previous_end > at) return false;
      fragments += at - previous_end;
      start = previous;
    }
  }
  if (fragments > header[kAtFragments]) return false;
  header[kAtFragments] = static_cast<u8>(header[kAtFragments] - fragments);
  u32 content = load_be16_or_64k(header + kAtContentStart);
  if (start <= content) {
    // Nothing may lie below the content start, no free block either.
    if (start < content || previous != page.header_at + kAtFirstFreeblock) return false;
    store_be16(header + kAtFirstFreeblock, static_cast<u16>(next));
    store_be16(header + kAtContentStart, static_cast<u16>(end));
    return true;
  }
  if (start != previous) store_be16(page.data + previous, static_cast<u16>(start));
  store_be16(page.data + start, static_cast<u16>(next));
  store_be16(page.data + start + 2, static_cast<u16>(end - start));
  return true;
}

bool drop_cell(Page& page, u32 usable, u32 index, u32 bytes) {
  u8* header = page.data + page.header_at;
  u8* pointer = page.data + page.pointers_at + 2 * index;
  u32 at = load_be16(pointer) & page.mask;
  if (at + bytes > usable || !free_space(page, usable, at, bytes)) return false;
  page.cell_count--;
  if (page.keys != nullptr) forget_keys(page);
  if (page.cell_count == 0) {
    std::memset(header + 1, 0, 4);
    header[kAtFragments] = 0;
    store_be16(header + kAtContentStart, static_cast<u16>(usable));
    page.free_bytes = static_cast<i32>(usable - page.pointers_at);
    return true;
  }
  std::memmove(pointer, pointer + 2, 2 * (page.cell_count - index));
  store_be16(header + kAtCellCount, static_cast<u16>(page.cell_count));
  page.free_bytes += static_cast<i32>(bytes + 2);
  return true;
}

bool fill_node(Page& page, u8 type, u32 usable, std::span<const CellRef> cells) {
  init_node(page, type, usable);
  u32 top = usable;
  const u32 floor = page.pointers_at + 2 * static_cast<u32>(cells.size());
  u8* pointer = page.data + page.pointers_at;
  for (const CellRef& cell : cells) {
    if (top < floor + cell.bytes) return false;
    top -= cell.bytes;
    std::memcpy(page.data + top, cell.at, cell.bytes);
    store_be16(pointer, static_cast<u16>(top));
    pointer += 2;
  }
  u8* header = page.data + page.header_at;
  page.cell_count = static_cast<u32>(cells.size());
  store_be16(header + kAtCellCount, static_cast<u16>(page.cell_count));
  store_be16(header + kAtContentStart, static_cast<u16>(top));
  page.free_bytes = static_cast<i32>(top - floor);
  return true;
}

void forget_keys(Page& page) {
  delete[] page.keys;
  page.keys = nullptr;
}

void build_keys(Page& page) {
  page.keys = new i64[page.cell_count + 1];
  for (u32 i = 0; i < page.cell_count; i++) {
    u64 value;
    read_varint(page.cell_at(i) + 4, &value);
    page.keys[i] = static_cast<i64>(value);
  }
}

u32 leaf_lower_bound(const Page& page, i64 rowid) {
  u32 count = page.cell_count;
  if (count == 0) return 0;
  i64 last = leaf_key(page, count - 1);
  if (rowid > last) return count;
  i64 first = leaf_key(page, 0);
  if (rowid <= first) return 0;
  u64 distance = static_cast<u64>(rowid) - static_cast<u64>(first);
  // No gaps in the leaf: the rowid says where it is.
  if (static_cast<u64>(last) - static_cast<u64>(first) == count - 1)
    return static_cast<u32>(distance);
  u32 low = 1;
  u32 high = count - 1;
  while (low < high) {
    u32 middle = (low + high) / 2;
    if (leaf_key(page, middle) < rowid) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

u32 interior_child_index(Page& page, i64 rowid) {
  if (page.keys == nullptr) build_keys(page);
  const i64* base = page.keys;
  u32 count = page.cell_count;
  while (count > 1) {
    u32 half = count / 2;
    base += base[half - 1] < rowid ? half : 0;
    count -= half;
  }
  return static_cast<u32>(base - page.keys) + (count == 1 && *base < rowid ? 1 : 0);
}

}  // namespace db
