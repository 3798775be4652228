// fleetlm serve: the OpenAI API until SIGINT or SIGTERM, then a graceful drain.
#include "base/log.h"
#include "llm/cli/commands.h"
#include "llm/server/server.h"

#include <CLI/CLI.hpp>
#include <signal.h>

#include <cstdlib>

namespace llm {

int run_serve(int argc, char** argv) {
  CLI::App app("Serves a model through the OpenAI API.", "fleetlm serve");
  ModelOptions model;
  ServerOptions server;
  i64 drain_ms = 30'000;
  model.slots = 8;
  model.add_to(&app);
  app.add_option("--host", server.host, "address to listen on");
  app.add_option("-p,--port", server.port, "port; 0: any free one")->check(CLI::Range(0, 65535));
  app.add_option("--api-key", server.api_key,
                 "ask clients for this key; also from FLEETLM_API_KEY");
  app.add_option("--name", server.model_name, "the model's name in the API");
  app.add_option("--connections", server.connections, "connections at once")
      ->check(CLI::Range(1, 4096));
  app.add_option("--drain-ms", drain_ms, "how long running answers may take when asked to stop");
  CLI11_PARSE(app, argc, argv);
  if (const char* key = std::getenv("FLEETLM_API_KEY"); key != nullptr && server.api_key.empty()) {
    server.api_key = key;
  }
  // Taken by sigwait below; threads started from here on inherit the mask.
  sigset_t stops;
  ::sigemptyset(&stops);
  ::sigaddset(&stops, SIGINT);
  ::sigaddset(&stops, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  auto session = open_session(model);
  if (!session.ok()) return fail(session.error());
  Session& s = **session;
  if (server.model_name.empty()) server.model_name = s.loaded.name;
  EngineLoop loop(s.engine.get());
  auto started =
      ApiServer::start(server, &loop, s.loaded.tokenizer.get(), s.loaded.model.get(), s.chat);
  if (!started.ok()) return fail(started.error());
  std::printf("serving %s at http://%s:%d (API at /v1, chat page at /)\n",
              server.model_name.c_str(), server.host.c_str(), (*started)->port());
  std::fflush(stdout);
  int caught = 0;
  ::sigwait(&stops, &caught);
  base::log_info("serve", "draining", {{"signal", caught}});
  (*started)->drain(drain_ms);
  return 0;
}

}  // namespace llm
