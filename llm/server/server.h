// OpenAI-compatible HTTP over an engine:
//   POST /v1/chat/completions  POST /v1/completions  GET /v1/models
//   GET /health  GET /metrics  GET / (a small chat page)
//
// A connection's thread parses the request, hands it to the engine and writes what comes back; a
// client that goes away cancels its request. Thread-safe.
#pragma once

#include "base/http_server.h"
#include "llm/engine/grammar_rule.h"
#include "llm/engine/loop.h"
#include "llm/server/api.h"

#include <atomic>
#include <memory>
#include <string>

namespace llm {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;
  std::string api_key;  // empty: none is asked for
  std::string model_name;
  int connections = 64;
  size_t body_bytes_max = 8 << 20;
};

class ApiServer {
 public:
  // All outlive the server.
  static base::Result<std::unique_ptr<ApiServer>> start(const ServerOptions& options,
                                                        EngineLoop* loop,
                                                        const Tokenizer* tokenizer,
                                                        const Model* model,
                                                        const ChatTemplate& chat);
  ~ApiServer();

  int port() const { return http_->port(); }
  // Refuses new requests with 503, waits for the running ones up to `timeout_ms`, then stops.
  void drain(i64 timeout_ms);

  base::HttpReply handle(const base::HttpServerRequest& request);

 private:
  struct Call;
  ApiServer(const ServerOptions& options, EngineLoop* loop, const Tokenizer* tokenizer,
            const Model* model, const ChatTemplate& chat);
  base::Result<base::HttpReply> chat_completions(const base::Json& body);
  base::Result<base::HttpReply> completions(const base::Json& body);
  base::Result<base::HttpReply> launch(std::shared_ptr<Call> call);
  base::HttpReply collect(const std::shared_ptr<Call>& call);
  bool stream(const std::shared_ptr<Call>& call, const base::HttpWriter& write);
  base::HttpReply models() const;
  base::HttpReply health() const;
  base::HttpReply metrics() const;
  bool authorised(const base::HttpServerRequest& request) const;

  const ServerOptions options_;
  EngineLoop& loop_;
  const Tokenizer& tokenizer_;
  const Model& model_;
  const ChatTemplate chat_;
  const SortedVocabulary vocabulary_;
  const i64 started_s_;
  std::atomic<bool> draining_{false};
  std::atomic<i64> open_calls_{0};
  std::atomic<u64> requests_{0}, errors_{0}, disconnects_{0};
  std::unique_ptr<base::HttpServer> http_;
};

// The page at /.
extern const char* const kChatPage;

}  // namespace llm
