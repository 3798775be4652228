// OpenAI chat completions, as its own servers and the open ones (vLLM, llama.cpp, SGLang) speak it.
#include "team/model/codec.h"

#include <map>

namespace team {
namespace {

using base::Json;

StopReason stop_of(const std::string& text) {
  if (text == "stop" || text.empty()) return StopReason::kEnd;
  if (text == "tool_calls" || text == "function_call") return StopReason::kToolCalls;
  if (text == "length") return StopReason::kLength;
  if (text == "content_filter") return StopReason::kContentFilter;
  return StopReason::kOther;
}

Usage usage_of(const Json& json) {
  const i64 prompt = json["prompt_tokens"].as_int();
  const i64 completion = json["completion_tokens"].as_int();
  Usage usage;
  usage.in_cached = json["prompt_tokens_details"]["cached_tokens"].as_int();
  usage.in_written = json["prompt_tokens_details"]["cache_write_tokens"].as_int();
  usage.in_fresh = prompt - usage.in_cached - usage.in_written;
  usage.out_reason = json["completion_tokens_details"]["reasoning_tokens"].as_int();
  // Some servers count reasoning apart from the completion instead of within it.
  usage.out_text = completion < usage.out_reason ? completion : completion - usage.out_reason;
  return usage;
}

// Text content is a string, or parts of which the text ones count.
std::string text_of(const Json& content) {
  if (content.is_string()) return content.as_string();
  std::string text;
  for (const Json& part : content.items()) text += part["text"].as_string();
  return text;
}

std::string reasoning_of(const Json& message) {
  const std::string& older = message["reasoning_content"].as_string();
  return older.empty() ? message["reasoning"].as_string() : older;
}

// Arguments should be a string; some servers send the object itself.
std::string arguments_of(const Json& arguments) {
  if (arguments.is_string()) return arguments.as_string();
  return arguments.is_null() ? "" : arguments.dump();
}

Json encode_message(const Message& message) {
  Json json = Json::object();
  switch (message.role) {
    case Message::Role::kSystem:
      return Json::object({{"role", "system"}, {"content", message.text}});
    case Message::Role::kUser:
      return Json::object({{"role", "user"}, {"content", message.text}});
    case Message::Role::kTool:
      return Json::object(
          {{"role", "tool"}, {"tool_call_id", message.tool_call_id}, {"content", message.text}});
    case Message::Role::kAssistant:
      break;
  }
  json.set("role", "assistant");
  if (message.text.empty() && !message.tool_calls.empty()) {
    json.set("content", nullptr);
  } else {
    json.set("content", message.text);
  }
  if (!message.reasoning.empty()) json.set("reasoning_content", message.reasoning);
  if (!message.tool_calls.empty()) {
    Json calls = Json::array();
    for (const ToolCall& call : message.tool_calls) {
      calls.push(Json::object(
          {{"id", call.id},
           {"type", "function"},
           {"function", Json::object({{"name", call.name}, {"arguments", call.arguments}})}}));
    }
    json.set("tool_calls", std::move(calls));
  }
  return json;
}

class OpenAiStream : public StreamDecoder {
 public:
  base::Status feed(const base::SseParser::Event& event, const DeltaSink& sink) override {
    if (event.data == "[DONE]") {
      done_ = true;
      return {};
    }
    base::Result<Json> parsed = Json::parse(event.data);
    if (!parsed.ok()) {
      return base::Error(base::ErrorCode::kCorruption,
                         "a line of the stream is not JSON: " + parsed.error().message());
    }
    const Json& chunk = *parsed;
    if (!chunk["error"].is_null()) {
      const Json& error = chunk["error"];
      return base::Error(base::ErrorCode::kUnavailable,
                         error.is_string() ? error.as_string() : error["message"].as_string());
    }
    if (reply_.id.empty()) reply_.id = chunk["id"].as_string();
    if (reply_.model.empty()) reply_.model = chunk["model"].as_string();
    if (chunk["usage"].is_object()) {
      reply_.usage = usage_of(chunk["usage"]);
      usage_seen_ = true;
    }
    if (chunk["choices"].size() > 0) take_choice(chunk["choices"][0], sink);
    return {};
  }

  // A finish_reason without [DONE] is a whole reply too: some servers leave the marker out.
  bool saw_end() const override { return done_ || finished_; }
  bool cancelled() const override { return cancelled_; }
  ModelReply& reply() override { return reply_; }

  void finish() override {
    for (const size_t slot : order_) reply_.message.tool_calls.push_back(std::move(calls_[slot]));
    order_.clear();
    if (!usage_seen_) reply_.usage = no_usage();
  }

 private:
  void take_choice(const Json& choice, const DeltaSink& sink) {
    const Json& delta = choice["delta"];
    const std::string text = text_of(delta["content"]);
    const std::string reasoning = reasoning_of(delta);
    reply_.message.text += text;
    reply_.message.reasoning += reasoning;
    std::string arguments;
    if (const std::string& refusal = delta["refusal"].as_string(); !refusal.empty()) {
      reply_.message.text += refusal;
      refused_ = true;
    }
    for (const Json& piece : delta["tool_calls"].items()) arguments += take_call(piece);
    if (choice["finish_reason"].is_string()) {
      finished_ = true;
      reply_.stop_text = choice["finish_reason"].as_string();
      reply_.stop = refused_ ? StopReason::kRefusal : stop_of(reply_.stop_text);
    }
    if (sink && (!text.empty() || !reasoning.empty() || !arguments.empty())) {
      if (!sink(Delta{text, reasoning, arguments})) cancelled_ = true;
    }
  }

  // Calls are told apart by index; a new id under a used index is another call all the same.
  std::string take_call(const Json& piece) {
    const size_t index = static_cast<size_t>(piece["index"].as_int(static_cast<i64>(last_index_)));
    const std::string& id = piece["id"].as_string();
    const std::string& name = piece["function"]["name"].as_string();
    last_index_ = index;
    auto found = slot_of_index_.find(index);
    const bool fresh =
        found == slot_of_index_.end() ||
        (!id.empty() && !calls_[found->second].id.empty() && calls_[found->second].id != id);
    if (fresh) {
      slot_of_index_[index] = calls_.size();
      order_.push_back(calls_.size());
      calls_.emplace_back();
    }
    ToolCall& call = calls_[slot_of_index_[index]];
    if (!id.empty()) call.id = id;
    if (call.name.empty()) call.name = name;
    const std::string arguments = arguments_of(piece["function"]["arguments"]);
    call.arguments += arguments;
    return arguments;
  }

  ModelReply reply_;
  std::vector<ToolCall> calls_;
  std::map<size_t, size_t> slot_of_index_;
  std::vector<size_t> order_;
  size_t last_index_ = 0;
  bool usage_seen_ = false;
  bool refused_ = false;
  bool finished_ = false;
  bool done_ = false;
  bool cancelled_ = false;
};

class OpenAiCodec : public Codec {
 public:
  std::string url(const BackendConfig& config) const override {
    return config.url + "/chat/completions";
  }

  base::HttpHeaders headers(const BackendConfig& config) const override {
    base::HttpHeaders headers = {{"content-type", "application/json"}};
    if (!config.key.empty()) headers.emplace_back("authorization", "Bearer " + config.key);
    return headers;
  }

  Json encode(const ModelRequest& request, const BackendConfig& config) const override {
    Json json = Json::object();
    json.set("model", request.model);
    Json messages = Json::array();
    for (const Message& message : request.messages) messages.push(encode_message(message));
    json.set("messages", std::move(messages));
    if (!request.tools.empty()) {
      Json tools = Json::array();
      for (const ToolSpec& tool : request.tools) {
        tools.push(Json::object({{"type", "function"},
                                 {"function", Json::object({{"name", tool.name},
                                                            {"description", tool.description},
                                                            {"parameters", tool.parameters}})}}));
      }
      json.set("tools", std::move(tools));
      if (request.tool_required) json.set("tool_choice", "required");
    }
    json.set(config.old_max_tokens ? "max_tokens" : "max_completion_tokens",
             request.output_tokens_max);
    if (request.temperature) json.set("temperature", *request.temperature);
    if (!request.effort.empty()) json.set("reasoning_effort", request.effort);
    json.set("stream", request.stream);
    if (request.stream) json.set("stream_options", Json::object({{"include_usage", true}}));
    return json;
  }

  base::Result<ModelReply> decode(std::string_view body) const override {
    base::Result<Json> parsed = Json::parse(body);
    if (!parsed.ok()) {
      return base::Error(base::ErrorCode::kCorruption,
                         "the reply is not JSON: " + parsed.error().message());
    }
    const Json& json = *parsed;
    const Json& choice = json["choices"][0];
    if (!choice["message"].is_object()) {
      return base::Error(base::ErrorCode::kCorruption, "the reply has no choices[0].message");
    }
    ModelReply reply;
    reply.id = json["id"].as_string();
    reply.model = json["model"].as_string();
    reply.stop_text = choice["finish_reason"].as_string();
    reply.stop = stop_of(reply.stop_text);
    const Json& message = choice["message"];
    reply.message.text = text_of(message["content"]);
    reply.message.reasoning = reasoning_of(message);
    if (const std::string& refusal = message["refusal"].as_string(); !refusal.empty()) {
      reply.message.text += refusal;
      reply.stop = StopReason::kRefusal;
    }
    for (const Json& call : message["tool_calls"].items()) {
      reply.message.tool_calls.push_back({call["id"].as_string(),
                                          call["function"]["name"].as_string(),
                                          arguments_of(call["function"]["arguments"])});
    }
    reply.usage = json["usage"].is_object() ? usage_of(json["usage"]) : no_usage();
    return reply;
  }

  std::unique_ptr<StreamDecoder> stream_decoder() const override {
    return std::make_unique<OpenAiStream>();
  }
};

}  // namespace

const Codec& openai_codec() {
  static const OpenAiCodec codec;
  return codec;
}

}  // namespace team
