// Makes the kernel forget what another mount changed.
//
// A notification about a name takes the kernel's lock of its folder, and a call of our own mount in
// that folder holds the lock until we answer it, which may in turn wait for the other mount: a
// circle. So notifications are sent by a thread of their own, and when they take longer than
// kPatienceMs all names are invalidated at once by raising the kernel's epoch (7.44), which takes
// no lock; the slow notification ends when the call does. Before 7.44 the short delay is all there
// is. Thread-safe: drop() may be called by one thread at a time.
#pragma once

#include "fs/fuse/session.h"
#include "fs/serialiser/serialiser.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace fs {

class Invalidator {
 public:
  explicit Invalidator(fuse::Session& session);
  ~Invalidator();
  Invalidator(const Invalidator&) = delete;
  Invalidator& operator=(const Invalidator&) = delete;

  void drop(const std::vector<Invalidation>& list);
  // Every name, at once.
  void drop_all();

 private:
  static constexpr int kPatienceMs = 20;
  void run();
  void notify(const Invalidation& one);

  fuse::Session& session_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Invalidation>> queue_;
  u64 queued_ = 0, finished_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace fs
