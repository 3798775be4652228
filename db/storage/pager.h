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
#include "db/storage/page.h"
#include "db/storage/vfs.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace db {

enum class JournalMode : u8 { kDelete, kPersist, kOff, kTruncate, kMemory, kWal };
enum class Synchronous : u8 { kOff, kNormal, kFull, kExtra };
enum class CheckpointMode : u8 { kPassive, kFull, kRestart, kTruncate };

struct CheckpointResult {
  bool busy = false;
  int log_frames = -1;  // -1: not in WAL mode
  int checkpointed_frames = -1;
};

struct PagerOptions {
  Vfs* vfs = nullptr;  // null: posix_vfs()
  bool read_only = false;
  bool create = true;
  // Called when a lock is taken, with the number of calls so far; true: try again.
  std::function<bool(int)> busy;
};

class Wal;
class Journal;

class Pager {
 public:
  static base::Result<std::unique_ptr<Pager>> open(const std::string& path, PagerOptions options);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  bool in_memory() const { return file_ == nullptr; }
  bool read_only() const { return options_.read_only; }
  const std::string& path() const { return path_; }
  u32 page_bytes() const { return page_bytes_; }
  u32 usable_bytes() const { return usable_bytes_; }
  PageNo page_count() const { return page_count_; }
  u32 data_version() const { return data_version_; }

  // Settings, each as its pragma. A mode that cannot be set now leaves the old one; the answer is
  // what holds afterwards.
  base::Result<JournalMode> set_journal_mode(JournalMode mode);
  JournalMode journal_mode() const { return journal_mode_; }
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
  base::Status set_page_size(u32 page_bytes, u32 reserved_bytes);

  base::Result<CheckpointResult> checkpoint(CheckpointMode mode);
  // Frames in the log after the last commit of this connection (0 outside WAL mode), for wal hooks.
  int wal_frames() const { return wal_frames_; }

  // Transactions (Store drives these).
  base::Status begin_read();
  base::Status begin_write(bool exclusive);
  base::Status commit_phase_one(const std::string& super_journal);
  base::Status commit_phase_two();
  base::Status rollback();
  void end_read();
  int savepoint_count() const { return static_cast<int>(savepoints_.size()); }
  int open_savepoint();
  void release_savepoint(int index);
  base::Status rollback_savepoint(int index);

  // Pages. get() pins; unpin() when done.
  Page* get(PageNo number) {
    // What is in memory comes without a call; null: see error().
    if (number < table_.size()) [[likely]] {
      Page* page = table_[number];
      if (page != nullptr) [[likely]] {
        pin(page);
        return page;
      }
    }
    return fetch(number);
  }
  void pin(Page* page) {
    if (page->pins++ == 0 && page->in_recency) leave_recency(page);
  }
  void unpin(Page* page) {
    if (--page->pins == 0 && !in_memory()) enter_recency(page);
  }
  // Before the first change of a page: keeps what a rollback needs.
  bool make_writable(Page* page) {
    if (page->saved_epoch >= epoch_) [[likely]]
      return true;
    return make_writable_slow(page);
  }
  const base::Error& error() const { return *error_; }

  // A zeroed page behind the last, pinned and writable; null on error. Skips the lock page.
  Page* extend();
  // A page whose content does not matter, pinned and writable (it comes from the freelist).
  Page* get_blank(PageNo number);
  // Cuts the file; pages behind `pages` are gone. Pinned pages among them are a mistake.
  void truncate(PageNo pages);

 private:
  friend class Journal;
  friend class Wal;
  struct Undo {
    Page* page_hint;
    PageNo number;
    u8* image;  // null: the page was new
    u64 saved_epoch;
  };
  struct Savepoint {
    u64 epoch;
    size_t undo_at;
    PageNo page_count;
  };

  Pager() = default;
  Page* fetch(PageNo number);
  bool make_writable_slow(Page* page);
  void leave_recency(Page* page);
  void enter_recency(Page* page);

  std::string path_;
  PagerOptions options_;
  std::unique_ptr<VfsFile> file_;
  u32 page_bytes_ = kDefaultPageBytes;
  u32 usable_bytes_ = kDefaultPageBytes;
  PageNo page_count_ = 0;
  u32 data_version_ = 1;
  u64 epoch_ = 0;
  std::vector<Page*> table_;
  std::vector<Undo> undo_;
  std::vector<Savepoint> savepoints_;
  std::unique_ptr<base::Error> error_;
  JournalMode journal_mode_ = JournalMode::kDelete;
  Synchronous synchronous_ = Synchronous::kFull;
  bool locking_exclusive_ = false;
  PageNo max_page_count_ = 0xfffffffe;
  i64 journal_size_limit_ = -1;
  int wal_autocheckpoint_ = 1000;
  int wal_frames_ = 0;
};

}  // namespace db
