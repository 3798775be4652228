#include "base/hash.h"
#include "fs/store/store_impl.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

constexpr u64 kPackCacheBytes = 32u << 20;

// False only when we know: the holder is "host:pid" of this host and no such process is alive.
bool may_be_alive(const std::string& holder, const std::string& ours) {
  size_t colon = holder.rfind(':');
  size_t our_colon = ours.rfind(':');
  if (colon == holder.npos || our_colon == ours.npos) return true;
  if (holder.substr(0, colon) != ours.substr(0, our_colon)) return true;
  long pid = std::strtol(holder.c_str() + colon + 1, nullptr, 10);
  return pid <= 0 || kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
}

}  // namespace

Error damaged_row(std::string_view key) {
  return Error(ErrorCode::kCorruption,
               "row " + std::string(key) + " of the engine is damaged; restore it from a backup");
}

Status check_store_name(const std::string& name, std::string_view what) {
  auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
  };
  bool good = !name.empty() && name.size() <= 100 && name[0] != '.' &&
              std::all_of(name.begin(), name.end(), plain);
  if (good) return {};
  return Error(ErrorCode::kInvalidArgument, "'" + name + "' is no name for a " + std::string(what) +
                                                "; use letters, digits, '.', '-' and '_'");
}

std::pair<std::string, std::string> split_name(const std::string& name) {
  size_t at = name.find('@');
  if (at == name.npos) return {name, ""};
  return {name.substr(0, at), name.substr(at + 1)};
}

StoreImpl::StoreImpl(Parts parts, StoreOptions options)
    : folder_(std::move(parts.folder)),
      place_(std::move(parts.place)),
      options_(std::move(options)),
      owned_engine_(std::move(parts.engine)),
      engine_(options_.engine),
      key_(parts.key),
      seal_(std::move(parts.seal)),
      blobs_(std::move(parts.blobs)),
      packs_(std::make_unique<PackSet>(PackSet::Options{blobs_.get(), key_, kPackCacheBytes, seal_},
                                       [this] { return pack_rows(); })),
      pages_(std::make_shared<CachedPages>([this](PageId id) { return packs_->read(id); })) {
  if (!options_.log_in_engine) return;
  fetcher_ =
      std::make_unique<LogFetcher>(*engine_, disk(), log_folder(), folder_ + "/tails", seal_);
}

Result<std::string> StoreImpl::shared_secret(const std::string& name,
                                             const std::function<std::string()>& make) {
  if (fetcher_ == nullptr) {
    return Error(ErrorCode::kUnsupported, "the store is one folder; its secrets are files there");
  }
  std::string key = "secret/" + name;
  for (;;) {
    Row row = TRY(engine_->get(key));
    if (row.version != 0 && seal_ == nullptr) return row.value;
    if (row.version != 0) {
      auto text = seal_->open_text(key, row.value);
      if (text) return *std::move(text);
      return damaged_row(key);
    }
    std::string text = make();
    if (seal_ != nullptr) text = seal_->seal_text(key, text);
    Status made = commit_surely(*engine_, {{key, text, 0}});
    if (!made.ok() && made.error().code() != ErrorCode::kConflict) return std::move(made).error();
  }
}

Result<std::vector<PackInfo>> StoreImpl::pack_rows() {
  std::vector<PackInfo> all;
  for (const Row& row : TRY(engine_->scan("pack/"))) {
    auto decoded = decode_pack_row(row.value);
    if (!decoded) return damaged_row(row.key);
    all.push_back(std::move(*decoded));
  }
  return all;
}

std::shared_ptr<const BaseState> StoreImpl::tree(PageId root) {
  if (root == 0) return nullptr;
  return std::make_shared<Tree>(pages_, root);
}

// --- rows ---

Result<Versioned<WorkspaceRow>> StoreImpl::workspace_row(const std::string& name) {
  Row row = TRY(engine_->get(workspace_key(name)));
  if (row.version == 0) {
    return Error(ErrorCode::kNotFound, "there is no workspace '" + name + "' in " + folder_);
  }
  auto decoded = decode_workspace_row(row.value);
  if (!decoded) return damaged_row(row.key);
  return Versioned<WorkspaceRow>{row.key, *decoded, row.version};
}

Result<Versioned<SnapshotRow>> StoreImpl::snapshot_row(const std::string& workspace,
                                                       const std::string& name) {
  Row row = TRY(engine_->get(snapshot_key(workspace, name)));
  if (row.version == 0) {
    return Error(ErrorCode::kNotFound, "there is no snapshot '" + workspace + "@" + name + "'");
  }
  auto decoded = decode_snapshot_row(row.value);
  if (!decoded) return damaged_row(row.key);
  return Versioned<SnapshotRow>{row.key, *decoded, row.version};
}

Result<Versioned<LeaseRow>> StoreImpl::lease_row(u32 number) {
  Row row = TRY(engine_->get(lease_key(number)));
  auto decoded = row.version == 0 ? LeaseRow{} : decode_lease_row(row.value);
  if (!decoded) return damaged_row(row.key);
  return Versioned<LeaseRow>{row.key, *decoded, row.version};
}

Result<RowWrite> StoreImpl::take_number(u32& number) {
  Row row = TRY(engine_->get(kMetaKey));
  auto meta = decode_meta_row(row.value);
  if (!meta) return damaged_row(kMetaKey);
  number = meta->next_workspace++;
  if (number > kWorkspaceMax) {
    return Error(ErrorCode::kLimit,
                 "the store has handed out all its workspace numbers; make a new store");
  }
  return RowWrite{row.key, encode_row(*meta), row.version};
}

Status StoreImpl::add_workspace(const std::string& name, const std::string& parent,
                                const Point& point, std::vector<RowWrite> proofs) {
  TRY(check_store_name(name, "workspace"));
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    WorkspaceRow row;
    RowWrite meta = TRY(take_number(row.number));
    row.point = point;
    row.head = point.end();
    row.next_page = first_id_of(row.number) + kFirstPage;
    row.parent = parent;
    row.created_ns = clock().wall_us() * 1000;
    std::vector<RowWrite> writes{{workspace_key(name), encode_row(row), 0}, meta};
    writes.insert(writes.end(), proofs.begin(), proofs.end());
    Status done = commit_surely(*engine_, writes);
    if (done.ok() || done.error().code() != ErrorCode::kConflict) return done;
    if (TRY(engine_->get(workspace_key(name))).version != 0) {
      return Error(ErrorCode::kExists, "there is a workspace '" + name + "' already");
    }
    for (const RowWrite& proof : proofs) {
      if (TRY(engine_->get(proof.key)).version != proof.expected) return done;
    }
    // Somebody else took the number: again.
  }
  return Error(ErrorCode::kBusy, "too many workspaces are being made at once; try again");
}

// --- workspaces ---

Status StoreImpl::create_workspace(const std::string& name) {
  return add_workspace(name, "", Point{}, {});
}

Result<std::vector<WorkspaceInfo>> StoreImpl::workspaces() {
  std::vector<WorkspaceInfo> all;
  for (const Row& row : TRY(engine_->scan("workspace/"))) {
    auto decoded = decode_workspace_row(row.value);
    if (!decoded) return damaged_row(row.key);
    WorkspaceInfo info;
    info.name = row.key.substr(std::string_view("workspace/").size());
    info.number = decoded->number;
    info.head_seq = decoded->head;
    info.root_seq = decoded->point.root_seq;
    info.parent = decoded->parent;
    info.created_ns = decoded->created_ns;
    LeaseRow lease = TRY(lease_row(decoded->number)).row;
    info.epoch = lease.epoch;
    bool held = !lease_is_over(lease, clock()) && !is_dead(lease);
    if (held) info.holder = lease.holder;
    all.push_back(std::move(info));
  }
  return all;
}

// A process is looked for only where the holder's folder is ours: names of machines may repeat.
bool StoreImpl::is_dead(const LeaseRow& lease) {
  return lease.place == place_ && !may_be_alive(lease.holder, holder());
}

Result<TakenLease> StoreImpl::take_lease(u32 number, bool steal) {
  for (;;) {
    Versioned<LeaseRow> lease = TRY(lease_row(number));
    bool free = lease.row.holder.empty() || lease_is_over(lease.row, clock()) || is_dead(lease.row);
    if (!free && !steal) {
      return Error(ErrorCode::kBusy, "the workspace is mounted by " + lease.row.holder +
                                         "; unmount it there, or use --steal");
    }
    if (!free && !lease.row.wanted) {
      // The holder sees this at its next renewal and stops; then its time runs out.
      lease.row.wanted = true;
      Status told = commit_surely(*engine_, {{lease.key, encode_row(lease.row), lease.version}});
      if (!told.ok() && told.error().code() != ErrorCode::kConflict) return std::move(told).error();
      continue;
    }
    if (!free) {
      clock().sleep_us(100'000);
      continue;
    }
    LeaseRow ours;
    ours.holder = holder();
    ours.epoch = lease.row.epoch + 1;
    ours.place = place_;
    extend_lease(ours, clock(), kLeaseUs);
    Status taken = commit_surely(*engine_, {{lease.key, encode_row(ours), lease.version}});
    if (taken.ok()) return TakenLease{ours, lease.row.epoch == 0 || lease.row.place == place_};
    if (taken.error().code() != ErrorCode::kConflict) return std::move(taken).error();
  }
}

Result<std::unique_ptr<Workspace>> StoreImpl::open_workspace(const std::string& name,
                                                             const OpenOptions& options) {
  u32 number = TRY(workspace_row(name)).row.number;
  TakenLease taken = TRY(take_lease(number, options.steal));
  // Read under the lease: nobody else moves it now.
  return make_workspace(*this, name, TRY(workspace_row(name)), std::move(taken), options);
}

Status StoreImpl::fork(const std::string& from, const std::string& to) {
  auto [workspace, snapshot] = split_name(from);
  if (!snapshot.empty()) {
    auto row = TRY(snapshot_row(workspace, snapshot));
    return add_workspace(to, from, row.row.point, {{row.key, {}, row.version, true}});
  }
  auto opened = TRY(open_workspace(workspace, {}));
  Status forked = opened->fork(to);
  TRY(opened->close());
  return forked;
}

Status StoreImpl::snapshot(const std::string& workspace, const std::string& name) {
  auto opened = TRY(open_workspace(workspace, {}));
  Status taken = opened->snapshot(name);
  TRY(opened->close());
  return taken;
}

Result<std::vector<SnapshotInfo>> StoreImpl::snapshots(const std::string& workspace) {
  std::vector<SnapshotInfo> all;
  std::string prefix = snapshot_key(workspace, "");
  for (const Row& row : TRY(engine_->scan(prefix))) {
    auto decoded = decode_snapshot_row(row.value);
    if (!decoded) return damaged_row(row.key);
    all.push_back(
        {workspace, row.key.substr(prefix.size()), decoded->point.end(), decoded->created_ns});
  }
  return all;
}

// The workspace goes on under a new number, so that ids it used after the snapshot are never used
// again.
Status StoreImpl::rollback(const std::string& workspace, const std::string& snapshot) {
  auto target = TRY(snapshot_row(workspace, snapshot));
  auto row = TRY(workspace_row(workspace));
  LeaseRow lease = TRY(take_lease(row.row.number, false)).lease;
  for (;;) {
    row = TRY(workspace_row(workspace));
    WorkspaceRow fresh = row.row;
    RowWrite meta = TRY(take_number(fresh.number));
    fresh.point = target.row.point;
    fresh.head = fresh.point.end();
    fresh.next_page = first_id_of(fresh.number) + kFirstPage;
    Status done = commit_surely(
        *engine_,
        {{row.key, encode_row(fresh), row.version}, meta, {target.key, {}, target.version, true}});
    if (done.ok() || done.error().code() != ErrorCode::kConflict) {
      give_lease_back(row.row.number, lease);
      return done;
    }
    target = TRY(snapshot_row(workspace, snapshot));
  }
}

Status StoreImpl::remove(const std::string& name) {
  auto [workspace, snapshot] = split_name(name);
  if (!snapshot.empty()) {
    auto row = TRY(snapshot_row(workspace, snapshot));
    return commit_surely(*engine_, {{row.key, std::nullopt, row.version}});
  }
  auto with_snapshots = TRY(snapshots(workspace));
  if (!with_snapshots.empty()) {
    return Error(ErrorCode::kBusy, "workspace '" + workspace + "' has snapshots; remove " +
                                       workspace + "@" + with_snapshots.front().name + " first");
  }
  auto row = TRY(workspace_row(workspace));
  TRY(take_lease(row.row.number, false));
  row = TRY(workspace_row(workspace));
  auto lease = TRY(lease_row(row.row.number));
  return commit_surely(
      *engine_, {{row.key, std::nullopt, row.version}, {lease.key, std::nullopt, lease.version}});
}

void StoreImpl::give_lease_back(u32 number, const LeaseRow& lease) {
  auto now = lease_row(number);
  if (!now.ok() || now->row.epoch != lease.epoch) return;
  LeaseRow free;
  free.epoch = lease.epoch;
  free.place = lease.place;
  // When this fails the lease runs out by itself.
  (void)commit_surely(*engine_, {{now->key, encode_row(free), now->version}});
}

}  // namespace fs
