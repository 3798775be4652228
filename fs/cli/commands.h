// What the subcommands of `agentfs` do, apart from reading their options (main.cc). Each prints its
// result on standard output, as text or, with `json`, as one JSON document. Errors are sentences.
#pragma once

#include "base/result.h"
#include "fs/client/daemon.h"

#include <string>
#include <vector>

namespace fs::cli {

struct MountArguments {
  MountSpec spec;
  bool foreground = false;
  std::string log_path;  // empty: beside the store
  std::string durability = "fsync";
  std::string token_file;  // else $AGENTFS_TOKEN
};

struct FormatArguments {
  std::string store;
  std::string engine;  // a URL or @FILE; empty: SQLite in the folder
  std::string blobs;   // a folder or s3://BUCKET/PREFIX; empty: in the folder
  bool encrypt = false;
};
// The key of encrypted stores for whatever runs from now on, here and in processes that it starts.
void use_key_file(const std::string& path);
base::Status format(FormatArguments arguments);
base::Status mount(MountArguments arguments);
// The store opens with another key from now on.
base::Status rekey(const std::string& store, const std::string& new_key_file);
base::Status unmount(const std::string& folder, bool lazy);

base::Status fork(const std::string& store, const std::string& from, const std::string& to);
base::Status snapshot(const std::string& store, const std::string& name);  // WORKSPACE@NAME
base::Status rollback(const std::string& store, const std::string& name);  // WORKSPACE@NAME
base::Status remove(const std::string& store, const std::string& name);
base::Status diff(const std::string& store, const std::string& a, const std::string& b, bool json);
base::Status list(const std::string& store, bool json);
base::Status stat(const std::string& store, const std::string& workspace, bool json);
struct QuotaArguments {
  std::string store;
  std::string workspace = "main";
  Quota quota;  // what is to hold
  bool has_bytes = false, has_inodes = false;
};
// Shows, or sets what was given, whether the workspace is mounted or not.
base::Status quota(const QuotaArguments& arguments, bool json);
base::Status metrics(const std::string& store, const std::string& workspace);
base::Status gc(const std::string& store, bool json);
// Errors: kCorruption when there are findings.
base::Status fsck(const std::string& store, bool json);

struct LogArguments {
  std::string store;
  std::string workspace = "main";
  u64 from = 1;
  u64 limit = ~u64{0};
  bool json = false;
};
// Changes as they come, from now on, until the program is interrupted.
base::Status watch(const LogArguments& arguments);
base::Status log(const LogArguments& arguments);
// The audit trail as the table fs_event, asked in SQL.
base::Status sql(const std::string& store, const std::string& workspace, const std::string& query,
                 bool json);
struct ServeArguments {
  std::string store;
  std::string listen = "127.0.0.1:7440";
  bool steal = false;
  int lease_s = 15;
  bool tls = false;                        // with the store's own certificate
  std::string certificate_file, key_file;  // with this one
  bool plain = false;                      // no TLS, although other machines reach it
  std::string engine;  // the folder joins this store first, if it is not a part of one
  std::string blobs;
};
// Serves until SIGTERM or SIGINT.
base::Status serve(const ServeArguments& arguments);
struct TokenArguments {
  std::string store;
  std::string workspace = "main";
  std::string agent;
  bool read_only = false;
  int hours = 24;
  bool tls = false;  // for a server that will run with `serve --tls`
};
// Prints a token that lets a mount in.
base::Status token(const TokenArguments& arguments);

// Whether this machine can mount, and how well.
base::Status doctor(bool json);

}  // namespace fs::cli
