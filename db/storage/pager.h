// Pages of one database as one connection sees them: a cache over a file (or no file at all),
// atomic transactions with nested savepoints, durability by rollback journal or write-ahead log.
//
// A memory database is a pager without a file: pages stay where they are, no checksums, no copies
// but the undo images of pages that a transaction changes.
//
// Savepoints: every one has an epoch, larger than all before. A page whose image was kept at epoch
// e needs no further copy for savepoints opened before; undoing walks the log backwards.
//
// Errors: see btree.h. Single-threaded.
#pragma once

#include "base/result.h"
#include "db/storage/page_cache.h"
#include "db/storage/pager_types.h"
#include "db/storage/vfs.h"
#include "db/storage/wal.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace db {

struct PagerOptions {
  Vfs* vfs = nullptr;  // null: posix_vfs()
  bool read_only = false;
  bool create = true;
  // Called when a lock is taken, with the number of calls so far; true: try again.
  std::function<bool(int)> busy;
};

class Pager {
 public:
  static base::Result<std::unique_ptr<Pager>> open(const std::string& path, PagerOptions options);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  bool in_memory() const { return file_ == nullptr; }
  bool read_only() const { return options_.read_only; }
  const std::string& path() const { return path_; }
  Vfs& vfs() { return *options_.vfs; }
  u32 page_bytes() const { return page_bytes_; }
  u32 usable_bytes() const { return usable_bytes_; }
  PageNo page_count() const { return page_count_; }
  u32 data_version() const { return data_version_; }

  // Settings, each as its pragma. The journal mode is set through the Store.
  JournalMode journal_mode() const { return wal_ ? JournalMode::kWal : journal_mode_; }
  void set_synchronous(Synchronous level) { synchronous_ = level; }
  Synchronous synchronous() const { return synchronous_; }
  // Pages when positive, KiB when negative, as in PRAGMA cache_size.
  void set_cache_size(i64 size);
  void set_locking_exclusive(bool on) { locking_exclusive_ = on; }
  bool locking_exclusive() const { return locking_exclusive_; }
  void set_max_page_count(PageNo pages) { max_page_count_ = pages; }
  PageNo max_page_count() const { return max_page_count_; }
  void set_journal_size_limit(i64 bytes) { journal_size_limit_ = bytes; }
  i64 journal_size_limit() const { return journal_size_limit_; }
  // 0: never by itself.
  void set_wal_autocheckpoint(int frames) { wal_autocheckpoint_ = frames; }
  int wal_autocheckpoint() const { return wal_autocheckpoint_; }
  void set_busy_handler(std::function<bool(int)> busy) { options_.busy = std::move(busy); }
  // The busy handler's word on whether to try again, after `calls` tries.
  bool wait_for_lock(int calls) const { return options_.busy && options_.busy(calls); }
  base::Status set_page_size(u32 page_bytes, u32 reserved_bytes);

  // Not within a transaction of this connection.
  base::Result<CheckpointResult> checkpoint(CheckpointMode mode);
  // One of the rollback modes; leaves WAL mode alone.
  base::Status use_rollback_mode(JournalMode mode);
  // Copies the log back, removes it. Needs the file for itself (kBusy). The header still says WAL.
  base::Status leave_wal();
  // The next transaction looks at the header afresh (its versions were changed).
  void forget_header() { header_known_ = false; }
  // Frames in the log after the last commit of this connection (0 outside WAL mode), for wal hooks.
  int wal_frames() const { return wal_frames_; }

  // Transactions (Store drives these).
  base::Status begin_read();
  base::Status begin_write(bool exclusive);
  // Page count, change counter and library version go into the header. Before commit_phase_one.
  base::Status stamp_page_one(Page* page_one, PageNo page_count);
  base::Status commit_phase_one(const std::string& super_journal);
  base::Status commit_phase_two();
  base::Status rollback();
  void end_read();
  bool writing() const { return writing_; }
  // Grows with every write transaction of this connection that was begun.
  u64 change_count() const { return last_epoch_; }
  int savepoint_count() const { return static_cast<int>(savepoints_.size()); }
  int open_savepoint();
  void release_savepoint(int index);
  base::Status rollback_savepoint(int index);

  // Pages. get() pins; unpin() when done. Null on error: see error().
  Page* get(PageNo number) {
    Page* page = cache_->find(number);
    if (page != nullptr) [[likely]] {
      page->pins++;
      page->referenced = true;
      return page;
    }
    return fetch(number);
  }
  static void pin(Page* page) { page->pins++; }
  static void unpin(Page* page) { page->pins--; }
  // Before the first change of a page: keeps what a rollback needs. False on error.
  bool make_writable(Page* page) {
    if (page->saved_epoch >= epoch_) [[likely]]
      return true;
    return make_writable_slow(page);
  }
  const base::Error& error() const { return *error_; }

  // The number of the page behind the last one (the lock page is skipped).
  PageNo next_page() const;
  // A page whose content does not matter, zeroed, pinned and writable. It may lie behind the last
  // page: the database grows. Null on error.
  Page* get_blank(PageNo number);
  // Cuts the database; nothing behind `pages` may be pinned.
  base::Status truncate(PageNo pages);
  // Takes page `from` out of its place and puts its content at `to`, whose content is lost.
  base::Status move_page(Page* from, PageNo to);
  // Page-sized buffers, and one page of room for whoever needs it within one call.
  u8* take_buffer() { return cache_->take_buffer(); }
  void give_buffer(u8* buffer) { cache_->give_buffer(buffer); }
  u8* scratch() { return scratch_.get(); }

 private:
  // What one page was before a change.
  struct Undo {
    PageNo number;
    u8* image;
    u64 saved_epoch;  // of the page then
  };
  struct Savepoint {
    u64 epoch;
    size_t undo_at;  // changes since then lie from here on in undo_
    PageNo page_count;
  };

  explicit Pager(PagerOptions options) : options_(std::move(options)) {}
  void use_page_size(u32 page_bytes, u32 reserved_bytes);
  Page* fetch(PageNo number);
  base::Status read_page(Page* page);
  bool make_writable_slow(Page* page);
  Page* fail(base::Error error);
  void undo_to(size_t undo_at, PageNo page_count);
  void drop_behind(PageNo pages);
  void drop_changed();
  void finish_write();

  // pager_file.cc
  std::string journal_path() const { return path_ + "-journal"; }
  bool journals_to_disk() const {
    return journal_mode_ != JournalMode::kOff && journal_mode_ != JournalMode::kMemory;
  }
  base::Status try_begin_read();
  base::Status read_header();
  base::Status roll_back_hot_journal();
  base::Result<bool> journal_is_hot();
  base::Status play_journal(VfsFile& journal);
  base::Status begin_wal_read();
  base::Status wait_for_exclusive();
  std::vector<Page*> changed_pages();
  base::Status write_rollback_commit(const std::string& super_journal);
  base::Status write_wal_commit();
  base::Status write_originals(const std::string& super_journal);
  base::Status finish_journal();
  base::Status undo_file();

  std::string path_;
  PagerOptions options_;
  std::unique_ptr<VfsFile> file_;
  std::unique_ptr<PageCache> cache_;
  std::unique_ptr<u8[]> scratch_;
  u32 page_bytes_ = 0;
  u32 usable_bytes_ = 0;
  PageNo page_count_ = 0;
  PageNo original_count_ = 0;  // when the write transaction began
  u32 data_version_ = 1;
  bool reading_ = false;
  bool writing_ = false;
  u64 epoch_ = ~u64{0};      // of the innermost savepoint; all ones: nothing may be written
  u64 txn_epoch_ = ~u64{0};  // of the write transaction
  u64 last_epoch_ = 0;
  std::vector<Undo> undo_;
  std::vector<PageNo> changed_;  // numbers of pages changed in this transaction; some twice
  std::vector<Savepoint> savepoints_;
  std::unique_ptr<base::Error> error_;

  std::unique_ptr<Wal> wal_;
  std::unique_ptr<VfsFile> journal_;
  bool journal_written_ = false;  // the file may hold part of this transaction
  bool wrote_super_ = false;
  bool header_known_ = false;
  u8 file_version_[16] = {};  // bytes 24 to 39 of the header as last seen
  size_t shrink_at_ = 500;    // cached pages at which to look for pages to let go
  JournalMode journal_mode_ = JournalMode::kDelete;
  Synchronous synchronous_ = Synchronous::kFull;
  bool locking_exclusive_ = false;
  i64 cache_size_ = -2000;
  size_t cache_pages_ = 500;
  PageNo max_page_count_ = 0xfffffffe;
  i64 journal_size_limit_ = -1;
  int wal_autocheckpoint_ = 1000;
  int wal_frames_ = 0;
};

}  // namespace db
