// Call stacks of another process, by its unwind tables (libdw), so that programs built without
// frame pointers and without debug information can be looked at too. Each look stops the threads
// for as long as it takes to read their stacks, and a call that sleeps in the kernel may return
// early because of it, as with any debugger.
//
// Works on descendants of ours, sandboxed or not: files are opened through the process's own root.
// Errors: kUnsupported when the process may not be looked at, kNotFound when it is gone.
// Single-threaded; threads may hold one each.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <vector>

namespace team {

// Innermost function first; names are demangled, without parameters. Frames without a name are
// "[library]".
using CallStack = std::vector<std::string>;

class Unwinder {
 public:
  struct Options {
    int pid = 0;
    bool stopped = false;  // its threads are stopped by a tracer in the calling thread already
    size_t frames_max = 32;
  };
  static base::Result<std::unique_ptr<Unwinder>> attach(const Options& options);
  ~Unwinder();

  // One stack for each thread. Empty when it is gone.
  std::vector<CallStack> all_threads();
  CallStack thread(int tid);           // empty when it is gone
  const std::string& problem() const;  // why the last look saw nothing; "" when it did

 private:
  struct Impl;
  explicit Unwinder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// "kv::Log::sync(int)" and "std::vector<int>::push_back(int&&)" without what is in brackets.
std::string short_name(const std::string& symbol);

}  // namespace team
