// The bridge between the kernel's requests and a workspace: every FUSE opcode becomes one operation
// of the serialiser, its record goes to the journal, its reply to the kernel.
//
// When a reply may leave depends on the durability mode (README, promise table): in `fsync` as soon
// as the record is in the journal file; fsync(2), and in `close` and `op` also other calls, wait
// until the disk has it. Those replies are kept here in order of their sequence numbers, and the
// Syncer thread sends all that one sync covers: concurrent fsyncs share it.
//
// Kernel caches never expire: only we change the tree, so what the kernel learned stays true until
// it changes it itself through us. Threads: handle() may be called by several; one lock orders
// them.
#pragma once

#include "base/clock.h"
#include "fs/fuse/session.h"
#include "fs/store/store.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace fs {

// What has been served, by opcode. Thread-safe.
struct OpStatistics {
  std::array<std::atomic<u64>, fuse::kOpLimit> count{};
  std::array<std::atomic<u64>, fuse::kOpLimit> errors{};
  std::array<std::atomic<u64>, fuse::kOpLimit> nanoseconds{};  // sampled: every 16th call, times 16
};

class Bridge : public fuse::Handler {
 public:
  struct Options {
    Durability durability = Durability::kFsync;
    SessionId session = 1;
    bool no_open = true;
    // Other mounts share the workspace: locks are everybody's, appends go to the end that the
    // serialiser knows, and `after_send` is called when a reply is with the kernel.
    bool shared = false;
    std::function<void()> after_send;
    bool read_only = false;
    // Unsynced work is written to the disk at least this often, in every mode.
    i64 sync_interval_ms = 100;
    // Entry and attribute lifetime in the kernel's caches, seconds.
    u64 cache_s = 10ull * 365 * 24 * 3600;
  };
  // `workspace` and `clock` outlive the bridge.
  Bridge(Workspace& workspace, base::Clock& clock, Options options);
  ~Bridge() override;  // stop()

  // Replies that wait are sent through `session`. Call before the session runs.
  void attach(fuse::Session& session) { session_ = &session; }
  void started(const fuse::Agreement& agreement) override;
  fuse::Answer handle(const fuse::Request& request, fuse::Reply& reply) override;

  // A lock that waited was granted: the caller of that request goes on.
  void granted(u64 request_id);

  // Stops the sync thread after a last sync. The workspace may be closed then.
  void stop();
  bool stopped() const { return stopped_.load(); }

  // Runs `work` on the workspace between two requests: control commands.
  template <class Work>
  auto with_workspace(Work work) {
    std::lock_guard lock(mutex_);
    return work(workspace_);
  }

  const OpStatistics& statistics() const { return statistics_; }
  u64 replies_waiting() const { return waiting_count_.load(); }

 private:
  using Answer = fuse::Answer;
  struct Waiting {
    Seq seq = 0;
    std::vector<u8> reply;
  };

  Answer dispatch(const fuse::Request& request, fuse::Reply& reply);
  Answer dispatch_names(const fuse::Request& request, fuse::Reply& reply);
  Answer dispatch_files(const fuse::Request& request, fuse::Reply& reply);
  Answer dispatch_xattrs(const fuse::Request& request, fuse::Reply& reply);
  Answer dispatch_locks(const fuse::Request& request, fuse::Reply& reply);

  // The step, and its journal write. False: `reply` holds the error.
  bool perform(const fuse::Request& request, Operation operation, fuse::Reply& reply,
               base::ByteView data = {});
  // A successful change: at once, or when the disk has it.
  Answer changed(fuse::Reply& reply, bool wait);
  bool waits_in(Durability least) const;
  Answer when_synced(Seq seq, fuse::Reply& reply);

  // A call that came again after the daemon had died: its record is there, its reply was not.
  bool is_repeated(const fuse::Request& request) const;
  Answer done_before(const fuse::Request& request, fuse::Reply& reply);
  Answer entry(const fuse::Request& request, Operation operation, fuse::Reply& reply, bool wait);
  Answer created(const fuse::Request& request, Operation operation, fuse::Reply& reply);
  Answer lookup(const fuse::Request& request, fuse::Reply& reply);
  Answer forget(const fuse::Request& request);
  Answer set_attributes(const fuse::Request& request, fuse::Reply& reply);
  Answer read(const fuse::Request& request, fuse::Reply& reply);
  Answer read_directory(const fuse::Request& request, fuse::Reply& reply, bool plus);
  Answer copy_range(const fuse::Request& request, fuse::Reply& reply);
  Answer flush(const fuse::Request& request, fuse::Reply& reply);
  Answer release(const fuse::Request& request, fuse::Reply& reply);
  Answer interrupt(const fuse::Request& request, fuse::Reply& reply);
  Answer text(const fuse::Request& request, Operation operation, fuse::Reply& reply, u32 size_max);
  Answer statfs(const fuse::Request& request, fuse::Reply& reply);

  fuse::Attr attributes_of(Ino ino, const Attributes& attr) const;
  fuse::EntryOut entry_of(Ino ino, const Attributes& attr) const;
  i64 now_ns();

  void sync_loop();
  void sync_once();
  void keep_lease();
  void announce_dirty();
  void release_waiting(Seq synced, int error);

  Workspace& workspace_;
  base::Clock& clock_;
  Options options_;
  fuse::Session* session_ = nullptr;
  OpStatistics statistics_;

  std::mutex mutex_;  // orders requests; guards what follows up to `sync_mutex_`
  Effects effects_;
  i64 last_ns_ = 0;
  std::unordered_map<Ino, Seq> written_;  // last write of files not closed since; `close` mode only

  std::mutex sync_mutex_;  // taken after mutex_, never before it
  std::condition_variable sync_wanted_;
  std::deque<Waiting> waiting_;  // by seq
  std::atomic<u64> waiting_count_{0};
  std::atomic<Seq> committed_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> dirty_{false};   // committed and not synced
  std::atomic<bool> fenced_{false};  // another holder has the workspace: nothing is accepted
  bool stopping_ = false;
  bool in_trouble_ = false;  // syncs fail; the syncer's own
  bool failed_ = false;      // a sync failed: nothing is promised any more
  std::thread syncer_;
};

}  // namespace fs
