// Byte-range locks (fcntl) and whole-file locks (flock) of all sessions of a workspace, for mounts
// that share it; a mount that has the workspace alone leaves them to its kernel.
//
// An owner is (session, owner number). Ranges of one owner merge and split as POSIX says. A request
// that must wait is remembered in arrival order and granted when nothing conflicts. Copyable.
#pragma once

#include "fs/state/types.h"

#include <map>
#include <string>
#include <vector>

namespace fs {

struct HeldLock {
  SessionId session = 0;
  u64 owner = 0;
  u64 start = 0;
  u64 last = 0;  // inclusive
  bool write = false;
  u32 pid = 0;
  bool operator==(const HeldLock&) const = default;
};

class LockTable {
 public:
  enum class Space : u8 { kPosix, kFlock };
  struct Waiter {
    u64 request_id = 0;
    Space space = Space::kPosix;
    Ino ino = 0;
    HeldLock lock;
  };

  // The first lock in the way of `wanted`, or null.
  const HeldLock* conflict(Space space, Ino ino, const HeldLock& wanted) const;
  // REQUIRES: no conflict. Replaces what the owner held in the range. A change from write to read
  // can let others go on: see grant_waiters.
  void acquire(Space space, Ino ino, const HeldLock& lock);
  void release(Space space, Ino ino, const HeldLock& range);
  void wait(Waiter waiter) { waiters_.push_back(std::move(waiter)); }
  // Whether waiting for `wanted` would close a circle of waiting owners (EDEADLK).
  bool would_deadlock(Space space, Ino ino, const HeldLock& wanted) const;
  // False when no such request waits.
  bool cancel(SessionId session, u64 request_id);
  // Gives waiting requests their locks, oldest first, as far as possible; returns their ids.
  std::vector<u64> grant_waiters();
  void end_session(SessionId session);
  bool empty() const { return held_.empty() && waiters_.empty(); }
  std::string canonical() const;

 private:
  using Place = std::pair<Space, Ino>;
  std::map<Place, std::vector<HeldLock>> held_;
  std::vector<Waiter> waiters_;
};

}  // namespace fs
