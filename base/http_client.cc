#include "base/http_client.h"

#include "base/clock.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

namespace base {
namespace {

struct Exchange {
  HttpResponse response;
  const HttpHeadSink* on_head = nullptr;
  const HttpBodySink* on_body = nullptr;
  bool head_sent = false;
  bool cancelled = false;
  bool stalled = false;
  i64 stall_timeout_ms = 0;
  i64 moved_us = 0;  // when the last byte went either way
  curl_off_t moved_bytes = 0;

  void send_head() {
    if (head_sent) return;
    head_sent = true;
    if (on_head != nullptr && *on_head) (*on_head)(response);
  }
};

size_t take_body(char* data, size_t size, size_t count, void* context) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  const std::string_view piece(data, size * count);
  exchange.send_head();
  if (exchange.on_body == nullptr) {
    exchange.response.body += piece;
  } else if (!(*exchange.on_body)(piece)) {
    exchange.cancelled = true;
    return 0;
  }
  return piece.size();
}

// Called by libcurl about once a second and at every piece. Its own low-speed limit averages over
// seconds; this one counts from the last byte.
int watch_for_stall(void* context, curl_off_t, curl_off_t received, curl_off_t, curl_off_t sent) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  const i64 now_us = system_clock().monotonic_us();
  if (received + sent != exchange.moved_bytes) {
    exchange.moved_bytes = received + sent;
    exchange.moved_us = now_us;
  }
  exchange.stalled = now_us - exchange.moved_us > exchange.stall_timeout_ms * 1'000;
  return exchange.stalled ? 1 : 0;
}

size_t take_header(char* data, size_t size, size_t count, void* context) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  std::string_view line(data, size * count);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // a new head: an interim one or a redirect came before
    exchange.response.headers.clear();
    const size_t space = line.find(' ');
    if (space != std::string_view::npos) exchange.response.status = std::atoi(line.data() + space);
  } else if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    exchange.response.headers.emplace_back(std::move(name), value);
  }
  return size * count;
}

Error error_of(CURLcode code, const HttpRequest& request, const char* detail) {
  const std::string text = request.url + ": " + (*detail != 0 ? detail : curl_easy_strerror(code));
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return Error(ErrorCode::kDeadline, text);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Error(ErrorCode::kInvalidArgument, text);
    default:
      return Error(ErrorCode::kUnavailable, text);
  }
}

void set_method(CURL* curl, const HttpRequest& request) {
  if (request.method == "GET" && request.body.empty()) return;
  if (request.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    return;
  }
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

void sign(CURL* curl, const AwsKey& key) {
  if (key.key_id.empty()) return;
  curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, ("aws:amz:" + key.region + ":s3").c_str());
  curl_easy_setopt(curl, CURLOPT_USERNAME, key.key_id.c_str());
  curl_easy_setopt(curl, CURLOPT_PASSWORD, key.secret.c_str());
}

Result<HttpResponse> perform(const HttpRequest& request, Exchange& exchange) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) return Error(ErrorCode::kInternal, "libcurl does not start");
  HttpConnections own;
  HttpConnections& connections = request.connections != nullptr ? *request.connections : own;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(connections.take(), &curl_easy_cleanup);
  if (curl == nullptr) return Error(ErrorCode::kLimit, "no memory for an HTTP request");
  curl_slist* list = nullptr;
  for (const auto& [name, value] : request.headers) {
    list = curl_slist_append(list, (name + ": " + value).c_str());
  }
  // No round trip before the body. libcurl would sign the header that it then leaves out.
  if (request.aws.key_id.empty()) list = curl_slist_append(list, "Expect:");
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(list, &curl_slist_free_all);
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl.get(), CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(request.connect_timeout_ms));
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_ms));
  exchange.stall_timeout_ms = request.stall_timeout_ms;
  exchange.moved_us = system_clock().monotonic_us();
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &watch_for_stall);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &exchange);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &take_body);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, &take_header);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &exchange);
  set_method(curl.get(), request);
  sign(curl.get(), request.aws);
  const CURLcode code = curl_easy_perform(curl.get());
  if (exchange.cancelled)
    return Error(ErrorCode::kCancelled, request.url + ": cancelled by the caller");
  if (exchange.stalled) {
    return Error(ErrorCode::kDeadline, request.url + ": nothing came for " +
                                           std::to_string(request.stall_timeout_ms) + " ms");
  }
  if (code != CURLE_OK) return error_of(code, request, detail);
  exchange.send_head();
  connections.give_back(curl.release());
  return std::move(exchange.response);
}

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

HttpConnections::~HttpConnections() {
  for (void* handle : idle_) curl_easy_cleanup(handle);
}

void* HttpConnections::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      void* handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
  }
  return curl_easy_init();
}

void HttpConnections::give_back(void* handle) {
  curl_easy_reset(handle);  // forgets the request and keeps the connection
  std::lock_guard lock(mutex_);
  idle_.push_back(handle);
}

Result<HttpResponse> http_request(const HttpRequest& request) {
  Exchange exchange;
  return perform(request, exchange);
}

Result<HttpResponse> http_stream(const HttpRequest& request, const HttpHeadSink& on_head,
                                 const HttpBodySink& on_body) {
  Exchange exchange;
  exchange.on_head = &on_head;
  exchange.on_body = &on_body;
  return perform(request, exchange);
}

}  // namespace base
