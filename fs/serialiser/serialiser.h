// The serialiser: the one place where a workspace's metadata changes. A pure state machine,
// step(request) -> effects, without clock, randomness, threads, or I/O of its own; the same code
// runs in a client that holds the workspace's lease, in a server, in the explorer of fs/models and
// in the simulator. Copying a serialiser copies its whole state.
//
// Contract of step(): it changes the state and fills `effects`, or sets reply.error and changes
// nothing. One changing step makes exactly one log record (fs/log/record.h) of absolute puts and
// deletes; the host must hand it to the journal before the reply leaves. Applying the records in
// order to the state below them gives the same state again, on any machine.
//
// The working set is in memory, paged in from a BaseState on first use, paged out by evict().
// When the base answers kBusy the reply's error is kRetryAfterLoad and the host repeats the step.
// Single-threaded.
#pragma once

#include "base/result.h"
#include "fs/log/record.h"
#include "fs/serialiser/request.h"
#include "fs/state/base_state.h"
#include "fs/state/inode.h"
#include "fs/state/keys.h"
#include "fs/state/lock_table.h"
#include "fs/state/node.h"
#include "fs/state/types.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace fs {

inline constexpr int kRetryAfterLoad = 10'001;  // not an errno

// What other sessions' kernels must forget, in this order, before the writer gets its reply
// (shared), or soon after (viewers).
struct Invalidation {
  enum class Kind : u8 { kEntry, kAttributes, kData };
  Kind kind = Kind::kEntry;
  Ino ino = 0;       // directory for kEntry
  std::string name;  // kEntry
};

struct Effects {
  Reply reply;
  std::string record;        // encoded header and changes, or empty when nothing changed
  Seq seq = 0;               // of the record
  DataId data = 0;           // not 0: the request's bytes are part of the record, under this id
  bool reply_later = false;  // a lock that waits
  std::vector<u64> granted;  // ids of waiting lock requests to answer with success now
  std::vector<Invalidation> invalidations;  // only when Options::publish
  void clear();
};

class Serialiser {
 public:
  struct Options {
    u32 workspace = 1;
    Epoch epoch = 1;
    bool publish = false;  // somebody else watches: fill Effects::invalidations
    // A kernel knows inodes that we did not hand out: the daemon before us did. What is unlinked
    // stays until it is forgotten or its session ends.
    bool adopted = false;
    u64 bytes_quota = u64{1} << 50;
    u64 inodes_quota = u64{1} << 40;
    i64 relatime_ns = 0;
  };
  // `base` may be null: an empty workspace, which gets its root directory from the first record.
  Serialiser(Options options, std::shared_ptr<const BaseState> base, Seq last_seq);

  // Makes the root directory of a new workspace: the first record.
  void create_root(const Request& request, u32 mode, Effects& effects);

  void step(const Request& request, Effects& effects);

  // Takes over a record made elsewhere or earlier: recovery, viewers, forks.
  // Errors: kCorruption when the record does not decode or its seq is not the next one.
  base::Status apply(std::string_view record);

  Seq last_seq() const { return last_seq_; }
  Epoch epoch() const { return options_.epoch; }
  const Usage& usage() const { return usage_; }
  void set_epoch(Epoch epoch) { options_.epoch = epoch; }
  void set_quota(u64 bytes, u64 inodes) {
    options_.bytes_quota = bytes;
    options_.inodes_quota = inodes;
  }
  void set_publish(bool publish) { options_.publish = publish; }

  // A checkpoint at `seq` is below us now. Pages out what is not newer, down to `nodes_max`.
  void set_base(std::shared_ptr<const BaseState> base, Seq seq);
  size_t evict(size_t nodes_max);
  size_t resident_nodes() const { return nodes_.size(); }

  // Inodes that some session's kernel knows.
  std::vector<Ino> referenced() const;
  // Data that resident nodes refer to: all of it where there is no base.
  std::unordered_set<DataId> data_in_use() const;
  // Orphans that no session references, as after a restart; reclaims them with EndSession.
  base::Result<std::vector<Ino>> orphans();
  // Names the exact extents of a range, for Defragment.
  u64 extents_fingerprint(Ino ino, u64 offset, u64 length);
  // Regular files that gained many small extents since the last call.
  std::vector<Ino> take_fragmented();

  // All keys and values as a checkpoint at last_seq() would hold them, in key order: what tests,
  // explorer and simulator compare. Loads everything: for small trees.
  base::Result<std::map<std::string, std::string>> dump();
  // References and locks per session, which no record holds, in a canonical form.
  std::string volatile_state() const;

 private:
  friend class Step;
  base::Result<Node*> find_node(Ino ino);  // null when there is none
  base::Status load_entries(Ino ino, Node& node);
  base::Status load_extents(Ino ino, Node& node);
  base::Status load_xattrs(Ino ino, Node& node);
  base::Status load_orphans();
  base::Status load_usage();
  base::Status apply_change(Seq seq, const Change& change);
  base::Status apply_inode(Seq seq, Ino ino, const Change& change);
  base::Status apply_part(Seq seq, const ParsedKey& key, const Change& change);
  void forget_node(Ino ino, Seq seq);
  u64 references_of(Ino ino) const;

  Options options_;
  std::shared_ptr<const BaseState> base_;
  Seq base_seq_ = 0;
  Seq last_seq_ = 0;
  Usage usage_;
  bool usage_loaded_ = false;
  std::unordered_map<Ino, Node> nodes_;
  std::unordered_map<Ino, Seq> deleted_;  // since the base, which still knows them
  std::map<Ino, SessionId> orphans_;      // resident O keys
  bool orphans_loaded_ = false;
  std::map<SessionId, std::unordered_map<Ino, u64>> references_;
  LockTable locks_;
  std::vector<Ino> fragmented_;
};

}  // namespace fs
