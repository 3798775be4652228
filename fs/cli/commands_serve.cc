// serve, token.
#include "base/clock.h"
#include "base/files.h"
#include "fs/cli/commands.h"
#include "fs/server/server.h"

#include <pthread.h>

#include <csignal>
#include <cstdio>

namespace fs::cli {

using base::Error;
using base::ErrorCode;
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
  if (!arguments.engine.empty()) TRY(join_engine(arguments));
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
  std::printf("%s\n", key.sign({arguments.workspace, !arguments.read_only, arguments.agent,
                                now_s + arguments.hours * 3600ll})
                          .c_str());
  return {};
}

}  // namespace fs::cli
