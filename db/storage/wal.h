// The write-ahead log and its index in shared memory, in SQLite's format and with SQLite's lock
// protocol: stock SQLite and FleetDB read, write, checkpoint and recover the same log at the same
// time.
//
//   log    32-byte header, then frames: 24-byte header (page, database size at a commit or 0,
//   salts,
//          running checksum) and the page
//   index  (shm) two copies of a 48-byte header, checkpoint state, then 32 KiB blocks that map page
//          numbers to frames by hashing
//
// A reader takes one of five read marks and sees the log up to that frame. One writer at a time
// appends. A checkpoint copies frames back as far as no reader is in the way; when all is copied
// and nobody reads the log, the next writer starts it anew.
//
// Frames are numbered from 1. Errors: kBusy, kConflict (stale snapshot), kIo, kFull, kCorruption.
// Single-threaded; connections meet in the locks and in shared memory.
#pragma once

#include "db/storage/pager_types.h"
#include "db/storage/vfs.h"
#include "db/storage/wal_index.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace db {

struct WalPage {
  PageNo number;
  const u8* data;
};

class Wal {
 public:
  // `database` holds at least a shared lock for as long as the Wal lives; it carries the index.
  static base::Result<std::unique_ptr<Wal>> open(Vfs& vfs, VfsFile& database,
                                                 const std::string& path, u32 page_bytes);
  ~Wal();
  Wal(const Wal&) = delete;
  Wal& operator=(const Wal&) = delete;

  // Takes a snapshot. `changed`: the database is not what the last snapshot saw. kBusy: try again.
  base::Status begin_read(bool* changed);
  void end_read();
  bool reading() const { return read_lock_ >= 0; }
  // kBusy: somebody writes. kConflict: somebody wrote since the snapshot.
  base::Status begin_write();
  void end_write();

  // Pages of the database in the snapshot; 0 when the log does not say.
  PageNo page_count() const { return header_.page_count; }
  u32 page_bytes() const { return page_bytes_; }
  u32 frames() const { return header_.max_frame; }
  // The frame that holds the page in this snapshot, or 0: the database file has it.
  base::Result<u32> find(PageNo number);
  base::Status read_frame(u32 frame, Bytes out);

  // Appends one commit. `sync`: durable when this returns.
  base::Status append(const std::vector<WalPage>& pages, PageNo page_count, bool sync,
                      bool sync_header);

  // Copies back what readers allow; the modes above passive wait for them with `busy`.
  base::Status checkpoint(CheckpointMode mode, const std::function<bool(int)>& busy, bool sync,
                          CheckpointResult* result);

  // REQUIRES: the database is locked exclusively. Copies everything back and removes log and index.
  base::Status close_and_remove(bool sync);
  // After a rollback the next snapshot must be looked at afresh.
  void forget_snapshot() { header_ = {}; }

 private:
  Wal(Vfs& vfs, VfsFile& database, std::string path, u32 page_bytes)
      : vfs_(vfs), database_(database), path_(std::move(path)), page_bytes_(page_bytes) {}

  // `use_log`: take a mark that covers the log, even if all of it is copied back (writers).
  base::Status try_begin_read(bool* changed, bool use_log);
  base::Status read_index_header(bool* changed);
  bool copy_index_header(bool* changed);
  void write_index_header();
  base::Status recover();
  base::Status scan_log();
  base::Status restart_if_copied();
  void restart_header(u32 salt);
  base::Status index_put(u32 frame, PageNo number);
  base::Status forget_behind(u32 frame);
  base::Result<WalBlock> block(u32 index);
  base::Status copy_back(const std::function<bool(int)>& busy, bool sync);
  base::Result<u32> safe_frame(const std::function<bool(int)>& busy);
  base::Status sync_log();
  base::Status write_back(u32 from, u32 to, bool sync);
  base::Status restart_for(CheckpointMode mode, const std::function<bool(int)>& busy);
  base::Status lock_shared(u32 slot) { return database_.shm_lock(slot, 1, false); }
  base::Status lock_exclusive(u32 slot, u32 count) { return database_.shm_lock(slot, count, true); }
  base::Status lock_waiting(u32 slot, u32 count, const std::function<bool(int)>& busy);
  void unlock_shared(u32 slot) { (void)database_.shm_unlock(slot, 1, false); }
  void unlock_exclusive(u32 slot, u32 count) { (void)database_.shm_unlock(slot, count, true); }
  u64 offset_of(u32 frame) const {
    return kWalHeaderBytes + u64{frame - 1} * (page_bytes_ + kWalFrameHeaderBytes);
  }

  Vfs& vfs_;
  VfsFile& database_;
  std::string path_;
  u32 page_bytes_;
  std::unique_ptr<VfsFile> log_;
  WalIndexHeader header_ = {};     // the snapshot
  volatile u8* shared_ = nullptr;  // block 0
  int read_lock_ = -1;
  bool writing_ = false;
  u32 min_frame_ = 1;  // frames before it were copied back before the snapshot
  u32 checkpoint_sequence_ = 0;
  bool created_ = false;  // the log's name may not be durable yet
};

}  // namespace db
