// Makes the disk of a service misbehave without its cooperation: full, failing or slow. The kernel
// stops the service at every call that writes or syncs a file (seccomp user notification, set up by
// fleet-launch) and asks us; we look whether the file lies under the watched folder and let the
// call happen, delay it, or answer with an error in its place.
//
// Not seen: writes through memory maps and io_uring (which sandboxes do not offer). A stopped call
// costs some ten microseconds, so only fault gates pay it. Thread-safe.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace team {

enum class DiskMode {
  kOk,
  kFull,     // writes and fallocate: ENOSPC; syncs and truncation, which need no space, still work
  kFailing,  // writes and syncs: EIO
  kSlow,     // writes and syncs take `delay_ms` longer
};

class DiskFault {
 public:
  // Listens on the new Unix socket `socket_path` (on the host) for one fleet-launch after the
  // other. `folder` is the watched folder as the service sees it.
  static base::Result<std::unique_ptr<DiskFault>> start(const std::string& socket_path,
                                                        const std::string& folder);
  ~DiskFault();
  void set(DiskMode mode, i64 delay_ms = 0);
  // "full", "failing", "slow MS", "ok": one order replaces what was before.
  base::Status obey(std::string_view order);
  const std::string& socket_path() const { return socket_path_; }
  i64 refused() const { return refused_; }
  i64 delayed() const { return delayed_; }
  i64 seen() const { return seen_; }  // calls on files of the folder

 private:
  DiskFault(int socket, std::string socket_path, std::string folder);
  void serve();
  void answer(int listener);
  bool concerns_folder(int pid, u64 descriptor) const;

  int socket_;
  int stop_event_;
  std::string socket_path_;
  std::string folder_;
  std::atomic<DiskMode> mode_{DiskMode::kOk};
  std::atomic<i64> delay_ms_{0};
  std::atomic<i64> refused_{0};
  std::atomic<i64> delayed_{0};
  std::atomic<i64> seen_{0};
  std::thread thread_;
};

}  // namespace team
