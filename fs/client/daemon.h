// One mount from start to end: open the workspace, attach it to the folder, serve until the folder
// is unmounted or a signal comes, and leave everything clean. What `agentfs mount` runs.
#pragma once

#include "base/result.h"
#include "fs/client/bridge.h"

#include <functional>
#include <string>

namespace fs {

struct MountSpec {
  std::string store;  // folder, or an address (parse_remote); empty: in memory
  std::string token;  // for a server
  // How to know the server, when the token does not say it; each alone asks for TLS.
  std::string tls_fingerprint;
  std::string tls_ca;
  bool private_mount = false;  // of a server's workspace: hold its lease, change it here
  std::string journal;         // folder of a private mount's journal; empty: one by its names
  std::string workspace = "main";
  std::string folder;  // where it appears
  Durability durability = Durability::kFsync;
  bool read_only = false;
  bool no_exec = false;
  bool allow_other = true;
  bool steal = false;  // fence whoever holds the workspace
  // OPEN reaches the daemon (reads can be audited); costs about 20 us an open.
  bool audit_reads = false;
  bool write_back = false;
  int threads = 1;
  i64 spin_us = 0;
  u64 bytes_quota = u64{1} << 50;
  u64 inodes_quota = u64{1} << 40;
};

// Where the running mount of a workspace listens.
std::string control_path(const std::string& store, const std::string& workspace);

// Where a private mount keeps its journal unless it is told.
std::string default_journal(const MountSpec& spec);

// A kernel connection whose daemon died: the next one goes on where it was.
struct Takeover {
  int device = -1;  // stays open in the keeper
  fuse::Agreement agreement;
};

struct MountHooks {
  std::function<void()> ready;                   // once, when the folder answers
  std::function<void(const Takeover&)> started;  // the connection, for whoever keeps it
  // keep_mount only: the process that will call ready or failed runs now; in the keeper.
  std::function<void()> forked;
  std::function<void(const base::Error&)> failed;  // in that process
};

// Serves until the end.
base::Status run_mount(const MountSpec& spec, const MountHooks& hooks,
                       const Takeover* takeover = nullptr);

// Runs run_mount in a process of its own and keeps the kernel's connection open beside it: when
// that process is killed another one takes over, and calls that were under way go on. Returns when
// the mount has ended. Not for memory or shared mounts, whose state dies with their daemon.
// REQUIRES: the caller is single-threaded.
base::Status keep_mount(const MountSpec& spec, const MountHooks& hooks);

// run_mount in a process of its own that goes on when the caller exits; returns once the folder
// answers or with the reason why it never will; kept by keep_mount where that can be. Messages of
// the daemon go to `log_path`. REQUIRES: the caller is single-threaded.
base::Status start_mount(const MountSpec& spec, const std::string& log_path);

}  // namespace fs
