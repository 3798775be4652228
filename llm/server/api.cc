#include "llm/server/api.h"

#include "base/random.h"
#include "llm/engine/json_schema.h"
#include "llm/tokenizer/unicode.h"

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {

Error wrong(std::string_view field, std::string_view expected) {
  return Error(ErrorCode::kInvalidArgument,
               "'" + std::string(field) + "' must be " + std::string(expected));
}

// Reads an optional number in [low, high].
Status read_number(const Json& body, const char* field, f64 low, f64 high, f32* out) {
  const Json& value = body[field];
  if (value.is_null()) return {};
  const f64 number = value.as_double();
  if (!value.is_number() || !(number >= low && number <= high)) {
    return wrong(field, "a number from " + Json(low).dump() + " to " + Json(high).dump());
  }
  *out = static_cast<f32>(number);
  return {};
}

Status read_integer(const Json& body, const char* field, i64 low, i64 high, i32* out) {
  const Json& value = body[field];
  if (value.is_null()) return {};
  if (!value.is_integer() || value.as_int() < low || value.as_int() > high) {
    return wrong(field,
                 "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  *out = static_cast<i32>(value.as_int());
  return {};
}

Status read_sampling(const Json& body, SamplingParams* out) {
  TRY(read_number(body, "temperature", 0, 5, &out->temperature));
  TRY(read_number(body, "top_p", 0, 1, &out->top_p));
  TRY(read_number(body, "min_p", 0, 1, &out->min_p));
  TRY(read_integer(body, "top_k", -1, 1 << 30, &out->top_k));
  TRY(read_number(body, "presence_penalty", -2, 2, &out->presence_penalty));
  TRY(read_number(body, "frequency_penalty", -2, 2, &out->frequency_penalty));
  TRY(read_number(body, "repetition_penalty", 0.01, 10, &out->repetition_penalty));
  const Json& seed = body["seed"];
  if (!seed.is_null() && !seed.is_integer()) return wrong("seed", "a whole number");
  out->seed = seed.is_null() ? base::random_seed() : static_cast<u64>(seed.as_int());
  for (const auto& [key, value] : body["logit_bias"].members()) {
    char* end = nullptr;
    const long id = std::strtol(key.c_str(), &end, 10);
    if (key.empty() || *end != '\0' || !value.is_number())
      return wrong("logit_bias", "an object of token ids and numbers");
    out->logit_bias.emplace_back(static_cast<i32>(id), static_cast<f32>(value.as_double()));
  }
  return {};
}

Status read_common(const Json& body, ApiRequest* out) {
  if (!body.is_object())
    return Error(ErrorCode::kInvalidArgument, "the body must be a JSON object");
  TRY(read_sampling(body, &out->generate.sampling));
  i32 limit = 0;
  TRY(read_integer(body, "max_tokens", 1, 1 << 30, &limit));
  TRY(read_integer(body, "max_completion_tokens", 1, 1 << 30, &limit));
  out->generate.max_tokens = limit > 0 ? limit : 1 << 30;  // to the end of the context
  TRY(read_integer(body, "n", 1, 16, &out->choices));
  const Json& stop = body["stop"];
  if (stop.is_string()) out->generate.stops.push_back(stop.as_string());
  for (const Json& one : stop.items()) {
    if (!one.is_string()) return wrong("stop", "a string or a list of strings");
    out->generate.stops.push_back(one.as_string());
  }
  if (out->generate.stops.size() > 16) return wrong("stop", "at most 16 strings");
  out->stream = body["stream"].as_bool();
  out->include_usage = body["stream_options"]["include_usage"].as_bool();
  out->generate.ignore_stop_tokens = body["ignore_eos"].as_bool();
  return {};
}

// {"name": NAME, "arguments": ...} between the markers of tool calls.
CallChoice call_choice(const Json& function) {
  Json schema = function["parameters"];
  if (!schema.is_object()) schema = Json::object({{"type", "object"}});
  return {"<tool_call>{\"name\": " + base::json_quote(function["name"].as_string()) +
              ", \"arguments\": ",
          schema, "}</tool_call>"};
}

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  return sanitize_utf8(tokenizer.bytes_of(id));
}

Json token_bytes(const Tokenizer& tokenizer, TokenId id) {
  Json bytes = Json::array();
  for (char c : tokenizer.bytes_of(id)) bytes.push(static_cast<i64>(static_cast<u8>(c)));
  return bytes;
}

}  // namespace

Result<ChatRequest> parse_chat_request(const Json& body) {
  ChatRequest request;
  TRY(read_common(body, &request.api));
  request.messages = TRY(parse_messages(body["messages"]));
  request.options.tools = body["tools"];
  if (!request.options.tools.is_null() && !request.options.tools.is_array())
    return wrong("tools", "a list");
  for (const Json& tool : request.options.tools.items()) {
    if (tool["function"]["name"].as_string().empty())
      return wrong("tools", "a list of functions with names");
  }
  request.tool_choice = body["tool_choice"];
  if (request.tool_choice.as_string() == "none") request.options.tools = Json();
  const Json& kwargs = body["chat_template_kwargs"];
  request.options.thinking = kwargs["enable_thinking"].as_bool(true);
  request.options.clear_thinking = kwargs["clear_thinking"].as_bool(true);
  request.options.reasoning_effort =
      body["reasoning_effort"].as_string_or(kwargs["reasoning_effort"].as_string());
  if (request.options.reasoning_effort == "none") request.options.thinking = false;
  request.response_format = body["response_format"];
  request.api.want_logprobs = body["logprobs"].as_bool();
  if (request.api.want_logprobs) {
    i32 top = 0;
    TRY(read_integer(body, "top_logprobs", 0, 20, &top));
    request.api.generate.logprobs = top;
  }
  return request;
}

Result<CompletionRequest> parse_completion_request(const Json& body) {
  CompletionRequest request;
  TRY(read_common(body, &request.api));
  if (body["max_tokens"].is_null()) request.api.generate.max_tokens = 16;
  request.echo = body["echo"].as_bool();
  i32 top = -1;
  TRY(read_integer(body, "logprobs", 0, 20, &top));
  request.api.want_logprobs = top >= 0;
  request.api.generate.logprobs = top;
  const Json& prompt = body["prompt"];
  auto ids_of = [](const Json& list) {
    std::vector<TokenId> ids;
    for (const Json& id : list.items()) ids.push_back(static_cast<TokenId>(id.as_int(-1)));
    return ids;
  };
  if (prompt.is_string()) {
    request.prompts.push_back(prompt.as_string());
  } else if (prompt.is_array() && prompt[0].is_integer()) {
    request.token_prompts.push_back(ids_of(prompt));
  } else {
    for (const Json& one : prompt.items()) {
      if (one.is_string()) {
        request.prompts.push_back(one.as_string());
      } else if (one.is_array()) {
        request.token_prompts.push_back(ids_of(one));
      } else {
        return wrong("prompt", "a string, a list of strings or token ids");
      }
    }
  }
  if (request.prompts.empty() && request.token_prompts.empty())
    return wrong("prompt", "a string, a list of strings or token ids");
  return request;
}

Result<Constraint> constraint_of(const ChatRequest& request) {
  Constraint result;
  const Json& tools = request.options.tools;
  const std::string& choice = request.tool_choice.as_string();
  const std::string& named = request.tool_choice["function"]["name"].as_string();
  if (tools.size() > 0 && (choice == "required" || !named.empty())) {
    std::vector<CallChoice> choices;
    for (const Json& tool : tools.items()) {
      if (named.empty() || tool["function"]["name"].as_string() == named)
        choices.push_back(call_choice(tool["function"]));
    }
    if (choices.empty()) return wrong("tool_choice", "the name of one of the tools");
    result.grammar = TRY(grammar_for_calls(choices));
    result.present = result.forces_call = true;
    return result;
  }
  const std::string& type = request.response_format["type"].as_string();
  if (type.empty() || type == "text") return result;
  result.present = true;
  if (type == "json_object") {
    result.grammar = grammar_for_json_object();
  } else if (type == "json_schema") {
    const Json& schema = request.response_format["json_schema"]["schema"];
    if (!schema.is_object()) return wrong("response_format.json_schema.schema", "an object");
    result.grammar = TRY(grammar_for_schema(schema));
  } else {
    return wrong("response_format.type", "text, json_object or json_schema");
  }
  return result;
}

Json usage_json(const Usage& usage) {
  return Json::object(
      {{"prompt_tokens", usage.prompt_tokens},
       {"completion_tokens", usage.completion_tokens},
       {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
       {"prompt_tokens_details", Json::object({{"cached_tokens", usage.cached_tokens}})},
       {"completion_tokens_details",
        Json::object(
            {{"drafted_tokens", usage.drafted_tokens},
             {"accepted_prediction_tokens", usage.accepted_tokens},
             {"rejected_prediction_tokens", usage.drafted_tokens - usage.accepted_tokens}})}});
}

Json error_json(std::string_view message, std::string_view type, std::string_view code) {
  return Json::object(
      {{"error",
        Json::object({{"message", message}, {"type", type}, {"param", Json()}, {"code", code}})}});
}

Json tool_calls_json(const std::vector<ToolCall>& calls, size_t first_index, bool streamed) {
  Json list = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    Json call = Json::object();
    if (streamed) call.set("index", static_cast<i64>(first_index + i));
    call.set("id", calls[i].id);
    call.set("type", "function");
    call.set("function",
             Json::object({{"name", calls[i].name}, {"arguments", calls[i].arguments}}));
    list.push(std::move(call));
  }
  return list;
}

Json chat_logprobs_json(const std::vector<TokenReport>& tokens, const Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const TokenReport& token : tokens) {
    Json top = Json::array();
    for (const Sampler::Candidate& c : token.top) {
      top.push(Json::object({{"token", token_text(tokenizer, c.token)},
                             {"logprob", static_cast<f64>(c.logprob)},
                             {"bytes", token_bytes(tokenizer, c.token)}}));
    }
    content.push(Json::object({{"token", token_text(tokenizer, token.token)},
                               {"logprob", static_cast<f64>(token.logprob)},
                               {"bytes", token_bytes(tokenizer, token.token)},
                               {"top_logprobs", std::move(top)}}));
  }
  return Json::object({{"content", std::move(content)}});
}

Json completion_logprobs_json(const std::vector<TokenReport>& tokens, const Tokenizer& tokenizer) {
  Json texts = Json::array();
  Json logprobs = Json::array();
  Json tops = Json::array();
  for (const TokenReport& token : tokens) {
    texts.push(token_text(tokenizer, token.token));
    logprobs.push(static_cast<f64>(token.logprob));
    Json top = Json::object();
    for (const Sampler::Candidate& c : token.top)
      top.set(token_text(tokenizer, c.token), static_cast<f64>(c.logprob));
    tops.push(std::move(top));
  }
  return Json::object({{"tokens", std::move(texts)},
                       {"token_logprobs", std::move(logprobs)},
                       {"top_logprobs", std::move(tops)}});
}

int http_status_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kLimit:
      return 429;
    case ErrorCode::kUnsupported:
      return 400;
    case ErrorCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

}  // namespace llm
