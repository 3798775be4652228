#include "team/stages/call_json.h"

namespace team {

using base::Json;

Json to_json(const CallResult& result) {
  Json tries = Json::array();
  for (const CallTry& t : result.tries) {
    tries.push(Json::object({{"outcome", static_cast<int>(t.outcome)},
                             {"status", t.http_status},
                             {"billed", t.maybe_billed},
                             {"usage", to_json(t.usage)},
                             {"ttft_ms", t.first_token_ms},
                             {"total_ms", t.total_ms},
                             {"waited_ms", t.waited_ms},
                             {"error", t.error}}));
  }
  Json warnings = Json::array();
  for (const std::string& warning : result.reply.warnings) warnings.push(warning);
  return Json::object({{"outcome", static_cast<int>(result.outcome)},
                       {"error", result.error},
                       {"tries", std::move(tries)},
                       {"reply_id", result.reply.id},
                       {"model", result.reply.model},
                       {"message", result.reply.message.to_json()},
                       {"stop", static_cast<int>(result.reply.stop)},
                       {"stop_text", result.reply.stop_text},
                       {"usage", to_json(result.reply.usage)},
                       {"warnings", std::move(warnings)}});
}

base::Result<CallResult> call_result_from_json(const Json& json) {
  CallResult result;
  result.outcome = static_cast<CallOutcome>(json["outcome"].as_int());
  result.error = json["error"].as_string();
  for (const Json& item : json["tries"].items()) {
    CallTry t;
    t.outcome = static_cast<CallOutcome>(item["outcome"].as_int());
    t.http_status = static_cast<int>(item["status"].as_int());
    t.maybe_billed = item["billed"].as_bool();
    t.usage = usage_from_json(item["usage"]);
    t.first_token_ms = item["ttft_ms"].as_int();
    t.total_ms = item["total_ms"].as_int();
    t.waited_ms = item["waited_ms"].as_int();
    t.error = item["error"].as_string();
    result.tries.push_back(std::move(t));
  }
  result.reply.id = json["reply_id"].as_string();
  result.reply.model = json["model"].as_string();
  result.reply.message = TRY(Message::from_json(json["message"]));
  result.reply.stop = static_cast<StopReason>(json["stop"].as_int());
  result.reply.stop_text = json["stop_text"].as_string();
  result.reply.usage = usage_from_json(json["usage"]);
  for (const Json& item : json["warnings"].items()) {
    result.reply.warnings.push_back(item.as_string());
  }
  return result;
}

Json to_json(const ToolResult& result) {
  Json json = Json::object({{"text", result.text},
                            {"is_error", result.is_error},
                            {"mutated", result.mutated},
                            {"tree", result.tree_hash}});
  if (result.end) json.set("end", name_of(*result.end));
  if (!result.full_log.empty()) json.set("full_log", result.full_log);
  return json;
}

ToolResult tool_result_from_json(const Json& json) {
  ToolResult result;
  result.text = json["text"].as_string();
  result.is_error = json["is_error"].as_bool();
  result.mutated = json["mutated"].as_bool();
  result.tree_hash = json["tree"].as_string();
  result.full_log = json["full_log"].as_string();
  if (json.has("end")) {
    auto end = parse_attempt_end(json["end"].as_string());
    if (end.ok()) result.end = *end;
  }
  return result;
}

Json describe(const ModelRequest& request) {
  Json messages = Json::array();
  for (const Message& message : request.messages) messages.push(message.to_json());
  Json tools = Json::array();
  for (const ToolSpec& tool : request.tools) tools.push(tool.name);
  return Json::object({{"messages", std::move(messages)},
                       {"tools", std::move(tools)},
                       {"output_tokens_max", request.output_tokens_max}});
}

}  // namespace team
