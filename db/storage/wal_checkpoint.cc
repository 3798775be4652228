// Checkpoints: frames of the log go back into the database file.
#include "base/random.h"
#include "db/storage/wal.h"

#include <algorithm>
#include <cstring>

namespace db {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

static volatile u32* info_word(volatile u8* shared, size_t offset) {
  return reinterpret_cast<volatile u32*>(shared + 2 * sizeof(WalIndexHeader) + offset);
}
static u32 load_word(volatile u8* shared, size_t offset) {
  return __atomic_load_n(const_cast<const u32*>(info_word(shared, offset)), __ATOMIC_RELAXED);
}
static void store_word(volatile u8* shared, size_t offset, u32 value) {
  __atomic_store_n(const_cast<u32*>(info_word(shared, offset)), value, __ATOMIC_RELAXED);
}
static size_t mark_offset(u32 slot) {
  return offsetof(WalCheckpointInfo, read_mark) + 4 * slot;
}

static bool is_busy(const Status& status) {
  return !status.ok() && status.error().code() == ErrorCode::kBusy;
}

Status Wal::lock_waiting(u32 slot, u32 count, const std::function<bool(int)>& busy) {
  for (int calls = 0;; calls++) {
    Status taken = lock_exclusive(slot, count);
    if (!is_busy(taken) || !busy || !busy(calls)) return taken;
  }
}

// The last frame that no reader's snapshot ends before. Marks that nobody holds are moved on.
Result<u32> Wal::safe_frame(const std::function<bool(int)>& busy) {
  u32 safe = header_.max_frame;
  bool wait = static_cast<bool>(busy);
  for (u32 slot = 1; slot < kReadMarks; slot++) {
    if (safe <= load_word(shared_, mark_offset(slot))) continue;
    Status taken =
        wait ? lock_waiting(kWalReadLock + slot, 1, busy) : lock_exclusive(kWalReadLock + slot, 1);
    if (taken.ok()) {
      store_word(shared_, mark_offset(slot), slot == 1 ? safe : kReadMarkUnused);
      unlock_exclusive(kWalReadLock + slot, 1);
    } else if (is_busy(taken)) {
      safe = load_word(shared_, mark_offset(slot));
      wait = false;
    } else {
      return std::move(taken).error();
    }
  }
  return safe;
}

// Writes the newest version of each page among frames (from, to] to the database, in page order.
Status Wal::write_back(u32 from, u32 to, bool sync) {
  // Larger than the file and all that the log brings, the page of locks included, no commit makes
  // it.
  const u64 possible = TRY(database_.size()) + 65'536 + u64{header_.max_frame} * page_bytes_;
  if (u64{header_.page_count} * page_bytes_ > possible)
    return Error(ErrorCode::kCorruption, "the log states a database larger than can be");
  std::vector<std::pair<PageNo, u32>> pages;
  for (u32 frame = from + 1; frame <= to; frame++) {
    WalBlock table = TRY(block(block_of(frame)));
    if (table.pages == nullptr) return Error(ErrorCode::kCorruption, "the wal-index is malformed");
    PageNo number = table.pages[frame - table.first - 1];
    if (number <= header_.page_count) pages.emplace_back(number, frame);
  }
  std::sort(pages.begin(), pages.end());
  if (sync) TRY(sync_log());
  // Up to 64 neighbours go out in one write.
  constexpr size_t kBatch = 64;
  std::vector<u8> buffer(kBatch * page_bytes_);
  std::vector<WritePiece> pieces;
  for (size_t i = 0; i < pages.size(); i++) {
    bool newest = i + 1 == pages.size() || pages[i + 1].first != pages[i].first;
    if (!newest) continue;
    Bytes room(buffer.data() + pieces.size() * page_bytes_, page_bytes_);
    TRY(read_frame(pages[i].second, room));
    pieces.push_back({u64{pages[i].first - 1} * page_bytes_, room});
    if (pieces.size() == kBatch) {
      TRY(database_.write_pieces(pieces));
      pieces.clear();
    }
  }
  if (!pieces.empty()) TRY(database_.write_pieces(pieces));
  if (to == header_.max_frame) {
    u64 bytes = u64{header_.page_count} * page_bytes_;
    if (TRY(database_.size()) > bytes) TRY(database_.truncate(bytes));
  }
  return sync ? database_.sync(true) : Status{};
}

Status Wal::copy_back(const std::function<bool(int)>& busy, bool sync) {
  u32 backfilled = load_word(shared_, offsetof(WalCheckpointInfo, backfilled));
  if (backfilled >= header_.max_frame) return {};
  u32 safe = TRY(safe_frame(busy));
  if (safe <= backfilled) return {};
  // Readers of the database file alone must not see half of it.
  Status taken = lock_waiting(kWalReadLock, 1, busy);
  if (!taken.ok()) return is_busy(taken) ? Status{} : taken;
  store_word(shared_, offsetof(WalCheckpointInfo, backfill_attempted), safe);
  Status status = write_back(backfilled, safe, sync);
  if (status.ok()) store_word(shared_, offsetof(WalCheckpointInfo, backfilled), safe);
  unlock_exclusive(kWalReadLock, 1);
  return status;
}

// With all copied back: waits for the readers of the log to go, so that the next writer can start
// anew.
Status Wal::restart_for(CheckpointMode mode, const std::function<bool(int)>& busy) {
  TRY(lock_waiting(kWalReadLock + 1, kReadMarks - 1, busy));
  Status status;
  if (mode == CheckpointMode::kTruncate) {
    u32 salt;
    base::secure_random_bytes({reinterpret_cast<u8*>(&salt), 4});
    restart_header(salt);
    status = log_->truncate(0);
  }
  unlock_exclusive(kWalReadLock + 1, kReadMarks - 1);
  return status;
}

Status Wal::checkpoint(CheckpointMode mode, const std::function<bool(int)>& busy, bool sync,
                       CheckpointResult* result) {
  bool changed = false;
  // Whichever way this ends: the pages that the pager keeps are of the snapshot before.
  struct Forget {
    Wal& wal;
    const bool& changed;
    ~Forget() {
      if (changed) wal.forget_snapshot();
    }
  } forget{*this, changed};
  TRY(read_index_header(&changed));
  Status locked = lock_exclusive(kWalCheckpointLock, 1);
  if (!locked.ok()) {
    if (is_busy(locked)) result->busy = true;
    return locked;
  }
  const std::function<bool(int)> none;
  const std::function<bool(int)>* wait = mode == CheckpointMode::kPassive ? &none : &busy;
  bool own_write = false;
  if (mode != CheckpointMode::kPassive && !writing_) {
    Status write = lock_waiting(kWalWriteLock, 1, busy);
    if (write.ok()) {
      writing_ = own_write = true;
    } else if (is_busy(write)) {
      result->busy = true;
      wait = &none;
      mode = CheckpointMode::kPassive;
    } else {
      unlock_exclusive(kWalCheckpointLock, 1);
      return write;
    }
  }
  // With the locks held the header holds still; a half-written one means a writer died, or writes.
  Status status;
  if (!copy_index_header(&changed)) {
    status = Error(ErrorCode::kBusy, "database is locked");
  } else {
    status = copy_back(*wait, sync);
  }
  u32 backfilled = load_word(shared_, offsetof(WalCheckpointInfo, backfilled));
  if (status.ok() && mode != CheckpointMode::kPassive) {
    if (backfilled < header_.max_frame) {
      result->busy = true;
    } else if (mode != CheckpointMode::kFull) {
      status = restart_for(mode, busy);
      if (is_busy(status)) {
        result->busy = true;
        status = {};
      }
    }
  }
  result->log_frames = static_cast<int>(header_.max_frame);
  result->checkpointed_frames =
      static_cast<int>(load_word(shared_, offsetof(WalCheckpointInfo, backfilled)));
  if (own_write) end_write();
  unlock_exclusive(kWalCheckpointLock, 1);
  return status;
}

Status Wal::close_and_remove(bool sync) {
  CheckpointResult result;
  TRY(checkpoint(CheckpointMode::kPassive, nullptr, sync, &result));
  if (result.checkpointed_frames != result.log_frames)
    return Error(ErrorCode::kBusy, "database is locked");
  log_ = nullptr;
  TRY(vfs_.remove(path_ + "-wal", false));
  database_.shm_unmap(true);
  shared_ = nullptr;
  return {};
}

}  // namespace db
