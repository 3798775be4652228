// The mutex of a connection: recursive, and two atomic operations a call where nobody waits, since
// every small call of the C API takes it. Waiting is the kernel's (std::atomic::wait); the three
// states are those of Drepper, "Futexes Are Tricky", section 5.
//
// BasicLockable. unlock() only from the thread that holds it.
#pragma once

#include "base/types.h"

#include <atomic>

namespace db::capi {

class RecursiveLock {
 public:
  RecursiveLock() = default;
  RecursiveLock(const RecursiveLock&) = delete;
  RecursiveLock& operator=(const RecursiveLock&) = delete;

  void lock() {
    if (!try_lock()) wait();
  }
  bool try_lock() {
    const void* const me = __builtin_thread_pointer();  // no two living threads share it
    if (owner_.load(std::memory_order_relaxed) == me) {
      ++depth_;
      return true;
    }
    u32 state = kFree;
    if (!state_.compare_exchange_strong(state, kHeld, std::memory_order_acquire)) return false;
    own(me);
    return true;
  }
  void unlock() {
    if (--depth_ > 0) return;
    owner_.store(nullptr, std::memory_order_relaxed);
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }

 private:
  static constexpr u32 kFree = 0, kHeld = 1, kAwaited = 2;

  void own(const void* me) {
    owner_.store(me, std::memory_order_relaxed);
    depth_ = 1;
  }
  [[gnu::noinline]] void wait() {
    // Whoever has waited cannot know that nobody else does.
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree)
      state_.wait(kAwaited, std::memory_order_relaxed);
    own(__builtin_thread_pointer());
  }

  std::atomic<u32> state_{kFree};
  std::atomic<const void*> owner_{nullptr};
  int depth_ = 0;  // of the owner
};

}  // namespace db::capi
