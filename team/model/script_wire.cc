// Scripted replies in the two wire formats, whole and streamed.
#include "team/model/script.h"

#include <algorithm>

namespace team {
namespace {

using base::Json;

constexpr size_t kPieceBytes = 24;  // of text in one streamed piece
constexpr i64 kCreated = 1'700'000'000;

std::string whole_text(const ScriptReply& reply) {
  if (reply.repeat == 1) return reply.text;
  std::string text;
  text.reserve(reply.text.size() * static_cast<size_t>(std::max<i64>(reply.repeat, 0)));
  for (i64 i = 0; i < reply.repeat; ++i) text += reply.text;
  return text;
}

Usage usage_of(const ScriptRequest& request, const ScriptReply& reply) {
  if (reply.usage) return *reply.usage;
  Usage usage;
  usage.in_fresh = estimate_tokens(request.bytes);
  size_t out = whole_text(reply).size();
  for (const ToolCall& call : reply.tools) out += call.name.size() + call.arguments.size();
  usage.out_text = std::max<i64>(1, estimate_tokens(out));
  usage.out_reason = estimate_tokens(reply.reasoning.size());
  return usage;
}

Json openai_usage(const Usage& usage) {
  return Json::object(
      {{"prompt_tokens", usage.input()},
       {"completion_tokens", usage.output()},
       {"total_tokens", usage.input() + usage.output()},
       {"prompt_tokens_details", Json::object({{"cached_tokens", usage.in_cached},
                                               {"cache_write_tokens", usage.in_written}})},
       {"completion_tokens_details", Json::object({{"reasoning_tokens", usage.out_reason}})}});
}

Json anthropic_usage(const Usage& usage, i64 output) {
  return Json::object({{"input_tokens", usage.in_fresh},
                       {"cache_creation_input_tokens", usage.in_written},
                       {"cache_read_input_tokens", usage.in_cached},
                       {"output_tokens", output}});
}

std::string stop_text(ApiKind api, const ScriptReply& reply) {
  const bool anthropic = api == ApiKind::kAnthropic;
  if (reply.stop == "length") return anthropic ? "max_tokens" : "length";
  if (!reply.stop.empty()) return reply.stop;
  if (!reply.tools.empty()) return anthropic ? "tool_use" : "tool_calls";
  return anthropic ? "end_turn" : "stop";
}

std::string call_id(const ScriptRequest& request, const ToolCall& call, i64 serial, size_t index) {
  if (call.id != "auto") return call.id;
  return (request.api == ApiKind::kAnthropic ? "toolu_" : "call_") + std::to_string(serial) + "_" +
         std::to_string(index);
}

const std::string& model_of(const ScriptRequest& request, const ScriptReply& reply) {
  return reply.model_name.empty() ? request.model : reply.model_name;
}

// Pieces of about kPieceBytes that never cut a UTF-8 character.
std::vector<std::string> pieces_of(const std::string& text) {
  const size_t step = std::max(kPieceBytes, text.size() / 4'096);
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(at + step, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

Json openai_reply(const ScriptRequest& request, const ScriptReply& reply, i64 serial) {
  Json message = Json::object({{"role", "assistant"}});
  const bool refusal = reply.stop == "refusal";
  const std::string text = whole_text(reply);
  if (refusal || (text.empty() && !reply.tools.empty())) {
    message.set("content", nullptr);
  } else {
    message.set("content", text);
  }
  message.set("refusal", refusal ? Json(text) : Json(nullptr));
  if (!reply.reasoning.empty()) message.set("reasoning_content", reply.reasoning);
  if (!reply.tools.empty()) {
    Json calls = Json::array();
    for (size_t i = 0; i < reply.tools.size(); ++i) {
      const ToolCall& call = reply.tools[i];
      calls.push(Json::object(
          {{"id", call_id(request, call, serial, i)},
           {"type", "function"},
           {"function", Json::object({{"name", call.name}, {"arguments", call.arguments}})}}));
    }
    message.set("tool_calls", std::move(calls));
  }
  return Json::object(
      {{"id", "chatcmpl-" + std::to_string(serial)},
       {"object", "chat.completion"},
       {"created", kCreated},
       {"model", model_of(request, reply)},
       {"choices", Json::array({Json::object(
                       {{"index", 0},
                        {"message", std::move(message)},
                        {"logprobs", nullptr},
                        {"finish_reason", refusal ? "stop" : stop_text(request.api, reply)}})})},
       {"usage", openai_usage(usage_of(request, reply))}});
}

Json tool_input(const ToolCall& call) {
  base::Result<Json> parsed = Json::parse(call.arguments);
  return parsed.ok() ? *parsed : Json(call.arguments);
}

Json anthropic_reply(const ScriptRequest& request, const ScriptReply& reply, i64 serial) {
  Json content = Json::array();
  if (!reply.reasoning.empty()) {
    content.push(Json::object(
        {{"type", "thinking"}, {"thinking", reply.reasoning}, {"signature", "sig-scripted"}}));
  }
  if (const std::string text = whole_text(reply); !text.empty()) {
    content.push(Json::object({{"type", "text"}, {"text", text}}));
  }
  for (size_t i = 0; i < reply.tools.size(); ++i) {
    content.push(Json::object({{"type", "tool_use"},
                               {"id", call_id(request, reply.tools[i], serial, i)},
                               {"name", reply.tools[i].name},
                               {"input", tool_input(reply.tools[i])}}));
  }
  const Usage usage = usage_of(request, reply);
  return Json::object({{"id", "msg_" + std::to_string(serial)},
                       {"type", "message"},
                       {"role", "assistant"},
                       {"model", model_of(request, reply)},
                       {"content", std::move(content)},
                       {"stop_reason", stop_text(request.api, reply)},
                       {"stop_sequence", nullptr},
                       {"usage", anthropic_usage(usage, usage.output())}});
}

class OpenAiEvents {
 public:
  OpenAiEvents(const ScriptRequest& request, const ScriptReply& reply, i64 serial)
      : request_(request), reply_(reply), serial_(serial) {}

  std::vector<std::string> render() {
    delta(Json::object({{"role", "assistant"}, {"content", ""}}));
    for (const std::string& piece : pieces_of(reply_.reasoning)) {
      delta(Json::object({{"reasoning_content", piece}}));
    }
    const char* field = reply_.stop == "refusal" ? "refusal" : "content";
    for (const std::string& piece : pieces_of(whole_text(reply_))) {
      delta(Json::object({{field, piece}}));
    }
    for (size_t i = 0; i < reply_.tools.size(); ++i) tool(i);
    Json last = chunk(Json::array(
        {Json::object({{"index", 0},
                       {"delta", Json::object()},
                       {"finish_reason",
                        reply_.stop == "refusal" ? "stop" : stop_text(request_.api, reply_)}})}));
    push(last);
    if (request_.stream_usage) {
      Json usage = chunk(Json::array());
      usage.set("usage", openai_usage(usage_of(request_, reply_)));
      push(usage);
    }
    events_.push_back("data: [DONE]\n\n");
    return std::move(events_);
  }

 private:
  Json chunk(Json choices) {
    return Json::object({{"id", "chatcmpl-" + std::to_string(serial_)},
                         {"object", "chat.completion.chunk"},
                         {"created", kCreated},
                         {"model", model_of(request_, reply_)},
                         {"choices", std::move(choices)}});
  }
  void push(const Json& json) { events_.push_back("data: " + json.dump() + "\n\n"); }
  void delta(Json delta) {
    push(chunk(Json::array(
        {Json::object({{"index", 0}, {"delta", std::move(delta)}, {"finish_reason", nullptr}})})));
  }
  void tool_delta(size_t index, Json piece) {
    piece.set("index", static_cast<i64>(index));
    delta(Json::object({{"tool_calls", Json::array({std::move(piece)})}}));
  }
  void tool(size_t index) {
    const ToolCall& call = reply_.tools[index];
    Json first =
        Json::object({{"type", "function"},
                      {"function", Json::object({{"name", call.name}, {"arguments", ""}})}});
    if (const std::string id = call_id(request_, call, serial_, index); !id.empty()) {
      first.set("id", id);
    }
    tool_delta(index, std::move(first));
    for (const std::string& piece : pieces_of(call.arguments)) {
      tool_delta(index, Json::object({{"function", Json::object({{"arguments", piece}})}}));
    }
  }

  const ScriptRequest& request_;
  const ScriptReply& reply_;
  i64 serial_;
  std::vector<std::string> events_;
};

class AnthropicEvents {
 public:
  AnthropicEvents(const ScriptRequest& request, const ScriptReply& reply, i64 serial)
      : request_(request), reply_(reply), serial_(serial) {}

  std::vector<std::string> render() {
    const Usage usage = usage_of(request_, reply_);
    Json message = anthropic_reply(request_, reply_, serial_);
    message.set("content", Json::array());
    message.set("stop_reason", nullptr);
    message.set("usage", anthropic_usage(usage, 1));
    push("message_start", Json::object({{"message", std::move(message)}}));
    push("ping", Json::object());
    if (!reply_.reasoning.empty()) {
      start(Json::object({{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}));
      for (const std::string& piece : pieces_of(reply_.reasoning)) {
        delta(Json::object({{"type", "thinking_delta"}, {"thinking", piece}}));
      }
      delta(Json::object({{"type", "signature_delta"}, {"signature", "sig-scripted"}}));
      stop();
    }
    if (const std::string text = whole_text(reply_); !text.empty()) {
      start(Json::object({{"type", "text"}, {"text", ""}}));
      for (const std::string& piece : pieces_of(text)) {
        delta(Json::object({{"type", "text_delta"}, {"text", piece}}));
      }
      stop();
    }
    for (size_t i = 0; i < reply_.tools.size(); ++i) {
      const ToolCall& call = reply_.tools[i];
      start(Json::object({{"type", "tool_use"},
                          {"id", call_id(request_, call, serial_, i)},
                          {"name", call.name},
                          {"input", Json::object()}}));
      for (const std::string& piece : pieces_of(call.arguments)) {
        delta(Json::object({{"type", "input_json_delta"}, {"partial_json", piece}}));
      }
      stop();
    }
    push("message_delta",
         Json::object({{"delta", Json::object({{"stop_reason", stop_text(request_.api, reply_)},
                                               {"stop_sequence", nullptr}})},
                       {"usage", anthropic_usage(usage, usage.output())}}));
    push("message_stop", Json::object());
    return std::move(events_);
  }

 private:
  void push(const std::string& type, Json body) {
    Json json = Json::object({{"type", type}});
    for (const auto& [key, value] : body.members()) json.set(key, value);
    events_.push_back("event: " + type + "\ndata: " + json.dump() + "\n\n");
  }
  void start(Json block) {
    push("content_block_start",
         Json::object({{"index", index_}, {"content_block", std::move(block)}}));
  }
  void delta(Json delta) {
    push("content_block_delta", Json::object({{"index", index_}, {"delta", std::move(delta)}}));
  }
  void stop() { push("content_block_stop", Json::object({{"index", index_++}})); }

  const ScriptRequest& request_;
  const ScriptReply& reply_;
  i64 serial_;
  i64 index_ = 0;
  std::vector<std::string> events_;
};

const char* anthropic_error_type(int status) {
  switch (status) {
    case 400:
      return "invalid_request_error";
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 529:
      return "overloaded_error";
    default:
      return "api_error";
  }
}

}  // namespace

Json render_reply(const ScriptRequest& request, const ScriptReply& reply, i64 serial) {
  return request.api == ApiKind::kAnthropic ? anthropic_reply(request, reply, serial)
                                            : openai_reply(request, reply, serial);
}

std::vector<std::string> render_stream(const ScriptRequest& request, const ScriptReply& reply,
                                       i64 serial) {
  return request.api == ApiKind::kAnthropic ? AnthropicEvents(request, reply, serial).render()
                                            : OpenAiEvents(request, reply, serial).render();
}

Json render_error(ApiKind api, int status, const std::string& message) {
  if (api == ApiKind::kAnthropic) {
    return Json::object(
        {{"type", "error"},
         {"error", Json::object({{"type", anthropic_error_type(status)}, {"message", message}})}});
  }
  return Json::object({{"error", Json::object({{"message", message},
                                               {"type", "scripted_error"},
                                               {"param", nullptr},
                                               {"code", status}})}});
}

}  // namespace team
