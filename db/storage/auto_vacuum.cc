// Auto-vacuum: pointer-map pages say for every page who points to it, so that the last pages of the
// file can be moved into free places and the file cut.
#include "base/check.h"
#include "db/storage/btree.h"

#include <cstring>

namespace db {

using base::load_be32;
using base::Result;
using base::Status;
using base::store_be32;

// Page 2 is the first map page; each holds five bytes for every page that follows it.
PageNo Store::map_page_of(PageNo number) const {
  if (number < 2) return 0;
  u32 group = usable_bytes() / 5 + 1;
  PageNo map = (number - 2) / group * group + 2;
  return map == lock_page(page_bytes()) ? map + 1 : map;
}

bool Store::is_map_page(PageNo number) const {
  return map_page_of(number) == number;
}

Status Store::map_put(PageNo number, MapType type, PageNo parent) {
  if (auto_vacuum_ == AutoVacuum::kNone) return {};
  PageNo map_number = map_page_of(number);
  if (number <= map_number) return corrupt("a page in the place of a pointer map");
  Page* map = TRY(get(map_number));
  u8* entry = map->data + 5 * (number - map_number - 1);
  Status status;
  if (entry[0] != static_cast<u8>(type) || load_be32(entry + 1) != parent) {
    if (pager_->make_writable(map)) {
      entry[0] = static_cast<u8>(type);
      store_be32(entry + 1, parent);
    } else {
      status = pager_->error();
    }
  }
  Pager::unpin(map);
  return status;
}

Status Store::map_get(PageNo number, MapType* type, PageNo* parent) {
  PageNo map_number = map_page_of(number);
  if (number <= map_number) return corrupt("a page in the place of a pointer map");
  Page* map = TRY(get(map_number));
  const u8* entry = map->data + 5 * (number - map_number - 1);
  *type = static_cast<MapType>(entry[0]);
  *parent = load_be32(entry + 1);
  Pager::unpin(map);
  if (*type < MapType::kRoot || *type > MapType::kNode) return corrupt("malformed pointer map");
  return {};
}

Status Store::map_children(Page& page) {
  if (auto_vacuum_ == AutoVacuum::kNone) return {};
  for (u32 i = 0; i < page.cell_count; i++) {
    if (!page.leaf) TRY(map_put(page.child_at(i), MapType::kNode, page.number));
    if (page.table && !page.leaf) continue;
    Cell cell;
    if (!parse_cell(page, usable_bytes(), page.cell_at(i), &cell))
      return corrupt("a malformed cell");
    if (cell.overflows()) TRY(map_put(cell.first_overflow(), MapType::kOverflowFirst, page.number));
  }
  if (!page.leaf) return map_put(page.child_at(page.cell_count), MapType::kNode, page.number);
  return {};
}

// Where page `from` is named in its parent, `to` is written.
static bool point_to(Page& parent, u32 usable, PageNo from, PageNo to, bool overflow) {
  for (u32 i = 0; i < parent.cell_count; i++) {
    u8* at = const_cast<u8*>(parent.cell_at(i));
    if (!overflow) {
      if (!parent.leaf && load_be32(at) == from) {
        store_be32(at, to);
        return true;
      }
      continue;
    }
    Cell cell;
    if ((parent.table && !parent.leaf) || !parse_cell(parent, usable, at, &cell)) continue;
    if (cell.overflows() && cell.first_overflow() == from) {
      store_be32(const_cast<u8*>(cell.payload) + cell.local, to);
      return true;
    }
  }
  u8* right = parent.data + parent.header_at + kAtRightChild;
  if (overflow || parent.leaf || load_be32(right) != from) return false;
  store_be32(right, to);
  return true;
}

// Moves a page to the free place `to` and corrects everything that points to it.
Status Store::relocate(PageNo from, PageNo to, MapType type, PageNo parent) {
  if (from < 3) return corrupt("malformed pointer map");
  Page* source = TRY(get(from));
  Page* target = pager_->get_blank(to);
  if (target == nullptr) {
    Pager::unpin(source);
    return pager_->error();
  }
  std::memcpy(target->data, source->data, page_bytes());
  Pager::unpin(source);
  auto work = [&]() -> Status {
    if (type == MapType::kNode || type == MapType::kRoot) {
      if (!decode_node(*target, usable_bytes())) return corrupt("not a b-tree page");
      TRY(map_children(*target));
    } else {
      PageNo next = load_be32(target->data);
      if (next != 0) TRY(map_put(next, MapType::kOverflow, to));
    }
    if (type == MapType::kRoot) return map_put(to, type, 0);
    Page* above = type == MapType::kOverflow ? TRY(get(parent)) : TRY(get(parent));
    Status status;
    if (!pager_->make_writable(above)) {
      status = pager_->error();
    } else if (type == MapType::kOverflow) {
      if (load_be32(above->data) != from) status = corrupt("malformed pointer map");
      store_be32(above->data, to);
    } else {
      if ((!above->decoded && !decode_node(*above, usable_bytes())) ||
          !point_to(*above, usable_bytes(), from, to, type == MapType::kOverflowFirst))
        status = corrupt("malformed pointer map");
    }
    Pager::unpin(above);
    TRY(std::move(status));
    return map_put(to, type, parent);
  };
  Status status = work();
  Pager::unpin(target);
  return status;
}

// Takes page `wanted` itself off the freelist; with 0, any page up to `limit`. 0 when there is
// none.
Result<PageNo> Store::take_free(PageNo wanted, PageNo limit) {
  u8* header = page_one_->data;
  if (!pager_->make_writable(page_one_)) return pager_->error();
  u32 free_count = load_be32(header + kAtFreeCount);
  PageNo previous = 0;
  PageNo number = load_be32(header + kAtFirstTrunk);
  for (u32 steps = 0; number != 0; steps++) {
    if (steps > free_count) return corrupt("malformed freelist").error();
    Page* trunk = TRY(get(number));
    u32 leaves = load_be32(trunk->data + 4);
    PageNo next = load_be32(trunk->data);
    auto fits = [&](PageNo page) { return wanted != 0 ? page == wanted : page <= limit; };
    PageNo taken = 0;
    bool good = leaves <= usable_bytes() / 4 - 2 && pager_->make_writable(trunk);
    for (u32 i = 0; good && i < leaves; i++) {
      PageNo leaf = load_be32(trunk->data + 8 + 4 * i);
      if (!fits(leaf)) continue;
      taken = leaf;
      store_be32(trunk->data + 8 + 4 * i, load_be32(trunk->data + 8 + 4 * (leaves - 1)));
      store_be32(trunk->data + 4, leaves - 1);
      break;
    }
    if (good && taken == 0 && fits(number)) {
      // The trunk itself: its first leaf, if any, becomes the trunk.
      taken = number;
      PageNo heir = next;
      if (leaves > 0) {
        heir = load_be32(trunk->data + 8);
        Page* page = pager_->get_blank(heir);
        good = page != nullptr;
        if (good) {
          store_be32(page->data, next);
          store_be32(page->data + 4, leaves - 1);
          std::memcpy(page->data + 8, trunk->data + 12, 4 * (leaves - 1));
          Pager::unpin(page);
        }
      }
      if (previous == 0) {
        store_be32(header + kAtFirstTrunk, heir);
      } else if (good) {
        Page* before = TRY(get(previous));
        good = pager_->make_writable(before);
        if (good) store_be32(before->data, heir);
        Pager::unpin(before);
      }
    }
    Pager::unpin(trunk);
    if (!good) return corrupt("malformed freelist").error();
    if (taken != 0) {
      store_be32(header + kAtFreeCount, free_count - 1);
      return taken;
    }
    previous = number;
    number = next;
  }
  return PageNo{0};
}

PageNo Store::final_page_count(PageNo count, PageNo free) const {
  u32 entries = usable_bytes() / 5;
  PageNo maps = (free - count + map_page_of(count) + entries) / entries;
  PageNo final = count - free - maps;
  PageNo lock = lock_page(page_bytes());
  if (count > lock && final < lock) final--;
  while (is_map_page(final) || final == lock) final--;
  return final;
}

// Frees the last page of the file, moving its content to a free place when it has any. False when
// there is nothing left to do.
Result<bool> Store::vacuum_step(PageNo final_count, PageNo last, bool commit) {
  if (!is_map_page(last) && last != lock_page(page_bytes())) {
    if (load_be32(page_one_->data + kAtFreeCount) == 0) return false;
    MapType type;
    PageNo parent;
    TRY(map_get(last, &type, &parent));
    if (type == MapType::kRoot) return corrupt("a root page behind the free pages").error();
    if (type == MapType::kFree) {
      if (!commit) TRY(take_free(last, 0));
    } else {
      PageNo place = TRY(take_free(0, commit ? final_count : last - 1));
      if (place == 0) return false;
      TRY(relocate(last, place, type, parent));
    }
  }
  if (!commit) {
    PageNo cut = last;
    do {
      cut--;
    } while (cut == lock_page(page_bytes()) || is_map_page(cut));
    TRY(pager_->truncate(cut));
    if (!pager_->make_writable(page_one_)) return pager_->error();
    store_be32(page_one_->data + kAtPageCount, cut);
  }
  return true;
}

Result<u32> Store::incremental_vacuum(u32 pages) {
  if (auto_vacuum_ == AutoVacuum::kNone) return 0u;
  trip_cursors(true);
  u32 freed = 0;
  while (pages == 0 || freed < pages) {
    PageNo count = pager_->page_count();
    PageNo free = meta(Meta::kFreePages);
    if (free == 0) break;
    if (free >= count) return corrupt("malformed freelist").error();
    if (!TRY(vacuum_step(final_page_count(count, free), count, false))) break;
    freed++;
  }
  return freed;
}

Status Store::auto_vacuum_commit() {
  PageNo count = pager_->page_count();
  PageNo free = meta(Meta::kFreePages);
  if (free == 0) return {};
  if (is_map_page(count) || count == lock_page(page_bytes()) || free >= count)
    return corrupt("malformed freelist");
  trip_cursors(true);
  PageNo final = final_page_count(count, free);
  if (final > count) return corrupt("malformed freelist");
  for (PageNo last = count; last > final; last--) {
    if (!TRY(vacuum_step(final, last, true))) break;
  }
  if (!pager_->make_writable(page_one_)) return pager_->error();
  store_be32(page_one_->data + kAtFirstTrunk, 0);
  store_be32(page_one_->data + kAtFreeCount, 0);
  store_be32(page_one_->data + kAtPageCount, final);
  return pager_->truncate(final);
}

// Roots of auto-vacuum files lie in front. The next root goes behind the largest one; what is there
// now moves elsewhere.
Result<Page*> Store::allocate_root() {
  if (auto_vacuum_ == AutoVacuum::kNone) return allocate_page(0);
  trip_cursors(true);
  if (meta(Meta::kLargestRoot) > pager_->page_count())
    return corrupt("the largest root lies outside the file").error();
  PageNo slot = meta(Meta::kLargestRoot) + 1;
  while (slot < 3 || is_map_page(slot) || slot == lock_page(page_bytes())) slot++;
  if (slot > pager_->page_count()) {
    // Behind the end: grow up to it. (The freelist must be empty then, or hold pages before it
    // only.)
    while (pager_->page_count() < slot) {
      PageNo next = pager_->next_page();
      Page* page = pager_->get_blank(next);
      if (page == nullptr) return pager_->error();
      if (next == slot) {
        TRY(finish_root(slot));
        return page;
      }
      Pager::unpin(page);
      if (!is_map_page(next)) TRY(free_page(next));
    }
    return corrupt("malformed pointer map").error();
  }
  MapType type;
  PageNo parent;
  TRY(map_get(slot, &type, &parent));
  if (type == MapType::kRoot) return corrupt("malformed pointer map").error();
  if (type == MapType::kFree) {
    if (TRY(take_free(slot, 0)) != slot) return corrupt("malformed freelist").error();
  } else {
    Page* place = TRY(allocate_page(slot));
    PageNo to = place->number;
    Pager::unpin(place);
    TRY(relocate(slot, to, type, parent));
  }
  Page* page = pager_->get_blank(slot);
  if (page == nullptr) return pager_->error();
  TRY(finish_root(slot));
  return page;
}

Status Store::finish_root(PageNo root) {
  TRY(map_put(root, MapType::kRoot, 0));
  return set_meta(Meta::kLargestRoot, root);
}

// The largest root moves into the place of the dropped one. Its old number, or 0.
Result<PageNo> Store::close_root_gap(PageNo root) {
  PageNo largest = meta(Meta::kLargestRoot);
  PageNo moved = 0;
  if (root != largest) {
    TRY(relocate(largest, root, MapType::kRoot, 0));
    moved = largest;
  }
  TRY(free_page(largest));
  do {
    largest--;
  } while (is_map_page(largest) || largest == lock_page(page_bytes()));
  TRY(set_meta(Meta::kLargestRoot, largest));
  return moved;
}

}  // namespace db
