// A store: one folder that holds workspaces. `agentfs format DIR` makes it; on one machine it is
// all there is.
//
//   DIR/agentfs.db      engine: roots, heads, leases, packs, snapshots (SQLite)
//   DIR/log/W-SEQ.log   journal segments of workspace number W from record SEQ on
//                       (fs/log/journal.h)
//   DIR/packs/N.pack    immutable packs of file data and tree pages (fs/pack/pack.h)
//
// In a cluster every server has such a folder, DIR/store.json (fs/store/config.h) says where the
// engine and the packs are, and the logs are in the engine (fs/store/shipping.h): the folder holds
// nothing that another server would miss, except for what was not synced yet.
//
// A workspace at a moment is a Point: an immutable tree and stretches of log on top of it.
// Snapshot, fork and rollback copy a Point, so they cost the same for ten files and for ten
// million. Errors: sentences for a person. Store is thread-safe; Workspace is single-threaded, but
// sync(), read() and checkpoint() may run on one other thread beside perform()/commit().
#pragma once

#include "base/clock.h"
#include "base/disk.h"
#include "base/result.h"
#include "fs/engine/engine.h"
#include "fs/seal/key_file.h"
#include "fs/serialiser/serialiser.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fs {

enum class Durability {
  kFsync,  // a reply means: in the journal file; fsync means: on the disk
  kClose,  // and close() of a written file and rename wait for the disk
  kOp,     // and every change waits for the disk
};

struct WorkspaceInfo {
  std::string name;
  u32 number = 0;
  Seq head_seq = 0;  // as of the last checkpoint, fork or clean unmount
  Seq root_seq = 0;
  Epoch epoch = 0;
  std::string parent;  // name of the workspace it was forked from, or ""
  i64 created_ns = 0;
  std::string holder;  // who has it mounted, or ""
};

struct SnapshotInfo {
  std::string workspace;
  std::string name;
  Seq seq = 0;
  i64 created_ns = 0;
};

class Replica;

// What a workspace may hold; 0 is no limit. Kept with the workspace; writes beyond it fail with
// ENOSPC, new files with EDQUOT.
struct Quota {
  u64 bytes = 0;
  u64 inodes = 0;
};
struct QuotaUse {
  Quota limit;
  u64 bytes = 0;
  u64 inodes = 0;
};

class Workspace {
 public:
  virtual ~Workspace() = default;

  // One request: the serialiser's step, and its record (with `data`, the bytes of a Write) into the
  // batch. Send no reply before commit().
  virtual void perform(const Request& request, base::ByteView data, Effects& effects) = 0;
  // The batch goes to the journal file: a crash of this process cannot lose it any more.
  virtual base::Status commit() = 0;
  // Everything committed is on the disk when it returns: fsync(2), and the modes close and op.
  virtual base::Status sync() = 0;
  // Bytes of a piece of a read reply; out.size() == piece.length. kCorruption when the check fails.
  virtual base::Status read(const Piece& piece, base::Bytes out) = 0;

  // Renews the lease when it is time; call it at least every few seconds, commit() does it too.
  // Once it fails with kConflict another holder has the workspace: caches must go, nothing is
  // accepted.
  virtual base::Status keep() { return {}; }

  // Folds the log into the tree and drops what nobody needs. When `wants_checkpoint()`, in idle
  // time.
  virtual base::Status checkpoint() = 0;
  virtual bool wants_checkpoint() const = 0;

  // These act on the running workspace; see Store for those that are not mounted.
  virtual base::Status fork(const std::string& new_name) = 0;
  virtual base::Status snapshot(const std::string& snapshot_name) = 0;
  virtual base::Result<QuotaUse> quota();
  virtual base::Status set_quota(const Quota& quota);

  virtual Seq last_seq() const = 0;
  virtual Seq synced_seq() const = 0;
  virtual WorkspaceInfo info() const = 0;
  // Clean end: orphans of this mount reclaimed, journal synced, lease given back.
  virtual base::Status close() = 0;
  // Whether a recovered record was made by this call (RecordHeader::call), whose reply the kernel
  // may never have seen.
  virtual bool repeated(u32 /*call*/) const { return false; }
  // What a server needs to follow a mount that changes the workspace (fs/store/replica.h), or null.
  virtual Replica* replica() { return nullptr; }
  // Whether another machine may take over what is synced, and nothing else.
  virtual bool ships_log() const { return false; }
};

struct Difference {
  enum class Kind { kAdded, kRemoved, kModified, kTypeChanged };
  Kind kind = Kind::kModified;
  std::string path;
  Ino ino = 0;
};

struct StoreOptions {
  base::Disk* disk = nullptr;    // null: the machine's
  base::Clock* clock = nullptr;  // null: the machine's
  Engine* engine = nullptr;      // null: the one the folder names; else it outlives the store
  // Logs live in the engine, not in the folder: what a cluster needs (fs/store/shipping.h). Taken
  // from the folder when `engine` is null.
  bool log_in_engine = false;
  std::string holder = "local";  // who takes leases, e.g. "host:pid"
  // Opens an encrypted store; null: the key in the file that AGENTFS_KEY_FILE names.
  std::shared_ptr<const UserKey> key;
  bool encrypt = false;  // for format(): what is stored is sealed (fs/seal/seal.h)
  // For format() and join(), see fs/store/config.h; "" makes a store that is only a folder.
  std::string engine_url;
  std::string blobs;
};

struct OpenOptions {
  bool steal = false;  // take it although another holder has it: that one is fenced
  u64 bytes_quota = u64{1} << 50;
  u64 inodes_quota = u64{1} << 40;
  // Another machine may still hold records that continue this log: reclaim nothing, neither at the
  // start nor at the end.
  bool follow = false;
  // A daemon died and its kernel lives on: keep what it had unlinked and open, and remember the
  // calls of the last records, for repeated().
  bool adopt = false;
  bool publish = false;  // several sessions share it: fill Effects::invalidations
};

struct GcReport {
  u64 packs_before = 0;
  u64 packs_deleted = 0;
  u64 bytes_freed = 0;
  u64 segments_deleted = 0;
};

struct FsckReport {
  u64 workspaces = 0;
  u64 inodes = 0;
  u64 pages = 0;
  u64 data = 0;                       // pieces of file data checked
  std::vector<std::string> problems;  // one sentence each
};

class Store {
 public:
  virtual ~Store() = default;
  // Errors: kExists when there is a store already.
  static base::Status format(const std::string& folder, const StoreOptions& options);
  // Makes a folder one more server's of the store that `engine_url` holds.
  static base::Status join(const std::string& folder, const StoreOptions& options);
  // Errors: kNotFound when the folder holds no store, kPermission without its key.
  static base::Result<std::unique_ptr<Store>> open(const std::string& folder, StoreOptions options);
  // An encrypted store opens with `fresh` from now on, and not with its key so far. What runs goes
  // on.
  static base::Status rekey(const std::string& folder, StoreOptions options, const UserKey& fresh);

  // A text that all servers of the store share, e.g. a key: made with `make` when it is not there.
  // kUnsupported where the folder is the store.
  virtual base::Result<std::string> shared_secret(const std::string& name,
                                                  const std::function<std::string()>& make) = 0;
  virtual base::Status create_workspace(const std::string& name) = 0;
  virtual base::Result<std::vector<WorkspaceInfo>> workspaces() = 0;
  // Takes the lease, recovers, reclaims orphans. Errors: kNotFound, kBusy (held by another).
  virtual base::Result<std::unique_ptr<Workspace>> open_workspace(const std::string& name,
                                                                  const OpenOptions& options) = 0;
  // For workspaces nobody has mounted here; a running one forks through its Workspace.
  // `from` is a workspace or workspace@snapshot.
  virtual base::Status fork(const std::string& from, const std::string& to) = 0;
  virtual base::Status snapshot(const std::string& workspace, const std::string& name) = 0;
  virtual base::Result<std::vector<SnapshotInfo>> snapshots(const std::string& workspace) = 0;
  virtual base::Status rollback(const std::string& workspace, const std::string& snapshot) = 0;
  virtual base::Status remove(const std::string& workspace_or_snapshot) = 0;
  // From `a` to `b`, each a workspace or workspace@snapshot.
  virtual base::Result<std::vector<Difference>> diff(const std::string& a,
                                                     const std::string& b) = 0;
  // The audit trail, oldest first, as far as the log is kept; false from `visit` stops.
  using VisitRecord = std::function<bool(const RecordHeader&, std::string_view record)>;
  virtual base::Status log(const std::string& workspace, Seq from, const VisitRecord& visit) = 0;
  virtual base::Result<GcReport> gc() = 0;
  virtual base::Result<FsckReport> fsck() = 0;
};

}  // namespace fs
