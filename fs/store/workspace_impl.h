// A workspace in use: serialiser, journal, lease (internal to fs/store).
// Locks: state_mutex_ guards serialiser, journal's append side and row; it is held for one step or
// for the short ends of a checkpoint, never while a file is synced.
#pragma once

#include "fs/store/replica.h"
#include "fs/store/store_impl.h"

#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace fs {

class WorkspaceImpl : public Workspace, public Replica {
 public:
  static base::Result<std::unique_ptr<Workspace>> open(StoreImpl& store, std::string name,
                                                       Versioned<WorkspaceRow> row,
                                                       TakenLease taken,
                                                       const OpenOptions& options);
  ~WorkspaceImpl() override;

  void perform(const Request& request, base::ByteView data, Effects& effects) override;
  base::Status commit() override;
  base::Status sync() override;
  base::Status read(const Piece& piece, base::Bytes out) override;
  base::Status keep() override;
  base::Status checkpoint() override;
  bool wants_checkpoint() const override;
  base::Status fork(const std::string& new_name) override;
  base::Status snapshot(const std::string& snapshot_name) override;
  base::Result<QuotaUse> quota() override;
  base::Status set_quota(const Quota& quota) override;
  Seq last_seq() const override;
  Seq synced_seq() const override;
  WorkspaceInfo info() const override;
  base::Status close() override;
  bool repeated(u32 call) const override { return recovered_calls_.contains(call); }
  Replica* replica() override { return this; }
  bool ships_log() const override { return shipper_ != nullptr; }

  ReplicaBase base() const override;
  base::Status take(std::string_view record, base::ByteView data,
                    std::vector<Invalidation>& changed) override;
  base::Result<std::shared_ptr<const std::string>> fetch(u64 id) override;
  base::Status records(Seq from, const Visit& visit) override;
  base::Result<WriterRow> writer() override;
  base::Status set_writer(const WriterRow& row) override;
  void abandon() override;

 private:
  WorkspaceImpl(StoreImpl& store, std::string name, Versioned<WorkspaceRow> row, LeaseRow lease)
      : store_(store), name_(std::move(name)), row_(std::move(row)), lease_(std::move(lease)) {}
  base::Status recover(const OpenOptions& options, bool same_place);
  base::Status make_root();
  void append(base::ByteView data, const Effects& effects);
  Quota limits() const;
  base::Status check_lease() const;
  // Extends the lease in the engine, under no lock; what came of it is taken under the lock.
  struct Renewal {
    LeaseRow lease;
    i64 asked_at_us = 0;
    bool wanted = false;  // somebody waits for it
  };
  base::Result<Renewal> ask_for_lease(const LeaseRow& held);
  base::Status take_renewal(base::Result<Renewal> renewal);
  // All that was committed is where the mode's promise wants it: on the disk, or in the engine.
  base::Status make_durable();
  // Drops log segments that the new root has made superfluous.
  base::Status drop_folded_log();
  // Everything so far as a point, durable. Holds the lock.
  base::Result<Point> durable_point();

  StoreImpl& store_;
  std::string name_;
  Versioned<WorkspaceRow> row_;
  LeaseRow lease_;
  i64 lease_deadline_us_ = 0;  // monotonic
  i64 renew_at_us_ = 0;
  bool fenced_ = false;
  bool closed_ = false;
  bool follow_ = false;
  std::set<u32> recovered_calls_;  // of the last records, when a kernel was adopted
  // What was asked for at the opening; the row's own limits hold, too.
  u64 bytes_quota_ = 0, inodes_quota_ = 0;
  std::mutex checkpoint_mutex_;  // one at a time; taken before state_mutex_
  u64 log_bytes_ = 0;            // since the last checkpoint
  // Log data below this is in packs since the checkpoint before the last: reads that were on their
  // way when the last one ended still find theirs.
  DataId droppable_data_ = 0;
  DataPlaces places_;
  std::unique_ptr<Serialiser> serialiser_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<LogShipper> shipper_;  // null unless logs live in the engine
  std::mutex renew_mutex_;               // one renewal at a time; taken before state_mutex_
  mutable std::mutex state_mutex_;
};

}  // namespace fs
