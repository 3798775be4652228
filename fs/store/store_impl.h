// What store.cc and workspace.cc share (internal to fs/store).
#pragma once

#include "fs/blob/blob.h"
#include "fs/engine/engine.h"
#include "fs/log/journal.h"
#include "fs/store/point.h"
#include "fs/store/shipping.h"
#include "fs/store/store.h"
#include "fs/tree/tree.h"

#include <memory>
#include <set>
#include <string>

namespace fs {

// A row and the version it was read at.
template <class T>
struct Versioned {
  std::string key;
  T row;
  u64 version = 0;
};

struct TakenLease {
  LeaseRow lease;
  // The one before us used the same folder, so nobody has seen the workspace without what its
  // journal there holds.
  bool same_place = true;
};

class StoreImpl : public Store {
 public:
  struct Parts {
    std::string folder;
    std::unique_ptr<BlobStore> blobs;
    std::string place;               // a random name of this folder, or "" where it is the store
    std::unique_ptr<Engine> engine;  // null when the options name one
    StoreKey key{};
    SealPointer seal;
  };
  StoreImpl(Parts parts, StoreOptions options);

  base::Result<std::string> shared_secret(const std::string& name,
                                          const std::function<std::string()>& make) override;

  base::Status create_workspace(const std::string& name) override;
  base::Result<std::vector<WorkspaceInfo>> workspaces() override;
  base::Result<std::unique_ptr<Workspace>> open_workspace(const std::string& name,
                                                          const OpenOptions& options) override;
  base::Status fork(const std::string& from, const std::string& to) override;
  base::Status snapshot(const std::string& workspace, const std::string& name) override;
  base::Result<std::vector<SnapshotInfo>> snapshots(const std::string& workspace) override;
  base::Status rollback(const std::string& workspace, const std::string& snapshot) override;
  base::Status remove(const std::string& workspace_or_snapshot) override;
  base::Result<std::vector<Difference>> diff(const std::string& a, const std::string& b) override;
  base::Status log(const std::string& workspace, Seq from, const VisitRecord& visit) override;
  base::Result<GcReport> gc() override;
  base::Result<FsckReport> fsck() override;

  // Shared with workspaces.
  Engine& engine() { return *engine_; }
  base::Disk& disk() { return *options_.disk; }
  base::Clock& clock() { return *options_.clock; }
  const std::string& holder() const { return options_.holder; }
  std::string log_folder() const { return folder_ + "/log"; }
  // Null unless logs live in the engine.
  LogFetcher* fetcher() { return fetcher_.get(); }
  BlobStore& blobs() { return *blobs_; }
  base::Result<Versioned<WorkspaceRow>> workspace_row(const std::string& name);
  base::Result<Versioned<SnapshotRow>> snapshot_row(const std::string& workspace,
                                                    const std::string& name);
  base::Result<Versioned<LeaseRow>> lease_row(u32 number);
  // A fresh workspace number, with the row to write in the same commit.
  base::Result<RowWrite> take_number(u32& number);
  // Writes the row of a new workspace that starts at `point`; `proofs` hold what it was copied
  // from.
  base::Status add_workspace(const std::string& name, const std::string& parent, const Point& point,
                             std::vector<RowWrite> proofs);

  void give_lease_back(u32 number, const LeaseRow& lease);

  PackSet& packs() { return *packs_; }
  PageSource& pages() { return *pages_; }
  const StoreKey& key() const { return key_; }
  const SealPointer& seal() const { return seal_; }
  // A root as a base state; null for the empty tree.
  std::shared_ptr<const BaseState> tree(PageId root);
  using Visit = std::function<base::Status(std::string_view record)>;
  // Visits the records of a point's tails in order; learns where their data lies. `ours` is a
  // workspace that is open here: its log is in the folder.
  base::Status scan_tails(const Point& point, DataPlaces* places, const Visit& visit, u32 ours = 0);
  // The records after a point in the workspace's own log, as far as others can see them.
  base::Status scan_own_log(u32 number, const Point& point, const Visit& visit);
  // The same, as far as they are written to the log in the folder.
  base::Status scan_local_log(u32 number, const Point& point, const Visit& visit);
  // Folds the tails of a point into its tree. New packs are written and durable but not published:
  // the caller commits `writes` together with the row that takes the new root.
  struct Folded {
    PageId root = 0;
    PageId next_page = 0;
    std::vector<PackInfo> packs;
    std::vector<RowWrite> writes;
  };
  // `between` is called after each pack: an object store may take its time.
  base::Result<Folded> fold_point(const Point& point, PageId next_page, const PackingRow& packer,
                                  const std::function<void()>& between = {});
  // A pack number and the row that protects it, committed.
  base::Result<Versioned<u64>> take_pack_number(const PackingRow& packer);

  // The state of a point, and where the data of its tails lies.
  base::Result<Serialiser> load(const Point& point, Serialiser::Options options,
                                DataPlaces& places);

 private:
  base::Result<TakenLease> take_lease(u32 number, bool steal);
  base::Result<std::vector<PackInfo>> pack_rows();
  base::Status fold_idle_points();
  base::Result<std::set<u64>> check_packs(class Marker& marker, FsckReport& report);

  bool is_dead(const LeaseRow& lease);

  std::string folder_;
  std::string place_;
  StoreOptions options_;
  std::unique_ptr<Engine> owned_engine_;
  Engine* engine_;
  StoreKey key_;
  SealPointer seal_;  // null: not encrypted
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<PackSet> packs_;
  std::shared_ptr<CachedPages> pages_;
  std::unique_ptr<LogFetcher> fetcher_;
};

base::Error damaged_row(std::string_view key);

// Letters, digits, '.', '-', '_'; at most 100 bytes; nothing else is safe in a row key and a path.
base::Status check_store_name(const std::string& name, std::string_view what);
// "workspace@snapshot" in two; the second is "" without '@'.
std::pair<std::string, std::string> split_name(const std::string& name);

base::Result<std::unique_ptr<Workspace>> make_workspace(StoreImpl& store, std::string name,
                                                        Versioned<WorkspaceRow> row,
                                                        TakenLease taken,
                                                        const OpenOptions& options);

inline constexpr i64 kLeaseUs = 15'000'000;
inline constexpr i64 kLeaseRenewUs = 5'000'000;

}  // namespace fs
