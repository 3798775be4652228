// Any body to either endpoint: a reply with a status, never a crash, and the request's pages come
// back. The first byte chooses endpoint, method and key; the rest is the body.
#include "base/check.h"
#include "llm/server/testing.h"

#include <thread>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static llm::TinyServer server(64);
  if (size == 0) return 0;
  base::HttpServerRequest request;
  request.method = (data[0] & 14) == 14 ? "GET" : "POST";
  request.path = (data[0] & 1) != 0 ? "/v1/completions" : "/v1/chat/completions";
  request.headers = {{"authorization", (data[0] & 240) == 240 ? "Bearer x" : "Bearer secret"}};
  request.body.assign(reinterpret_cast<const char*>(data + 1), size - 1);
  {
    base::HttpReply reply = server.server_->handle(request);
    CHECK(reply.status >= 200 && reply.status < 600);
    if (reply.stream) reply.stream([](std::string_view) { return true; });
  }
  for (int i = 0; i < 100'000; ++i) {
    const llm::EngineStats stats = server.engine_->stats();
    if (stats.running + stats.waiting == 0 && stats.requests == stats.finished) {
      CHECK(stats.pages_available == stats.pages_total);
      return 0;
    }
    std::this_thread::yield();
  }
  base::check_failed(__FILE__, __LINE__, "a request went on after its reply");
}
