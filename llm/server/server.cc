#include "llm/server/server.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"

#include <condition_variable>
#include <deque>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::HttpReply;
using base::HttpServerRequest;
using base::HttpWriter;
using base::Json;
using base::Result;

namespace {

HttpReply json_reply(int status, const Json& body) {
  HttpReply reply;
  reply.status = status;
  reply.body = body.dump();
  return reply;
}

HttpReply error_reply(const Error& error) {
  const int status = http_status_of(error);
  return json_reply(
      status, error_json(error.message(), status < 500 ? "invalid_request_error" : "server_error",
                         base::name_of(error.code())));
}

std::string event(const Json& data) {
  return "data: " + data.dump() + "\n\n";
}

}  // namespace

// One HTTP request on its way: its choices run as separate engine requests that feed one queue.
struct ApiServer::Call {
  bool chat = true;
  ApiRequest api;
  std::vector<std::vector<TokenId>> prompts;  // one a choice
  std::vector<std::string> echoes;            // put before a choice's text
  OutputParser::Options parser;
  Grammar grammar;
  bool constrained = false;
  std::string id;
  i64 created_s = 0;

  struct Piece {
    size_t choice;
    Chunk chunk;
  };
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<Piece> pieces;
  std::vector<RequestId> ids;

  Piece next() {
    std::unique_lock lock(mutex);
    arrived.wait(lock, [&] { return !pieces.empty(); });
    Piece piece = std::move(pieces.front());
    pieces.pop_front();
    return piece;
  }
};

ApiServer::ApiServer(const ServerOptions& options, EngineLoop* loop, const Tokenizer* tokenizer,
                     const Model* model, const ChatTemplate& chat)
    : options_(options),
      loop_(*loop),
      tokenizer_(*tokenizer),
      model_(*model),
      chat_(chat),
      vocabulary_(*tokenizer),
      started_s_(base::system_clock().wall_us() / 1'000'000) {}

ApiServer::~ApiServer() = default;

Result<std::unique_ptr<ApiServer>> ApiServer::start(const ServerOptions& options, EngineLoop* loop,
                                                    const Tokenizer* tokenizer, const Model* model,
                                                    const ChatTemplate& chat) {
  std::unique_ptr<ApiServer> server(new ApiServer(options, loop, tokenizer, model, chat));
  base::HttpServer::Options http;
  http.host = options.host;
  http.port = options.port;
  http.threads = options.connections;
  http.body_bytes_max = options.body_bytes_max;
  server->http_ =
      TRY(base::HttpServer::start(http, [raw = server.get()](const HttpServerRequest& request) {
        return raw->handle(request);
      }));
  return server;
}

void ApiServer::drain(i64 timeout_ms) {
  draining_ = true;
  base::Clock& clock = base::system_clock();
  const i64 until = clock.monotonic_us() + timeout_ms * 1000;
  while (open_calls_ > 0 && clock.monotonic_us() < until) clock.sleep_us(20'000);
  http_->stop();
}

bool ApiServer::authorised(const HttpServerRequest& request) const {
  if (options_.api_key.empty()) return true;
  // Hashes, so that the time of the comparison says nothing about the key.
  return base::sha256_hex(request.header("authorization")) ==
         base::sha256_hex("Bearer " + options_.api_key);
}

HttpReply ApiServer::handle(const HttpServerRequest& request) {
  if (request.path == "/health") return health();
  if (request.path == "/" && request.method == "GET") {
    HttpReply page;
    page.content_type = "text/html; charset=utf-8";
    page.body = kChatPage;
    return page;
  }
  if (!authorised(request)) {
    return json_reply(401, error_json("the API key is missing or wrong", "authentication_error",
                                      "invalid_api_key"));
  }
  if (request.path == "/metrics") return metrics();
  if (request.path == "/v1/models") return models();
  const bool chat = request.path == "/v1/chat/completions";
  if (!chat && request.path != "/v1/completions") {
    return json_reply(404, error_json("there is nothing at " + request.path,
                                      "invalid_request_error", "not_found"));
  }
  if (request.method != "POST") {
    return json_reply(405, error_json("use POST", "invalid_request_error", "method_not_allowed"));
  }
  if (draining_) return error_reply(Error(ErrorCode::kUnavailable, "the server is shutting down"));
  ++requests_;
  const auto body = Json::parse(request.body);
  auto reply = body.ok()
                   ? (chat ? chat_completions(*body) : completions(*body))
                   : Result<HttpReply>(Error(ErrorCode::kInvalidArgument,
                                             "the body is not JSON: " + body.error().message()));
  if (reply.ok()) return std::move(reply).value();
  ++errors_;
  return error_reply(reply.error());
}

Result<HttpReply> ApiServer::chat_completions(const Json& body) {
  ChatRequest request = TRY(parse_chat_request(body));
  Constraint constraint = TRY(constraint_of(request));
  // A held answer has no room for reasoning.
  if (constraint.present) request.options.thinking = false;
  auto call = std::make_shared<Call>();
  call->chat = true;
  const auto prompt = tokenizer_.encode(chat_.render(request.messages, request.options));
  call->prompts.assign(static_cast<size_t>(request.api.choices), prompt);
  call->parser.style = constraint.forces_call ? ChatStyle::kChatMl : chat_.style;
  call->parser.starts_in_reasoning = chat_.opens_thinking(request.options);
  call->parser.tools = request.options.tools;
  call->constrained = constraint.present;
  call->grammar = std::move(constraint.grammar);
  call->api = std::move(request.api);
  return launch(std::move(call));
}

Result<HttpReply> ApiServer::completions(const Json& body) {
  CompletionRequest request = TRY(parse_completion_request(body));
  auto call = std::make_shared<Call>();
  call->chat = false;
  for (const std::string& text : request.prompts) {
    auto ids = tokenizer_.encode(text, true);
    if (tokenizer_.add_bos() && tokenizer_.bos()) ids.insert(ids.begin(), *tokenizer_.bos());
    request.token_prompts.push_back(std::move(ids));
  }
  for (const auto& ids : request.token_prompts) {
    for (i32 i = 0; i < request.api.choices; ++i) {
      call->prompts.push_back(ids);
      call->echoes.push_back(request.echo ? tokenizer_.decode(ids) : "");
    }
  }
  call->api = std::move(request.api);
  return launch(std::move(call));
}

Result<HttpReply> ApiServer::launch(std::shared_ptr<Call> call) {
  call->id = (call->chat ? "chatcmpl-" : "cmpl-") + std::to_string(base::random_seed());
  call->created_s = base::system_clock().wall_us() / 1'000'000;
  for (size_t i = 0; i < call->prompts.size(); ++i) {
    GenerateRequest generate = call->api.generate;
    generate.prompt = call->prompts[i];
    generate.sampling.seed += i;
    if (call->constrained) {
      generate.rule =
          std::make_shared<GrammarRule>(call->grammar, &vocabulary_, model_.info().vocab);
    }
    generate.sink = [call, i](Chunk&& chunk) {
      const std::lock_guard lock(call->mutex);
      call->pieces.push_back({i, std::move(chunk)});
      call->arrived.notify_one();
    };
    auto id = loop_.submit(std::move(generate));
    if (!id.ok()) {
      for (RequestId earlier : call->ids) loop_.cancel(earlier);
      return std::move(id).error();
    }
    call->ids.push_back(*id);
  }
  ++open_calls_;
  if (!call->api.stream) {
    HttpReply reply = collect(call);
    --open_calls_;
    return reply;
  }
  HttpReply reply;
  reply.content_type = "text/event-stream";
  reply.headers = {{"cache-control", "no-cache"}};
  // Counted down when the reply is dropped, whether or not it was ever written.
  const std::shared_ptr<void> open(nullptr, [this](void*) { --open_calls_; });
  reply.stream = [this, call, open](const HttpWriter& write) { return stream(call, write); };
  return reply;
}

namespace {

std::string finish_text(FinishReason reason, bool has_calls) {
  return has_calls && reason == FinishReason::kStop ? "tool_calls" : name_of(reason);
}

void add_usage(const Usage& usage, Usage* total) {
  total->prompt_tokens += usage.prompt_tokens;
  total->cached_tokens += usage.cached_tokens;
  total->completion_tokens += usage.completion_tokens;
  total->drafted_tokens += usage.drafted_tokens;
  total->accepted_tokens += usage.accepted_tokens;
}

}  // namespace

HttpReply ApiServer::collect(const std::shared_ptr<Call>& call) {
  struct Choice {
    OutputParser parser;
    OutputParser::Delta all;
    std::string text;
    std::vector<TokenReport> tokens;
    FinishReason finish = FinishReason::kNone;
    std::string error;
  };
  std::vector<Choice> choices;
  for (size_t i = 0; i < call->prompts.size(); ++i) {
    choices.push_back({OutputParser(call->parser),
                       {},
                       i < call->echoes.size() ? call->echoes[i] : "",
                       {},
                       FinishReason::kNone,
                       ""});
  }
  Usage usage;
  for (size_t open = choices.size(); open > 0;) {
    Call::Piece piece = call->next();
    Choice& choice = choices[piece.choice];
    choice.text += piece.chunk.text;
    choice.tokens.insert(choice.tokens.end(), piece.chunk.tokens.begin(), piece.chunk.tokens.end());
    if (piece.chunk.finish == FinishReason::kNone) continue;
    choice.finish = piece.chunk.finish;
    choice.error = piece.chunk.error;
    add_usage(piece.chunk.usage, &usage);
    --open;
  }
  Json list = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) {
    Choice& choice = choices[i];
    if (choice.finish == FinishReason::kError)
      return error_reply(Error(ErrorCode::kInternal, choice.error));
    Json item = Json::object({{"index", static_cast<i64>(i)}});
    if (call->chat) {
      OutputParser::Delta answer = choice.parser.feed(choice.text);
      OutputParser::Delta rest = choice.parser.finish();
      answer.content += rest.content;
      answer.reasoning += rest.reasoning;
      answer.calls.insert(answer.calls.end(), rest.calls.begin(), rest.calls.end());
      Json message = Json::object({{"role", "assistant"}});
      message.set("content",
                  answer.content.empty() && !answer.calls.empty() ? Json() : Json(answer.content));
      if (!answer.reasoning.empty()) message.set("reasoning_content", answer.reasoning);
      if (!answer.calls.empty()) message.set("tool_calls", tool_calls_json(answer.calls, 0, false));
      item.set("message", std::move(message));
      item.set("logprobs",
               call->api.want_logprobs ? chat_logprobs_json(choice.tokens, tokenizer_) : Json());
      item.set("finish_reason", finish_text(choice.finish, !answer.calls.empty()));
    } else {
      item.set("text", choice.text);
      item.set("logprobs", call->api.want_logprobs
                               ? completion_logprobs_json(choice.tokens, tokenizer_)
                               : Json());
      item.set("finish_reason", name_of(choice.finish));
    }
    list.push(std::move(item));
  }
  return json_reply(200,
                    Json::object({{"id", call->id},
                                  {"object", call->chat ? "chat.completion" : "text_completion"},
                                  {"created", call->created_s},
                                  {"model", options_.model_name},
                                  {"choices", std::move(list)},
                                  {"usage", usage_json(usage)}}));
}

bool ApiServer::stream(const std::shared_ptr<Call>& call, const HttpWriter& write) {
  auto send = [&](Json choice, const Json& usage) {
    Json data = Json::object({{"id", call->id},
                              {"object", call->chat ? "chat.completion.chunk" : "text_completion"},
                              {"created", call->created_s},
                              {"model", options_.model_name}});
    data.set("choices", choice.is_null() ? Json::array() : Json::array({std::move(choice)}));
    if (call->api.include_usage) data.set("usage", usage);
    return write(event(data));
  };
  auto send_delta = [&](size_t i, Json delta, Json logprobs, Json finish) {
    Json choice = Json::object({{"index", static_cast<i64>(i)}});
    if (call->chat) {
      choice.set("delta", std::move(delta));
    } else {
      choice.set("text", delta["content"].as_string());
    }
    choice.set("logprobs", std::move(logprobs));
    choice.set("finish_reason", std::move(finish));
    return send(std::move(choice), Json());
  };
  std::vector<OutputParser> parsers;
  bool alive = true;
  for (size_t i = 0; i < call->prompts.size(); ++i) {
    parsers.emplace_back(call->parser);
    if (call->chat) {
      alive = alive &&
              send_delta(i, Json::object({{"role", "assistant"}, {"content", ""}}), Json(), Json());
    } else if (!call->echoes[i].empty()) {
      alive = alive && send_delta(i, Json::object({{"content", call->echoes[i]}}), Json(), Json());
    }
  }
  Usage usage;
  for (size_t open = parsers.size(); alive && open > 0;) {
    Call::Piece piece = call->next();
    OutputParser& parser = parsers[piece.choice];
    const Chunk& chunk = piece.chunk;
    const size_t calls_before = parser.calls_seen();
    OutputParser::Delta delta;
    if (call->chat) {
      delta = parser.feed(chunk.text);
      if (chunk.finish != FinishReason::kNone) {
        OutputParser::Delta rest = parser.finish();
        delta.content += rest.content;
        delta.reasoning += rest.reasoning;
        delta.calls.insert(delta.calls.end(), rest.calls.begin(), rest.calls.end());
      }
    } else {
      delta.content = chunk.text;
    }
    Json logprobs;
    if (call->api.want_logprobs) {
      logprobs = call->chat ? chat_logprobs_json(chunk.tokens, tokenizer_)
                            : completion_logprobs_json(chunk.tokens, tokenizer_);
    }
    if (!delta.empty() || !chunk.tokens.empty()) {
      Json out = Json::object();
      if (!delta.reasoning.empty()) out.set("reasoning_content", delta.reasoning);
      if (!delta.content.empty()) out.set("content", delta.content);
      if (!delta.calls.empty())
        out.set("tool_calls", tool_calls_json(delta.calls, calls_before, true));
      alive = send_delta(piece.choice, std::move(out), std::move(logprobs), Json());
    }
    if (chunk.finish == FinishReason::kNone) continue;
    add_usage(chunk.usage, &usage);
    --open;
    if (chunk.finish == FinishReason::kError) {
      alive = alive && write(event(error_json(chunk.error, "server_error", "internal")));
    }
    alive = alive && send_delta(piece.choice, Json::object(), Json(),
                                finish_text(chunk.finish, parser.calls_seen() > 0));
  }
  if (alive && call->api.include_usage) alive = send(Json(), usage_json(usage));
  if (alive) alive = write("data: [DONE]\n\n");
  if (!alive) {
    ++disconnects_;
    for (RequestId id : call->ids) loop_.cancel(id);
  }
  return alive;
}

HttpReply ApiServer::models() const {
  const ModelInfo& info = model_.info();
  return json_reply(
      200, Json::object({{"object", "list"},
                         {"data", Json::array({Json::object(
                                      {{"id", options_.model_name},
                                       {"object", "model"},
                                       {"created", started_s_},
                                       {"owned_by", "fleetlm"},
                                       {"parameters", info.parameters},
                                       {"context_length", loop_.engine().options().context}})})}}));
}

HttpReply ApiServer::health() const {
  return draining_ ? json_reply(503, Json::object({{"status", "draining"}}))
                   : json_reply(200, Json::object({{"status", "ok"}}));
}

HttpReply ApiServer::metrics() const {
  const EngineStats s = loop_.engine().stats();
  HttpReply reply;
  reply.content_type = "text/plain; version=0.0.4";
  auto add = [&](std::string_view name, std::string_view kind, std::string_view help, i64 value) {
    const std::string full = "fleetlm_" + std::string(name);
    reply.body += "# HELP " + full + " " + std::string(help) + "\n# TYPE " + full + " " +
                  std::string(kind) + "\n" + full + " " + std::to_string(value) + "\n";
  };
  const auto n = [](u64 value) { return static_cast<i64>(value); };
  add("http_requests_total", "counter", "Generation requests over HTTP.", n(requests_));
  add("http_errors_total", "counter", "Requests refused or failed.", n(errors_));
  add("http_disconnects_total", "counter", "Streams whose client went away.", n(disconnects_));
  add("steps_total", "counter", "Model steps.", n(s.steps));
  add("prompt_tokens_total", "counter", "Prompt tokens computed.", n(s.prompt_tokens));
  add("cached_prompt_tokens_total", "counter", "Prompt tokens taken from the prefix cache.",
      n(s.cached_prompt_tokens));
  add("generated_tokens_total", "counter", "Tokens generated.", n(s.generated));
  add("drafted_tokens_total", "counter", "Tokens guessed ahead.", n(s.drafted));
  add("accepted_tokens_total", "counter", "Guesses that were right.", n(s.accepted));
  add("requests_finished_total", "counter", "Sequences finished.", n(s.finished));
  add("requests_cancelled_total", "counter", "Sequences cancelled.", n(s.cancelled));
  add("preempted_total", "counter", "Sequences sent back to the queue for want of cache.",
      n(s.preempted));
  add("running", "gauge", "Sequences being computed.", s.running);
  add("waiting", "gauge", "Sequences waiting for a slot.", s.waiting);
  add("cache_pages", "gauge", "Cache pages of 16 tokens.", s.pages_total);
  add("cache_pages_available", "gauge", "Cache pages free or reclaimable.", s.pages_available);
  return reply;
}

}  // namespace llm
