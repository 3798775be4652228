#include "db/storage/tree_writer.h"

#include "base/check.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace db {

using base::Error;
using base::ErrorCode;
using base::load_be32;
using base::Result;
using base::Status;
using base::store_be32;

u32 TreeWriter::cell_bytes(const Page& page, u32 usable, i64 rowid, u32 payload_bytes, u32* local) {
  *local = local_bytes(payload_bytes, page.min_local, page.max_local, usable);
  u32 bytes = varint_bytes(payload_bytes) + *local;
  if (page.table) bytes += varint_bytes(static_cast<u64>(rowid));
  if (*local < payload_bytes) bytes += 4;
  return std::max(bytes, 4u);
}

Status TreeWriter::write_cell(u8* at, const Page& page, i64 rowid, ByteView payload, u32 zero_tail,
                              u32 local) {
  u32 size = static_cast<u32>(payload.size()) + zero_tail;
  at += write_varint(at, size);
  if (page.table) at += write_varint(at, static_cast<u64>(rowid));
  // The payload is `payload` followed by zeros; copy takes the next bytes of it.
  size_t from = 0;
  auto copy = [&](u8* to, size_t bytes) {
    size_t real = from < payload.size() ? std::min(bytes, payload.size() - from) : 0;
    if (real > 0) std::memcpy(to, payload.data() + from, real);
    std::memset(to + real, 0, bytes - real);
    from += bytes;
  };
  copy(at, local);
  if (local == size) return {};
  u8* link = at + local;
  store_be32(link, 0);
  Page* previous = nullptr;
  PageNo near = page.number;
  while (from < size) {
    Result<Page*> next = store_.allocate_page(near);
    if (!next.ok()) {
      if (previous != nullptr) Pager::unpin(previous);
      return std::move(next).error();
    }
    Page* overflow = *next;
    store_be32(link, overflow->number);
    Store::MapType type =
        previous == nullptr ? Store::MapType::kOverflowFirst : Store::MapType::kOverflow;
    Status mapped = store_.map_put(overflow->number, type,
                                   previous == nullptr ? page.number : previous->number);
    if (previous != nullptr) Pager::unpin(previous);
    if (!mapped.ok()) {
      Pager::unpin(overflow);
      return mapped;
    }
    copy(overflow->data + 4, std::min<size_t>(usable_ - 4, size - from));
    link = overflow->data;
    previous = overflow;
    near = overflow->number;
  }
  Pager::unpin(previous);
  return {};
}

Result<bool> TreeWriter::insert_full(u32 index, std::string cell) {
  Pending pending;
  pending.index = index;
  pending.cells.push_back(std::move(cell));
  int level = cursor_.depth_;
  if (level > 0 && can_append(level, pending)) {
    TRY(append_page(level, &pending));
    // The new right-most page holds the new row alone; so the cursor knows where it is.
    Page* parent = cursor_.levels_[level - 1].page;
    if (pending.empty()) {
      PageNo newest = parent->child_at(parent->cell_count);
      cursor_.pop();
      cursor_.top().index = parent->cell_count;
      if (!cursor_.push_child(newest)) return cursor_.error();
      cursor_.top().index = 0;
      return true;
    }
    level--;
  }
  TRY(balance(level, std::move(pending)));
  cursor_.unpin_all();
  return false;
}

Status TreeWriter::rebalance() {
  Status status = balance(cursor_.depth_, {});
  cursor_.unpin_all();
  return status;
}

Status TreeWriter::replace_interior(int level, u32 index, std::string cell) {
  Page& page = *cursor_.levels_[level].page;
  if (!pager_.make_writable(&page)) return pager_.error();
  Cell old;
  if (!parse_cell(page, usable_, page.cell_at(index), &old)) return corrupt("a malformed cell");
  if (page.free_bytes < 0 && !count_free(page, usable_)) return corrupt("malformed free space");
  if (!drop_cell(page, usable_, index, old.bytes)) return corrupt("malformed free space");
  Pending pending;
  pending.index = index;
  pending.cells.push_back(std::move(cell));
  TRY(insert_or_pend(page, &pending));
  if (pending.empty()) return store_.map_children(page);
  // The pages below keep their places, but the levels above move: the caller seeks anew.
  while (cursor_.depth_ > level) cursor_.pop();
  return balance(level, std::move(pending));
}

Status TreeWriter::balance(int level, Pending pending) {
  for (;;) {
    Page* page = cursor_.levels_[level].page;
    if (pending.empty()) {
      if (page->free_bytes < 0 && !count_free(*page, usable_))
        return corrupt("malformed free space");
      if (level == 0) {
        if (!page->leaf && page->cell_count == 0) return collapse_root();
        return {};
      }
      if (static_cast<u32>(page->free_bytes) * 3 <= usable_ * 2) return {};
    }
    if (level == 0) {
      TRY(deepen_root());
      level = 1;
    }
    if (can_append(level, pending)) {
      TRY(append_page(level, &pending));
    } else {
      TRY(redistribute(level, &pending));
    }
    level--;
  }
}

// The root's content moves to a new page below it; the cursor's levels move down by one.
Status TreeWriter::deepen_root() {
  Page* root = cursor_.levels_[0].page;
  if (cursor_.depth_ + 1 >= Cursor::kMaxDepth) return corrupt("b-tree deeper than it can be");
  if (!pager_.make_writable(root)) return pager_.error();
  Page* child = TRY(store_.allocate_page(root->number));
  std::vector<CellRef> cells;
  for (u32 i = 0; i < root->cell_count; i++) {
    Cell cell;
    if (!parse_cell(*root, usable_, root->cell_at(i), &cell)) {
      Pager::unpin(child);
      return corrupt("a malformed cell");
    }
    cells.push_back({root->cell_at(i), cell.bytes});
  }
  u8 type = root->data[root->header_at];
  if (!fill_node(*child, type, usable_, cells)) {
    Pager::unpin(child);
    return corrupt("cells that overlap");
  }
  if (!root->leaf) store_be32(child->data + kAtRightChild, root->child_at(root->cell_count));
  init_node(*root, root->table ? kTableInterior : kIndexInterior, usable_);
  store_be32(root->data + root->header_at + kAtRightChild, child->number);
  for (int i = cursor_.depth_; i >= 0; i--) cursor_.levels_[i + 1] = cursor_.levels_[i];
  cursor_.depth_++;
  cursor_.levels_[0] = {root, 0};
  cursor_.levels_[1].page = child;
  TRY(store_.map_put(child->number, Store::MapType::kNode, root->number));
  return store_.map_children(*child);
}

// The root has but one child: the child's content moves up, if the root has room for it.
Status TreeWriter::collapse_root() {
  Page* root = cursor_.levels_[0].page;
  Page* child = TRY(store_.get_node(root->child_at(0), root->table));
  PageNo number = child->number;
  auto move_up = [&]() -> Status {
    if (child->free_bytes < 0 && !count_free(*child, usable_))
      return corrupt("malformed free space");
    if (child->free_bytes < root->header_at) return {};
    if (!pager_.make_writable(root)) return pager_.error();
    std::vector<CellRef> cells;
    for (u32 i = 0; i < child->cell_count; i++) {
      Cell cell;
      if (!parse_cell(*child, usable_, child->cell_at(i), &cell))
        return corrupt("a malformed cell");
      cells.push_back({child->cell_at(i), cell.bytes});
    }
    u8 type = child->data[0];
    PageNo right = child->leaf ? 0 : child->child_at(child->cell_count);
    if (!fill_node(*root, type, usable_, cells)) return corrupt("cells that overlap");
    if (right != 0) store_be32(root->data + root->header_at + kAtRightChild, right);
    TRY(store_.map_children(*root));
    return store_.free_page(number);
  };
  Status status = move_up();
  Pager::unpin(child);
  return status;
}

// A cell pending behind all others of the tree.
bool TreeWriter::can_append(int level, const Pending& pending) const {
  if (pending.cells.size() != 1) return false;
  const Page& page = *cursor_.levels_[level].page;
  if (pending.index != page.cell_count || page.cell_count < 2) return false;
  for (int above = 0; above < level; above++) {
    if (cursor_.levels_[above].index != cursor_.levels_[above].page->cell_count) return false;
  }
  return true;
}

// Opens a page right of the last one for the pending cell; leaves the divider pending in the
// parent, or nothing if the parent had room for it.
Status TreeWriter::append_page(int level, Pending* pending) {
  Page* left = cursor_.levels_[level].page;
  Page* parent = cursor_.levels_[level - 1].page;
  if (!pager_.make_writable(parent) || !pager_.make_writable(left)) return pager_.error();
  std::string divider(4, '\0');
  PageNo right_child = left->leaf ? 0 : left->child_at(left->cell_count);
  if (left->table && left->leaf) {
    u8 key[kMaxVarintBytes];
    u32 bytes = write_varint(key, static_cast<u64>(leaf_key(*left, left->cell_count - 1)));
    divider.append(reinterpret_cast<char*>(key), bytes);
  } else {
    // The last cell moves up between the two pages.
    u32 last = left->cell_count - 1;
    const u8* at = left->cell_at(last);
    Cell cell;
    if (!parse_cell(*left, usable_, at, &cell)) return corrupt("a malformed cell");
    const u8* content = at + left->child_bytes;
    u32 bytes = static_cast<u32>(cell.payload - content) + cell.local + (cell.overflows() ? 4 : 0);
    divider.append(reinterpret_cast<const char*>(content), bytes);
    if (left->free_bytes < 0 && !count_free(*left, usable_)) return corrupt("malformed free space");
    PageNo child = left->leaf ? 0 : load_be32(at);
    if (!drop_cell(*left, usable_, last, cell.bytes)) return corrupt("malformed free space");
    if (!left->leaf) store_be32(left->data + left->header_at + kAtRightChild, child);
  }
  store_be32(divider.data(), left->number);
  Page* right = TRY(store_.allocate_page(left->number));
  CellRef only{reinterpret_cast<const u8*>(pending->cells[0].data()),
               static_cast<u32>(pending->cells[0].size())};
  if (!fill_node(*right, left->data[left->header_at], usable_, {&only, 1})) {
    Pager::unpin(right);
    return corrupt("a cell larger than a page");
  }
  if (!left->leaf) store_be32(right->data + kAtRightChild, right_child);
  PageNo number = right->number;
  Status mapped = store_.map_put(number, Store::MapType::kNode, parent->number);
  if (mapped.ok()) mapped = store_.map_children(*right);
  Pager::unpin(right);
  TRY(std::move(mapped));
  pending->index = parent->cell_count;
  pending->cells[0] = std::move(divider);
  store_be32(parent->data + parent->header_at + kAtRightChild, number);
  TRY(insert_or_pend(*parent, pending));
  return pending->empty() && !parent->table ? store_.map_children(*parent) : Status{};
}

// Puts the pending cells into the page if all of them fit.
Status TreeWriter::insert_or_pend(Page& page, Pending* pending) {
  if (page.free_bytes < 0 && !count_free(page, usable_)) return corrupt("malformed free space");
  i64 wanted = 0;
  for (const std::string& cell : pending->cells) wanted += static_cast<i64>(cell.size()) + 2;
  if (wanted > page.free_bytes) return {};
  u32 index = pending->index;
  for (const std::string& cell : pending->cells) {
    CellRef ref{reinterpret_cast<const u8*>(cell.data()), static_cast<u32>(cell.size())};
    if (!insert_cell(page, usable_, index++, ref, pager_.scratch()))
      return corrupt("malformed free space");
  }
  pending->cells.clear();
  return {};
}

// Up to three neighbouring pages and all their cells, dividers included.
struct TreeWriter::Siblings {
  std::vector<Page*> pages;     // pinned
  std::vector<u8*> copies;      // of their bytes, for the cells to lie in
  std::deque<std::string> own;  // cells that lie on no page
  std::vector<CellRef> cells;   // in order
  std::vector<u32> ends;        // page p holds cells up to ends[p], the divider is cell ends[p]
  u32 first = 0;                // child index of pages[0]
  u8 type = 0;
  bool leaf = false;
  bool table_leaf = false;  // dividers are copies of keys, not cells of their own
  PageNo right_child = 0;   // of the last page, when interior
  u32 room = 0;             // for cells and pointers on one page
};

// What a cell takes on its page; 0 when it is malformed.
static u32 size_of_cell(const Page& page, u32 usable, const u8* at) {
  if (page.leaf && at[0] < 0x80 && at[0] <= page.max_local) {
    // A short payload: its length is the first byte, a rowid's length shows in its high bits.
    u32 bytes = 1u + at[0];
    if (page.table) {
      u32 rowid = 1;
      while (rowid < kMaxVarintBytes && at[rowid] >= 0x80) rowid++;
      bytes += rowid;
    }
    bytes = std::max(bytes, 4u);
    return at + bytes <= page.data + usable ? bytes : 0;
  }
  Cell cell;
  return parse_cell(page, usable, at, &cell) ? cell.bytes : 0;
}

Status TreeWriter::gather(int level, const Pending& pending, Siblings* all) {
  Page& parent = *cursor_.levels_[level - 1].page;
  Page* center = cursor_.levels_[level].page;
  u32 at = cursor_.levels_[level - 1].index;
  u32 children = parent.cell_count + 1;
  u32 count = std::min(children, 3u);
  all->first = std::min(at == 0 ? 0 : at - 1, children - count);
  all->leaf = center->leaf;
  all->table_leaf = center->leaf && center->table;
  all->type = center->data[center->header_at];
  all->room = usable_ - (center->leaf ? 8 : 12);
  for (u32 i = 0; i < count; i++) {
    Page* page = TRY(store_.get_node(parent.child_at(all->first + i), center->table));
    all->pages.push_back(page);
    bool twice = std::count(all->pages.begin(), all->pages.end(), page) > 1;
    for (int above = 0; above < level; above++) twice |= page == cursor_.levels_[above].page;
    if (twice || page->leaf != center->leaf) return corrupt("a page in two places of a b-tree");
    if (!pager_.make_writable(page)) return pager_.error();
    u8* copy = pager_.take_buffer();
    all->copies.push_back(copy);
    std::memcpy(copy, page->data, pager_.page_bytes());
    Page from = *page;
    from.data = copy;
    from.keys = nullptr;
    if (i == 0) all->cells.reserve(count * (from.cell_count + from.cell_count / 4 + 2));
    for (u32 j = 0; j <= from.cell_count; j++) {
      if (page == center && j == pending.index) {
        for (const std::string& cell : pending.cells)
          all->cells.push_back(
              {reinterpret_cast<const u8*>(cell.data()), static_cast<u32>(cell.size())});
      }
      if (j == from.cell_count) break;
      const u8* at = from.cell_at(j);
      const u32 bytes = size_of_cell(from, usable_, at);
      if (bytes == 0) return corrupt("a malformed cell");
      all->cells.push_back({at, bytes});
    }
    if (!all->leaf) all->right_child = from.child_at(from.cell_count);
    if (i + 1 == count || all->table_leaf) continue;
    // The divider comes down: with the page's right child in front, or nothing on a leaf.
    const u8* divider = parent.cell_at(all->first + i);
    Cell cell;
    if (!parse_cell(parent, usable_, divider, &cell)) return corrupt("a malformed cell");
    std::string bytes(reinterpret_cast<const char*>(divider), cell.bytes);
    if (all->leaf) {
      bytes.erase(0, 4);
      if (bytes.size() < 4) bytes.resize(4);
    } else {
      store_be32(bytes.data(), all->right_child);
    }
    all->own.push_back(std::move(bytes));
    all->cells.push_back({reinterpret_cast<const u8*>(all->own.back().data()),
                          static_cast<u32>(all->own.back().size())});
  }
  return {};
}

// Decides which cells go to which page: as few pages as will do, then evened out from the right.
void TreeWriter::partition(Siblings* all) const {
  const std::vector<CellRef>& cells = all->cells;
  const u32 total = static_cast<u32>(cells.size());
  const u32 divider = all->table_leaf ? 0 : 1;  // cells that a boundary takes
  std::vector<u32> sizes;
  u32 from = 0;
  for (;;) {
    u32 size = 0;
    u32 to = from;
    while (to < total && size + cells[to].bytes + 2 <= all->room) size += cells[to++].bytes + 2;
    all->ends.push_back(to);
    sizes.push_back(size);
    if (to >= total) break;
    from = to + divider;
  }
  for (size_t p = all->ends.size() - 1; p > 0; p--) {
    for (;;) {
      u32& end = all->ends[p - 1];
      u32 begin = p == 1 ? 0 : all->ends[p - 2] + divider;
      if (end - begin <= 1) break;
      u32 to_right = cells[all->table_leaf ? end - 1 : end].bytes + 2;
      u32 from_left = cells[end - 1].bytes + 2;
      bool right_empty = all->ends[p] <= end + divider;
      if (!right_empty && sizes[p] + to_right > sizes[p - 1] - from_left) break;
      if (sizes[p] + to_right > all->room) break;
      sizes[p] += to_right;
      sizes[p - 1] -= from_left;
      end--;
    }
  }
}

// Pages that are nearly full together get one more, and all of them room in equal parts: else each
// of the next few cells would have the same pages laid out again. False: not such a case.
bool TreeWriter::spread(Siblings* all) const {
  const std::vector<CellRef>& cells = all->cells;
  const u32 total = static_cast<u32>(cells.size());
  const u32 count = static_cast<u32>(all->pages.size()) + 1;
  const u32 divider = all->table_leaf ? 0 : 1;
  u64 bytes = 0;
  u32 longest = 0;
  for (const CellRef& cell : cells) {
    bytes += cell.bytes + 2;
    longest = std::max(longest, cell.bytes + 2);
  }
  const u64 full = u64{count - 1} * all->room;
  if (count < 3 || bytes * 10 < full * 9 || longest > all->room / 8) return false;
  const u64 share = bytes / count + 1;
  all->ends.clear();
  u32 from = 0;
  for (u32 page = 0; page + 1 < count; page++) {
    u64 size = 0;
    u32 to = from;
    while (to < total && size < share) size += cells[to++].bytes + 2;
    all->ends.push_back(to);
    from = to + divider;
    if (size > all->room || from >= total) return all->ends.clear(), false;
  }
  u64 rest = 0;
  for (u32 i = from; i < total; i++) rest += cells[i].bytes + 2;
  if (rest > all->room) return all->ends.clear(), false;
  all->ends.push_back(total);
  return true;
}

// Writes the pages and makes the dividers.
Status TreeWriter::lay_out(Siblings* all, Page& parent, Pending* to_parent) {
  size_t count = all->ends.size();
  while (all->pages.size() < count) {
    Page* page = TRY(store_.allocate_page(all->pages.back()->number));
    all->pages.push_back(page);
  }
  std::vector<Page*> pages = all->pages;
  pages.resize(count);
  std::sort(pages.begin(), pages.end(), [](Page* a, Page* b) { return a->number < b->number; });
  u32 from = 0;
  for (size_t p = 0; p < count; p++) {
    u32 end = all->ends[p];
    if (!fill_node(*pages[p], all->type, usable_, {all->cells.data() + from, end - from}))
      return corrupt("cells that overlap");
    bool last = p + 1 == count;
    if (!all->leaf) {
      PageNo right = last ? all->right_child : load_be32(all->cells[end].at);
      store_be32(pages[p]->data + kAtRightChild, right);
    }
    TRY(store_.map_put(pages[p]->number, Store::MapType::kNode, parent.number));
    TRY(store_.map_children(*pages[p]));
    if (last) break;
    std::string divider(4, '\0');
    if (all->table_leaf) {
      u8 key[kMaxVarintBytes];
      u32 bytes = write_varint(key, static_cast<u64>(leaf_key(*pages[p], end - from - 1)));
      divider.append(reinterpret_cast<char*>(key), bytes);
    } else {
      const CellRef& cell = all->cells[end];
      u32 skip = all->leaf ? 0 : 4;
      u32 bytes = cell.bytes - skip;
      // A leaf cell is at least 4 bytes; the divider is as short as its record.
      if (all->leaf && bytes == 4 && cell.at[0] < 3) bytes = 1 + cell.at[0];
      divider.append(reinterpret_cast<const char*>(cell.at + skip), bytes);
    }
    store_be32(divider.data(), pages[p]->number);
    to_parent->cells.push_back(std::move(divider));
    from = end + (all->table_leaf ? 0 : 1);
  }
  PageNo last = pages.back()->number;
  if (all->first >= parent.cell_count) {
    store_be32(parent.data + parent.header_at + kAtRightChild, last);
  } else {
    store_be32(const_cast<u8*>(parent.cell_at(all->first)), last);
  }
  return {};
}

Status TreeWriter::redistribute(int level, Pending* pending) {
  Page& parent = *cursor_.levels_[level - 1].page;
  Siblings all;
  auto work = [&]() -> Status {
    if (!pager_.make_writable(&parent)) return pager_.error();
    if (parent.free_bytes < 0 && !count_free(parent, usable_))
      return corrupt("malformed free space");
    TRY(gather(level, *pending, &all));
    for (const CellRef& cell : all.cells)
      if (cell.bytes + 2 > all.room) return corrupt("a cell larger than a page");
    if (pending->empty() || !spread(&all)) partition(&all);
    size_t old_count = all.pages.size();
    for (size_t i = 0; i + 1 < old_count; i++) {
      Cell cell;
      if (!parse_cell(parent, usable_, parent.cell_at(all.first), &cell) ||
          !drop_cell(parent, usable_, all.first, cell.bytes))
        return corrupt("malformed free space");
    }
    Pending to_parent;
    to_parent.index = all.first;
    TRY(lay_out(&all, parent, &to_parent));
    size_t count = all.ends.size();
    for (size_t i = count; i < old_count; i++) TRY(store_.free_page(all.pages[i]->number));
    TRY(insert_or_pend(parent, &to_parent));
    *pending = std::move(to_parent);
    return pending->empty() ? store_.map_children(parent) : Status{};
  };
  Status status = work();
  for (Page* page : all.pages) Pager::unpin(page);
  for (u8* copy : all.copies) pager_.give_buffer(copy);
  return status;
}

}  // namespace db
