// Mark and sweep. New references only ever come from existing ones: a fork proves in its commit
// that the row it copies is still there, and a checkpoint's packs become visible in the very commit
// that refers to them. So what no row reaches at the moment of the scan stays unreachable for ever.
#include "fs/store/collect.h"

#include "fs/state/keys.h"

#include <algorithm>
#include <map>
#include <set>

namespace fs {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

// One scan, one moment: with two, a snapshot could be taken after the first and the workspace it
// was taken from be checkpointed before the second, and what only the snapshot holds would go
// unseen.
Result<std::vector<Root>> all_roots(Engine& engine) {
  std::vector<Root> roots;
  for (const Row& row : TRY(engine.scan(""))) {
    if (row.key.starts_with(kSnapshotPrefix)) {
      auto decoded = decode_snapshot_row(row.value);
      if (!decoded) return Error(ErrorCode::kCorruption, "row " + row.key + " is damaged");
      std::string name = row.key.substr(kSnapshotPrefix.size());
      size_t slash = name.find('/');
      if (slash != name.npos) name[slash] = '@';
      roots.push_back({name, 0, decoded->point});
    } else if (row.key.starts_with(kWorkspacePrefix)) {
      auto decoded = decode_workspace_row(row.value);
      if (!decoded) return Error(ErrorCode::kCorruption, "row " + row.key + " is damaged");
      roots.push_back({row.key.substr(kWorkspacePrefix.size()), decoded->number, decoded->point});
    }
  }
  return roots;
}

Status Marker::mark_value(std::string_view key, std::string_view value) {
  auto parsed = parse_key(key);
  if (!parsed) return Error(ErrorCode::kCorruption, "a tree holds a key that is none");
  if (parsed->kind == 'I') {
    auto inode = decode_inode(value);
    if (!inode) {
      return Error(ErrorCode::kCorruption,
                   "inode " + std::to_string(parsed->ino) + " does not decode");
    }
    for (const Extent& extent : inode->extents) ids_.insert(extent.data);
  } else if (parsed->kind == 'C') {
    auto extent = decode_extent(parsed->offset, value);
    if (!extent) {
      return Error(ErrorCode::kCorruption,
                   "an extent of inode " + std::to_string(parsed->ino) + " does not decode");
    }
    ids_.insert(extent->data);
  }
  return {};
}

Status Marker::mark(const Root& root) {
  auto enter = [this](PageId id) { return ids_.insert(id).second; };
  TRY(for_each_page(store_.pages(), root.point.root, enter, [this](const Page& page) -> Status {
    ++pages_;
    for (size_t i = 0; i < page.values.size(); ++i) {
      TRY(mark_value(page.keys[i], page.values[i]));
    }
    return {};
  }));
  Status failed;
  auto visit = [&](std::string_view record) -> Status {
    auto header = decode_header(record);
    if (header && header->data != 0) in_logs_.insert(header->data);
    TRY(for_each_change(record, [&](const Change& change) {
      if (change.put) failed = mark_value(change.key, change.value);
      return failed.ok();
    }));
    return {};
  };
  Status scanned = store_.scan_tails(root.point, nullptr, visit);
  if (scanned.ok() && root.number != 0)
    scanned = store_.scan_own_log(root.number, root.point, visit);
  return failed.ok() ? scanned : failed;
}

// --- collection ---

namespace {

// What logs there are. Listed before the roots are read: a workspace has its row before it has a
// log, so a log of this list that no root needs is nobody's.
struct Logs {
  std::vector<SegmentName> files;
  std::vector<LogState> in_engine;
};

Result<Logs> all_logs(StoreImpl& store) {
  Logs logs;
  logs.files = TRY(list_segments(store.disk(), store.log_folder()));
  if (store.fetcher() != nullptr) logs.in_engine = TRY(store.engine().logs());
  return logs;
}

// Segments that no point stands on and no running workspace writes.
Result<u64> drop_dead_segments(StoreImpl& store, const Logs& logs, const std::vector<Root>& roots) {
  std::map<u32, Seq> needed;  // workspace -> first record that somebody needs
  auto need = [&](u32 workspace, Seq from) {
    auto [at, fresh] = needed.emplace(workspace, from);
    if (!fresh) at->second = std::min(at->second, from);
  };
  for (const Root& root : roots) {
    for (const Tail& tail : root.point.tails) need(tail.workspace, tail.from);
    if (root.number != 0) need(root.number, root.point.end() + 1);
  }
  constexpr Seq all = ~Seq{0} >> 1;
  u64 dropped = 0;
  for (const LogState& log : logs.in_engine) {
    auto at = needed.find(log.workspace);
    Seq before = at == needed.end() ? all : at->second;
    dropped += TRY(store.engine().drop_segments(log.workspace, before));
  }
  if (store.fetcher() != nullptr) {
    TRY(store.fetcher()->drop_tails([&](u32 workspace, Seq, Seq last) {
      auto at = needed.find(workspace);
      return at != needed.end() && last >= at->second;
    }));
  }
  const std::vector<SegmentName>& files = logs.files;
  for (size_t i = 0; i < files.size(); ++i) {
    auto at = needed.find(files[i].workspace);
    bool last = i + 1 == files.size() || files[i + 1].workspace != files[i].workspace;
    bool dead = at == needed.end() || (!last && files[i + 1].first <= at->second);
    if (!dead) continue;
    Status removed = store.disk().remove(files[i].path);
    // Its own writer may have been faster.
    if (!removed.ok() && removed.error().code() != ErrorCode::kNotFound) return removed.error();
    ++dropped;
  }
  return dropped;
}

// Rewrites a pack without its dead slots. The ids stay, so no tree changes.
Result<u64> compact(StoreImpl& store, const PackInfo& pack, const Marker& marker) {
  auto reader = TRY(store.packs().reader(pack.number));
  auto number = TRY(store.take_pack_number(PackingRow{}));
  PackWriter writer(store.blobs(), PackSet::name_of(number.row), store.key(), store.seal());
  PackInfo fresh{number.row, pack.ranges, 0, 0};
  for (u64 id : reader->ids()) {
    if (!marker.reached(id)) continue;
    auto bytes = TRY(reader->read(id));
    writer.add(id, *bytes);
  }
  TRY(writer.finish());
  fresh.bytes = writer.bytes();
  fresh.slots = writer.slots();
  Row old_row = TRY(store.engine().get(pack_key(pack.number)));
  if (old_row.version == 0) return u64{0};  // another collector was faster
  TRY(commit_surely(store.engine(), {{pack_key(fresh.number), encode_row(fresh), 0},
                                     {old_row.key, std::nullopt, old_row.version},
                                     {number.key, std::nullopt, number.version}}));
  TRY(store.blobs().remove(PackSet::name_of(pack.number)));
  return pack.bytes > fresh.bytes ? pack.bytes - fresh.bytes : 0;
}

// Ends what somebody began and never published, unless he is at it now.
Status end_abandoned_packs(StoreImpl& store) {
  for (const Row& row : TRY(store.engine().scan("packing/"))) {
    auto packer = decode_packing_row(row.value);
    if (!packer) continue;
    LeaseRow lease = TRY(store.lease_row(packer->workspace)).row;
    bool alive = packer->workspace != 0 && lease.epoch == packer->epoch && !lease.holder.empty() &&
                 !lease_is_over(lease, store.clock());
    if (alive) continue;
    // Once the row is gone the pack can never be published.
    (void)commit_surely(store.engine(), {{row.key, std::nullopt, row.version}});
  }
  return {};
}

// Packs without any row: never published, or a collector died between the row and the pack.
// `listed` is from before the rows are read: a pack has a row before it is there, and rows of packs
// go only when nobody needs them any more, so without one it is nobody's. `seen` were dealt with.
Status drop_rowless(StoreImpl& store, const std::vector<std::string>& listed,
                    const std::vector<PackInfo>& seen, GcReport& report) {
  std::set<std::string> known;
  for (const PackInfo& pack : seen) known.insert(PackSet::name_of(pack.number));
  for (const Row& row : TRY(store.engine().scan("pack"))) {  // pack/ and packing/, one moment
    std::string number = row.key.substr(row.key.find('/') + 1);
    known.insert(PackSet::name_of(std::strtoull(number.c_str(), nullptr, 10)));
  }
  for (const std::string& name : listed) {
    if (!name.ends_with(".pack") || known.contains(name)) continue;
    TRY(store.blobs().remove(name));
    ++report.packs_deleted;
  }
  return {};
}

}  // namespace

Result<GcReport> StoreImpl::gc() {
  GcReport report;
  TRY(fold_idle_points());
  // The packs first, then the roots: a pack published in between is not in the list.
  TRY(packs_->reload());
  auto packs = packs_->packs();
  report.packs_before = packs.size();
  auto listed = TRY(blobs_->list(""));
  auto logs = TRY(all_logs(*this));
  auto roots = TRY(all_roots(*engine_));
  Marker marker(*this);
  for (const Root& root : roots) TRY(marker.mark(root));
  for (const PackInfo& pack : packs) {
    auto reader = TRY(packs_->reader(pack.number));
    u64 live = 0;
    for (u64 id : reader->ids()) live += marker.reached(id) ? reader->stored_length(id) : 0;
    if (live == 0) {
      Row row = TRY(engine_->get(pack_key(pack.number)));
      if (row.version == 0) continue;
      TRY(commit_surely(*engine_, {{row.key, std::nullopt, row.version}}));
      TRY(blobs_->remove(PackSet::name_of(pack.number)));
      ++report.packs_deleted;
      report.bytes_freed += pack.bytes;
    } else if (live < pack.bytes / 2) {
      report.bytes_freed += TRY(compact(*this, pack, marker));
    }
  }
  report.segments_deleted = TRY(drop_dead_segments(*this, logs, roots));
  TRY(end_abandoned_packs(*this));
  TRY(drop_rowless(*this, listed, packs, report));
  TRY(packs_->reload());
  return report;
}

// Snapshots, and workspaces nobody uses, that stand on other workspaces' logs get trees of their
// own, so that those logs can go.
Status StoreImpl::fold_idle_points() {
  for (const Row& row : TRY(engine_->scan("snapshot/"))) {
    auto snapshot = decode_snapshot_row(row.value);
    if (!snapshot || snapshot->point.tails.empty()) continue;
    u32 number = 0;
    RowWrite meta = TRY(take_number(number));  // page ids of its own
    TRY(commit_surely(*engine_, {meta}));
    auto folded = TRY(fold_point(snapshot->point, first_id_of(number) + kFirstPage, PackingRow{}));
    snapshot->point = Point{folded.root, snapshot->point.end(), {}};
    std::vector<RowWrite> writes{{row.key, encode_row(*snapshot), row.version}};
    writes.insert(writes.end(), folded.writes.begin(), folded.writes.end());
    Status done = commit_surely(*engine_, writes);
    if (!done.ok() && done.error().code() != ErrorCode::kConflict) return done;
  }
  return packs_->reload();
}

}  // namespace fs
