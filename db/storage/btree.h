// The storage engine as the executor sees it: a Store is one database (file or memory) opened by
// one connection; a Cursor walks one b-tree in it.
//
//   auto store = TRY(Store::open("app.db", {}));
//   TRY(store->begin_write());
//   PageNo root = TRY(store->create_tree(TreeKind::kTable));
//   Cursor rows(*store, root, nullptr);
//   if (rows.insert(7, record) == Hit::kError) return rows.error();
//   TRY(store->commit());
//
// Table trees map an i64 rowid to a payload. Index trees are sets of records in the order a
// KeyOrder gives; keys are unique as bytes in that order (the executor appends the rowid). Payloads
// are opaque.
//
// Hot calls answer with a Hit instead of a Result: kRow (there is one), kEnd (there is none) or
// kError (Cursor::error() says which). Views into payloads are good until the cursor moves or the
// tree changes.
//
// Changes show at once to every cursor of the same Store. A cursor whose tree is changed through
// another cursor keeps its place: it finds its row, or the next one, again by itself.
//
// Errors: kCorruption (malformed file), kBusy (another connection holds a lock), kConflict (a read
// transaction cannot become a writer: somebody wrote since), kFull, kIo, kPermission (read-only).
// Threads: a Store and its cursors belong to one thread at a time; two Stores on one file
// coordinate by themselves, in one process or several, with stock SQLite too.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "db/storage/format.h"
#include "db/storage/node.h"
#include "db/storage/pager.h"
#include "db/value/first_column.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace db {

using base::Bytes;
using base::ByteView;

enum class [[nodiscard]] Hit : u8 { kEnd = 0, kRow = 1, kError = 2 };
enum class TreeKind : u8 { kTable, kIndex };
enum class TransactionState : u8 { kNone, kRead, kWrite };

// Header values, by their index in the header (offset 36 + 4 * index).
enum class Meta : u8 {
  kFreePages = 0,
  kSchemaCookie = 1,
  kSchemaFormat = 2,
  kDefaultCacheSize = 3,
  kLargestRoot = 4,
  kTextEncoding = 5,
  kUserVersion = 6,
  kIncrementalVacuum = 7,
  kApplicationId = 8,
};

// The order of an index tree. Records may be malformed (the file may be): compare must not read
// past their end. Must outlive the cursors that use it.
class KeyOrder {
 public:
  virtual ~KeyOrder() = default;
  // < 0, 0, > 0 as record `a` sorts before, with or after record `b`.
  virtual int compare(ByteView a, ByteView b) const = 0;
};

// A search key for an index tree: unpacked values, a prefix of the columns, or a record with a bias
// for ties (to find the first or last row of a group, answer +1 or -1 instead of 0).
class KeyProbe {
 public:
  KeyProbe() = default;
  // `first` is asked before compare().
  explicit KeyProbe(const FirstColumn& first) : first_(first) {}
  virtual ~KeyProbe() = default;
  // < 0, 0, > 0 as the stored record sorts before, with or after the key looked for.
  virtual int compare(ByteView stored) const = 0;
  const FirstColumn& first() const { return first_; }

 private:
  FirstColumn first_;
};

// Looks for a whole record.
class RecordProbe final : public KeyProbe {
 public:
  RecordProbe(const KeyOrder& order, ByteView record) : order_(order), record_(record) {}
  int compare(ByteView stored) const override { return order_.compare(stored, record_); }

 private:
  const KeyOrder& order_;
  ByteView record_;
};

// Where a seek ended: on the equal row, on a neighbour, or nowhere because the tree is empty.
enum class [[nodiscard]] Seek : u8 { kEmpty, kBefore, kEqual, kAfter, kError };

class Store;

class Cursor {
 public:
  // `order` is null for table trees. A cursor that writes needs a write transaction when it writes.
  // Cursors must go, or be closed, before their Store; ending the transaction unpositions them.
  Cursor() = default;
  Cursor(Store& store, PageNo root, const KeyOrder* order) { open(store, root, order); }
  ~Cursor() { close(); }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  void open(Store& store, PageNo root, const KeyOrder* order);
  void close();
  bool is_open() const { return store_ != nullptr; }
  PageNo root() const { return root_; }

  // Moves. After kEnd the cursor has no row.
  Hit first();
  Hit last();
  Hit next() {
    // The next cell of the same leaf, without a call.
    if (state_ == State::kRow) [[likely]] {
      Page* page = levels_[depth_].page;
      if (page->leaf && levels_[depth_].index + 1u < page->cell_count) [[likely]] {
        levels_[depth_].index++;
        cell_known_ = false;
        return Hit::kRow;
      }
    }
    return next_slow();
  }
  Hit previous();

  // Seeks by rowid (table trees). Near-by seeks stay in the leaf.
  Seek seek(i64 rowid);
  Hit seek_equal(i64 rowid) { return on_equal(seek(rowid)); }
  Hit seek_at_least(i64 rowid) { return forward(seek(rowid), false); }
  Hit seek_above(i64 rowid) { return forward(seek(rowid), true); }
  Hit seek_at_most(i64 rowid) { return backward(seek(rowid), false); }
  Hit seek_below(i64 rowid) { return backward(seek(rowid), true); }

  // Seeks by key (index trees).
  Seek seek(const KeyProbe& probe);
  Hit seek_equal(const KeyProbe& probe) { return on_equal(seek(probe)); }
  Hit seek_at_least(const KeyProbe& probe) { return forward(seek(probe), false); }
  Hit seek_above(const KeyProbe& probe) { return forward(seek(probe), true); }
  Hit seek_at_most(const KeyProbe& probe) { return backward(seek(probe), false); }
  Hit seek_below(const KeyProbe& probe) { return backward(seek(probe), true); }

  // On a row? False after a seek that found nothing, a kEnd, or when the row was erased.
  bool on_row() const {
    return state_ == State::kRow || (state_ == State::kSaved && saved_on_row_);
  }
  // Finds a saved place again; kEnd when its row is gone (the cursor is then between its
  // neighbours: next() and previous() go on from there). Call before reading when others may have
  // changed the tree.
  Hit restore() { return state_ == State::kRow ? Hit::kRow : restore_slow(); }

  // The row under the cursor. REQUIRES: on a row, restored.
  i64 rowid() { return cell().rowid; }
  u32 payload_bytes() { return cell().size; }
  // What of the payload lies on the page, without a copy. At least as much as the record header
  // needs, nearly always; check against payload_bytes().
  ByteView local_payload() {
    const Cell& c = cell();
    return {c.payload, c.local};
  }
  // The whole payload: a view of the page, or of the cursor's buffer when it overflows.
  Hit payload(ByteView* out) {
    const Cell& c = cell();
    if (c.local == c.size) [[likely]] {
      *out = {c.payload, c.size};
      return Hit::kRow;
    }
    return payload_prefix(c.size, out);
  }
  // At least the first `bytes` of it (or all).
  Hit payload_prefix(u32 bytes, ByteView* out);
  // Any range; fails with kCorruption past the end.
  Hit read_payload(u32 offset, Bytes out);
  // Overwrites a range in place (incremental blob writes); the size stays.
  Hit write_payload(u32 offset, ByteView data);
  // A malformed cell reads as an empty payload here; payload() and the seeks report it.
  const Cell& cell() {
    if (!cell_known_) [[unlikely]]
      parse_cell();
    return cell_;
  }

  // The page under the cursor, for readers that keep views of several pages: Pager::pin() it.
  Page* page() { return levels_[depth_].page; }

  // Rows of the current leaf from the current one on, for batch decoding: fills `out`, returns how
  // many. The cursor then stands on the last of them; next() goes on behind. Table trees.
  u32 batch(Cell* out, u32 capacity);

  // Inserts or replaces. Ascending inserts append without a search; a seek that just missed this
  // very key, or a cursor near by, saves the search. `zero_tail` adds that many zero bytes to the
  // payload. Afterwards the cursor stands on the new row.
  Hit insert(i64 rowid, ByteView payload, u32 zero_tail = 0);
  // Index trees: replaces a record that compares equal. `probe` compares like the record does;
  // without it the KeyOrder is used.
  Hit insert(ByteView record, const KeyProbe* probe = nullptr);
  // Gives the row under the cursor another payload. Table trees. REQUIRES: on a row, whose rowid
  // this is.
  Hit overwrite(i64 rowid, ByteView payload);
  // Index trees, records known to come in ascending order (bulk builds): no comparison at all.
  Hit append(ByteView record);
  // Removes the row under the cursor. next() then gives the one after it, previous() the one
  // before.
  Hit erase();

  // Rows in the tree; reads each leaf's header.
  base::Result<i64> count();
  // Rows in the tree, guessed from one path down. For planning.
  base::Result<i64> estimate_rows();
  // Where in the tree the cursor stands, 0 to 1, guessed from the path. For range estimates.
  f64 relative_position() const;
  // Is the tree without rows?
  base::Result<bool> empty();

  const base::Error& error() const { return *error_; }

 private:
  friend class Store;
  friend class TreeWriter;
  // kRow: on levels_[depth_]'s cell. kErased: between rows, see lean_. kSaved: the pages are let
  // go, the place is in saved_*. kFault: the transaction was rolled back under it.
  enum class State : u8 { kNone, kRow, kErased, kSaved, kFault };
  struct Level {
    Page* page;
    u32 index;
  };
  static constexpr int kMaxDepth = 20;

  Hit on_equal(Seek seek) {
    if (seek == Seek::kEqual) return Hit::kRow;
    return seek == Seek::kError ? Hit::kError : Hit::kEnd;
  }
  Hit forward(Seek seek, bool strictly) {
    if (seek == Seek::kAfter || (seek == Seek::kEqual && !strictly)) return Hit::kRow;
    if (seek == Seek::kEmpty) return Hit::kEnd;
    return seek == Seek::kError ? Hit::kError : next();
  }
  Hit backward(Seek seek, bool strictly) {
    if (seek == Seek::kBefore || (seek == Seek::kEqual && !strictly)) return Hit::kRow;
    if (seek == Seek::kEmpty) return Hit::kEnd;
    return seek == Seek::kError ? Hit::kError : previous();
  }
  Level& top() { return levels_[depth_]; }
  bool positioned() const { return state_ == State::kRow || state_ == State::kErased; }
  Hit next_slow();
  Hit advance();
  Hit retreat();
  Hit restore_slow();
  bool parse_cell();
  Hit fail(base::Error error);
  Hit fail_pager();
  Hit corrupt(const char* what);
  void unpin_all();
  bool push_child(PageNo child);
  void pop() { Pager::unpin(levels_[depth_--].page); }
  bool go_root();
  bool on_last_leaf() const;
  Hit leftmost();
  Hit rightmost();
  Hit save_place();
  Hit copy_key();
  bool compare(const Page& page, u32 index, const KeyProbe& probe, int* answer);
  bool is_on_leaf(const KeyProbe& probe, int* answer);
  bool search_page(const KeyProbe& probe, bool* failed);
  template <FirstColumn::Kind kind>
  bool search_cells(const KeyProbe& probe, bool* failed);
  Hit transfer(u32 offset, u8* out, const u8* in, u32 bytes);
  Hit put(Seek seek, i64 rowid, ByteView payload, u32 zero_tail);
  Hit ready_to_write();
  Hit erase_interior();
  Hit replace_interior_row(ByteView payload, u32 bytes, u32 local);

  Store* store_ = nullptr;
  Pager* pager_ = nullptr;
  PageNo root_ = 0;
  u32 usable_ = 0;
  State state_ = State::kNone;
  bool cell_known_ = false;
  bool saved_on_row_ = false;
  // kErased: below 0 the cell under the cursor is the row before the place, above 0 the one after
  // it (there may be none: index == cell_count).
  i8 lean_ = 0;
  int depth_ = -1;
  Level levels_[kMaxDepth];
  Cell cell_;
  const KeyOrder* order_ = nullptr;
  i64 saved_rowid_ = 0;
  std::vector<u8> saved_key_;
  std::vector<u8> buffer_;  // the assembled payload; its first buffered_ bytes are this row's
  u32 buffered_ = 0;
  std::vector<PageNo> overflow_;  // pages of this row's chain, as far as they were walked
  std::unique_ptr<base::Error> error_;
  Cursor* next_cursor_ = nullptr;  // the Store's list
  Cursor* prev_cursor_ = nullptr;
};

enum class AutoVacuum : u8 { kNone = 0, kFull = 1, kIncremental = 2 };

struct StoreOptions {
  PagerOptions pager;
};

class Store {
 public:
  // `path` empty: a database in memory. The file is touched at the first transaction only.
  static base::Result<std::unique_ptr<Store>> open(const std::string& path, StoreOptions options);
  // A memory database from the bytes of a file (deserialize). kCorruption when it is not a
  // database.
  static base::Result<std::unique_ptr<Store>> open_image(ByteView image);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Pager& pager() { return *pager_; }
  bool in_memory() const { return pager_->in_memory(); }
  const std::string& path() const { return pager_->path(); }

  // Transactions. begin_read takes a snapshot (or does nothing inside one); begin_write may follow
  // it. kBusy after the busy handler gave up; kConflict when the snapshot is no longer the newest.
  TransactionState state() const { return state_; }
  base::Status begin_read() {
    if (state_ != TransactionState::kNone) return {};
    return begin_read_slow();
  }
  base::Status begin_write(bool exclusive = false);
  // Makes it durable. On error the transaction is still there: roll back or (kBusy) try again.
  base::Status commit();
  // Two halves for transactions over several files: phase one makes everything durable but not yet
  // final, naming the super-journal; phase two cannot fail in a way that loses the transaction.
  base::Status commit_phase_one(const std::string& super_journal);
  base::Status commit_phase_two();
  // Undoes the transaction. Cursors lose their place when `trip_cursors`, else keep it.
  base::Status rollback(bool trip_cursors = true);
  // Ends a read transaction. REQUIRES: not writing.
  void end_read();

  // Savepoints nest; they are numbered from 0 inside the write transaction. Statement journals are
  // savepoints. REQUIRES: writing.
  int savepoint_count() const { return pager_->savepoint_count(); }
  int open_savepoint() { return pager_->open_savepoint(); }
  // Keeps the changes; savepoint `index` and those inside it are gone.
  void release_savepoint(int index) { pager_->release_savepoint(index); }
  // Undoes the changes since it was opened; it stays open, those inside it are gone.
  base::Status rollback_savepoint(int index);

  // Header values. REQUIRES: a transaction (reading); writing for set_meta.
  u32 meta(Meta which) const {
    return base::load_be32(page_one_->data + kAtMeta + 4 * static_cast<u32>(which));
  }
  base::Status set_meta(Meta which, u32 value);
  // Changes whenever the content may have changed through another connection, and never otherwise.
  u32 data_version() const { return pager_->data_version(); }

  // Trees. Cursors on a tree that is dropped or cleared must be closed first. Writing.
  base::Result<PageNo> create_tree(TreeKind kind);
  // The root that moved into the freed one's place in auto-vacuum files, else 0: the schema entry
  // with that root must be changed to `root`.
  base::Result<PageNo> drop_tree(PageNo root);
  // Removes all rows; how many there were (table trees and index trees alike).
  base::Result<i64> clear_tree(PageNo root);
  // Copies all rows of `source` (any store, same kind) behind the rows of `root`, in order, bytes
  // as they are. For INSERT INTO a SELECT * FROM b, and VACUUM.
  base::Status copy_tree(PageNo root, Store& source, PageNo source_root);

  // Settings. Page size, reserved bytes and auto-vacuum count for files without content (else they
  // wait for VACUUM; the setter answers kInvalidArgument for values that cannot be).
  base::Status set_page_size(u32 page_bytes, u32 reserved_bytes);
  base::Status set_auto_vacuum(AutoVacuum mode);
  // Answers the mode that holds afterwards: memory databases know kMemory and kOff only. Into and
  // out of WAL mode only outside a transaction; out of it needs the file for itself (kBusy).
  base::Result<JournalMode> set_journal_mode(JournalMode mode);
  AutoVacuum auto_vacuum() const { return auto_vacuum_; }
  u32 page_bytes() const { return pager_->page_bytes(); }
  u32 usable_bytes() const { return pager_->usable_bytes(); }
  bool secure_delete() const { return secure_delete_; }
  void set_secure_delete(bool on) { secure_delete_ = on; }
  // In a transaction.
  PageNo page_count() const { return pager_->page_count(); }

  // Frees up to `pages` pages at the end of an auto-vacuum file (0: all it can). Writing.
  base::Result<u32> incremental_vacuum(u32 pages);
  // Replaces the whole content with that of `source` (VACUUM's last step). Writing here, reading
  // there; memory databases and files in WAL mode keep their page size (kPermission). The schema
  // cookie changes.
  base::Status replace_content(Store& source);
  // The bytes of the file this database is. Reading.
  base::Result<std::vector<u8>> serialize();

  // Walks all pages; sentences like SQLite's, at most `max_messages`; empty when all is well.
  // `roots` are those in the schema, 1 is added by itself. Reading.
  base::Result<std::vector<std::string>> integrity_check(const std::vector<PageNo>& roots,
                                                         int max_messages = 100);

 private:
  friend class Cursor;
  friend class TreeWriter;
  friend class IntegrityCheck;
  friend class Backup;
  explicit Store(std::unique_ptr<Pager> pager) : pager_(std::move(pager)) {}
  base::Status begin_read_slow();
  base::Status create_header();
  void trip_cursors(bool keep_places);
  // Before tree `root` changes through `but`: every other cursor on it lets its pages go.
  Hit save_others(PageNo root, Cursor* but);
  base::Result<Page*> get(PageNo number);
  base::Result<Page*> get_node(PageNo number, bool table);
  base::Result<bool> is_table_tree(PageNo root);
  base::Status begin_replace(Store& source);
  base::Status copy_page(Store& source, PageNo number);
  base::Status finish_replace(Store& source);
  base::Status corrupt(const char* what) const;

  // free_list.cc. `near`: where the page would best lie (0: anywhere). Pinned, zeroed and writable.
  base::Result<Page*> allocate_page(PageNo near);
  base::Status free_page(PageNo number);
  base::Status free_overflow(const Cell& cell);
  base::Status free_tree(PageNo number, bool table, bool keep_root, int depth, i64* rows);

  // auto_vacuum.cc. Pointer map entries; nothing happens in files without auto-vacuum.
  enum class MapType : u8 { kRoot = 1, kFree = 2, kOverflowFirst = 3, kOverflow = 4, kNode = 5 };
  bool is_map_page(PageNo number) const;
  PageNo map_page_of(PageNo number) const;
  base::Status map_put(PageNo number, MapType type, PageNo parent);
  base::Status map_get(PageNo number, MapType* type, PageNo* parent);
  base::Status map_children(Page& page);
  base::Status relocate(PageNo from, PageNo to, MapType type, PageNo parent);
  base::Result<PageNo> take_free(PageNo wanted, PageNo limit);
  base::Result<Page*> allocate_root();
  base::Status finish_root(PageNo root);
  base::Result<PageNo> close_root_gap(PageNo root);
  base::Result<bool> vacuum_step(PageNo final_count, PageNo last, bool commit);
  base::Status auto_vacuum_commit();
  PageNo final_page_count(PageNo count, PageNo free) const;

  std::unique_ptr<Pager> pager_;
  TransactionState state_ = TransactionState::kNone;
  AutoVacuum auto_vacuum_ = AutoVacuum::kNone;
  bool secure_delete_ = false;
  PageNo replaced_by_ = 0;  // pages of the database whose content this transaction put here
  u32 old_cookie_ = 0;
  Page* page_one_ = nullptr;  // pinned during transactions
  Cursor* cursors_ = nullptr;
};

}  // namespace db
