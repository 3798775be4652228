// A control group for one sandbox: limits on memory and processes that hold for all of them
// together. Version 2 where the memory and pids controllers may be used, else version 1, else none.
// Thread-safe.
#pragma once

#include "base/types.h"

#include <memory>
#include <string>
#include <vector>

namespace team {

class Cgroup {
 public:
  // Null when this machine or user cannot make one.
  static std::unique_ptr<Cgroup> make(i64 memory_bytes, int processes);
  ~Cgroup();  // removes it; what still runs in it is killed
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  // Removes groups of programs of ours that were killed before they could.
  static void sweep();
  // The same for those of one process that has ended; returns when nothing runs in them any more.
  static void sweep(int pid);

  // A process joins by writing its pid to each of these files.
  std::vector<std::string> join_files() const;
  // Processes killed because memory ran out.
  i64 out_of_memory_kills() const;

 private:
  explicit Cgroup(std::vector<std::string> folders) : folders_(std::move(folders)) {}
  std::vector<std::string> folders_;  // one (v2) or one per controller (v1: memory, pids)
};

}  // namespace team
