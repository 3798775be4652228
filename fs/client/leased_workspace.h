// A workspace of a server that this mount holds alone: the lease is ours, the serialiser runs here,
// and a change costs no round trip. Its records go to a journal on this machine and, behind, to the
// server (sync()), which takes them only while the lease's epoch is ours.
//
// While the connection is down and the lease lasts, work goes on; fsync waits. When the lease is
// over, every call fails and the kernel is made to forget, until the lease is ours again. If
// somebody else had it in between, this mount stays fenced, and what the server never saw becomes a
// fork, NAME.rescue-EPOCH. A daemon that died finds its journal again (client/local_journal.h) and
// goes on where it was.
// perform(), commit() and read() belong to one thread; sync() and keep() may run beside them.
#pragma once

#include "base/clock.h"
#include "fs/client/lease_link.h"
#include "fs/client/local_journal.h"
#include "fs/client/remote_workspace.h"
#include "fs/lease/lease.h"
#include "fs/store/store.h"
#include "fs/tree/tree.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>

namespace fs {

// Pieces of data that came from the server, newest first, up to a size. Single-threaded.
class DataCache {
 public:
  explicit DataCache(size_t bytes_max) : bytes_max_(bytes_max) {}
  std::shared_ptr<const std::string> find(DataId id);
  void add(DataId id, std::shared_ptr<const std::string> bytes);

 private:
  struct Cached {
    std::shared_ptr<const std::string> bytes;
    std::list<DataId>::iterator place;
  };
  size_t bytes_max_;
  size_t bytes_ = 0;
  std::list<DataId> recent_;
  std::unordered_map<DataId, Cached> cache_;
};

class LeasedWorkspace : public Workspace {
 public:
  struct Options {
    RemoteAddress address;
    std::string token;
    std::string journal_folder;
    bool steal = false;  // ask the holder to hand over, and wait
    bool adopt = false;  // as OpenOptions::adopt
  };
  // Takes the lease, brings what an earlier life left to the server, and loads.
  static base::Result<std::unique_ptr<LeasedWorkspace>> open(Options options);
  ~LeasedWorkspace() override;

  // `distrust` makes the kernel forget all names and these inodes. Once, before the first request.
  void start(std::function<void(const std::vector<Ino>&)> distrust);

  void perform(const Request& request, base::ByteView data, Effects& effects) override;
  base::Status commit() override;
  base::Status sync() override;
  base::Status read(const Piece& piece, base::Bytes out) override;
  base::Status keep() override;
  bool repeated(u32 call) const override { return recovered_calls_.contains(call); }
  base::Status checkpoint() override { return {}; }  // the server's business
  bool wants_checkpoint() const override { return false; }
  base::Status fork(const std::string& new_name) override;
  base::Status snapshot(const std::string& snapshot_name) override;
  Seq last_seq() const override { return committed_.load(); }
  Seq synced_seq() const override { return synced_.load(); }
  WorkspaceInfo info() const override;
  base::Status close() override;

 private:
  explicit LeasedWorkspace(Options options);
  i64 now() const { return clock_.monotonic_us(); }
  base::Status acquire();
  base::Status load(const wire::LeaseNews& news);
  base::Status pull(Seq from, Seq to);
  std::shared_ptr<const BaseState> tree(PageId root);
  base::Result<std::shared_ptr<const std::string>> fetch(u64 id);
  bool may_write();
  base::Status dead() const;
  // Bring what the server lacks to it.
  base::Status push(Seq wanted);
  base::Status push_some();
  void stored(const wire::Appended& appended);
  void adopt_root(PageId root, Seq root_seq);
  base::Status rescue(const std::vector<LocalRecord>& records);
  // The keeper's thread.
  void keep_loop();
  void hear(const wire::LeaseNews& news);
  void hand_over();
  void shut_out();
  void distrust();

  Options options_;
  base::Clock& clock_;
  std::unique_ptr<LocalJournal> local_;
  std::unique_ptr<LeaseLink> link_;
  std::function<void(const std::vector<Ino>&)> distrust_;
  std::set<u32> recovered_calls_;
  std::shared_ptr<CachedPages> pages_;

  mutable std::mutex state_mutex_;  // guards the serialiser and what follows; before push_mutex_
  std::unique_ptr<Serialiser> serialiser_;
  DataCache cache_;
  std::vector<LocalRecord> fresh_;  // performed, not committed
  Seq root_seq_ = 0;
  bool closed_ = false;

  std::mutex push_mutex_;  // guards what follows
  std::condition_variable pushed_;
  std::deque<LocalRecord> pending_;  // committed here, not known to be at the server
  size_t pending_bytes_ = 0;
  DataId stored_data_ = 0;
  std::mutex sync_mutex_;  // one pusher at a time; taken before the others
  std::atomic<Seq> committed_{0}, acked_{0}, synced_{0};

  mutable std::mutex lease_mutex_;  // guards what follows; taken last
  std::condition_variable news_came_;
  LeaseClient lease_;
  LeaseTerms terms_;
  std::deque<wire::LeaseNews> news_;
  wire::LeaseNews granted_;
  i64 renew_at_ = 0;
  bool stopping_ = false;
  bool distrusted_ = false;
  std::atomic<bool> over_{false};  // handed over or fenced: nothing is accepted any more
  std::atomic<bool> fenced_{false};
  std::thread keeper_;
};

}  // namespace fs
