// The pager's dealings with its file: locks, snapshots, commits, recovery.
#include "base/check.h"
#include "db/storage/journal.h"
#include "db/storage/pager.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace db {

using base::Error;
using base::ErrorCode;
using base::load_be32;
using base::Result;
using base::Status;

static bool is_busy(const Status& status) {
  return !status.ok() && status.error().code() == ErrorCode::kBusy;
}

Status Pager::begin_read() {
  if (reading_) return {};
  if (in_memory()) {
    reading_ = true;
    return {};
  }
  for (int calls = 0;; calls++) {
    Status status = try_begin_read();
    if (status.ok()) {
      reading_ = true;
      return {};
    }
    if (wal_ == nullptr && !locking_exclusive_) (void)file_->unlock(LockLevel::kNone);
    if (!is_busy(status) || !wait_for_lock(calls)) return status;
  }
}

Status Pager::try_begin_read() {
  if (wal_ != nullptr) return begin_wal_read();
  // With the lock kept from the last transaction nothing can have changed.
  if (file_->lock_level() >= LockLevel::kShared && header_known_) return {};
  TRY(file_->lock(LockLevel::kShared));
  if (TRY(journal_is_hot())) TRY(roll_back_hot_journal());
  return read_header();
}

// Looks at the first page for what others did since the last transaction.
Status Pager::read_header() {
  u8 head[kFileHeaderBytes];
  size_t got = TRY(file_->read_at(0, head));
  if (got == 0) {
    if (page_count_ > 0) {
      cache_->clear();
      data_version_++;
    }
    page_count_ = 0;
    std::memset(file_version_, 0, sizeof(file_version_));
    header_known_ = true;
    return {};
  }
  if (header_known_ && page_count_ > 0 &&
      std::memcmp(head + kAtChangeCounter, file_version_, 16) == 0)
    return {};
  Error not_ours(ErrorCode::kCorruption, "file is not a database");
  if (got < kFileHeaderBytes || std::memcmp(head, kFileMagic, sizeof(kFileMagic)) != 0)
    return not_ours;
  u32 bytes = base::load_be16(head + kAtPageBytes);
  if (bytes == 1) bytes = kMaxPageBytes;
  u32 usable = bytes - head[kAtReservedBytes];
  if (bytes < kMinPageBytes || (bytes & (bytes - 1)) != 0 || usable < 480 ||
      head[kAtReadVersion] > 2 || head[21] != 64 || head[22] != 32 || head[23] != 32)
    return not_ours;
  if (header_known_) data_version_++;
  cache_->clear();
  use_page_size(bytes, head[kAtReservedBytes]);
  std::memcpy(file_version_, head + kAtChangeCounter, 16);
  PageNo in_file = static_cast<PageNo>(TRY(file_->size()) / bytes);
  page_count_ = load_be32(head + kAtPageCount);
  if (page_count_ == 0 || load_be32(head + kAtChangeCounter) != load_be32(head + kAtValidFor))
    page_count_ = in_file;
  header_known_ = true;
  if (head[kAtWriteVersion] > 2) options_.read_only = true;
  if (head[kAtReadVersion] == 2) {
    wal_ = TRY(Wal::open(*options_.vfs, *file_, path_, page_bytes_));
    return begin_wal_read();
  }
  if (page_count_ > in_file)
    return Error(ErrorCode::kCorruption, "database disk image is malformed: the file is too short");
  return {};
}

Status Pager::begin_wal_read() {
  bool changed = false;
  TRY(wal_->begin_read(&changed));
  if (!changed) return {};
  cache_->clear();
  data_version_++;
  if (wal_->frames() > 0 && wal_->page_bytes() != page_bytes_) use_page_size(wal_->page_bytes(), 0);
  page_count_ = wal_->page_count();
  if (page_count_ == 0) page_count_ = static_cast<PageNo>(TRY(file_->size()) / page_bytes_);
  return {};
}

// A journal that no living writer stands behind: the writer died in the middle of a commit.
Result<bool> Pager::journal_is_hot() {
  if (!TRY(options_.vfs->exists(journal_path()))) return false;
  if (TRY(file_->reserved_by_anyone())) return false;
  if (TRY(file_->size()) == 0) {
    // Belongs to a file that is gone.
    if (file_->lock(LockLevel::kReserved).ok()) {
      (void)options_.vfs->remove(journal_path(), false);
      (void)file_->unlock(LockLevel::kShared);
    }
    return false;
  }
  Result<std::unique_ptr<VfsFile>> journal =
      options_.vfs->open(journal_path(), {.read_only = true});
  if (!journal.ok()) {
    if (journal.error().code() == ErrorCode::kNotFound) return false;
    return journal.error();
  }
  u8 first = 0;
  TRY((*journal)->read_at(0, {&first, 1}));
  return first != 0;
}

Status Pager::roll_back_hot_journal() {
  if (read_only())
    return Error(ErrorCode::kPermission,
                 "a crash left a journal to roll back, but the file is read-only");
  TRY(file_->lock(LockLevel::kExclusive));
  // Somebody may have done it while we waited for the lock.
  if (TRY(options_.vfs->exists(journal_path()))) {
    std::unique_ptr<VfsFile> journal = TRY(options_.vfs->open(journal_path(), {}));
    TRY(play_journal(*journal));
  }
  header_known_ = false;
  cache_->clear();
  return file_->unlock(LockLevel::kShared);
}

// Plays the journal back and removes it.
Status Pager::play_journal(VfsFile& journal) {
  std::string super = TRY(super_name_of(journal));
  // A super-journal that is gone: the transaction over several files was committed.
  bool stale = !super.empty() && !TRY(options_.vfs->exists(super));
  if (!stale) TRY(play_back(journal, *file_));
  if (journal_mode_ == JournalMode::kPersist || journal_mode_ == JournalMode::kTruncate) {
    TRY(journal.truncate(0));
    TRY(journal.sync(false));
  } else {
    TRY(options_.vfs->remove(journal_path(), synchronous_ != Synchronous::kOff));
  }
  return super.empty() || stale ? Status{} : remove_super_if_done(*options_.vfs, super);
}

Status Pager::begin_write(bool exclusive) {
  if (writing_) return {};
  if (read_only()) return Error(ErrorCode::kPermission, "attempt to write a readonly database");
  if (wal_ != nullptr) {
    TRY(wal_->begin_write());
  } else if (!in_memory()) {
    TRY(file_->lock(LockLevel::kReserved));
    if (exclusive) {
      Status locked = wait_for_exclusive();
      if (!locked.ok()) {
        (void)file_->unlock(LockLevel::kShared);
        return locked;
      }
    }
  }
  writing_ = true;
  original_count_ = page_count_;
  epoch_ = txn_epoch_ = ++last_epoch_;
  return {};
}

Status Pager::wait_for_exclusive() {
  for (int calls = 0;; calls++) {
    Status status = file_->lock(LockLevel::kExclusive);
    if (!is_busy(status) || !wait_for_lock(calls)) return status;
  }
}

// The pages this transaction changed and kept, in order.
std::vector<Page*> Pager::changed_pages() {
  std::vector<Page*> pages;
  pages.reserve(changed_.size());
  for (PageNo number : changed_) {
    Page* page = number <= page_count_ ? cache_->find(number) : nullptr;
    if (page != nullptr && page->saved_epoch >= txn_epoch_) pages.push_back(page);
  }
  std::sort(pages.begin(), pages.end(), [](Page* a, Page* b) { return a->number < b->number; });
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  return pages;
}

Status Pager::commit_phase_one(const std::string& super_journal) {
  if (!writing_ || in_memory()) return {};
  return wal_ != nullptr ? write_wal_commit() : write_rollback_commit(super_journal);
}

Status Pager::write_wal_commit() {
  std::vector<Page*> pages = changed_pages();
  if (pages.empty() && page_count_ == original_count_) return {};
  if (pages.empty()) {
    // The size alone changed; a commit needs a frame to say so.
    Page* first = get(1);
    if (first == nullptr) return error();
    if (!make_writable(first)) return error();
    unpin(first);
    pages.push_back(first);
  }
  std::vector<WalPage> frames;
  frames.reserve(pages.size());
  for (Page* page : pages) frames.push_back({page->number, page->data});
  TRY(wal_->append(frames, page_count_, synchronous_ >= Synchronous::kFull,
                   synchronous_ >= Synchronous::kNormal));
  wal_frames_ = static_cast<int>(wal_->frames());
  return {};
}

Status Pager::write_rollback_commit(const std::string& super_journal) {
  std::vector<Page*> pages = changed_pages();
  if (pages.empty() && page_count_ == original_count_) return {};
  TRY(wait_for_exclusive());
  TRY(write_originals(super_journal));
  std::vector<WritePiece> pieces;
  pieces.reserve(pages.size());
  for (Page* page : pages)
    pieces.push_back({u64{page->number - 1} * page_bytes_, ByteView(page->data, page_bytes_)});
  TRY(file_->write_pieces(pieces));
  if (page_count_ < original_count_) TRY(file_->truncate(u64{page_count_} * page_bytes_));
  if (synchronous_ != Synchronous::kOff) TRY(file_->sync(page_count_ == original_count_));
  return {};
}

// Writes the journal: every page as it was, for those that were there.
Status Pager::write_originals(const std::string& super_journal) {
  if (!journals_to_disk()) return {};
  bool created = false;
  if (journal_ == nullptr) {
    created = !TRY(options_.vfs->exists(journal_path()));
    journal_ = TRY(options_.vfs->open(journal_path(), {.create = true}));
  }
  std::vector<JournalPage> originals;
  for (const Undo& undo : undo_)
    if (undo.saved_epoch < txn_epoch_ && undo.number <= original_count_)
      originals.push_back({undo.number, undo.image});
  journal_written_ = true;
  wrote_super_ = !super_journal.empty();
  bool sync = synchronous_ != Synchronous::kOff;
  TRY(write_journal(*journal_, originals,
                    {.page_bytes = page_bytes_,
                     .page_count = original_count_,
                     .sync = sync,
                     .sync_twice = synchronous_ >= Synchronous::kFull,
                     .super_journal = super_journal}));
  if (created && sync) TRY(options_.vfs->sync_directory_of(journal_path()));
  return {};
}

// The moment of commit in rollback mode: the journal stops being one.
Status Pager::finish_journal() {
  if (journal_ == nullptr || !journal_written_) return {};
  const bool extra = synchronous_ == Synchronous::kExtra;
  if (journal_mode_ == JournalMode::kTruncate ||
      (journal_mode_ == JournalMode::kPersist && wrote_super_)) {
    TRY(journal_->truncate(0));
    if (synchronous_ >= Synchronous::kFull) TRY(journal_->sync(false));
  } else if (journal_mode_ == JournalMode::kPersist) {
    u8 zeros[28] = {};
    TRY(journal_->write_at(0, ByteView(zeros, sizeof(zeros))));
    if (synchronous_ != Synchronous::kOff) TRY(journal_->sync(true));
    if (journal_size_limit_ >= 0 && TRY(journal_->size()) > static_cast<u64>(journal_size_limit_))
      TRY(journal_->truncate(static_cast<u64>(journal_size_limit_)));
  } else {
    journal_ = nullptr;
    TRY(options_.vfs->remove(journal_path(), extra));
  }
  return {};
}

Status Pager::commit_phase_two() {
  if (!in_memory()) {
    if (wal_ != nullptr) {
      wal_->end_write();
    } else {
      TRY(finish_journal());
      // What the header says now is what we know.
      Page* first = cache_->find(1);
      if (first != nullptr) std::memcpy(file_version_, first->data + kAtChangeCounter, 16);
      if (!locking_exclusive_) (void)file_->unlock(LockLevel::kShared);
    }
  }
  finish_write();
  return {};
}

void Pager::drop_changed() {
  for (PageNo number : changed_) {
    Page* page = cache_->find(number);
    if (page != nullptr && page->saved_epoch >= txn_epoch_) cache_->remove(page);
  }
}

// A commit failed half-way: the file may hold some of it.
Status Pager::undo_file() {
  if (!journal_written_ || journal_ == nullptr) return {};
  // Not even an exception may keep the journal from being closed: it is hot for the next reader.
  const std::unique_ptr<VfsFile> journal = std::move(journal_);
  try {
    return play_journal(*journal);
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kInternal, "out of memory");
  }
}

Status Pager::rollback() {
  // All cursors have let go of their pages; what is still pinned was lost when an allocation
  // failed.
  for (Page* page : cache_->pages()) page->pins = 0;
  if (!writing_) return {};
  Status status;
  if (wal_ != nullptr) {
    drop_changed();
    page_count_ = original_count_;
    wal_->end_write();
  } else {
    undo_to(0, original_count_);
    if (!in_memory()) {
      drop_changed();
      status = undo_file();
      // A journal that could not be played back stays: whoever opens the file next does it.
      if (!status.ok()) header_known_ = false;
      if (!locking_exclusive_ || !status.ok()) (void)file_->unlock(LockLevel::kShared);
    }
  }
  finish_write();
  return status;
}

void Pager::end_read() {
  if (!reading_) return;
  reading_ = false;
  if (in_memory()) return;
  if (wal_ != nullptr) {
    wal_->end_read();
    if (wal_autocheckpoint_ > 0 && wal_frames_ >= wal_autocheckpoint_) {
      wal_frames_ = 0;
      CheckpointResult result;
      (void)wal_->checkpoint(CheckpointMode::kPassive, nullptr, synchronous_ != Synchronous::kOff,
                             &result);
    }
  } else if (!locking_exclusive_) {
    (void)file_->unlock(LockLevel::kNone);
  }
}

Result<CheckpointResult> Pager::checkpoint(CheckpointMode mode) {
  CheckpointResult result;
  if (in_memory()) return result;
  if (reading_) return Error(ErrorCode::kBusy, "database table is locked");
  if (wal_ == nullptr) {
    // Only the header knows whether there is a log.
    TRY(begin_read());
    end_read();
    if (wal_ == nullptr) return result;
  }
  Status status = wal_->checkpoint(mode, options_.busy, synchronous_ != Synchronous::kOff, &result);
  if (!status.ok() && !result.busy) return std::move(status).error();
  return result;
}

Status Pager::use_rollback_mode(JournalMode mode) {
  if (writing_ && journal_written_) return {};
  bool leaves_file =
      journal_mode_ == JournalMode::kTruncate || journal_mode_ == JournalMode::kPersist;
  if (leaves_file && mode != journal_mode_ && mode != JournalMode::kTruncate &&
      mode != JournalMode::kPersist && !in_memory()) {
    // Nobody may be rolling back by it just now.
    journal_ = nullptr;
    if (file_->lock_level() >= LockLevel::kReserved) {
      TRY(options_.vfs->remove(journal_path(), false));
    } else {
      LockLevel before = file_->lock_level();
      if (file_->lock(LockLevel::kShared).ok() && file_->lock(LockLevel::kReserved).ok())
        TRY(options_.vfs->remove(journal_path(), false));
      (void)file_->unlock(before);
    }
  }
  journal_mode_ = mode;
  return {};
}

Status Pager::leave_wal() {
  if (wal_ == nullptr) return {};
  TRY(file_->lock(LockLevel::kExclusive));
  Status status = wal_->close_and_remove(synchronous_ != Synchronous::kOff);
  if (!status.ok()) {
    (void)file_->unlock(LockLevel::kShared);
    return status;
  }
  wal_ = nullptr;
  cache_->clear();
  // The lock stays until the header is written: nobody may open the log again in between.
  header_known_ = true;
  page_count_ = static_cast<PageNo>(TRY(file_->size()) / page_bytes_);
  return {};
}

}  // namespace db
