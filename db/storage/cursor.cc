#include "base/check.h"
#include "db/storage/btree.h"

#include <algorithm>
#include <cstring>

namespace db {

using base::Error;
using base::ErrorCode;
using base::Result;

void Cursor::open(Store& store, PageNo root, const KeyOrder* order) {
  close();
  store_ = &store;
  pager_ = store.pager_.get();
  root_ = root;
  usable_ = pager_->usable_bytes();
  order_ = order;
  state_ = State::kNone;
  next_cursor_ = store.cursors_;
  prev_cursor_ = nullptr;
  if (next_cursor_ != nullptr) next_cursor_->prev_cursor_ = this;
  store.cursors_ = this;
}

void Cursor::close() {
  if (store_ == nullptr) return;
  unpin_all();
  if (prev_cursor_ != nullptr) prev_cursor_->next_cursor_ = next_cursor_;
  if (next_cursor_ != nullptr) next_cursor_->prev_cursor_ = prev_cursor_;
  if (store_->cursors_ == this) store_->cursors_ = next_cursor_;
  store_ = nullptr;
  state_ = State::kNone;
}

Hit Cursor::fail(Error error) {
  error_ = std::make_unique<Error>(std::move(error));
  unpin_all();
  state_ = State::kNone;
  return Hit::kError;
}

Hit Cursor::fail_pager() {
  return fail(pager_->error());
}

Hit Cursor::corrupt(const char* what) {
  return fail(
      Error(ErrorCode::kCorruption, std::string("database disk image is malformed: ") + what));
}

void Cursor::unpin_all() {
  while (depth_ >= 0) pop();
  cell_known_ = false;
}

bool Cursor::push_child(PageNo child) {
  if (depth_ + 1 >= kMaxDepth) {
    (void)corrupt("b-tree deeper than it can be");
    return false;
  }
  Page* page = pager_->get(child);
  if (page == nullptr) {
    (void)fail_pager();
    return false;
  }
  levels_[++depth_] = {page, 0};
  if (!page->decoded && !decode_node(*page, usable_)) {
    (void)corrupt("not a b-tree page");
    return false;
  }
  if (page->table != (order_ == nullptr) || (depth_ > 0 && page->leaf && page->cell_count == 0)) {
    (void)corrupt("a page of another kind in a b-tree");
    return false;
  }
  return true;
}

bool Cursor::go_root() {
  cell_known_ = false;
  if (state_ == State::kFault) {
    (void)fail(
        Error(ErrorCode::kCancelled, "the transaction was rolled back; run the query again"));
    return false;
  }
  if (depth_ >= 0) {
    while (depth_ > 0) pop();
    return true;
  }
  if (root_ == 0) {
    (void)corrupt("a tree without a root");
    return false;
  }
  return push_child(root_);
}

// Down to the first row below the page on top.
Hit Cursor::leftmost() {
  while (!top().page->leaf) {
    top().index = 0;
    if (!push_child(top().page->child_at(0))) return Hit::kError;
  }
  top().index = 0;
  cell_known_ = false;
  if (top().page->cell_count == 0) {
    unpin_all();
    state_ = State::kNone;
    return Hit::kEnd;
  }
  state_ = State::kRow;
  return Hit::kRow;
}

Hit Cursor::rightmost() {
  while (!top().page->leaf) {
    top().index = top().page->cell_count;
    if (!push_child(top().page->child_at(top().index))) return Hit::kError;
  }
  cell_known_ = false;
  if (top().page->cell_count == 0) {
    unpin_all();
    state_ = State::kNone;
    return Hit::kEnd;
  }
  top().index = top().page->cell_count - 1;
  state_ = State::kRow;
  return Hit::kRow;
}

Hit Cursor::first() {
  if (pager_->page_count() == 0) return Hit::kEnd;  // a file that nobody has written to
  if (!go_root()) return Hit::kError;
  return leftmost();
}

bool Cursor::on_last_leaf() const {
  for (int level = 0; level < depth_; level++) {
    if (levels_[level].index != levels_[level].page->cell_count) return false;
  }
  return depth_ >= 0;
}

Hit Cursor::last() {
  if (state_ == State::kRow && top().page->leaf && on_last_leaf()) {
    top().index = top().page->cell_count - 1;
    cell_known_ = false;
    return Hit::kRow;
  }
  if (pager_->page_count() == 0) return Hit::kEnd;
  if (!go_root()) return Hit::kError;
  return rightmost();
}

// One row on, from a cell.
Hit Cursor::advance() {
  cell_known_ = false;
  Level& here = top();
  here.index++;
  if (!here.page->leaf) {
    if (!push_child(here.page->child_at(here.index))) return Hit::kError;
    return leftmost();
  }
  while (top().index >= top().page->cell_count) {
    if (depth_ == 0) {
      unpin_all();
      state_ = State::kNone;
      return Hit::kEnd;
    }
    pop();
    Level& parent = top();
    if (order_ != nullptr) continue;  // an interior cell of an index tree is a row
    if (parent.index < parent.page->cell_count) {
      parent.index++;
      if (!push_child(parent.page->child_at(parent.index))) return Hit::kError;
      return leftmost();
    }
  }
  state_ = State::kRow;
  return Hit::kRow;
}

Hit Cursor::retreat() {
  cell_known_ = false;
  if (!top().page->leaf) {
    if (!push_child(top().page->child_at(top().index))) return Hit::kError;
    return rightmost();
  }
  while (top().index == 0) {
    if (depth_ == 0) {
      unpin_all();
      state_ = State::kNone;
      return Hit::kEnd;
    }
    pop();
  }
  top().index--;
  if (order_ == nullptr && !top().page->leaf) {
    if (!push_child(top().page->child_at(top().index))) return Hit::kError;
    return rightmost();
  }
  state_ = State::kRow;
  return Hit::kRow;
}

Hit Cursor::next_slow() {
  if (state_ == State::kRow) return advance();
  if (state_ == State::kSaved && restore_slow() == Hit::kError) return Hit::kError;
  if (state_ == State::kErased) {
    state_ = State::kRow;
    if (lean_ < 0) return advance();
    if (top().index < top().page->cell_count) {
      cell_known_ = false;
      return Hit::kRow;
    }
    top().index--;  // erased at the end of its leaf; the leaf may be an empty root
    return advance();
  }
  if (state_ == State::kRow) return advance();
  if (state_ == State::kFault) return go_root() ? Hit::kEnd : Hit::kError;
  return Hit::kEnd;
}

Hit Cursor::previous() {
  if (state_ == State::kSaved && restore_slow() == Hit::kError) return Hit::kError;
  if (state_ == State::kErased) {
    state_ = State::kRow;
    cell_known_ = false;
    if (lean_ < 0) return Hit::kRow;
    return retreat();
  }
  if (state_ == State::kRow) return retreat();
  if (state_ == State::kFault) return go_root() ? Hit::kEnd : Hit::kError;
  return Hit::kEnd;
}

Seek Cursor::seek(i64 rowid) {
  if (positioned()) {
    // Still on a leaf: is the key in it, or behind the very last row?
    Page* leaf = top().page;
    u32 count = leaf->cell_count;
    if (count > 0) {
      bool before_end = rowid <= leaf_key(*leaf, count - 1);
      if (before_end ? rowid >= leaf_key(*leaf, 0) : on_last_leaf()) {
        cell_known_ = false;
        state_ = State::kRow;
        u32 index = before_end ? leaf_lower_bound(*leaf, rowid) : count;
        if (index == count) {
          top().index = count - 1;
          return Seek::kBefore;
        }
        top().index = index;
        return leaf_key(*leaf, index) == rowid ? Seek::kEqual : Seek::kAfter;
      }
    }
  }
  if (pager_->page_count() == 0) return Seek::kEmpty;
  if (!go_root()) return Seek::kError;
  while (!top().page->leaf) {
    Page* page = top().page;
    u32 index = interior_child_index(*page, rowid);
    top().index = index;
    if (!push_child(page->child_at(index))) return Seek::kError;
  }
  Page* leaf = top().page;
  u32 count = leaf->cell_count;
  state_ = State::kRow;
  if (count == 0) {
    unpin_all();
    state_ = State::kNone;
    return Seek::kEmpty;
  }
  u32 index = leaf_lower_bound(*leaf, rowid);
  if (index == count) {
    top().index = count - 1;
    return Seek::kBefore;
  }
  top().index = index;
  return leaf_key(*leaf, index) == rowid ? Seek::kEqual : Seek::kAfter;
}

// Compares the record in cell `index` of `page` (on top) with the key looked for.
inline bool Cursor::compare(const Page& page, u32 index, const KeyProbe& probe, int* answer) {
  const u8* c = page.cell_at(index) + page.child_bytes;
  u64 size = *c;
  c = size < 0x80 ? c + 1 : c + read_varint(c, &size);
  if (size <= page.max_local) [[likely]] {
    if (c + size > page.data + usable_) {
      (void)corrupt("a record runs over its page");
      return false;
    }
    const ByteView record(c, static_cast<size_t>(size));
    if (!probe.first().compare(record, answer)) *answer = probe.compare(record);
    return true;
  }
  top().index = index;
  cell_known_ = false;
  ByteView record;
  if (payload(&record) != Hit::kRow) return false;
  *answer = probe.compare(record);
  cell_known_ = false;
  return true;
}

// Between the first and the last row of the leaf on top? Keys looked for one after the other are
// often near.
bool Cursor::is_on_leaf(const KeyProbe& probe, int* answer) {
  const Page& leaf = *top().page;
  if (!leaf.leaf || leaf.cell_count < 2) return false;
  if (!compare(leaf, 0, probe, answer)) return false;
  if (*answer > 0) return false;
  return compare(leaf, leaf.cell_count - 1, probe, answer) && *answer >= 0;
}

// Binary search on the page on top: the first row not before the key. True: it equals the key, and
// the cursor is on it. Most comparisons end at the first column of a short record, looked at in
// place.
template <FirstColumn::Kind kind>
inline bool Cursor::search_cells(const KeyProbe& probe, bool* failed) {
  const Page& page = *top().page;
  const FirstColumn& first = probe.first();
  const u32 short_bytes = std::min<u32>(page.max_local, 0x7f);
  const u8* const end = page.data + usable_;
  u32 low = 0;
  u32 high = page.cell_count;
  while (low < high) {
    const u32 middle = (low + high) / 2;
    int answer = 0;
    const u8* c = page.cell_at(middle) + page.child_bytes;
    const u32 size = *c;
    bool decided = false;
    if constexpr (kind != FirstColumn::Kind::kAnything) {
      if (size <= short_bytes && c + 1 + size <= end) [[likely]]
        decided = first.compare<kind>({c + 1, size}, &answer);
    }
    if (!decided && !compare(page, middle, probe, &answer)) {
      *failed = true;
      return false;
    }
    if (answer == 0) {
      top().index = middle;
      state_ = State::kRow;
      return true;
    }
    if (answer < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  top().index = low;
  return false;
}

bool Cursor::search_page(const KeyProbe& probe, bool* failed) {
  switch (probe.first().kind()) {
    case FirstColumn::Kind::kInteger:
      return search_cells<FirstColumn::Kind::kInteger>(probe, failed);
    case FirstColumn::Kind::kText:
      return search_cells<FirstColumn::Kind::kText>(probe, failed);
    default:
      return search_cells<FirstColumn::Kind::kAnything>(probe, failed);
  }
}

Seek Cursor::seek(const KeyProbe& probe) {
  int answer;
  bool failed = false;
  bool near = false;
  if (state_ == State::kRow && top().page->leaf && top().index + 1 == top().page->cell_count &&
      on_last_leaf()) {
    // On the last row of all: keys that only grow need one comparison.
    if (!compare(*top().page, top().index, probe, &answer)) return Seek::kError;
    cell_known_ = false;
    if (answer <= 0) return answer == 0 ? Seek::kEqual : Seek::kBefore;
  } else if (state_ == State::kErased && depth_ >= 0) {
    // A changed entry of an index tends to stay near the place that it was erased from.
    near = is_on_leaf(probe, &answer);
    if (state_ == State::kNone) return Seek::kError;
    cell_known_ = false;
  }
  if (!near) {
    if (pager_->page_count() == 0) return Seek::kEmpty;
    if (!go_root()) return Seek::kError;
  }
  for (;;) {
    if (search_page(probe, &failed)) return Seek::kEqual;
    if (failed) return Seek::kError;
    const Page& page = *top().page;
    if (!page.leaf) {
      if (!push_child(page.child_at(top().index))) return Seek::kError;
      continue;
    }
    if (page.cell_count == 0) {
      unpin_all();
      state_ = State::kNone;
      return Seek::kEmpty;
    }
    state_ = State::kRow;
    if (top().index < page.cell_count) return Seek::kAfter;
    --top().index;
    return Seek::kBefore;
  }
}

// Remembers the key of the row under the cursor.
Hit Cursor::copy_key() {
  if (order_ == nullptr) {
    saved_rowid_ = rowid();
    return Hit::kRow;
  }
  ByteView record;
  if (payload(&record) != Hit::kRow) return Hit::kError;
  saved_key_.assign(record.begin(), record.end());
  return Hit::kRow;
}

Hit Cursor::save_place() {
  if (!positioned()) return Hit::kRow;
  bool on_row = state_ == State::kRow;
  if (!on_row) {
    // Between rows: keep the row after the place.
    Hit hit = next_slow();
    if (hit != Hit::kRow) return hit;
  }
  if (copy_key() != Hit::kRow) return Hit::kError;
  unpin_all();
  saved_on_row_ = on_row;
  state_ = State::kSaved;
  return Hit::kRow;
}

Hit Cursor::restore_slow() {
  if (state_ != State::kSaved) {
    if (state_ == State::kFault && !go_root()) return Hit::kError;
    return Hit::kEnd;
  }
  bool on_row = saved_on_row_;
  state_ = State::kNone;
  Seek found = order_ == nullptr ? seek(saved_rowid_) : seek(RecordProbe(*order_, saved_key_));
  if (found == Seek::kError) return Hit::kError;
  if (found == Seek::kEmpty) return Hit::kEnd;
  if (found == Seek::kEqual && on_row) return Hit::kRow;
  state_ = State::kErased;
  lean_ = found == Seek::kBefore ? -1 : 1;
  return Hit::kEnd;
}

bool Cursor::parse_cell() {
  buffered_ = 0;
  overflow_.clear();
  cell_known_ = true;
  if (state_ != State::kRow && depth_ < 0) {
    cell_ = Cell{};
    return false;
  }
  const Page& page = *top().page;
  if (top().index < page.cell_count &&
      db::parse_cell(page, usable_, page.cell_at(top().index), &cell_)) [[likely]] {
    return true;
  }
  i64 rowid = cell_.rowid;
  cell_ = Cell{};
  cell_.rowid = rowid;
  cell_.payload = page.data;
  cell_.size = 0xffffffff;  // payload() sees that nothing can be that large
  return false;
}

// Copies a range of the payload out, or in.
Hit Cursor::transfer(u32 offset, u8* out, const u8* in, u32 bytes) {
  const Cell& c = cell();
  if (c.size == 0xffffffff) return corrupt("a malformed cell");
  if (u64{offset} + bytes > c.size) return corrupt("a read behind the end of a record");
  if (in != nullptr && !pager_->make_writable(top().page)) return fail_pager();
  if (offset < c.local) {
    u32 part = std::min(bytes, c.local - offset);
    u8* at = const_cast<u8*>(c.payload) + offset;
    if (in != nullptr) {
      std::memcpy(at, in, part);
      in += part;
    } else {
      std::memcpy(out, at, part);
      out += part;
    }
    offset += part;
    bytes -= part;
  }
  const u32 page_room = usable_ - 4;
  while (bytes > 0) {
    u32 index = (offset - c.local) / page_room;
    // Room first: no page may stay pinned when there is no memory for its number.
    if (overflow_.size() + 2 > overflow_.capacity()) overflow_.reserve(2 * overflow_.size() + 8);
    if (overflow_.empty()) overflow_.push_back(c.first_overflow());
    while (overflow_.size() <= index) {
      if (overflow_.size() + 2 > overflow_.capacity()) overflow_.reserve(2 * overflow_.size() + 8);
      Page* link = pager_->get(overflow_.back());
      if (link == nullptr) return fail_pager();
      overflow_.push_back(base::load_be32(link->data));
      Pager::unpin(link);
    }
    Page* page = pager_->get(overflow_[index]);
    if (page == nullptr) return fail_pager();
    u32 within = (offset - c.local) % page_room;
    u32 part = std::min(bytes, page_room - within);
    u8* at = page->data + 4 + within;
    if (in != nullptr) {
      if (!pager_->make_writable(page)) {
        Pager::unpin(page);
        return fail_pager();
      }
      std::memcpy(at, in, part);
      in += part;
    } else {
      std::memcpy(out, at, part);
      out += part;
    }
    if (overflow_.size() == index + 1) overflow_.push_back(base::load_be32(page->data));
    Pager::unpin(page);
    offset += part;
    bytes -= part;
  }
  return Hit::kRow;
}

Hit Cursor::payload_prefix(u32 bytes, ByteView* out) {
  const Cell& c = cell();
  if (c.size == 0xffffffff) return corrupt("a malformed cell");
  u32 wanted = std::min(bytes, c.size);
  if (wanted <= c.local) {
    *out = {c.payload, c.local};
    return Hit::kRow;
  }
  // A malformed size must not make us take memory that the file cannot fill.
  if (c.size / usable_ > pager_->page_count()) return corrupt("a record larger than the file");
  if (buffered_ < wanted) {
    if (buffer_.size() < wanted) buffer_.resize(wanted + kPagePadding);
    u32 from = buffered_;
    if (transfer(from, buffer_.data() + from, nullptr, wanted - from) != Hit::kRow)
      return Hit::kError;
    buffered_ = wanted;
  }
  *out = {buffer_.data(), buffered_};
  return Hit::kRow;
}

Hit Cursor::read_payload(u32 offset, Bytes out) {
  return transfer(offset, out.data(), nullptr, static_cast<u32>(out.size()));
}

Hit Cursor::write_payload(u32 offset, ByteView data) {
  if (ready_to_write() != Hit::kRow) return Hit::kError;
  if (restore() != Hit::kRow) return corrupt("the row to write is gone");
  Hit hit = transfer(offset, nullptr, data.data(), static_cast<u32>(data.size()));
  buffered_ = 0;
  return hit;
}

u32 Cursor::batch(Cell* out, u32 capacity) {
  if (restore() != Hit::kRow) return 0;
  const Page& page = *top().page;
  u32 from = top().index;
  u32 count = std::min(capacity, page.cell_count - from);
  const u8* const end = page.data + usable_;
  for (u32 i = 0; i < count; i++) {
    const u8* const at = page.cell_at(from + i);
    u64 size;
    u64 rowid;
    const u8* c = at + read_varint(at, &size);
    c += read_varint(c, &rowid);
    if (size <= page.max_local && c + size <= end) [[likely]] {
      const u32 bytes = static_cast<u32>(c - at) + static_cast<u32>(size);
      out[i] = {.rowid = static_cast<i64>(rowid),
                .payload = c,
                .size = static_cast<u32>(size),
                .local = static_cast<u32>(size),
                .bytes = std::max(bytes, 4u)};
    } else if (!db::parse_cell(page, usable_, at, &out[i])) {
      count = i;
      break;
    }
  }
  if (count > 0) top().index = from + count - 1;
  cell_known_ = false;
  return count;
}

Result<i64> Cursor::count() {
  i64 rows = 0;
  Hit hit = first();
  while (hit == Hit::kRow) {
    Level& here = top();
    if (here.page->leaf) {
      rows += here.page->cell_count;
      here.index = here.page->cell_count - 1;
    } else {
      rows++;  // a row of an index tree in an interior page
    }
    hit = advance();
  }
  if (hit == Hit::kError) return *error_;
  return rows;
}

Result<i64> Cursor::estimate_rows() {
  if (pager_->page_count() == 0) return i64{0};
  if (!go_root()) return *error_;
  f64 rows = 1;
  while (!top().page->leaf) {
    Page* page = top().page;
    rows *= page->cell_count + 1;
    top().index = page->cell_count / 2;
    if (!push_child(page->child_at(top().index))) return *error_;
  }
  rows *= top().page->cell_count;
  unpin_all();
  state_ = State::kNone;
  return static_cast<i64>(rows);
}

f64 Cursor::relative_position() const {
  f64 position = 0;
  f64 share = 1;
  for (int level = 0; level <= depth_; level++) {
    const Page& page = *levels_[level].page;
    f64 slots = page.leaf ? std::max(1u, page.cell_count) : page.cell_count + 1;
    position += share * levels_[level].index / slots;
    share /= slots;
  }
  return position;
}

Result<bool> Cursor::empty() {
  Hit hit = first();
  if (hit == Hit::kError) return *error_;
  return hit == Hit::kEnd;
}

}  // namespace db
