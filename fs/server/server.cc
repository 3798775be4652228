#include "fs/server/server.h"

#include "base/log.h"

#include <unistd.h>

namespace fs::server {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using wire::MessageType;

Result<wire::TokenKey> token_key(Store& store, const std::string& store_folder) {
  auto shared = store.shared_secret("token", wire::TokenKey::make_text);
  if (shared.ok()) return wire::TokenKey::of_text(*shared, "row secret/token of the engine");
  if (shared.error().code() != ErrorCode::kUnsupported) return std::move(shared).error();
  return wire::TokenKey::load_or_make(store_folder + "/token.key");
}

Result<wire::TlsIdentity> tls_identity(Store& store, const std::string& store_folder) {
  auto shared = store.shared_secret("tls", wire::TlsIdentity::make_text);
  if (shared.ok()) return wire::TlsIdentity::of_text(*shared, "row secret/tls of the engine");
  if (shared.error().code() != ErrorCode::kUnsupported) return std::move(shared).error();
  return wire::TlsIdentity::load_or_make(store_folder + "/tls.pem");
}

Result<std::unique_ptr<Server>> Server::start(const std::string& store_folder,
                                              const Options& options) {
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  StoreOptions store_options;
  store_options.holder = std::string("agentfsd ") + host + ":" + std::to_string(::getpid());
  auto store = TRY(Store::open(store_folder, store_options));
  auto key = TRY(token_key(*store, store_folder));
  std::unique_ptr<Server> server(new Server(std::move(store), std::move(key), options));
  server->listener_ = TRY(wire::Listener::open(options.listen));
  server->acceptor_ = std::thread([raw = server.get()] { raw->accept_loop(); });
  return server;
}

Server::~Server() {
  (void)stop();
}

void Server::accept_loop() {
  while (auto connection = listener_->accept()) {
    std::lock_guard lock(mutex_);
    std::erase_if(connections_, [](const auto& served) {
      if (!served->done.load()) return false;
      served->thread.join();
      return true;
    });
    if (stopped_ || connections_.size() >= options_.connections_max) {
      if (options_.tls == nullptr) {
        (void)connection->send(MessageType::kRefused, 0, "the server has too many mounts");
      }
      continue;
    }
    auto served = std::make_unique<Served>();
    served->connection = std::move(connection);
    served->thread = std::thread([this, raw = served.get()] {
      serve(*raw->connection);
      raw->connection->shutdown();
      raw->done.store(true);
    });
    connections_.push_back(std::move(served));
  }
}

void Server::serve(wire::Connection& connection) {
  Status welcomed = connection.welcome(options_.tls);
  if (!welcomed.ok()) {
    base::log_info("server", "a client did not get in: " + welcomed.error().message());
    return;
  }
  auto frame = connection.receive();
  if (!frame.ok()) return;
  auto admitted = admit(*frame);
  if (!admitted.ok()) {
    (void)connection.send(MessageType::kRefused, 0, admitted.error().message());
    return;
  }
  admitted->first->serve(connection, admitted->second);
}

Result<std::pair<Host*, Host::Guest>> Server::admit(const wire::Frame& frame) {
  auto hello = wire::decode_hello(frame.payload);
  if (frame.header.type != MessageType::kHello || !hello) {
    return Error(ErrorCode::kInvalidArgument, "this port speaks AgentFS only");
  }
  if (hello->version != wire::kVersion) {
    return Error(ErrorCode::kUnsupported, "the mount and the server are of different versions");
  }
  i64 now_s = base::system_clock().wall_us() / 1'000'000;
  wire::Claims claims = TRY(key_.verify(hello->token, now_s));
  if (claims.workspace != "*" && claims.workspace != hello->workspace) {
    return Error(ErrorCode::kPermission, "the token is for workspace '" + claims.workspace +
                                             "', not '" + hello->workspace + "'");
  }
  Host* host = TRY(host_of(hello->workspace));
  bool read_only = hello->read_only || !claims.write;
  if (hello->profile == wire::Profile::kPrivate && (read_only || hello->client.empty())) {
    return Error(ErrorCode::kPermission, "the token does not let a mount change the workspace");
  }
  std::string agent = claims.agent.empty() ? "a mount without a name" : claims.agent;
  return std::pair{host, Host::Guest{agent, hello->client, hello->profile, read_only}};
}

Result<Host*> Server::host_of(const std::string& workspace) {
  std::lock_guard lock(mutex_);
  auto found = hosts_.find(workspace);
  if (stopped_) return Error(ErrorCode::kUnavailable, "the server is ending");
  if (found != hosts_.end()) return found->second.get();
  OpenOptions open_options;
  open_options.steal = options_.steal;
  LeaseTerms terms;
  terms.duration = options_.lease_us;
  auto host = TRY(Host::open(*store_, workspace, open_options, terms, base::system_clock()));
  Host* raw = host.get();
  hosts_[workspace] = std::move(host);
  return raw;
}

Status Server::stop() {
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return {};
    stopped_ = true;
  }
  listener_->stop();
  acceptor_.join();
  // No new connections now, and no new hosts: nobody else touches the lists.
  Status first;
  for (auto& [name, host] : hosts_) {
    Status closed = host->close();
    if (!closed.ok() && first.ok()) first = std::move(closed);
  }
  for (auto& served : connections_) {
    served->connection->shutdown();
    served->thread.join();
  }
  connections_.clear();
  hosts_.clear();
  return first;
}

}  // namespace fs::server
