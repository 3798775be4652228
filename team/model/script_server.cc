#include "team/model/script_server.h"

#include "base/clock.h"
#include "base/http_server.h"
#include "team/model/script.h"

#include <algorithm>
#include <mutex>

namespace team {
namespace {

using base::Json;

// What goes out for one request once the faults have had their way.
struct Outgoing {
  base::HttpReply reply;
  std::vector<std::string> pieces;  // of a stream
  size_t break_after = SIZE_MAX;    // pieces before the connection breaks
  size_t stall_after = SIZE_MAX;
  i64 stall_ms = 0;
};

size_t after_of(const Json& fault) {
  return static_cast<size_t>(fault["after"].as_int(1));
}

std::string with_crlf(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') out += '\r';
    out += c;
  }
  return out;
}

std::vector<std::string> split_bytes(const std::vector<std::string>& pieces, size_t bytes) {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  std::vector<std::string> out;
  for (size_t at = 0; at < all.size(); at += bytes) out.push_back(all.substr(at, bytes));
  return out;
}

void cut_stream(std::vector<std::string>& pieces, size_t bytes) {
  size_t sum = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (sum + pieces[i].size() > bytes) {
      pieces[i].resize(bytes - sum);
      pieces.resize(i + 1);
      return;
    }
    sum += pieces[i].size();
  }
}

bool is_end_marker(const std::string& piece) {
  return piece.find("[DONE]") != std::string::npos || piece.starts_with("event: message_stop");
}
bool is_finish(const std::string& piece) {
  return piece.find("\"finish_reason\":\"") != std::string::npos ||
         piece.starts_with("event: message_delta");
}

void fault_stream(const ScriptFault& fault, const ScriptRequest& request, Outgoing& out) {
  std::vector<std::string>& pieces = out.pieces;
  const Json& arguments = fault.arguments;
  const size_t after = std::min(after_of(arguments), pieces.size());
  const auto at = pieces.begin() + static_cast<std::ptrdiff_t>(after);
  if (fault.kind == "stall") {
    out.stall_after = after;
    out.stall_ms = arguments["ms"].as_int(1'000);
  } else if (fault.kind == "reset") {
    out.break_after = after;
  } else if (fault.kind == "no_done") {
    std::erase_if(pieces, is_end_marker);
    if (!arguments["finish"].as_bool(true)) std::erase_if(pieces, is_finish);
  } else if (fault.kind == "error") {
    const Json error =
        render_error(request.api, 500, arguments["message"].as_string_or("scripted"));
    const char* name = request.api == ApiKind::kAnthropic ? "event: error\n" : "";
    pieces.erase(at, pieces.end());
    pieces.push_back(name + ("data: " + error.dump() + "\n\n"));
  } else if (fault.kind == "duplicate") {
    if (at != pieces.end()) pieces.insert(at, *at);
  } else if (fault.kind == "swap") {
    if (after + 1 < pieces.size()) std::swap(pieces[after], pieces[after + 1]);
  } else if (fault.kind == "split") {
    pieces =
        split_bytes(pieces, static_cast<size_t>(std::max<i64>(1, arguments["bytes"].as_int(7))));
  } else if (fault.kind == "crlf") {
    for (std::string& piece : pieces) piece = with_crlf(piece);
  } else if (fault.kind == "comments") {
    for (std::string& piece : pieces) piece = ": keep-alive\n\n" + piece;
  } else if (fault.kind == "truncate") {
    cut_stream(pieces, static_cast<size_t>(arguments["bytes"].as_int(40)));
  }
}

// Faults that replace the reply, streamed or not. True when it did.
bool fault_whole(const ScriptFault& fault, const ScriptRequest& request, base::HttpReply& reply) {
  const Json& arguments = fault.arguments;
  if (fault.kind == "status") {
    reply.status = static_cast<int>(arguments["status"].as_int(500));
    reply.content_type = arguments["content_type"].as_string_or("application/json");
    reply.body = arguments["body"].is_string()
                     ? arguments["body"].as_string()
                     : render_error(request.api, reply.status,
                                    arguments["message"].as_string_or("scripted failure"))
                           .dump();
    for (const auto& [name, value] : arguments["headers"].members()) {
      reply.headers.emplace_back(name, value.is_string() ? value.as_string() : value.dump());
    }
    return true;
  }
  if (fault.kind == "raw") {
    reply.content_type = arguments["content_type"].as_string_or("application/json");
    reply.body = arguments["body"].as_string();
    return true;
  }
  return false;
}

ScriptReply without_usage(ScriptReply reply) {
  reply.usage.reset();
  return reply;
}

Outgoing compose(const ScriptRequest& asked, const ScriptReply& reply, i64 serial) {
  Outgoing out;
  ScriptRequest request = asked;
  bool no_usage = false;
  for (const ScriptFault& fault : reply.faults) {
    if (fault_whole(fault, request, out.reply)) return out;
    if (fault.kind == "no_usage") no_usage = true, request.stream_usage = false;
  }
  if (!request.stream) {
    Json json = render_reply(request, no_usage ? without_usage(reply) : reply, serial);
    if (no_usage) json.remove("usage");
    out.reply.body = json.dump();
    for (const ScriptFault& fault : reply.faults) {
      if (fault.kind == "truncate") {
        out.reply.body.resize(std::min(out.reply.body.size(),
                                       static_cast<size_t>(fault.arguments["bytes"].as_int(40))));
      }
    }
    return out;
  }
  out.pieces = render_stream(request, reply, serial);
  for (const ScriptFault& fault : reply.faults) fault_stream(fault, request, out);
  return out;
}

void make_stream(Outgoing out, i64 chunk_delay_ms, base::HttpReply& reply) {
  reply.content_type = "text/event-stream";
  reply.stream = [out = std::move(out), chunk_delay_ms](const base::HttpWriter& write) {
    base::Clock& clock = base::system_clock();
    for (size_t i = 0; i < out.pieces.size(); ++i) {
      if (i == out.break_after) return false;
      if (i == out.stall_after) clock.sleep_us(out.stall_ms * 1'000);
      if (chunk_delay_ms > 0) clock.sleep_us(chunk_delay_ms * 1'000);
      if (!write(out.pieces[i])) return false;
    }
    return true;
  };
}

}  // namespace

struct ScriptServer::Impl {
  explicit Impl(Script parsed) : script(std::move(parsed)) {}

  Options options;
  mutable std::mutex mutex;
  Script script;
  i64 serial = 0;
  std::vector<Served> log;
  std::function<void(const Served&)> sink;
  std::unique_ptr<base::HttpServer> server;

  base::HttpReply error(ApiKind api, int status, const std::string& message) {
    base::HttpReply reply;
    reply.status = status;
    reply.body = render_error(api, status, message).dump();
    return reply;
  }

  bool authorized(const base::HttpServerRequest& request) const {
    return options.key.empty() || request.header("x-api-key") == options.key ||
           request.header("authorization") == "Bearer " + options.key;
  }

  void note(Served served) {
    std::function<void(const Served&)> tell;
    {
      std::lock_guard lock(mutex);
      log.push_back(served);
      tell = sink;
    }
    if (tell) tell(served);
  }

  base::HttpReply models() {
    base::HttpReply reply;
    reply.body = Json::object({{"object", "list"},
                               {"data", Json::array({Json::object({{"id", script.model()},
                                                                   {"object", "model"},
                                                                   {"owned_by", "script"}})})}})
                     .dump();
    return reply;
  }

  base::HttpReply handle(const base::HttpServerRequest& request) {
    const bool anthropic = request.path.ends_with("/v1/messages");
    const ApiKind api = anthropic ? ApiKind::kAnthropic : ApiKind::kOpenAiChat;
    if (!authorized(request)) return error(api, 401, "the key is missing or wrong");
    if (request.method == "GET" && request.path.ends_with("/models")) return models();
    if (!anthropic && !request.path.ends_with("/chat/completions")) {
      return error(api, 404, "no such path; try /v1/chat/completions or /v1/messages");
    }
    if (request.method != "POST") return error(api, 405, "use POST");
    return complete(api, request);
  }

  base::HttpReply complete(ApiKind api, const base::HttpServerRequest& http) {
    base::Result<Json> body = Json::parse(http.body);
    if (!body.ok()) return error(api, 400, "the body is not JSON: " + body.error().message());
    base::Result<ScriptRequest> parsed = ScriptRequest::parse(api, *body);
    if (!parsed.ok()) return error(api, 400, parsed.error().message());
    parsed->bytes = http.body.size();
    Served served{http.path, "", 400, *body};
    Outgoing out;
    i64 delay_ms = 0;
    i64 chunk_delay_ms = 0;
    {
      std::lock_guard lock(mutex);
      const std::optional<Script::Answer> answer = script.answer(*parsed);
      if (answer) {
        served.rule = answer->rule;
        delay_ms = answer->reply->delay_ms;
        chunk_delay_ms = answer->reply->chunk_delay_ms;
        out = compose(*parsed, *answer->reply, ++serial);
        served.status = out.reply.status;
      }
    }
    if (served.rule.empty()) {
      note(served);
      return error(api, 400,
                   "no rule of the script matches: turn " + std::to_string(parsed->turn) +
                       ", last tool '" + parsed->last_tool + "'");
    }
    if (delay_ms > 0) base::system_clock().sleep_us(delay_ms * 1'000);
    note(served);
    base::HttpReply reply = std::move(out.reply);
    if (!out.pieces.empty()) make_stream(std::move(out), chunk_delay_ms, reply);
    return reply;
  }
};

ScriptServer::ScriptServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ScriptServer::~ScriptServer() {
  stop();
}

base::Result<std::unique_ptr<ScriptServer>> ScriptServer::start(const Options& options,
                                                                const Json& script) {
  auto impl = std::make_unique<Impl>(TRY(Script::parse(script)));
  impl->options = options;
  base::HttpServer::Options server;
  server.host = options.host;
  server.port = options.port;
  server.threads = 16;
  Impl* raw = impl.get();
  impl->server = TRY(base::HttpServer::start(
      server, [raw](const base::HttpServerRequest& request) { return raw->handle(request); }));
  return std::unique_ptr<ScriptServer>(new ScriptServer(std::move(impl)));
}

int ScriptServer::port() const {
  return impl_->server->port();
}
std::string ScriptServer::url() const {
  return impl_->server->url();
}

std::vector<ScriptServer::Served> ScriptServer::served() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->log;
}

void ScriptServer::on_served(std::function<void(const Served&)> sink) {
  std::lock_guard lock(impl_->mutex);
  impl_->sink = std::move(sink);
}

void ScriptServer::stop() {
  impl_->server->stop();
}

}  // namespace team
