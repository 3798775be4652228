// agentfsd: serves the workspaces of a store to mounts on other machines. A mount shows a token,
// names a workspace, and gets a session on its Host. Sandboxes hold a token, never the store.
// Threads: one that accepts, one a connection (up to a limit, then refused). Thread-safe.
#pragma once

#include "base/result.h"
#include "fs/server/host.h"
#include "fs/wire/token.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fs::server {

class Server {
 public:
  struct Options {
    std::string listen = "127.0.0.1:7440";
    size_t connections_max = 256;
    bool steal = false;
    i64 lease_us = 15'000'000;                    // of private mounts
    std::shared_ptr<const wire::TlsContext> tls;  // null: connections are plain
  };
  static base::Result<std::unique_ptr<Server>> start(const std::string& store_folder,
                                                     const Options& options);
  ~Server();  // stop()
  int port() const { return listener_->port(); }
  // Ends all sessions, stores everything, gives leases back.
  base::Status stop();

 private:
  Server(std::unique_ptr<Store> store, wire::TokenKey key, Options options)
      : store_(std::move(store)), key_(std::move(key)), options_(std::move(options)) {}
  void accept_loop();
  void serve(wire::Connection& connection);
  base::Result<std::pair<Host*, Host::Guest>> admit(const wire::Frame& frame);
  base::Result<Host*> host_of(const std::string& workspace);

  std::unique_ptr<Store> store_;
  wire::TokenKey key_;
  Options options_;
  std::unique_ptr<wire::Listener> listener_;
  std::mutex mutex_;  // guards hosts_ and connections_
  std::map<std::string, std::unique_ptr<Host>> hosts_;
  struct Served {
    std::unique_ptr<wire::Connection> connection;
    std::atomic<bool> done{false};
    std::thread thread;
  };
  std::vector<std::unique_ptr<Served>> connections_;
  bool stopped_ = false;
  std::thread acceptor_;
};

// The store's signing key, made when it is first asked for: in the folder, or where all servers of
// a cluster have it.
base::Result<wire::TokenKey> token_key(Store& store, const std::string& store_folder);
// The same for the certificate that the store's servers show when they are given none.
base::Result<wire::TlsIdentity> tls_identity(Store& store, const std::string& store_folder);

}  // namespace fs::server
