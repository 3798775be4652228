// A workspace that agentfsd serves: every operation is a call to the server, where the serialiser
// runs. The kernel's caches stay valid until the server says otherwise; while the server's lease
// lasts it waits for our word before any other mount's change returns. When the server is silent
// for kLeaseMs nothing in the caches can be trusted: they are dropped and every call fails until
// the mount is made anew.
//
// perform() and sync() may run on different threads; answers are matched by number. Errors of the
// connection are EIO for the caller.
#pragma once

#include "base/clock.h"
#include "fs/store/store.h"
#include "fs/wire/connection.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace fs {

struct RemoteAddress {
  std::string server;  // HOST:PORT
  std::string workspace;
  wire::TlsTrust trust;
};
// "agentfs://HOST:PORT/WORKSPACE", or agentfs+tls:// for a TLS connection whatever else is known of
// the server; nullopt for a path on this machine.
// Errors: kInvalidArgument when it starts like one and is none.
base::Result<std::optional<RemoteAddress>> parse_remote(const std::string& text);

class RemoteWorkspace : public Workspace {
 public:
  // What the server says unasked. Called on a thread of the workspace's own, in the server's order.
  struct Events {
    // Returns when the kernel has forgotten, or as soon as nothing stale can be installed any more.
    std::function<void(const std::vector<Invalidation>&)> invalidate;
    std::function<void(u64 request_id)> granted;  // a lock that waited
    std::function<void()> lost;                   // the lease ended: drop everything
  };
  static base::Result<std::unique_ptr<RemoteWorkspace>> connect(const RemoteAddress& address,
                                                                const std::string& token,
                                                                bool read_only);
  ~RemoteWorkspace() override;

  // Before any event can be delivered. Once.
  void start(Events events);
  // The reply of the last perform() is with the kernel: invalidations behind it may go on.
  void reply_sent();

  void perform(const Request& request, base::ByteView data, Effects& effects) override;
  base::Status commit() override { return {}; }  // the server did, before it answered
  base::Status sync() override;
  base::Status read(const Piece& piece, base::Bytes out) override;
  base::Status checkpoint() override { return {}; }
  bool wants_checkpoint() const override { return false; }
  base::Status fork(const std::string& new_name) override;
  base::Status snapshot(const std::string& snapshot_name) override;
  Seq last_seq() const override { return last_seq_.load(); }
  Seq synced_seq() const override { return synced_seq_.load(); }
  WorkspaceInfo info() const override;
  base::Status close() override;

 private:
  struct Waiter {
    bool done = false;
    bool failed = false;
    std::string payload;
  };
  struct Event {
    enum class Kind { kInvalidate, kGranted, kLost } kind = Kind::kLost;
    u64 id = 0;
    std::vector<Invalidation> list;
  };

  RemoteWorkspace(std::unique_ptr<wire::Connection> connection, wire::Welcome welcome);
  // The answer's payload, or nullopt when the connection is gone.
  std::optional<std::string> ask(wire::MessageType type, u64 id, std::string_view payload);
  void receive_loop();
  void event_loop();
  void deliver(const Event& event);
  void lose();

  std::unique_ptr<wire::Connection> connection_;
  wire::Welcome welcome_;
  Events events_;
  std::atomic<Seq> last_seq_{0};
  std::atomic<Seq> synced_seq_{0};
  std::string answer_;  // payload of the last perform(): its entries and bytes point into it
  std::string_view bytes_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  u64 next_id_ = 1;
  std::map<u64, Waiter*> waiters_;
  std::map<u64, u64> waiting_locks_;  // call -> request id
  std::deque<Event> queue_;
  int unsent_ = 0;  // answers that were handed out and are not with the kernel yet
  bool lost_ = false;
  bool closing_ = false;
  i64 trusted_until_us_ = 0;
  std::thread receiver_, eventer_;
};

}  // namespace fs
