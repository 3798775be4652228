// A mount of the program `agentfs` for whole-program tests, and calls that return -errno.
//
// AGENTFS_TEST_TLS=1 runs the tests that have a server over TLS.
// AGENTFS_TEST_FOLDER=DIR runs the same tests on any other folder (tmpfs, ext4, ...), which is how
// the tests themselves are tested. Without /dev/fuse they are skipped, and say so. Single-threaded.
#pragma once

#include "base/files.h"
#include "base/process.h"

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

namespace fs::testing {

// Where the program lies: beside the test's own executable.
std::string agentfs_program();

// Whether this machine can mount at all (as root, or with fusermount3).
bool can_mount();

// Runs `agentfs ARGUMENTS`; fails the running test when it fails, unless `may_fail`.
base::ProcessResult agentfs(const std::vector<std::string>& arguments, bool may_fail = false);

// `agentfs mount` on a fresh folder, unmounted at the end. With `store` empty it is in memory.
class Mount {
 public:
  explicit Mount(const std::string& store = "", std::vector<std::string> options = {});
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  const std::string& path() const { return folder_; }
  std::string operator/(const std::string& name) const { return folder_ + "/" + name; }
  void unmount();
  // As unmount(), whatever the daemon says at its end (its server may be gone).
  void abandon();
  // SIGKILL to the daemon; the dead mount is cleared away.
  void kill();
  int daemon_pid() const;
  // What the daemon has written so far.
  std::string messages() const;

 private:
  base::TempDir place_{"agentfs-mount"};
  std::string folder_;
  base::ProcessSpec spec_;
  std::unique_ptr<base::Process> daemon_;
};

// `agentfs serve` on a free port of this machine, ended at the end.
class Served {
 public:
  // Port 0 takes a free one.
  explicit Served(const std::string& store, std::vector<std::string> options = {}, int port = 0);
  ~Served() { stop(); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  std::string address(const std::string& workspace = "main") const;
  int port() const { return port_; }
  int pid() const;
  // What it has written to standard error so far.
  std::string messages() const;
  void stop();
  void kill();

 private:
  base::TempDir place_{"agentfs-served"};
  int port_ = 0;
  std::unique_ptr<base::Process> process_;
};

// A token of the store, in a file.
std::string token_file(const base::TempDir& place, const std::string& store,
                       std::vector<std::string> options = {});

// 0 or more from a call that sets errno, else -errno.
template <class T>
long result(T value) {
  return value == static_cast<T>(-1) ? -static_cast<long>(errno) : static_cast<long>(value);
}

}  // namespace fs::testing
