// serve, token.
#include "base/clock.h"
#include "fs/cli/commands.h"
#include "fs/server/server.h"

#include <pthread.h>

#include <csignal>
#include <cstdio>

namespace fs::cli {

using base::Error;
using base::ErrorCode;
using base::Status;

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
  TRY(Store::open(arguments.store, {}));  // a key belongs to a store, not to any folder
  auto key = TRY(wire::TokenKey::load_or_make(server::token_key_path(arguments.store)));
  i64 now_s = base::system_clock().wall_us() / 1'000'000;
  std::printf("%s\n", key.sign({arguments.workspace, !arguments.read_only, arguments.agent,
                                now_s + arguments.hours * 3600ll})
                          .c_str());
  return {};
}

}  // namespace fs::cli
