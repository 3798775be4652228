// Where pages come from and go to: the freelist, a chain of trunk pages that each name free leaf
// pages.
#include "base/check.h"
#include "db/storage/btree.h"

#include <cstring>

namespace db {

using base::load_be32;
using base::Result;
using base::Status;
using base::store_be32;

// A trunk: next trunk, count of leaves, the leaves. The last six slots stay unused, for old
// readers.
static u32 trunk_capacity(u32 usable) {
  return usable / 4 - 8;
}

Result<Page*> Store::allocate_page(PageNo near) {
  u8* header = page_one_->data;
  u32 free_count = load_be32(header + kAtFreeCount);
  if (free_count == 0) {
    PageNo number = pager_->next_page();
    if (auto_vacuum_ != AutoVacuum::kNone && is_map_page(number)) {
      Page* map = pager_->get_blank(number);
      if (map == nullptr) return pager_->error();
      Pager::unpin(map);
      number = pager_->next_page();
    }
    Page* page = pager_->get_blank(number);
    if (page == nullptr) return pager_->error();
    return page;
  }
  if (!pager_->make_writable(page_one_)) return pager_->error();
  PageNo trunk_number = load_be32(header + kAtFirstTrunk);
  if (trunk_number < 2 || trunk_number > pager_->page_count())
    return corrupt("malformed freelist").error();
  Page* trunk = TRY(get(trunk_number));
  u32 leaves = load_be32(trunk->data + 4);
  PageNo taken = 0;
  if (leaves == 0) {
    // The trunk itself is the page.
    store_be32(header + kAtFirstTrunk, load_be32(trunk->data));
    taken = trunk_number;
  } else if (leaves <= usable_bytes() / 4 - 2 && pager_->make_writable(trunk)) {
    // The leaf closest to `near`, of the last few.
    u32 best = leaves - 1;
    auto distance = [&](u32 i) {
      PageNo leaf = load_be32(trunk->data + 8 + 4 * i);
      return leaf > near ? leaf - near : near - leaf;
    };
    for (u32 i = leaves > 16 && near != 0 ? leaves - 16 : (near != 0 ? 0 : leaves - 1);
         i + 1 < leaves; i++) {
      if (distance(i) < distance(best)) best = i;
    }
    taken = load_be32(trunk->data + 8 + 4 * best);
    store_be32(trunk->data + 8 + 4 * best, load_be32(trunk->data + 8 + 4 * (leaves - 1)));
    store_be32(trunk->data + 4, leaves - 1);
  }
  Pager::unpin(trunk);
  if (taken < 2 || taken > pager_->page_count()) return corrupt("malformed freelist").error();
  store_be32(header + kAtFreeCount, free_count - 1);
  Page* page = pager_->get_blank(taken);
  if (page == nullptr) return pager_->error();
  return page;
}

Status Store::free_page(PageNo number) {
  if (number < 2 || number > pager_->page_count()) return corrupt("a free page outside the file");
  if (!pager_->make_writable(page_one_)) return pager_->error();
  u8* header = page_one_->data;
  u32 free_count = load_be32(header + kAtFreeCount);
  PageNo trunk_number = load_be32(header + kAtFirstTrunk);
  if (secure_delete_) {
    Page* page = pager_->get_blank(number);
    if (page == nullptr) return pager_->error();
    Pager::unpin(page);
  }
  TRY(map_put(number, MapType::kFree, 0));
  store_be32(header + kAtFreeCount, free_count + 1);
  if (free_count > 0) {
    Page* trunk = TRY(get(trunk_number));
    u32 leaves = load_be32(trunk->data + 4);
    if (leaves > usable_bytes() / 4 - 2) {
      Pager::unpin(trunk);
      return corrupt("malformed freelist");
    }
    if (leaves < trunk_capacity(usable_bytes())) {
      bool writable = pager_->make_writable(trunk);
      trunk->decoded = false;
      if (writable) {
        store_be32(trunk->data + 8 + 4 * leaves, number);
        store_be32(trunk->data + 4, leaves + 1);
      }
      Pager::unpin(trunk);
      return writable ? Status{} : Status(pager_->error());
    }
    Pager::unpin(trunk);
  }
  Page* page = pager_->get_blank(number);
  if (page == nullptr) return pager_->error();
  store_be32(page->data, free_count > 0 ? trunk_number : 0);
  Pager::unpin(page);
  store_be32(header + kAtFirstTrunk, number);
  return {};
}

Status Store::free_overflow(const Cell& cell) {
  PageNo number = cell.first_overflow();
  u64 count = (u64{cell.size} - cell.local + usable_bytes() - 5) / (usable_bytes() - 4);
  while (count-- > 0) {
    Page* page = TRY(get(number));
    PageNo next = load_be32(page->data);
    Pager::unpin(page);
    TRY(free_page(number));
    number = next;
  }
  return {};
}

Status Store::free_tree(PageNo number, bool table, bool keep_root, int depth, i64* rows) {
  if (depth > 20) return corrupt("b-tree deeper than it can be");
  Page* page = TRY(get_node(number, table));
  auto work = [&]() -> Status {
    if (page->leaf || !table) *rows += page->cell_count;
    for (u32 i = 0; i < page->cell_count; i++) {
      if (!page->leaf) TRY(free_tree(page->child_at(i), table, false, depth + 1, rows));
      if (table && !page->leaf) continue;
      Cell cell;
      if (!parse_cell(*page, usable_bytes(), page->cell_at(i), &cell))
        return corrupt("a malformed cell");
      if (cell.overflows()) TRY(free_overflow(cell));
    }
    if (!page->leaf)
      TRY(free_tree(page->child_at(page->cell_count), table, false, depth + 1, rows));
    if (!keep_root) {
      page->decoded = false;
      return free_page(number);
    }
    if (!pager_->make_writable(page)) return pager_->error();
    init_node(*page, table ? kTableLeaf : kIndexLeaf, usable_bytes());
    return {};
  };
  Status status = work();
  Pager::unpin(page);
  return status;
}

}  // namespace db
