#include "db/storage/wal.h"

#include "base/clock.h"
#include "base/random.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace db {

using base::Error;
using base::ErrorCode;
using base::load_be32;
using base::Result;
using base::Status;
using base::store_be32;

static Error busy() {
  return Error(ErrorCode::kBusy, "database is locked");
}

// Shared memory changes under us: copies go through relaxed atomics, word by word.
static void copy_out(void* to, const volatile u8* from, size_t bytes) {
  auto* words = static_cast<u32*>(to);
  auto* source = reinterpret_cast<const volatile u32*>(from);
  for (size_t i = 0; i < bytes / 4; i++) words[i] = source[i];
}
static u32 load_shared(const volatile u32* at) {
  return __atomic_load_n(const_cast<const u32*>(at), __ATOMIC_RELAXED);
}
static void store_shared(volatile u32* at, u32 value) {
  __atomic_store_n(const_cast<u32*>(at), value, __ATOMIC_RELAXED);
}

static volatile u32* info_word(volatile u8* shared, size_t offset) {
  return reinterpret_cast<volatile u32*>(shared + 2 * sizeof(WalIndexHeader) + offset);
}
static volatile u32* backfilled_of(volatile u8* shared) {
  return info_word(shared, offsetof(WalCheckpointInfo, backfilled));
}
static volatile u32* attempted_of(volatile u8* shared) {
  return info_word(shared, offsetof(WalCheckpointInfo, backfill_attempted));
}
static volatile u32* mark_of(volatile u8* shared, u32 slot) {
  return info_word(shared, offsetof(WalCheckpointInfo, read_mark)) + slot;
}

Result<std::unique_ptr<Wal>> Wal::open(Vfs& vfs, VfsFile& database, const std::string& path,
                                       u32 page_bytes) {
  std::unique_ptr<Wal> wal(new Wal(vfs, database, path, page_bytes));
  wal->created_ = !TRY(vfs.exists(path + "-wal"));
  wal->log_ = TRY(vfs.open(path + "-wal", {.create = true}));
  return wal;
}

Wal::~Wal() {
  if (writing_) end_write();
  if (read_lock_ >= 0) end_read();
  database_.shm_unmap(false);
}

Result<WalBlock> Wal::block(u32 index) {
  u8* region = TRY(database_.shm_region(index, writing_));
  if (region == nullptr) return WalBlock{};
  WalBlock block;
  block.slots = reinterpret_cast<u16*>(region + kBlockFrames * 4);
  block.pages = reinterpret_cast<u32*>(region);
  block.capacity = kBlockFrames;
  if (index == 0) {
    block.pages += kWalIndexHeaderBytes / 4;
    block.capacity = kFirstBlockFrames;
  } else {
    block.first = kFirstBlockFrames + (index - 1) * kBlockFrames;
  }
  return block;
}

// Reads the two header copies; false when they disagree or are not valid yet.
bool Wal::copy_index_header(bool* changed) {
  WalIndexHeader first;
  WalIndexHeader second;
  copy_out(&first, shared_, sizeof(first));
  database_.shm_barrier();
  copy_out(&second, shared_ + sizeof(first), sizeof(second));
  if (!(first == second) || first.initialised == 0) return false;
  u32 sums[2] = {0, 0};
  wal_checksum(reinterpret_cast<const u8*>(&first), offsetof(WalIndexHeader, checksum), false,
               sums);
  if (sums[0] != first.checksum[0] || sums[1] != first.checksum[1]) return false;
  if (!(first == header_)) {
    *changed = true;
    header_ = first;
  }
  return true;
}

void Wal::write_index_header() {
  header_.initialised = 1;
  header_.version = kWalVersion;
  u32 sums[2] = {0, 0};
  wal_checksum(reinterpret_cast<const u8*>(&header_), offsetof(WalIndexHeader, checksum), false,
               sums);
  header_.checksum[0] = sums[0];
  header_.checksum[1] = sums[1];
  std::memcpy(const_cast<u8*>(shared_) + sizeof(header_), &header_, sizeof(header_));
  database_.shm_barrier();
  std::memcpy(const_cast<u8*>(shared_), &header_, sizeof(header_));
}

// The header as of now; recovers the index from the log when there is none.
Status Wal::read_index_header(bool* changed) {
  if (shared_ == nullptr) {
    u8* region = TRY(database_.shm_region(0, true));
    shared_ = region;
  }
  bool good = copy_index_header(changed);
  if (!good) {
    // Either a writer is in the middle of it, or the index was never built.
    TRY(lock_exclusive(kWalWriteLock, 1));
    writing_ = true;
    good = copy_index_header(changed);
    Status status;
    if (!good) {
      status = recover();
      *changed = true;
    }
    writing_ = false;
    unlock_exclusive(kWalWriteLock, 1);
    TRY(std::move(status));
  }
  if (header_.version != kWalVersion)
    return Error(ErrorCode::kUnsupported, "the write-ahead log has a version that is not known");
  u32 bytes = header_.page_bytes == 1 ? kMaxPageBytes : header_.page_bytes;
  if (bytes != 0) page_bytes_ = bytes;
  return {};
}

// Builds the index from the log: what a crash of all its users makes necessary.
Status Wal::recover() {
  TRY(lock_exclusive(kWalCheckpointLock, 2));
  header_ = {};
  Status status = scan_log();
  if (status.ok()) {
    header_.change++;
    write_index_header();
    store_shared(backfilled_of(shared_), 0);
    store_shared(attempted_of(shared_), header_.max_frame);
    store_shared(mark_of(shared_, 0), 0);
    for (u32 slot = 1; slot < kReadMarks; slot++) {
      if (!lock_exclusive(kWalReadLock + slot, 1).ok()) continue;
      bool newest = slot == 1 && header_.max_frame > 0;
      store_shared(mark_of(shared_, slot), newest ? header_.max_frame : kReadMarkUnused);
      unlock_exclusive(kWalReadLock + slot, 1);
    }
  }
  unlock_exclusive(kWalCheckpointLock, 2);
  return status;
}

Status Wal::scan_log() {
  u64 size = TRY(log_->size());
  u8 head[kWalHeaderBytes];
  if (size <= kWalHeaderBytes) return {};
  TRY(log_->read_at(0, head));
  u32 magic = load_be32(head);
  u32 bytes = load_be32(head + 8);
  bool power = bytes >= kMinPageBytes && bytes <= kMaxPageBytes && (bytes & (bytes - 1)) == 0;
  if ((magic & ~1u) != kWalMagic || !power) return {};
  bool big_endian = (magic & 1) != 0;
  u32 sums[2] = {0, 0};
  wal_checksum(head, 24, !big_endian ? false : true, sums);
  if (sums[0] != load_be32(head + 24) || sums[1] != load_be32(head + 28)) return {};
  if (load_be32(head + 4) != kWalVersion)
    return Error(ErrorCode::kUnsupported, "the write-ahead log has a version that is not known");
  header_.big_endian = big_endian;
  header_.page_bytes = static_cast<u16>((bytes & 0xff00) | (bytes >> 16));
  page_bytes_ = bytes;
  checkpoint_sequence_ = load_be32(head + 12);
  std::memcpy(header_.salt, head + 16, 8);
  header_.frame_checksum[0] = sums[0];
  header_.frame_checksum[1] = sums[1];

  std::vector<u8> frame(kWalFrameHeaderBytes + bytes);
  u32 last = static_cast<u32>((size - kWalHeaderBytes) / frame.size());
  for (u32 i = 1; i <= last; i++) {
    if (TRY(log_->read_at(offset_of(i), frame)) != frame.size()) break;
    PageNo number = load_be32(frame.data());
    if (std::memcmp(frame.data() + 8, header_.salt, 8) != 0 || number == 0) break;
    wal_checksum(frame.data(), 8, big_endian, sums);
    wal_checksum(frame.data() + kWalFrameHeaderBytes, bytes, big_endian, sums);
    if (sums[0] != load_be32(frame.data() + 16) || sums[1] != load_be32(frame.data() + 20)) break;
    TRY(index_put(i, number));
    u32 page_count = load_be32(frame.data() + 4);
    if (page_count == 0) continue;
    header_.max_frame = i;
    header_.page_count = page_count;
    header_.frame_checksum[0] = sums[0];
    header_.frame_checksum[1] = sums[1];
  }
  // Frames behind the last commit never happened.
  return forget_behind(header_.max_frame);
}

// Enters a frame into the hash table. Writer only.
Status Wal::index_put(u32 frame, PageNo number) {
  WalBlock table = TRY(block(block_of(frame)));
  u32 entry = frame - table.first;
  if (entry == 1) {
    size_t bytes =
        reinterpret_cast<u8*>(table.slots + kBlockSlots) - reinterpret_cast<u8*>(table.pages);
    std::memset(table.pages, 0, bytes);
  } else if (table.pages[entry - 1] != 0) {
    // Left by a writer that died before its commit.
    TRY(forget_behind(frame - 1));
  }
  u32 slot = slot_of(number);
  for (u32 collisions = entry; table.slots[slot] != 0; slot = next_slot(slot)) {
    if (collisions-- == 0) return Error(ErrorCode::kCorruption, "the wal-index is malformed");
  }
  table.pages[entry - 1] = number;
  __atomic_store_n(&table.slots[slot], static_cast<u16>(entry), __ATOMIC_RELEASE);
  return {};
}

// Takes entries for frames behind `frame` out of its block.
Status Wal::forget_behind(u32 frame) {
  if (frame == 0) return {};
  WalBlock table = TRY(block(block_of(frame)));
  if (table.pages == nullptr) return {};
  u32 limit = frame - table.first;
  for (u32 slot = 0; slot < kBlockSlots; slot++)
    if (table.slots[slot] > limit) table.slots[slot] = 0;
  std::memset(table.pages + limit, 0, (table.capacity - limit) * 4);
  return {};
}

Result<u32> Wal::find(PageNo number) {
  u32 last = header_.max_frame;
  if (last == 0 || read_lock_ == 0 || last < min_frame_) return 0u;
  for (u32 index = block_of(last) + 1; index-- > block_of(min_frame_);) {
    WalBlock table = TRY(block(index));
    if (table.pages == nullptr) return Error(ErrorCode::kCorruption, "the wal-index is malformed");
    u32 found = 0;
    u32 collisions = kBlockSlots;
    for (u32 slot = slot_of(number);; slot = next_slot(slot)) {
      u16 entry = __atomic_load_n(&table.slots[slot], __ATOMIC_ACQUIRE);
      if (entry == 0) break;
      u32 frame = table.first + entry;
      if (frame <= last && frame >= min_frame_ && table.pages[entry - 1] == number)
        found = std::max(found, frame);
      if (collisions-- == 0) return Error(ErrorCode::kCorruption, "the wal-index is malformed");
    }
    if (found != 0) return found;
  }
  return 0u;
}

Status Wal::read_frame(u32 frame, Bytes out) {
  size_t got = TRY(log_->read_at(offset_of(frame) + kWalFrameHeaderBytes, out));
  if (got != out.size())
    return Error(ErrorCode::kIo, "disk I/O error: the write-ahead log is short");
  return {};
}

Status Wal::begin_read(bool* changed) {
  Status status;
  for (int attempt = 0; attempt < 100; attempt++) {
    status = try_begin_read(changed, false);
    if (status.ok()) return status;
    if (status.error().code() != ErrorCode::kConflict) break;
    // Somebody recovered, checkpointed or committed between two looks: look again.
    if (attempt > 5) base::system_clock().sleep_us(attempt * attempt);
    status = busy();
  }
  // What the caller was not told now, it must hear the next time.
  if (*changed) forget_snapshot();
  return status;
}

// kConflict: the ground moved, try again.
Status Wal::try_begin_read(bool* changed, bool use_log) {
  Error again(ErrorCode::kConflict, "");
  Status header = read_index_header(changed);
  if (!header.ok()) {
    // Somebody writes the header or recovers right now.
    if (header.error().code() == ErrorCode::kBusy) return again;
    return header;
  }
  u32 backfilled = load_shared(backfilled_of(shared_));
  if (!use_log && backfilled == header_.max_frame) {
    // Everything is in the database file: the log need not be read.
    Status taken = lock_shared(kWalReadLock);
    if (taken.ok()) {
      database_.shm_barrier();
      WalIndexHeader now;
      copy_out(&now, shared_, sizeof(now));
      if (!(now == header_)) {
        unlock_shared(kWalReadLock);
        return again;
      }
      read_lock_ = 0;
      return {};
    }
    if (taken.error().code() != ErrorCode::kBusy) return taken;
  }
  // The largest mark that is not beyond our snapshot.
  u32 best = 0;
  u32 best_mark = 0;
  for (u32 slot = 1; slot < kReadMarks; slot++) {
    u32 mark = load_shared(mark_of(shared_, slot));
    if (mark >= best_mark && mark <= header_.max_frame) {
      best = slot;
      best_mark = mark;
    }
  }
  if (best == 0 || best_mark < header_.max_frame) {
    for (u32 slot = 1; slot < kReadMarks; slot++) {
      Status taken = lock_exclusive(kWalReadLock + slot, 1);
      if (!taken.ok()) {
        if (taken.error().code() == ErrorCode::kBusy) continue;
        return taken;
      }
      store_shared(mark_of(shared_, slot), header_.max_frame);
      best = slot;
      best_mark = header_.max_frame;
      unlock_exclusive(kWalReadLock + slot, 1);
      break;
    }
  }
  if (best == 0) return again;
  Status taken = lock_shared(kWalReadLock + best);
  if (!taken.ok()) return taken.error().code() == ErrorCode::kBusy ? Status(again) : taken;
  min_frame_ = load_shared(backfilled_of(shared_)) + 1;
  database_.shm_barrier();
  WalIndexHeader now;
  copy_out(&now, shared_, sizeof(now));
  if (load_shared(mark_of(shared_, best)) != best_mark || !(now == header_)) {
    unlock_shared(kWalReadLock + best);
    return again;
  }
  read_lock_ = static_cast<int>(best);
  return {};
}

void Wal::end_read() {
  if (read_lock_ >= 0) unlock_shared(kWalReadLock + static_cast<u32>(read_lock_));
  read_lock_ = -1;
}

Status Wal::begin_write() {
  TRY(lock_exclusive(kWalWriteLock, 1));
  writing_ = true;
  WalIndexHeader now;
  copy_out(&now, shared_, sizeof(now));
  if (now == header_) return {};
  end_write();
  return Error(ErrorCode::kConflict, "database is locked");
}

void Wal::end_write() {
  if (!writing_) return;
  writing_ = false;
  unlock_exclusive(kWalWriteLock, 1);
}

// A new log in place of the old one. All frames are in the database, nobody reads the log.
void Wal::restart_header(u32 salt) {
  checkpoint_sequence_++;
  header_.max_frame = 0;
  store_be32(&header_.salt[0], load_be32(&header_.salt[0]) + 1);
  header_.salt[1] = salt;
  write_index_header();
  store_shared(backfilled_of(shared_), 0);
  store_shared(attempted_of(shared_), 0);
  store_shared(mark_of(shared_, 1), 0);
  for (u32 slot = 2; slot < kReadMarks; slot++)
    store_shared(mark_of(shared_, slot), kReadMarkUnused);
}

Status Wal::restart_if_copied() {
  if (read_lock_ != 0) return {};
  if (load_shared(backfilled_of(shared_)) > 0) {
    Status taken = lock_exclusive(kWalReadLock + 1, kReadMarks - 1);
    if (taken.ok()) {
      u32 salt;
      base::secure_random_bytes({reinterpret_cast<u8*>(&salt), 4});
      restart_header(salt);
      unlock_exclusive(kWalReadLock + 1, kReadMarks - 1);
    } else if (taken.error().code() != ErrorCode::kBusy) {
      return taken;
    }
  }
  // From mark 0, which says "the log is empty", to a mark that covers what we append.
  unlock_shared(kWalReadLock);
  read_lock_ = -1;
  for (int attempt = 0; attempt < 100; attempt++) {
    bool changed = false;
    Status status = try_begin_read(&changed, true);
    if (status.ok() || status.error().code() != ErrorCode::kConflict) return status;
  }
  return busy();
}

// The log is durable, and so is its name.
Status Wal::sync_log() {
  TRY(log_->sync(true));
  if (created_) TRY(vfs_.sync_directory_of(path_));
  created_ = false;
  return {};
}

Status Wal::append(const std::vector<WalPage>& pages, PageNo page_count, bool sync,
                   bool sync_header) {
  TRY(restart_if_copied());
  u8 head[kWalHeaderBytes];
  std::vector<WritePiece> pieces;
  pieces.reserve(2 * pages.size() + 1);
  u32 sums[2] = {header_.frame_checksum[0], header_.frame_checksum[1]};
  const bool fresh = header_.max_frame == 0;
  if (fresh) {
    if (checkpoint_sequence_ == 0)
      base::secure_random_bytes({reinterpret_cast<u8*>(header_.salt), 8});
    store_be32(head, kWalMagic);
    store_be32(head + 4, kWalVersion);
    store_be32(head + 8, page_bytes_);
    store_be32(head + 12, checkpoint_sequence_);
    std::memcpy(head + 16, header_.salt, 8);
    sums[0] = sums[1] = 0;
    wal_checksum(head, 24, false, sums);
    store_be32(head + 24, sums[0]);
    store_be32(head + 28, sums[1]);
    header_.page_bytes = static_cast<u16>((page_bytes_ & 0xff00) | (page_bytes_ >> 16));
    header_.big_endian = 0;
    if (sync_header) {
      // The header must be durable before frames rely on it: frames of the old log could pass for
      // ours.
      TRY(log_->write_at(0, ByteView(head, kWalHeaderBytes)));
      TRY(sync_log());
    } else {
      pieces.push_back({0, ByteView(head, kWalHeaderBytes)});
    }
  }
  std::vector<u8> heads(kWalFrameHeaderBytes * pages.size());
  u32 frame = header_.max_frame;
  for (size_t i = 0; i < pages.size(); i++) {
    u8* frame_head = heads.data() + kWalFrameHeaderBytes * i;
    store_be32(frame_head, pages[i].number);
    store_be32(frame_head + 4, i + 1 == pages.size() ? page_count : 0);
    std::memcpy(frame_head + 8, header_.salt, 8);
    wal_checksum(frame_head, 8, header_.big_endian, sums);
    wal_checksum(pages[i].data, page_bytes_, header_.big_endian, sums);
    store_be32(frame_head + 16, sums[0]);
    store_be32(frame_head + 20, sums[1]);
    u64 at = offset_of(++frame);
    pieces.push_back({at, ByteView(frame_head, kWalFrameHeaderBytes)});
    pieces.push_back({at + kWalFrameHeaderBytes, ByteView(pages[i].data, page_bytes_)});
  }
  TRY(log_->write_pieces(pieces));
  if (sync) TRY(sync_log());
  for (size_t i = 0; i < pages.size(); i++)
    TRY(index_put(header_.max_frame + 1 + static_cast<u32>(i), pages[i].number));
  header_.max_frame = frame;
  header_.page_count = page_count;
  header_.change++;
  header_.frame_checksum[0] = sums[0];
  header_.frame_checksum[1] = sums[1];
  write_index_header();
  return {};
}

}  // namespace db
