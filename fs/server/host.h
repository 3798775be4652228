// One workspace that several mounts share: the serialiser runs here, every mount is a session of
// it.
//
// All state changes under one lock, and frames to sessions are sent under it too, so that every
// session sees answers and invalidations in the order in which they happened. The answer to a
// change is held until every other session acknowledged the invalidations it caused, so no cache is
// stale when the writer's call returns; a session that is silent for kExpelAfterMs is expelled (its
// own lease, which is shorter, has ended by then). Thread-safe.
#pragma once

#include "base/clock.h"
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
  // `clock` outlives the host.
  Host(std::unique_ptr<Workspace> workspace, base::Clock& clock);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Serves one mount until its connection ends. Blocks.
  void serve(wire::Connection& connection, bool read_only);
  // Ends all sessions, stores everything.
  base::Status close();
  size_t sessions();

 private:
  struct Session {
    wire::Connection* connection = nullptr;
    bool read_only = false;
  };
  // An answer that waits for acknowledgements.
  struct Held {
    SessionId to = 0;
    u64 call = 0;
    std::string payload;
    std::set<SessionId> waiting_for;
    i64 deadline_us = 0;
  };

  // False ends the session.
  bool handle(SessionId id, const wire::Frame& frame);
  void call(SessionId id, const wire::Frame& frame);
  bool read_pieces(const Reply& reply, std::string& bytes);
  void answer(SessionId id, u64 call, std::string payload, const std::vector<Invalidation>& list);
  void acknowledged(SessionId id, u64 invalidation);
  void end_session(SessionId id);
  void send_granted(const std::vector<u64>& requests);
  base::Result<Seq> sync(Seq wanted);
  void watch();

  std::unique_ptr<Workspace> workspace_;
  base::Clock& clock_;

  std::mutex mutex_;  // guards what follows
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
  std::thread watcher_;
};

}  // namespace fs::server
