// A small HTTP/1.1 server over cpp-httplib: routes, streamed replies (server-sent events), a limit
// on connections, graceful drain. Handlers run on pool threads, several at once.
#pragma once

#include "base/http_client.h"
#include "base/result.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace base {

struct HttpServerRequest {
  std::string method;
  std::string path;     // without the query
  std::string query;    // after '?', undecoded
  HttpHeaders headers;  // names in lower case
  std::string body;
  std::string remote_address;
  std::string_view header(std::string_view name) const;
  // A decoded query parameter, or "".
  std::string parameter(std::string_view name) const;
};

// Writes one piece of a streamed reply. False: the client is gone, stop.
using HttpWriter = std::function<bool(std::string_view piece)>;

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;
  std::string body;
  // When set, the reply is chunked: called once on the connection's thread; the reply ends when it
  // returns. `body` is not used. Returning false breaks the connection off mid-stream (no end
  // chunk).
  std::function<bool(const HttpWriter&)> stream;
};

using HttpHandler = std::function<HttpReply(const HttpServerRequest&)>;

// Thread-safe.
class HttpServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    int port = 0;      // 0: any free one
    int threads = 64;  // connections served at once
    size_t body_bytes_max = 64 << 20;
    i64 read_timeout_ms = 30'000;
    i64 write_timeout_ms = 30'000;
  };
  // `handler` gets every request and routes itself. Starts to accept before it returns.
  // Errors: kBusy when the port is taken; kInvalidArgument for a bad host.
  static Result<std::unique_ptr<HttpServer>> start(const Options& options, HttpHandler handler);
  ~HttpServer();  // stop()

  int port() const;
  std::string url() const;  // "http://127.0.0.1:8080"
  // Stops accepting, lets running handlers end.
  void stop();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace base
