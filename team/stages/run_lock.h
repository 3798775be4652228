// One orchestrator per run: a lock on a file of its folder, held while the object lives and given
// back by the system when the process dies. Errors: kBusy naming the process that holds it.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>

namespace team {

class RunLock {
 public:
  static base::Result<std::unique_ptr<RunLock>> take(const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;

 private:
  explicit RunLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace team
