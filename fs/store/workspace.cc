#include "base/log.h"
#include "fs/store/workspace_impl.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

Error lost_lease(const std::string& name) {
  return Error(ErrorCode::kConflict,
               "workspace '" + name + "' was taken by another holder; unmount, and mount again");
}

}  // namespace

Result<Serialiser> StoreImpl::load(const Point& point, Serialiser::Options options,
                                   DataPlaces& places) {
  Serialiser serialiser(options, tree(point.root), point.root_seq);
  TRY(scan_tails(point, &places,
                 [&](std::string_view record) { return serialiser.apply(record); }));
  return serialiser;
}

Status StoreImpl::scan_tails(const Point& point, DataPlaces* places, const Visit& visit, u32 ours) {
  for (const Tail& tail : point.tails) {
    LogScan scan;
    scan.disk = &disk();
    scan.seal = seal_;
    if (fetcher_ == nullptr || tail.workspace == ours) {
      scan.folder = log_folder();
    } else {
      scan.segments = TRY(fetcher_->tail(tail.workspace, tail.from, tail.to));
    }
    scan.workspace = tail.workspace;
    scan.from = tail.from;
    scan.to = tail.to;
    scan.check_data = false;
    scan.places = places;
    scan.visit = [&](const RecordHeader&, std::string_view record) { return visit(record); };
    LogEnd end = TRY(scan_log(scan));
    if (end.last != tail.to) {
      return Error(ErrorCode::kCorruption,
                   "the log of workspace " + std::to_string(tail.workspace) + " ends at record " +
                       std::to_string(end.last) + ", but a fork or snapshot needs it up to " +
                       std::to_string(tail.to) + "; restore " + log_folder());
    }
  }
  return {};
}

Result<std::unique_ptr<Workspace>> make_workspace(StoreImpl& store, std::string name,
                                                  Versioned<WorkspaceRow> row, TakenLease taken,
                                                  const OpenOptions& options) {
  return WorkspaceImpl::open(store, std::move(name), std::move(row), std::move(taken), options);
}

Result<std::unique_ptr<Workspace>> WorkspaceImpl::open(StoreImpl& store, std::string name,
                                                       Versioned<WorkspaceRow> row,
                                                       TakenLease taken,
                                                       const OpenOptions& options) {
  auto workspace = std::unique_ptr<WorkspaceImpl>(
      new WorkspaceImpl(store, std::move(name), std::move(row), std::move(taken.lease)));
  TRY(workspace->recover(options, taken.same_place));
  return std::unique_ptr<Workspace>(std::move(workspace));
}

WorkspaceImpl::~WorkspaceImpl() = default;

Status WorkspaceImpl::recover(const OpenOptions& options, bool same_place) {
  TRY(take_renewal(ask_for_lease(lease_)));
  Serialiser::Options serialiser_options;
  serialiser_options.workspace = row_.row.number;
  serialiser_options.epoch = lease_.epoch;
  bytes_quota_ = options.bytes_quota;
  inodes_quota_ = options.inodes_quota;
  serialiser_options.bytes_quota = limits().bytes;
  serialiser_options.inodes_quota = limits().inodes;
  serialiser_options.publish = options.publish;
  serialiser_options.adopted = options.adopt;
  const Point& point = row_.row.point;
  serialiser_ = std::make_unique<Serialiser>(TRY(store_.load(point, serialiser_options, places_)));

  LocalLog local;
  if (store_.fetcher() != nullptr) {
    local = TRY(store_.fetcher()->prepare(row_.row.number, lease_.epoch, point.end(), same_place));
  }
  LogScan scan;
  scan.disk = &store_.disk();
  scan.seal = store_.seal();
  scan.folder = store_.log_folder();
  scan.workspace = row_.row.number;
  scan.from = point.end() + 1;
  scan.places = &places_;
  std::deque<u32> calls;
  constexpr size_t calls_kept = 4096;
  scan.visit = [&](const RecordHeader& header, std::string_view record) {
    calls.push_back(header.call);
    if (calls.size() > calls_kept) calls.pop_front();
    return serialiser_->apply(record);
  };
  LogEnd end = TRY(scan_log(scan));
  if (end.last < std::max(row_.row.head, local.shipped)) {
    return Error(ErrorCode::kCorruption,
                 "the log of workspace '" + name_ + "' ends at record " + std::to_string(end.last) +
                     ", but record " + std::to_string(std::max(row_.row.head, local.shipped)) +
                     " was durable; restore " + store_.log_folder());
  }
  Journal::Options journal_options;
  journal_options.disk = &store_.disk();
  journal_options.folder = store_.log_folder();
  journal_options.workspace = row_.row.number;
  journal_options.epoch = lease_.epoch;
  journal_options.seal = store_.seal();
  if (store_.fetcher() != nullptr) {
    if (end.paths.empty()) end.chain = local.chain;  // the log goes on behind what was folded
    shipper_ =
        std::make_unique<LogShipper>(store_.engine(), row_.row.number, lease_.epoch, local.shipped);
    for (const BatchPlace& batch : local.unshipped) shipper_->add(batch);
    journal_options.committed = [this](const BatchPlace& batch) { shipper_->add(batch); };
  }
  journal_ = TRY(Journal::open(journal_options, end, &places_));
  if (serialiser_->last_seq() == 0) TRY(make_root());
  follow_ = options.follow;
  if (options.adopt) recovered_calls_.insert(calls.begin(), calls.end());
  if (follow_ || options.adopt) return commit();
  // References died with the last mount: what it had unlinked goes now.
  Effects effects;
  Request request;
  request.session = 0;
  request.now_ns = store_.clock().wall_us() * 1000;
  request.operation = EndSession{};
  perform(request, {}, effects);
  if (effects.reply.error != 0) {
    return Error(ErrorCode::kCorruption, "the orphans of workspace '" + name_ +
                                             "' cannot be reclaimed; run fsck on the store");
  }
  return commit();
}

Status WorkspaceImpl::make_root() {
  Effects effects;
  Request request;
  request.session = 0;
  request.now_ns = store_.clock().wall_us() * 1000;
  serialiser_->create_root(request, 0755, effects);
  append({}, effects);
  TRY(commit());
  return sync();
}

void WorkspaceImpl::append(base::ByteView data, const Effects& effects) {
  if (effects.record.empty()) return;
  auto header = decode_header(effects.record);
  CHECK(header.has_value());
  journal_->append(*header, effects.record, effects.data != 0 ? data : base::ByteView());
  log_bytes_ += effects.record.size() + header->data_length;
}

void WorkspaceImpl::perform(const Request& request, base::ByteView data, Effects& effects) {
  std::lock_guard lock(state_mutex_);
  serialiser_->step(request, effects);
  append(data, effects);
}

Status WorkspaceImpl::check_lease() const {
  if (fenced_ || store_.clock().monotonic_us() >= lease_deadline_us_) return lost_lease(name_);
  return {};
}

Result<WorkspaceImpl::Renewal> WorkspaceImpl::ask_for_lease(const LeaseRow& held) {
  Renewal renewal;
  renewal.asked_at_us = store_.clock().monotonic_us();
  auto now = TRY(store_.lease_row(row_.row.number));
  if (now.row.epoch != held.epoch || now.row.holder != held.holder) return lost_lease(name_);
  renewal.lease = now.row;
  renewal.wanted = now.row.wanted;
  if (renewal.wanted) return renewal;
  extend_lease(renewal.lease, store_.clock(), kLeaseUs);
  Status done = commit_surely(store_.engine(), {{now.key, encode_row(renewal.lease), now.version}});
  if (done.ok()) return renewal;
  if (done.error().code() == ErrorCode::kConflict) return lost_lease(name_);
  return std::move(done).error();
}

Status WorkspaceImpl::take_renewal(Result<Renewal> renewal) {
  if (!renewal.ok()) {
    if (renewal.error().code() == ErrorCode::kConflict) fenced_ = true;
    return std::move(renewal).error();
  }
  if (renewal->wanted) {
    // Somebody waits for it: go on until the time is over, no further.
    if (lease_deadline_us_ == 0) return lost_lease(name_);
    renew_at_us_ = lease_deadline_us_;
    return check_lease();
  }
  lease_ = renewal->lease;
  constexpr i64 kMarginUs = 500'000;
  lease_deadline_us_ = renewal->asked_at_us + kLeaseUs - kMarginUs;
  renew_at_us_ = renewal->asked_at_us + kLeaseRenewUs;
  return check_lease();
}

// While the engine does not answer, others may use the workspace.
Status WorkspaceImpl::keep() {
  std::unique_lock one(renew_mutex_, std::try_to_lock);
  LeaseRow held;
  {
    std::lock_guard lock(state_mutex_);
    bool rests = fenced_ || store_.clock().monotonic_us() < renew_at_us_;
    if (rests || !one.owns_lock()) return check_lease();
    held = lease_;
  }
  auto renewal = ask_for_lease(held);
  std::lock_guard lock(state_mutex_);
  return take_renewal(std::move(renewal));
}

// Accepted is what was written while the lease was still ours: the clock is asked after the write.
Status WorkspaceImpl::commit() {
  // Where keep() is called as often as it should be, this finds nothing to do.
  constexpr i64 overdue_us = kLeaseRenewUs / 2;
  bool overdue = false;
  {
    std::lock_guard lock(state_mutex_);
    overdue = store_.clock().monotonic_us() >= renew_at_us_ + overdue_us;
  }
  if (overdue) (void)keep();  // whether it is still ours is asked below
  std::lock_guard lock(state_mutex_);
  if (journal_->appended() == journal_->committed()) return {};
  TRY(journal_->commit());
  return check_lease();
}

Status WorkspaceImpl::make_durable() {
  return shipper_ ? shipper_->ship() : journal_->sync();
}

Status WorkspaceImpl::sync() {
  Status done = make_durable();
  if (!done.ok() && shipper_ && done.error().code() == ErrorCode::kConflict) {
    std::lock_guard lock(state_mutex_);
    fenced_ = true;
    return lost_lease(name_);
  }
  return done;
}

Status WorkspaceImpl::read(const Piece& piece, base::Bytes out) {
  if (piece.data == 0) {
    std::memset(out.data(), 0, out.size());
    return {};
  }
  if (TRY(journal_->read(piece.data, piece.data_offset, out))) return {};
  auto whole = TRY(store_.packs().read(piece.data));
  if (piece.data_offset > whole->size() || piece.length > whole->size() - piece.data_offset) {
    return Error(ErrorCode::kCorruption, "a read leaves its data; run fsck on the store");
  }
  std::memcpy(out.data(), whole->data() + piece.data_offset, piece.length);
  return {};
}

Result<Point> WorkspaceImpl::durable_point() {
  TRY(journal_->commit());
  TRY(make_durable());
  TRY(check_lease());
  Point point = row_.row.point;
  Seq head = serialiser_->last_seq();
  if (head > point.end()) point.tails.push_back({row_.row.number, point.end() + 1, head});
  return point;
}

Status WorkspaceImpl::fork(const std::string& new_name) {
  std::lock_guard lock(state_mutex_);
  Point point = TRY(durable_point());
  return store_.add_workspace(new_name, name_, point, {{row_.key, {}, row_.version, true}});
}

Status WorkspaceImpl::snapshot(const std::string& snapshot_name) {
  TRY(check_store_name(snapshot_name, "snapshot"));
  std::lock_guard lock(state_mutex_);
  SnapshotRow row{row_.row.number, TRY(durable_point()), store_.clock().wall_us() * 1000};
  std::string key = snapshot_key(name_, snapshot_name);
  Status done = commit_surely(store_.engine(),
                              {{key, encode_row(row), 0}, {row_.key, {}, row_.version, true}});
  if (!done.ok() && done.error().code() == ErrorCode::kConflict &&
      TRY(store_.engine().get(key)).version != 0) {
    return Error(ErrorCode::kExists,
                 "there is a snapshot '" + name_ + "@" + snapshot_name + "' already");
  }
  return done;
}

Result<QuotaUse> Workspace::quota() {
  return Error(ErrorCode::kUnsupported, "this workspace has no quota; set it where its store is");
}
Status Workspace::set_quota(const Quota&) {
  return quota().ok() ? Status() : Status(quota().error());
}

// Under the lock: what holds now.
Quota WorkspaceImpl::limits() const {
  auto lower = [](u64 asked, u64 kept) { return kept == 0 ? asked : std::min(asked, kept); };
  return {lower(bytes_quota_, row_.row.bytes_quota), lower(inodes_quota_, row_.row.inodes_quota)};
}

Result<QuotaUse> WorkspaceImpl::quota() {
  std::lock_guard lock(state_mutex_);
  Effects effects;
  Request request;
  request.operation = Statfs{};
  serialiser_->step(request, effects);  // loads the counters
  const StatfsReply& use = effects.reply.statfs;
  return QuotaUse{{row_.row.bytes_quota, row_.row.inodes_quota}, use.bytes_used, use.inodes_used};
}

Status WorkspaceImpl::set_quota(const Quota& quota) {
  std::lock_guard lock(state_mutex_);
  TRY(check_lease());
  WorkspaceRow row = row_.row;
  row.bytes_quota = quota.bytes;
  row.inodes_quota = quota.inodes;
  TRY(commit_surely(store_.engine(), {{row_.key, encode_row(row), row_.version}}));
  row_.row = row;
  ++row_.version;
  serialiser_->set_quota(limits().bytes, limits().inodes);
  return {};
}

Seq WorkspaceImpl::last_seq() const {
  std::lock_guard lock(state_mutex_);
  return serialiser_->last_seq();
}
Seq WorkspaceImpl::synced_seq() const {
  return shipper_ ? shipper_->shipped() : journal_->synced();
}

WorkspaceInfo WorkspaceImpl::info() const {
  std::lock_guard lock(state_mutex_);
  WorkspaceInfo info;
  info.name = name_;
  info.number = row_.row.number;
  info.head_seq = serialiser_->last_seq();
  info.root_seq = row_.row.point.root_seq;
  info.epoch = lease_.epoch;
  info.parent = row_.row.parent;
  info.created_ns = row_.row.created_ns;
  info.holder = lease_.holder;
  return info;
}

Status WorkspaceImpl::close() {
  if (std::exchange(closed_, true)) return {};
  if (!follow_) {
    Effects effects;
    Request request;
    request.now_ns = store_.clock().wall_us() * 1000;
    request.operation = EndSession{};
    perform(request, {}, effects);
  }
  TRY(commit());
  TRY(sync());
  std::lock_guard lock(state_mutex_);
  WorkspaceRow row = row_.row;
  row.head = serialiser_->last_seq();
  TRY(commit_surely(store_.engine(), {{row_.key, encode_row(row), row_.version}}));
  store_.give_lease_back(row.number, lease_);
  return {};
}

}  // namespace fs
