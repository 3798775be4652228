// One mount from start to end: open the workspace, attach it to the folder, serve until the folder
// is unmounted or a signal comes, and leave everything clean. What `agentfs mount` runs.
#pragma once

#include "base/result.h"
#include "fs/client/bridge.h"

#include <functional>
#include <string>

namespace fs {

struct MountSpec {
  std::string store;           // folder, or agentfs://HOST:PORT/WORKSPACE; empty: in memory
  std::string token;           // for a server
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

// Serves until the end. `ready` is called once, when the folder answers.
base::Status run_mount(const MountSpec& spec, const std::function<void()>& ready);

// run_mount in a process of its own that goes on when the caller exits; returns once the folder
// answers or with the reason why it never will. Messages of the daemon go to `log_path`.
// REQUIRES: the caller is single-threaded.
base::Status start_mount(const MountSpec& spec, const std::string& log_path);

}  // namespace fs
