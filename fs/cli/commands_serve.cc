// serve, token.
#include "base/clock.h"
#include "base/files.h"
#include "fs/cli/commands.h"
#include "fs/server/server.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace fs::cli {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

// The first start of one more server: its folder becomes one of the store's.
Status join_engine(const ServeArguments& arguments) {
  if (base::file_exists(arguments.store + "/store.json")) return {};
  StoreOptions options;
  options.engine_url = arguments.engine;
  options.blobs = arguments.blobs;
  return Store::join(arguments.store, options);
}

// What the store's tokens must say of its server's certificate; kept where `token` finds it.
std::string fingerprint_path(const std::string& store) {
  return store + "/tls.fingerprint";
}

bool only_this_machine(const std::string& listen) {
  std::string host = listen.substr(0, listen.rfind(':'));
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Status check_tls_options(const ServeArguments& arguments) {
  bool files = !arguments.certificate_file.empty();
  if (files != !arguments.key_file.empty()) {
    return Error(ErrorCode::kInvalidArgument, "--tls-cert and --tls-key go together");
  }
  bool tls = arguments.tls || files;
  if (tls && arguments.plain) {
    return Error(ErrorCode::kInvalidArgument, "--plain and TLS exclude each other");
  }
  if (tls || arguments.plain || only_this_machine(arguments.listen)) return {};
  return Error(ErrorCode::kInvalidArgument,
               "other machines reach " + arguments.listen +
                   ": encrypt with --tls, or say --plain on a network that you trust");
}

// Null for a plain server. Tokens made from now on tell mounts what to expect.
Result<std::shared_ptr<const wire::TlsContext>> tls_of(const ServeArguments& arguments) {
  bool files = !arguments.certificate_file.empty();
  if (!files && !arguments.tls) {
    (void)::unlink(fingerprint_path(arguments.store).c_str());
    return std::shared_ptr<const wire::TlsContext>();
  }
  wire::TlsIdentity identity;
  if (files) {
    identity = TRY(wire::TlsIdentity::load(arguments.certificate_file, arguments.key_file));
  } else {
    auto store = TRY(Store::open(arguments.store, {}));
    identity = TRY(server::tls_identity(*store, arguments.store));
  }
  auto context = TRY(wire::TlsContext::of_server(identity));
  std::string fingerprint = TRY(identity.fingerprint());
  std::printf("certificate SHA-256 %s\n", fingerprint.c_str());
  if (TRY(identity.signed_by_itself())) {
    TRY(base::replace_file(fingerprint_path(arguments.store), fingerprint + "\n"));
  } else {
    (void)::unlink(fingerprint_path(arguments.store).c_str());
  }
  return context;
}

}  // namespace

Status serve(const ServeArguments& arguments) {
  // Blocked before any thread starts, so that sigwait gets them.
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  server::Server::Options options;
  options.listen = arguments.listen;
  options.steal = arguments.steal;
  if (arguments.lease_s < 2 || arguments.lease_s > 3600) {
    return Error(ErrorCode::kInvalidArgument, "a lease lasts 2 to 3600 seconds");
  }
  options.lease_us = i64{arguments.lease_s} * 1'000'000;
  TRY(check_tls_options(arguments));
  if (!arguments.engine.empty()) TRY(join_engine(arguments));
  options.tls = TRY(tls_of(arguments));
  auto server = TRY(server::Server::start(arguments.store, options));
  std::printf("serving %s on port %d\n", arguments.store.c_str(), server->port());
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&set, &signal);
  return server->stop();
}

Status token(const TokenArguments& arguments) {
  constexpr int hours_max = 24 * 365;
  if (arguments.hours < 1 || arguments.hours > hours_max) {
    return Error(ErrorCode::kInvalidArgument, "a token is good for 1 to 8760 hours");
  }
  auto store = TRY(Store::open(arguments.store, {}));
  auto key = TRY(server::token_key(*store, arguments.store));
  i64 now_s = base::system_clock().wall_us() / 1'000'000;
  wire::Claims claims{arguments.workspace, !arguments.read_only, arguments.agent,
                      now_s + arguments.hours * 3600ll, ""};
  std::string kept = fingerprint_path(arguments.store);
  if (arguments.tls) {
    claims.fingerprint = TRY(TRY(server::tls_identity(*store, arguments.store)).fingerprint());
  } else if (base::file_exists(kept)) {
    claims.fingerprint = TRY(wire::parse_fingerprint(TRY(base::read_file(kept))));
  }
  std::printf("%s\n", key.sign(claims).c_str());
  return {};
}

}  // namespace fs::cli
