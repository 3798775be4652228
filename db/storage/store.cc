#include "base/check.h"
#include "db/storage/btree.h"
#include "db/storage/tree_writer.h"

#include <cstring>

namespace db {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using base::store_be16;
using base::store_be32;

Result<std::unique_ptr<Store>> Store::open(const std::string& path, StoreOptions options) {
  std::unique_ptr<Pager> pager = TRY(Pager::open(path, std::move(options.pager)));
  return std::unique_ptr<Store>(new Store(std::move(pager)));
}

Store::~Store() {
  while (cursors_ != nullptr) cursors_->close();
  if (state_ == TransactionState::kWrite) (void)rollback();
  end_read();
}

Status Store::corrupt(const char* what) const {
  return Error(ErrorCode::kCorruption, std::string("database disk image is malformed: ") + what);
}

Result<Page*> Store::get(PageNo number) {
  Page* page = pager_->get(number);
  if (page == nullptr) return pager_->error();
  return page;
}

Result<Page*> Store::get_node(PageNo number, bool table) {
  Page* page = TRY(get(number));
  if ((!page->decoded && !decode_node(*page, usable_bytes())) || page->table != table) {
    Pager::unpin(page);
    return corrupt("a page of another kind in a b-tree").error();
  }
  return page;
}

Status Store::begin_read_slow() {
  TRY(pager_->begin_read());
  state_ = TransactionState::kRead;
  if (pager_->page_count() == 0) {
    page_one_ = nullptr;
    return {};
  }
  page_one_ = pager_->get(1);
  if (page_one_ == nullptr) {
    Error error = pager_->error();
    end_read();
    return error;
  }
  auto_vacuum_ = meta(Meta::kLargestRoot) == 0         ? AutoVacuum::kNone
                 : meta(Meta::kIncrementalVacuum) != 0 ? AutoVacuum::kIncremental
                                                       : AutoVacuum::kFull;
  return {};
}

void Store::end_read() {
  if (state_ == TransactionState::kNone) return;
  CHECK(state_ == TransactionState::kRead);
  trip_cursors(false);
  if (page_one_ != nullptr) Pager::unpin(page_one_);
  page_one_ = nullptr;
  pager_->end_read();
  state_ = TransactionState::kNone;
}

// The first page of a database that has none.
Status Store::create_header() {
  page_one_ = pager_->get_blank(1);
  if (page_one_ == nullptr) return pager_->error();
  u8* data = page_one_->data;
  std::memcpy(data, kFileMagic, sizeof(kFileMagic));
  store_be16(data + kAtPageBytes, static_cast<u16>(page_bytes() == 65536 ? 1 : page_bytes()));
  data[kAtWriteVersion] = 1;
  data[kAtReadVersion] = 1;
  data[kAtReservedBytes] = static_cast<u8>(page_bytes() - usable_bytes());
  data[21] = 64;  // fixed: largest and smallest share of a page that a payload may take, in 255ths
  data[22] = 32;
  data[23] = 32;
  store_be32(data + kAtPageCount, 1);
  init_node(*page_one_, kTableLeaf, usable_bytes());
  if (auto_vacuum_ != AutoVacuum::kNone) {
    store_be32(data + kAtLargestRoot, 1);
    store_be32(data + kAtIncremental, auto_vacuum_ == AutoVacuum::kIncremental ? 1 : 0);
    Page* map = pager_->get_blank(2);
    if (map == nullptr) return pager_->error();
    Pager::unpin(map);
  }
  return {};
}

Status Store::begin_write(bool exclusive) {
  if (state_ == TransactionState::kWrite) return {};
  const bool fresh = state_ == TransactionState::kNone;
  for (int calls = 0;; calls++) {
    TRY(begin_read());
    Status begun = pager_->begin_write(exclusive);
    if (begun.ok()) break;
    // Inside a read transaction waiting could be for ourselves: the other may wait for us to
    // finish.
    if (!fresh) return begun;
    end_read();
    ErrorCode code = begun.error().code();
    if (code == ErrorCode::kConflict) continue;  // the snapshot was old before we wrote: a new one
    if (code != ErrorCode::kBusy || !pager_->wait_for_lock(calls)) return begun;
  }
  state_ = TransactionState::kWrite;
  if (page_one_ == nullptr) {
    Status created = create_header();
    if (!created.ok()) {
      (void)rollback();
      return created;
    }
  }
  return {};
}

Result<JournalMode> Store::set_journal_mode(JournalMode mode) {
  if (in_memory()) {
    if (mode == JournalMode::kOff || mode == JournalMode::kMemory)
      TRY(pager_->use_rollback_mode(mode));
    return pager_->journal_mode();
  }
  if (state_ == TransactionState::kNone) {
    // Only the header knows whether the file has a log.
    TRY(begin_read());
    end_read();
  }
  const bool logged = pager_->journal_mode() == JournalMode::kWal;
  if ((mode == JournalMode::kWal) == logged) {
    if (!logged) TRY(pager_->use_rollback_mode(mode));
    return pager_->journal_mode();
  }
  if (state_ != TransactionState::kNone)
    return Error(ErrorCode::kInvalidArgument,
                 logged ? "cannot change out of wal mode from within a transaction"
                        : "cannot change into wal mode from within a transaction");
  if (logged) TRY(pager_->leave_wal());
  TRY(begin_write());
  if (!pager_->make_writable(page_one_)) return pager_->error();
  u8 version = mode == JournalMode::kWal ? 2 : 1;
  page_one_->data[kAtWriteVersion] = page_one_->data[kAtReadVersion] = version;
  if (mode != JournalMode::kWal) TRY(pager_->use_rollback_mode(mode));
  Status done = commit();
  if (!done.ok()) {
    (void)rollback();
    end_read();
    return std::move(done).error();
  }
  end_read();
  pager_->forget_header();
  TRY(begin_read());
  end_read();
  return pager_->journal_mode();
}

Status Store::commit() {
  if (state_ != TransactionState::kWrite) {
    end_read();
    return {};
  }
  TRY(commit_phase_one(""));
  return commit_phase_two();
}

Status Store::commit_phase_one(const std::string& super_journal) {
  if (state_ != TransactionState::kWrite) return {};
  if (auto_vacuum_ == AutoVacuum::kFull) TRY(auto_vacuum_commit());
  bool logged = in_memory() || pager_->journal_mode() == JournalMode::kWal;
  // With a rollback journal every commit shows in the header; else only a new size does.
  if (!logged || base::load_be32(page_one_->data + kAtPageCount) != pager_->page_count())
    TRY(pager_->stamp_page_one(page_one_, replaced_by_ != 0 ? replaced_by_ : pager_->page_count()));
  return pager_->commit_phase_one(super_journal);
}

Status Store::commit_phase_two() {
  if (state_ != TransactionState::kWrite) return {};
  TRY(pager_->commit_phase_two());
  state_ = TransactionState::kRead;
  if (replaced_by_ == 0) return {};
  // The page size may be another one now: look at the file as if for the first time.
  replaced_by_ = 0;
  end_read();
  if (!in_memory()) pager_->forget_header();
  return begin_read();
}

Status Store::rollback(bool trip) {
  if (state_ != TransactionState::kWrite) {
    end_read();
    return {};
  }
  if (trip) {
    trip_cursors(false);
    for (Cursor* c = cursors_; c != nullptr; c = c->next_cursor_) c->state_ = Cursor::State::kFault;
  } else {
    trip_cursors(true);
  }
  if (page_one_ != nullptr) Pager::unpin(page_one_);
  page_one_ = nullptr;
  replaced_by_ = 0;
  Status status = pager_->rollback();
  state_ = TransactionState::kRead;
  if (status.ok() && pager_->page_count() > 0) {
    page_one_ = pager_->get(1);
    if (page_one_ == nullptr) status = pager_->error();
  }
  return status;
}

Status Store::rollback_savepoint(int index) {
  if (state_ != TransactionState::kWrite) return {};
  trip_cursors(true);
  TRY(pager_->rollback_savepoint(index));
  return {};
}

void Store::trip_cursors(bool keep_places) {
  for (Cursor* c = cursors_; c != nullptr; c = c->next_cursor_) {
    if (keep_places && c->save_place() != Hit::kError) continue;
    c->unpin_all();
    c->state_ = Cursor::State::kNone;
  }
}

Hit Store::save_others(PageNo root, Cursor* but) {
  for (Cursor* c = cursors_; c != nullptr; c = c->next_cursor_) {
    if (c == but || c->root_ != root || !c->positioned()) continue;
    if (c->save_place() == Hit::kError) return but->fail(*c->error_);
  }
  return Hit::kRow;
}

Status Store::set_meta(Meta which, u32 value) {
  if (!pager_->make_writable(page_one_)) return pager_->error();
  store_be32(page_one_->data + kAtMeta + 4 * static_cast<u32>(which), value);
  if (which == Meta::kIncrementalVacuum && auto_vacuum_ != AutoVacuum::kNone)
    auto_vacuum_ = value != 0 ? AutoVacuum::kIncremental : AutoVacuum::kFull;
  return {};
}

Result<PageNo> Store::create_tree(TreeKind kind) {
  if (state_ != TransactionState::kWrite)
    return Error(ErrorCode::kPermission, "attempt to write a readonly database");
  Page* page = TRY(allocate_root());
  PageNo root = page->number;
  init_node(*page, kind == TreeKind::kTable ? kTableLeaf : kIndexLeaf, usable_bytes());
  Pager::unpin(page);
  return root;
}

Result<bool> Store::is_table_tree(PageNo root) {
  Page* page = TRY(get(root));
  bool good = page->decoded || decode_node(*page, usable_bytes());
  bool table = page->table;
  Pager::unpin(page);
  if (!good) return corrupt("not a b-tree page").error();
  return table;
}

Result<i64> Store::clear_tree(PageNo root) {
  if (state_ != TransactionState::kWrite)
    return Error(ErrorCode::kPermission, "attempt to write a readonly database");
  (void)save_others(root, nullptr);
  i64 rows = 0;
  TRY(free_tree(root, TRY(is_table_tree(root)), true, 0, &rows));
  return rows;
}

Result<PageNo> Store::drop_tree(PageNo root) {
  if (root < 2 || root > pager_->page_count()) return corrupt("a root outside the file").error();
  TRY(clear_tree(root));
  if (auto_vacuum_ != AutoVacuum::kNone) {
    trip_cursors(true);
    return close_root_gap(root);
  }
  TRY(free_page(root));
  return PageNo{0};
}

Status Store::copy_tree(PageNo root, Store& source, PageNo source_root) {
  // Only the order of insertion counts, so no KeyOrder is ever asked.
  class NoOrder final : public KeyOrder {
    int compare(ByteView, ByteView) const override { return -1; }
  } no_order;
  bool table = TRY(source.is_table_tree(source_root));
  Cursor from(source, source_root, table ? nullptr : &no_order);
  Cursor to(*this, root, table ? nullptr : &no_order);
  Hit hit = from.first();
  for (; hit == Hit::kRow; hit = from.next()) {
    ByteView payload;
    if (from.payload(&payload) == Hit::kError) return from.error();
    Hit done = table ? to.insert(from.rowid(), payload) : to.append(payload);
    if (done == Hit::kError) return to.error();
  }
  if (hit == Hit::kError) return from.error();
  return {};
}

Status Store::set_page_size(u32 page_bytes, u32 reserved_bytes) {
  bool power = (page_bytes & (page_bytes - 1)) == 0;
  if (!power || page_bytes < kMinPageBytes || page_bytes > kMaxPageBytes || reserved_bytes > 255 ||
      page_bytes - reserved_bytes < 480)
    return Error(ErrorCode::kInvalidArgument,
                 "the page size must be a power of two from 512 to 65536 with 480 bytes to use");
  return pager_->set_page_size(page_bytes, reserved_bytes);
}

Status Store::set_auto_vacuum(AutoVacuum mode) {
  if (page_one_ != nullptr && (mode == AutoVacuum::kNone) != (auto_vacuum_ == AutoVacuum::kNone))
    return {};
  auto_vacuum_ = mode;
  return {};
}

}  // namespace db
