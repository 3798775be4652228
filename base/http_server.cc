#include "base/http_server.h"

#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace base {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

HttpServerRequest request_of(const httplib::Request& from) {
  HttpServerRequest to;
  to.method = from.method;
  to.path = from.path;
  const size_t mark = from.target.find('?');
  if (mark != std::string::npos) to.query = from.target.substr(mark + 1);
  for (const auto& [name, value] : from.headers) to.headers.emplace_back(lower(name), value);
  to.body = from.body;
  to.remote_address = from.remote_addr;
  return to;
}

void send_stream(HttpReply reply, httplib::Response& response) {
  response.set_chunked_content_provider(
      reply.content_type, [stream = std::move(reply.stream)](size_t, httplib::DataSink& sink) {
        const bool ended_well = stream([&sink](std::string_view piece) {
          return piece.empty() || (sink.is_writable() && sink.write(piece.data(), piece.size()));
        });
        if (ended_well) sink.done();
        return ended_well;
      });
}

}  // namespace

struct HttpServer::Impl {
  httplib::Server server;
  Options options;
  HttpHandler handler;
  std::thread listener;
  int port = 0;
};

std::string_view HttpServerRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

std::string HttpServerRequest::parameter(std::string_view name) const {
  httplib::Params parameters;
  httplib::detail::parse_query_text(query, parameters);
  auto found = parameters.find(std::string(name));
  return found == parameters.end() ? "" : found->second;
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  stop();
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const Options& options, HttpHandler handler) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->handler = std::move(handler);
  httplib::Server& server = impl->server;
  const size_t threads = static_cast<size_t>(std::max(1, options.threads));
  server.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  server.set_payload_max_length(options.body_bytes_max);
  server.set_read_timeout(std::chrono::milliseconds(options.read_timeout_ms));
  server.set_write_timeout(std::chrono::milliseconds(options.write_timeout_ms));
  server.set_tcp_nodelay(true);
  // The library's default, SO_REUSEPORT, would let two servers share a port without a word.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  Impl* raw = impl.get();
  auto serve = [raw](const httplib::Request& request, httplib::Response& response) {
    HttpReply reply = raw->handler(request_of(request));
    response.status = reply.status;
    for (const auto& [name, value] : reply.headers) response.set_header(name, value);
    if (reply.stream) {
      send_stream(std::move(reply), response);
    } else {
      response.set_content(std::move(reply.body), reply.content_type);
    }
  };
  server.Get(".*", serve)
      .Post(".*", serve)
      .Put(".*", serve)
      .Delete(".*", serve)
      .Options(".*", serve);
  impl->port = options.port == 0
                   ? server.bind_to_any_port(options.host)
                   : (server.bind_to_port(options.host, options.port) ? options.port : -1);
  if (impl->port <= 0) {
    return Error(ErrorCode::kBusy, "cannot listen on " + options.host + ":" +
                                       std::to_string(options.port) +
                                       "; is the port taken or the address not ours?");
  }
  impl->listener = std::thread([raw] { raw->server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const {
  return impl_->port;
}

std::string HttpServer::url() const {
  return "http://" + impl_->options.host + ":" + std::to_string(impl_->port);
}

void HttpServer::stop() {
  if (!impl_->listener.joinable()) return;
  impl_->server.stop();
  impl_->listener.join();
}

}  // namespace base
