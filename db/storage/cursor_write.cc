#include "base/check.h"
#include "db/storage/btree.h"
#include "db/storage/tree_writer.h"

#include <algorithm>
#include <cstring>

namespace db {

using base::Error;
using base::ErrorCode;
using base::Status;

Hit Cursor::ready_to_write() {
  if (store_->state_ != TransactionState::kWrite)
    return fail(Error(ErrorCode::kPermission, "attempt to write a readonly database"));
  if (state_ == State::kFault) return go_root() ? Hit::kRow : Hit::kError;
  return store_->save_others(root_, this);
}

// Writes an equal record over the one in an interior page of an index tree, whose overflow chain is
// gone already. `bytes` is what the record takes on a leaf.
Hit Cursor::replace_interior_row(ByteView payload, u32 bytes, u32 local) {
  Page& page = *top().page;
  const u32 index = top().index;
  const u32 size = static_cast<u32>(payload.size());
  TreeWriter writer(*this);
  std::string cell(4 + bytes, '\0');
  std::memcpy(cell.data(), page.cell_at(index), 4);
  Status done =
      writer.write_cell(reinterpret_cast<u8*>(cell.data()) + 4, page, 0, payload, 0, local);
  // An interior cell is as long as its record; only leaf cells are padded to four bytes.
  if (local == size && bytes == 4) cell.resize(4 + varint_bytes(size) + size);
  // The key first: `payload` may be a view of this very tree.
  saved_key_.assign(payload.begin(), payload.end());
  if (done.ok()) done = writer.replace_interior(depth_, index, std::move(cell));
  if (!done.ok()) return fail(std::move(done).error());
  unpin_all();
  state_ = State::kSaved;
  saved_on_row_ = true;
  return Hit::kRow;
}

// Puts a row where the seek ended.
Hit Cursor::put(Seek seek, i64 rowid, ByteView payload, u32 zero_tail) {
  if (seek == Seek::kError) return Hit::kError;
  if (seek == Seek::kEmpty && !go_root()) return Hit::kError;
  Page& page = *top().page;
  Cell old;
  if (seek == Seek::kEqual) {
    if (!db::parse_cell(page, usable_, page.cell_at(top().index), &old))
      return corrupt("a malformed cell");
    // A row of the same size that lies on its page is written over.
    if (zero_tail == 0 && old.size == payload.size() && !old.overflows()) {
      cell_known_ = false;
      state_ = State::kRow;
      // The very row: its page need not be written.
      if (std::memcmp(old.payload, payload.data(), old.size) == 0) return Hit::kRow;
      if (!pager_->make_writable(&page)) return fail_pager();
      std::memcpy(const_cast<u8*>(old.payload), payload.data(), old.size);
      return Hit::kRow;
    }
  }
  if (!pager_->make_writable(&page)) return fail_pager();
  if (page.free_bytes < 0 && !count_free(page, usable_)) return corrupt("malformed free space");
  u32 index = top().index;
  if (seek == Seek::kBefore) index++;
  if (seek == Seek::kEmpty) index = 0;
  u32 local;
  u32 size = static_cast<u32>(payload.size()) + zero_tail;
  u32 bytes = TreeWriter::cell_bytes(page, usable_, rowid, size, &local);
  cell_known_ = false;
  TreeWriter writer(*this);
  if (seek == Seek::kEqual) {
    if (old.overflows()) {
      Status freed = store_->free_overflow(old);
      if (!freed.ok()) return fail(std::move(freed).error());
    }
    if (!page.leaf) return replace_interior_row(payload, bytes, local);
    if (!drop_cell(page, usable_, index, old.bytes)) return corrupt("malformed free space");
  }
  if (static_cast<i32>(bytes) + 2 <= page.free_bytes) [[likely]] {
    u8* at = open_cell(page, usable_, index, bytes, pager_->scratch());
    if (at == nullptr) return corrupt("malformed free space");
    if (local == size && zero_tail == 0) {
      at += write_varint(at, size);
      if (page.table) at += write_varint(at, static_cast<u64>(rowid));
      std::memcpy(at, payload.data(), size);
    } else {
      Status done = writer.write_cell(at, page, rowid, payload, zero_tail, local);
      if (!done.ok()) return fail(std::move(done).error());
    }
    top().index = index;
    state_ = State::kRow;
    return Hit::kRow;
  }
  std::string cell(bytes, '\0');
  Status done =
      writer.write_cell(reinterpret_cast<u8*>(cell.data()), page, rowid, payload, zero_tail, local);
  if (!done.ok()) return fail(std::move(done).error());
  // The key first: `payload` may be a view of this very tree.
  saved_rowid_ = rowid;
  if (order_ != nullptr) saved_key_.assign(payload.begin(), payload.end());
  base::Result<bool> appended = writer.insert_full(index, std::move(cell));
  if (!appended.ok()) return fail(appended.error());
  saved_on_row_ = true;
  state_ = *appended ? State::kRow : State::kSaved;
  return Hit::kRow;
}

Hit Cursor::insert(i64 rowid, ByteView payload, u32 zero_tail) {
  if (ready_to_write() == Hit::kError) return Hit::kError;
  return put(seek(rowid), rowid, payload, zero_tail);
}

Hit Cursor::overwrite(i64 rowid, ByteView payload) {
  if (ready_to_write() == Hit::kError) return Hit::kError;
  Hit here = restore();
  if (here != Hit::kRow) return here == Hit::kError ? here : corrupt("the row to change is gone");
  return put(Seek::kEqual, rowid, payload, 0);
}

Hit Cursor::insert(ByteView record, const KeyProbe* probe) {
  if (ready_to_write() == Hit::kError) return Hit::kError;
  Seek found = probe != nullptr ? seek(*probe) : seek(RecordProbe(*order_, record));
  return put(found, 0, record, 0);
}

Hit Cursor::append(ByteView record) {
  if (ready_to_write() == Hit::kError) return Hit::kError;
  Hit hit = last();
  if (hit == Hit::kError) return hit;
  return put(hit == Hit::kEnd ? Seek::kEmpty : Seek::kBefore, 0, record, 0);
}

// Takes the row out of an interior page of an index tree: the row before it, from the leaf below,
// takes its place as divider.
Hit Cursor::erase_interior() {
  auto work = [&]() -> Status {
    const int level = depth_;
    const u32 index = top().index;
    TreeWriter writer(*this);
    if (!push_child(top().page->child_at(index)) || rightmost() != Hit::kRow) return *error_;
    std::vector<u8> neighbour;
    {
      ByteView record;
      if (payload(&record) != Hit::kRow) return *error_;
      neighbour.assign(record.begin(), record.end());
    }
    Page& leaf = *top().page;
    Cell cell = cell_;
    std::string divider(reinterpret_cast<const char*>(levels_[level].page->cell_at(index)), 4);
    const u8* at = leaf.cell_at(top().index);
    u32 bytes = static_cast<u32>(cell.payload - at) + cell.local + (cell.overflows() ? 4 : 0);
    divider.append(reinterpret_cast<const char*>(at), bytes);
    if (!pager_->make_writable(&leaf)) return pager_->error();
    if (leaf.free_bytes < 0 && !count_free(leaf, usable_))
      return store_->corrupt("malformed free space");
    if (!drop_cell(leaf, usable_, top().index, cell.bytes))
      return store_->corrupt("malformed free space");
    int leaf_depth = depth_;
    TRY(writer.replace_interior(level, index, std::move(divider)));
    if (depth_ != leaf_depth || leaf_depth == level) {
      // The levels above the leaf were laid out anew: find the way down again.
      unpin_all();
      state_ = State::kNone;
      Seek found = seek(RecordProbe(*order_, ByteView(neighbour)));
      if (found != Seek::kEqual || top().page->leaf)
        return store_->corrupt("an index out of order");
      PageNo child = top().page->child_at(top().index);
      for (;;) {
        Page* page = pager_->get(child);
        if (page == nullptr) return pager_->error();
        if (!page->decoded && !decode_node(*page, usable_)) {
          Pager::unpin(page);
          return store_->corrupt("not a b-tree page");
        }
        if (depth_ + 1 >= kMaxDepth) {
          Pager::unpin(page);
          return store_->corrupt("b-tree deeper than it can be");
        }
        levels_[++depth_] = {page, page->cell_count};
        if (page->leaf) break;
        child = page->child_at(page->cell_count);
      }
    }
    return writer.rebalance();
  };
  Status status = work();
  if (!status.ok()) return fail(std::move(status).error());
  return Hit::kRow;
}

Hit Cursor::erase() {
  if (ready_to_write() == Hit::kError) return Hit::kError;
  Hit here = restore();
  if (here != Hit::kRow) return here == Hit::kError ? here : corrupt("the row to erase is gone");
  Page& page = *top().page;
  if (!pager_->make_writable(&page)) return fail_pager();
  if (page.free_bytes < 0 && !count_free(page, usable_)) return corrupt("malformed free space");
  if (cell().size == 0xffffffff) return corrupt("a malformed cell");
  const Cell old = cell();
  const bool nearly_empty =
      depth_ > 0 && (static_cast<u32>(page.free_bytes) + old.bytes + 2) * 3 > usable_ * 2;
  if (!page.leaf || nearly_empty) {
    if (copy_key() != Hit::kRow) return Hit::kError;
  }
  if (old.overflows()) {
    Status freed = store_->free_overflow(old);
    if (!freed.ok()) return fail(std::move(freed).error());
  }
  cell_known_ = false;
  if (page.leaf) {
    if (!drop_cell(page, usable_, top().index, old.bytes)) return corrupt("malformed free space");
    if (!nearly_empty) {
      state_ = State::kErased;
      lean_ = 1;
      return Hit::kRow;
    }
    Status done = TreeWriter(*this).rebalance();
    if (!done.ok()) return fail(std::move(done).error());
  } else if (erase_interior() != Hit::kRow) {
    return Hit::kError;
  }
  unpin_all();
  state_ = State::kSaved;
  saved_on_row_ = false;
  return Hit::kRow;
}

}  // namespace db
