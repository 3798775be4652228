// Sees a program die: follows a running program as a debugger does and, when a signal is about to
// end it, reads the call stack of the thread that got it. So a crash has a backtrace without core
// files, debug builds or anything installed, inside a sandbox too. The program runs at full speed;
// only its signals pass through here.
//
// Where tracing is not allowed, there is simply no backtrace, and `problem` says why.
// One thread of its own, which ends when the program does: kill the program before the object goes.
#pragma once

#include "team/sandbox/unwind.h"

#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace team {

class CrashWatch {
 public:
  // `pids`: the processes to follow, with all their threads.
  explicit CrashWatch(std::vector<int> pids);
  ~CrashWatch();

  struct Seen {
    int signal = 0;  // 0: none
    CallStack stack;
    std::string problem;
  };
  Seen seen() const;

 private:
  void follow(const std::vector<int>& pids);
  void look(int tid, int signal);

  mutable std::mutex mutex_;
  Seen seen_;
  std::thread thread_;
};

// Without what the C and C++ libraries put between a fault and the signal: abort(), terminate(),
// and their own functions in which a bad argument of the program showed itself.
CallStack own_frames(const CallStack& stack);

}  // namespace team
