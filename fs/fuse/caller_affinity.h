// Keeps a serving thread on the processor of the thread it serves.
//
// A request and its reply are two wake-ups. On the caller's own processor each is a context switch
// (the caller sleeps anyway); on another one each waits until that processor is free or has left
// its idle state. On a busy two-core machine that is 37 us against 200 us a call. The scheduler
// does not know the pattern, so now and then we look where the caller ran and move there when two
// looks in a row agree: every kSampleEvery requests, more often until the two are together. Whether
// the caller stays there is the other half (fs/fuse/yielding.h). Single-threaded, one per serving
// thread.
#pragma once

#include "base/types.h"
#include "fs/fuse/yielding.h"

namespace fs::fuse {

class CallerAffinity {
 public:
  static constexpr u32 kSampleEvery = 64;
  static constexpr u32 kSampleSoon = 8;

  // Several serving threads have no one caller to stay with: `may_yield` is for one alone.
  CallerAffinity(Yielding& yielding, bool may_yield) : yielding_(yielding), may_yield_(may_yield) {}

  // Call with each request's pid; does nothing most of the time.
  void served(u32 pid) {
    if (++count_ >= next_look_ && pid != 0) look(pid);
  }

 private:
  void look(u32 pid);

  Yielding& yielding_;
  const bool may_yield_;
  u32 count_ = 0;
  u32 next_look_ = kSampleSoon;
  bool was_quiet_ = false;
  int here_ = -1;       // where we are pinned
  int candidate_ = -1;  // where the caller was at the last look
};

// The processor a thread last ran on, from /proc; -1 when it is gone.
int processor_of(u32 pid);

}  // namespace fs::fuse
