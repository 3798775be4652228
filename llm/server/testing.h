// A server over a small random model, and a client for it. What the model says is noise; what the
// server makes of it is not.
#pragma once

#include "base/http_client.h"
#include "llm/model/llama.h"
#include "llm/model/testing.h"
#include "llm/server/server.h"
#include "llm/tokenizer/unicode.h"

namespace llm {

// Printable ASCII as one token each, and the end of a turn.
inline std::unique_ptr<Tokenizer> ascii_tokenizer() {
  Tokenizer::Spec spec;
  for (int c = 33; c < 127; ++c) spec.tokens.push_back(std::string(1, static_cast<char>(c)));
  std::string space;
  append_utf8(0x120, &space);
  spec.tokens.push_back(space);
  spec.tokens.push_back("<|im_end|>");
  spec.special.assign(96, false);
  spec.special[95] = true;
  return Tokenizer::create(std::move(spec)).value();
}

struct TinyServer {
  explicit TinyServer(i32 context = 1024)
      : file_(random_llama_file({}, DType::kQ80, 3)), tokenizer_(ascii_tokenizer()) {
    gguf_ = Gguf::parse(base::as_bytes(file_)).value();
    model_ =
        LlamaModel::load(*gguf_, llama_config(*gguf_).value(), Precision::kFast, &crew_).value();
    engine_ =
        Engine::create(model_.get(), tokenizer_.get(), nullptr, {.slots = 4, .context = context})
            .value();
    loop_ = std::make_unique<EngineLoop>(engine_.get());
    ServerOptions options;
    options.port = 0;
    options.api_key = "secret";
    options.model_name = "tiny";
    options.body_bytes_max = 64 << 10;
    server_ = ApiServer::start(options, loop_.get(), tokenizer_.get(), model_.get(), {}).value();
  }
  std::string url(std::string_view path) {
    return "http://127.0.0.1:" + std::to_string(server_->port()) + std::string(path);
  }
  base::HttpResponse send(std::string_view path, std::string_view body,
                          std::string_view key = "secret") {
    base::HttpRequest request;
    request.method = body.empty() ? "GET" : "POST";
    request.url = url(path);
    request.headers = {{"authorization", "Bearer " + std::string(key)},
                       {"content-type", "application/json"}};
    request.body = std::string(body);
    return base::http_request(request).value();
  }
  base::Json post(std::string_view path, std::string_view body) {
    return base::Json::parse(send(path, body).body).value();
  }

  std::string file_;
  std::unique_ptr<Gguf> gguf_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Crew crew_{1};
  std::unique_ptr<LlamaModel> model_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EngineLoop> loop_;
  std::unique_ptr<ApiServer> server_;
};

}  // namespace llm
