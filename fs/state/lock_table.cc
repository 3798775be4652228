#include "fs/state/lock_table.h"

#include "fs/state/mutant.h"

#include <algorithm>

namespace fs {

namespace {

bool same_owner(const HeldLock& a, const HeldLock& b) {
  return a.session == b.session && a.owner == b.owner;
}
bool overlap(const HeldLock& a, const HeldLock& b) {
  return a.start <= b.last && b.start <= a.last;
}
bool order(const HeldLock& a, const HeldLock& b) {
  return std::tie(a.start, a.session, a.owner) < std::tie(b.start, b.session, b.owner);
}

// Joins neighbouring ranges of one owner and kind.
void merge(std::vector<HeldLock>& locks) {
  std::sort(locks.begin(), locks.end(), order);
  for (size_t i = 0; i < locks.size(); ++i) {
    for (size_t j = i + 1; j < locks.size();) {
      HeldLock& a = locks[i];
      const HeldLock& b = locks[j];
      bool joins =
          same_owner(a, b) && a.write == b.write && a.last != ~u64{0} && a.last + 1 == b.start;
      if (!joins) {
        ++j;
        continue;
      }
      a.last = b.last;
      locks.erase(locks.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

}  // namespace

const HeldLock* LockTable::conflict(Space space, Ino ino, const HeldLock& wanted) const {
  if (FS_MUTANT(kConflictIgnored) && !wanted.write) return nullptr;
  auto place = held_.find({space, ino});
  if (place == held_.end()) return nullptr;
  for (const HeldLock& held : place->second) {
    if (!same_owner(held, wanted) && overlap(held, wanted) && (held.write || wanted.write)) {
      return &held;
    }
  }
  return nullptr;
}

void LockTable::release(Space space, Ino ino, const HeldLock& range) {
  auto place = held_.find({space, ino});
  if (place == held_.end()) return;
  std::vector<HeldLock> kept;
  for (const HeldLock& held : place->second) {
    bool overlaps = overlap(held, range) || FS_MUTANT(kReleaseTakesAll);
    if (!same_owner(held, range) || !overlaps) {
      kept.push_back(held);
      continue;
    }
    if (FS_MUTANT(kReleaseTakesAll)) continue;
    if (held.start < range.start) {
      kept.push_back(held);
      kept.back().last = range.start - 1;
    }
    if (held.last > range.last) {
      kept.push_back(held);
      kept.back().start = range.last + 1;
    }
  }
  if (kept.empty()) {
    held_.erase(place);
  } else {
    std::sort(kept.begin(), kept.end(), order);
    place->second = std::move(kept);
  }
}

void LockTable::acquire(Space space, Ino ino, const HeldLock& lock) {
  release(space, ino, lock);
  std::vector<HeldLock>& locks = held_[{space, ino}];
  locks.push_back(lock);
  merge(locks);
}

bool LockTable::would_deadlock(Space space, Ino ino, const HeldLock& wanted) const {
  // Who stands in the way, whom do those wait for, and so on; a circle ends at ourselves.
  std::vector<HeldLock> open;
  std::vector<HeldLock> seen;
  auto add_blockers = [&](Space in, Ino of, const HeldLock& lock) {
    auto place = held_.find({in, of});
    if (place == held_.end()) return;
    for (const HeldLock& held : place->second) {
      if (same_owner(held, lock) || !overlap(held, lock) || !(held.write || lock.write)) continue;
      bool known = std::any_of(seen.begin(), seen.end(),
                               [&](const HeldLock& other) { return same_owner(other, held); });
      if (!known) {
        seen.push_back(held);
        open.push_back(held);
      }
    }
  };
  add_blockers(space, ino, wanted);
  while (!open.empty()) {
    HeldLock blocker = open.back();
    open.pop_back();
    if (same_owner(blocker, wanted)) return true;
    for (const Waiter& waiter : waiters_) {
      if (!same_owner(waiter.lock, blocker)) continue;
      auto blocked_by_us = held_.find({waiter.space, waiter.ino});
      if (blocked_by_us == held_.end()) continue;
      for (const HeldLock& held : blocked_by_us->second) {
        bool in_way = overlap(held, waiter.lock) && (held.write || waiter.lock.write);
        if (in_way && same_owner(held, wanted)) return true;
      }
      add_blockers(waiter.space, waiter.ino, waiter.lock);
    }
  }
  return false;
}

bool LockTable::cancel(SessionId session, u64 request_id) {
  return std::erase_if(waiters_, [&](const Waiter& waiter) {
           return waiter.lock.session == session && waiter.request_id == request_id;
         }) > 0;
}

std::vector<u64> LockTable::grant_waiters() {
  std::vector<u64> granted;
  for (size_t i = 0; i < waiters_.size();) {
    Waiter& waiter = waiters_[i];
    if (conflict(waiter.space, waiter.ino, waiter.lock) != nullptr) {
      ++i;
      continue;
    }
    acquire(waiter.space, waiter.ino, waiter.lock);
    granted.push_back(waiter.request_id);
    waiters_.erase(waiters_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return granted;
}

void LockTable::end_session(SessionId session) {
  if (FS_MUTANT(kLocksOutliveSession)) return;
  for (auto place = held_.begin(); place != held_.end();) {
    std::erase_if(place->second, [&](const HeldLock& lock) { return lock.session == session; });
    place = place->second.empty() ? held_.erase(place) : std::next(place);
  }
  std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.lock.session == session; });
}

std::string LockTable::canonical() const {
  std::string text;
  auto add = [&](Space space, Ino ino, const HeldLock& lock) {
    for (u64 number :
         {u64(space), ino, u64{lock.session}, lock.owner, lock.start, lock.last, u64{lock.write}}) {
      text += std::to_string(number) + ",";
    }
    text += ";";
  };
  for (const auto& [place, locks] : held_) {
    for (const HeldLock& lock : locks) add(place.first, place.second, lock);
  }
  text += "|";
  for (const Waiter& waiter : waiters_) add(waiter.space, waiter.ino, waiter.lock);
  return text;
}

}  // namespace fs
