// HTTP/1.1 and 2 client over libcurl, TLS and proxies included, with streamed bodies and deadlines.
// Thread-safe: each call owns its connection, or borrows one of HttpConnections.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace base {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Signs a request for an S3-compatible store (AWS Signature 4). The request must name the SHA-256
// of its body in x-amz-content-sha256, and the URL's query must be encoded and sorted by name.
struct AwsKey {
  std::string region;
  std::string key_id;  // "": not signed
  std::string secret;
};

// Connections that stay open between requests that name them: a request to the same server saves
// the round trips of TCP and TLS. One that the server closed meanwhile is replaced. Thread-safe;
// must outlive the requests.
class HttpConnections {
 public:
  HttpConnections() = default;
  ~HttpConnections();
  HttpConnections(const HttpConnections&) = delete;
  HttpConnections& operator=(const HttpConnections&) = delete;
  // A handle of libcurl's (null: no memory), to be given back when its request went well.
  void* take();
  void give_back(void* handle);

 private:
  std::mutex mutex_;
  std::vector<void*> idle_;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  HttpHeaders headers;
  std::string body;
  i64 connect_timeout_ms = 10'000;
  i64 timeout_ms = 600'000;        // the whole exchange
  i64 stall_timeout_ms = 120'000;  // no byte for this long ends it with kDeadline
  AwsKey aws;
  HttpConnections* connections = nullptr;  // null: a connection of its own
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;  // names in lower case
  std::string body;     // empty when the body was streamed
  // The first header of that (lower-case) name, or "".
  std::string_view header(std::string_view name) const;
};

// Called for each piece of the body as it comes; false cancels the exchange (kCancelled).
using HttpBodySink = std::function<bool(std::string_view piece)>;
// Called once, before the body.
using HttpHeadSink = std::function<void(const HttpResponse& head)>;

// Any HTTP status is a success here. Errors: kUnavailable (resolve, connect, TLS, reset),
// kDeadline, kCancelled, kInvalidArgument (the URL).
Result<HttpResponse> http_request(const HttpRequest& request);
Result<HttpResponse> http_stream(const HttpRequest& request, const HttpHeadSink& on_head,
                                 const HttpBodySink& on_body);

// Splits a server-sent event stream (WHATWG HTML, section 9.2) into events. Single-threaded.
class SseParser {
 public:
  struct Event {
    std::string event;  // "" when the stream named none
    std::string data;   // lines joined by \n
    std::string id;
  };
  // Calls `sink` for each event that `piece` completes.
  void feed(std::string_view piece, const std::function<void(const Event&)>& sink);

 private:
  std::string line_;
  Event event_;
  bool has_data_ = false;
  bool after_cr_ = false;
  void end_line(const std::function<void(const Event&)>& sink);
};

}  // namespace base
