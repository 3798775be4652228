// One workspace that several mounts share: the serialiser runs here, every mount is a session of
// it.
//
// All state changes under one lock, and frames to sessions are sent under it too, so that every
// session sees answers and invalidations in the order in which they happened. The answer to a
// change is held until every other session acknowledged the invalidations it caused, so no cache is
// stale when the writer's call returns; a session that is silent for kExpelAfterMs is expelled (its
// own lease, which is shorter, has ended by then). Nothing here waits for a peer to take bytes.
//
// Or one mount holds the workspace's lease and runs the serialiser itself (host_lease.cc): its
// records are taken in order, fenced by the lease's epoch, and its viewers (read-only sessions) are
// told what they change. A holder that comes back too late finds its unseen records' base kept as
// the snapshot fenced-EPOCH, and gets a fork NAME.rescue-EPOCH for them. Shared writers and a
// holder exclude each other. Thread-safe.
#pragma once

#include "base/clock.h"
#include "fs/lease/lease.h"
#include "fs/store/replica.h"
#include "fs/store/store.h"
#include "fs/wire/connection.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace fs::server {

class Host {
 public:
  // `store` and `clock` outlive the host. The store is one that no other host of it opens.
  static base::Result<std::unique_ptr<Host>> open(Store& store, const std::string& workspace,
                                                  const OpenOptions& options, LeaseTerms terms,
                                                  base::Clock& clock);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Serves one mount until its connection ends. Blocks.
  struct Guest {
    std::string agent;  // for people
    std::string client;
    wire::Profile profile = wire::Profile::kShared;
    bool read_only = false;
  };
  void serve(wire::Connection& connection, const Guest& guest);
  // Ends all sessions, stores everything.
  base::Status close();
  size_t sessions();

 private:
  struct Session {
    wire::Connection* connection = nullptr;
    Guest guest;
    ClientId client = 0;  // as the lease knows it
    bool may_share() const { return guest.profile == wire::Profile::kShared; }
    bool writes() const { return may_share() && !guest.read_only; }
  };
  // An answer that waits for acknowledgements.
  struct Held {
    SessionId to = 0;
    wire::MessageType type = wire::MessageType::kAnswer;
    u64 call = 0;
    std::string payload;
    std::set<SessionId> waiting_for;
    i64 deadline_us = 0;
  };

  Host(Store& store, std::string name, OpenOptions options, LeaseTerms terms, base::Clock& clock)
      : store_(store),
        name_(std::move(name)),
        open_options_(options),
        clock_(clock),
        terms_(terms),
        lease_(terms) {}
  base::Status reopen();
  // Under the lock: the sentence that says why this guest cannot come in, or "".
  std::string refusal(const Guest& guest);

  // host_lease.cc, under the lock where nothing else is said.
  void start_lease();
  bool private_frame(SessionId id, const wire::Frame& frame);
  void lease_message(Session& session, LeaseMessage message);
  // Takes the lock itself.
  void append(SessionId id, const wire::Frame& frame);
  int take(const Session& session, const wire::Batch& batch, std::vector<Invalidation>& changed);
  std::string records_from(Seq from);
  wire::Rescued rescue(const wire::Batch& batch);
  void end_rescue(bool complete);
  void end_lease_session(const Session& session);
  base::Status shut_out();
  base::Status reclaim();
  void tell(const std::vector<LeaseMessage>& messages);
  std::string news_for(const LeaseMessage& message);
  ClientId client_id(const std::string& client);
  i64 now() { return clock_.monotonic_us(); }

  // False ends the session.
  bool handle(SessionId id, const wire::Frame& frame);
  void call(SessionId id, const wire::Frame& frame);
  bool read_pieces(const Reply& reply, std::string& bytes);
  void answer(SessionId id, wire::MessageType type, u64 call, std::string payload,
              const std::vector<Invalidation>& list);
  void acknowledged(SessionId id, u64 invalidation);
  void end_session(SessionId id);
  void send_granted(const std::vector<u64>& requests);
  base::Result<Seq> sync(Seq wanted);
  void watch();
  void store();
  void keep();

  Store& store_;
  std::string name_;
  OpenOptions open_options_;
  base::Clock& clock_;
  LeaseTerms terms_;

  std::mutex mutex_;  // guards what follows
  std::shared_ptr<Workspace> workspace_;
  LeaseServer lease_;
  WriterRow writer_;
  std::map<std::string, ClientId> client_ids_;
  std::vector<SessionId> ended_viewers_;  // while a holder was there: nothing could be reclaimed
  bool must_reclaim_ = true;
  std::unique_ptr<Workspace> rescue_;  // a fork that is being filled
  std::string rescue_name_, rescue_base_;
  std::map<SessionId, Session> sessions_;
  SessionId next_session_ = 1;
  u64 next_request_ = 1;
  u64 next_invalidation_ = 1;
  i64 last_ns_ = 0;
  std::map<u64, Held> held_;                                // by invalidation
  std::map<u64, std::pair<SessionId, u64>> waiting_locks_;  // request -> session and its call
  Effects effects_;
  bool closing_ = false;
  std::condition_variable closing_changed_;

  std::mutex sync_mutex_;  // one sync at a time; those who wait share it
  // Held by the threads that fold and that keep the lease. Syncs go on meanwhile: a fold may wait
  // for an object store.
  std::mutex fold_mutex_, keep_mutex_;
  std::thread watcher_, storer_, keeper_;
};

}  // namespace fs::server
