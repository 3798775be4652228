// Anthropic messages. The prefix is marked for caching at the last tool, the system text and the
// last two user turns: four breakpoints, the most the protocol allows.
#include "team/model/codec.h"

#include <map>

namespace team {
namespace {

using base::Json;

StopReason stop_of(const std::string& text) {
  if (text == "end_turn" || text == "stop_sequence" || text.empty()) return StopReason::kEnd;
  if (text == "tool_use") return StopReason::kToolCalls;
  if (text == "max_tokens" || text == "model_context_window_exceeded") return StopReason::kLength;
  if (text == "refusal") return StopReason::kRefusal;
  return StopReason::kOther;
}

// Counts in `json` replace those known so far: message_delta repeats or corrects message_start.
void merge_usage(const Json& json, Usage& usage) {
  const auto take = [&](const char* name, i64& into) {
    if (json[name].is_integer()) into = json[name].as_int();
  };
  take("input_tokens", usage.in_fresh);
  take("cache_read_input_tokens", usage.in_cached);
  take("cache_creation_input_tokens", usage.in_written);
  if (json["output_tokens"].is_integer()) {
    usage.out_reason = json["output_tokens_details"]["thinking_tokens"].as_int();
    usage.out_text = json["output_tokens"].as_int() - usage.out_reason;
  }
}

Json cache_mark() {
  return Json::object({{"type", "ephemeral"}});
}

Json assistant_content(const Message& message) {
  Json content = Json::array();
  for (const Json& block : message.reasoning_blocks.items()) content.push(block);
  if (!message.text.empty()) {
    content.push(Json::object({{"type", "text"}, {"text", message.text}}));
  }
  for (const ToolCall& call : message.tool_calls) {
    base::Result<Json> input = Json::parse(call.arguments);
    content.push(
        Json::object({{"type", "tool_use"},
                      {"id", call.id},
                      {"name", call.name},
                      // The protocol has no place for invalid JSON; the tool's error says what
                      // was wrong with it.
                      {"input", input.ok() && input->is_object() ? *input : Json::object()}}));
  }
  // A reply of reasoning alone is kept as a turn, but the protocol takes no empty one.
  if (content.size() == 0) content.push(Json::object({{"type", "text"}, {"text", "(no answer)"}}));
  return content;
}

// Turns alternate; the results of one turn's tool calls go first into one user turn.
Json encode_turns(const std::vector<Message>& messages) {
  Json turns = Json::array();
  std::vector<Json> user;
  const auto flush = [&] {
    if (user.empty()) return;
    turns.push(Json::object({{"role", "user"}, {"content", Json(Json::Array(user))}}));
    user.clear();
  };
  for (const Message& message : messages) {
    switch (message.role) {
      case Message::Role::kSystem:
        break;
      case Message::Role::kUser:
        user.push_back(Json::object({{"type", "text"}, {"text", message.text}}));
        break;
      case Message::Role::kTool: {
        Json block = Json::object({{"type", "tool_result"},
                                   {"tool_use_id", message.tool_call_id},
                                   {"content", message.text}});
        if (message.is_error) block.set("is_error", true);
        user.push_back(std::move(block));
        break;
      }
      case Message::Role::kAssistant:
        flush();
        turns.push(Json::object({{"role", "assistant"}, {"content", assistant_content(message)}}));
        break;
    }
  }
  flush();
  return turns;
}

// Marks the last block of the last two user turns.
Json with_cache_marks(const Json& turns) {
  Json::Array out = turns.items();
  int marks = 2;
  for (size_t at = out.size(); at-- > 0 && marks > 0;) {
    if (out[at]["role"].as_string() != "user") continue;
    Json::Array blocks = out[at]["content"].items();
    blocks.back().set("cache_control", cache_mark());
    out[at].set("content", Json(std::move(blocks)));
    --marks;
  }
  return Json(std::move(out));
}

void take_block(const Json& block, ModelReply& reply) {
  const std::string& type = block["type"].as_string();
  if (type == "text") {
    reply.message.text += block["text"].as_string();
  } else if (type == "tool_use") {
    reply.message.tool_calls.push_back(
        {block["id"].as_string(), block["name"].as_string(), block["input"].dump()});
  } else if (type == "thinking" || type == "redacted_thinking") {
    reply.message.reasoning += block["thinking"].as_string();
    reply.message.reasoning_blocks.push(block);
  }
}

class AnthropicStream : public StreamDecoder {
 public:
  base::Status feed(const base::SseParser::Event& event, const DeltaSink& sink) override {
    base::Result<Json> parsed = Json::parse(event.data);
    if (!parsed.ok()) {
      return base::Error(base::ErrorCode::kCorruption,
                         "an event of the stream is not JSON: " + parsed.error().message());
    }
    const Json& json = *parsed;
    const std::string& type = json["type"].as_string();
    if (type == "error") {
      return base::Error(base::ErrorCode::kUnavailable, json["error"]["type"].as_string() + ": " +
                                                            json["error"]["message"].as_string());
    }
    if (type == "message_start") {
      reply_.id = json["message"]["id"].as_string();
      reply_.model = json["message"]["model"].as_string();
      take_usage(json["message"]["usage"]);
    } else if (type == "content_block_start") {
      Open& open = blocks_[json["index"].as_int()];
      open.block = json["content_block"];
    } else if (type == "content_block_delta") {
      take_delta(blocks_[json["index"].as_int()], json["delta"], sink);
    } else if (type == "message_delta") {
      reply_.stop_text = json["delta"]["stop_reason"].as_string();
      reply_.stop = stop_of(reply_.stop_text);
      take_usage(json["usage"]);
    } else if (type == "message_stop") {
      done_ = true;
    }
    return {};  // ping, content_block_stop and whatever is new: nothing to do
  }

  bool saw_end() const override { return done_; }
  bool cancelled() const override { return cancelled_; }
  ModelReply& reply() override { return reply_; }

  void finish() override {
    for (auto& [index, open] : blocks_) {
      const std::string& type = open.block["type"].as_string();
      if (type == "tool_use") {
        // Kept as text: what does not parse must reach the agent loop as it was.
        const std::string& whole = open.partial_json;
        const std::string given = open.block["input"].size() > 0 ? open.block["input"].dump() : "";
        reply_.message.tool_calls.push_back({open.block["id"].as_string(),
                                             open.block["name"].as_string(),
                                             whole.empty() ? given : whole});
      } else {
        for (const auto& [key, added] :
             {std::pair<const char*, const std::string&>("text", open.text),
              {"thinking", open.thinking},
              {"signature", open.signature}}) {
          if (!added.empty()) open.block.set(key, open.block[key].as_string() + added);
        }
        take_block(open.block, reply_);
      }
    }
    blocks_.clear();
    if (!usage_seen_) reply_.usage = no_usage();
  }

 private:
  struct Open {
    Json block;
    std::string text, thinking, signature, partial_json;  // what the deltas added
  };

  void take_usage(const Json& usage) {
    if (!usage.is_object()) return;
    merge_usage(usage, reply_.usage);
    usage_seen_ = true;
  }

  void take_delta(Open& open, const Json& delta, const DeltaSink& sink) {
    const std::string& type = delta["type"].as_string();
    Delta shown;
    if (type == "text_delta") {
      open.text += delta["text"].as_string();
      shown.text = delta["text"].as_string();
    } else if (type == "input_json_delta") {
      open.partial_json += delta["partial_json"].as_string();
      shown.tool_arguments = delta["partial_json"].as_string();
    } else if (type == "thinking_delta") {
      open.thinking += delta["thinking"].as_string();
      shown.reasoning = delta["thinking"].as_string();
    } else if (type == "signature_delta") {
      open.signature += delta["signature"].as_string();
    }
    if (sink && !sink(shown)) cancelled_ = true;
  }

  ModelReply reply_;
  std::map<i64, Open> blocks_;
  bool usage_seen_ = false;
  bool done_ = false;
  bool cancelled_ = false;
};

class AnthropicCodec : public Codec {
 public:
  std::string url(const BackendConfig& config) const override {
    return config.url + "/v1/messages";
  }

  base::HttpHeaders headers(const BackendConfig& config) const override {
    base::HttpHeaders headers = {{"content-type", "application/json"},
                                 {"anthropic-version", "2023-06-01"}};
    if (!config.key.empty()) headers.emplace_back("x-api-key", config.key);
    return headers;
  }

  Json encode(const ModelRequest& request, const BackendConfig&) const override {
    Json json = Json::object();
    json.set("model", request.model);
    json.set("max_tokens", request.output_tokens_max);
    std::string system;
    for (const Message& message : request.messages) {
      if (message.role != Message::Role::kSystem) continue;
      if (!system.empty()) system += "\n\n";
      system += message.text;
    }
    if (!system.empty()) {
      json.set("system",
               Json::array({Json::object(
                   {{"type", "text"}, {"text", system}, {"cache_control", cache_mark()}})}));
    }
    if (!request.tools.empty()) {
      Json::Array tools;
      for (const ToolSpec& tool : request.tools) {
        tools.push_back(Json::object({{"name", tool.name},
                                      {"description", tool.description},
                                      {"input_schema", tool.parameters}}));
      }
      tools.back().set("cache_control", cache_mark());
      json.set("tools", Json(std::move(tools)));
      if (request.tool_required) json.set("tool_choice", Json::object({{"type", "any"}}));
    }
    json.set("messages", with_cache_marks(encode_turns(request.messages)));
    if (request.temperature) json.set("temperature", *request.temperature);
    if (!request.effort.empty()) {
      json.set("output_config", Json::object({{"effort", request.effort}}));
    }
    json.set("stream", request.stream);
    return json;
  }

  base::Result<ModelReply> decode(std::string_view body) const override {
    base::Result<Json> parsed = Json::parse(body);
    if (!parsed.ok()) {
      return base::Error(base::ErrorCode::kCorruption,
                         "the reply is not JSON: " + parsed.error().message());
    }
    const Json& json = *parsed;
    if (!json["content"].is_array()) {
      return base::Error(base::ErrorCode::kCorruption, "the reply has no content list");
    }
    ModelReply reply;
    reply.id = json["id"].as_string();
    reply.model = json["model"].as_string();
    reply.stop_text = json["stop_reason"].as_string();
    reply.stop = stop_of(reply.stop_text);
    for (const Json& block : json["content"].items()) take_block(block, reply);
    if (json["usage"].is_object()) {
      merge_usage(json["usage"], reply.usage);
    } else {
      reply.usage = no_usage();
    }
    return reply;
  }

  std::unique_ptr<StreamDecoder> stream_decoder() const override {
    return std::make_unique<AnthropicStream>();
  }
};

}  // namespace

const Codec& anthropic_codec() {
  static const AnthropicCodec codec;
  return codec;
}

const Codec& codec_for(ApiKind api) {
  return api == ApiKind::kAnthropic ? anthropic_codec() : openai_codec();
}

}  // namespace team
