#include "team/stages/attempt_json.h"

#include <utility>

namespace team {
namespace {

using base::Json;

Json list(const std::vector<std::string>& items) {
  return Json(Json::Array(items.begin(), items.end()));
}

std::vector<std::string> strings(const Json& json) {
  std::vector<std::string> out;
  for (const Json& item : json.items()) out.push_back(item.as_string());
  return out;
}

}  // namespace

Json to_json(const AttemptSpec& spec) {
  Json mounts = Json::array();
  for (const SandboxMount& mount : spec.mounts) {
    mounts.push(Json::object(
        {{"host", mount.host}, {"inside", mount.inside}, {"writable", mount.writable}}));
  }
  return Json::object({{"id", spec.id},
                       {"task", spec.task},
                       {"number", spec.number},
                       {"role", name_of(spec.role)},
                       {"stage", name_of(spec.stage)},
                       {"brief", spec.brief},
                       {"commit", spec.commit},
                       {"folder", spec.folder},
                       {"write_globs", list(spec.write_globs)},
                       {"read_only_globs", list(spec.read_only_globs)},
                       {"mounts", std::move(mounts)},
                       {"continue_from", spec.continue_from},
                       {"has_check", spec.check != nullptr}});
}

base::Result<AttemptSpec> attempt_spec_from_json(const Json& json) {
  AttemptSpec spec;
  spec.id = json["id"].as_string();
  spec.task = json["task"].as_string();
  spec.number = static_cast<int>(json["number"].as_int());
  spec.role = TRY(parse_role(json["role"].as_string()));
  spec.stage = TRY(parse_stage(json["stage"].as_string()));
  spec.brief = json["brief"].as_string();
  spec.commit = json["commit"].as_string();
  spec.folder = json["folder"].as_string();
  spec.write_globs = strings(json["write_globs"]);
  spec.read_only_globs = strings(json["read_only_globs"]);
  for (const Json& mount : json["mounts"].items()) {
    spec.mounts.push_back(
        {mount["host"].as_string(), mount["inside"].as_string(), mount["writable"].as_bool()});
  }
  spec.continue_from = json["continue_from"];
  return spec;
}

Json to_json(const AttemptResult& result) {
  return Json::object({{"end", name_of(result.end)},
                       {"text", result.text},
                       {"workspace", result.workspace},
                       {"state", result.state},
                       {"turns", result.turns}});
}

base::Result<AttemptResult> attempt_result_from_json(const Json& json) {
  AttemptResult result;
  result.end = TRY(parse_attempt_end(json["end"].as_string()));
  result.text = json["text"].as_string();
  result.workspace = json["workspace"].as_string();
  result.state = json["state"];
  result.turns = static_cast<int>(json["turns"].as_int());
  return result;
}

Json to_json(const ModelRequest& request) {
  Json messages = Json::array();
  for (const Message& message : request.messages) messages.push(message.to_json());
  Json tools = Json::array();
  for (const ToolSpec& tool : request.tools) {
    tools.push(Json::object(
        {{"name", tool.name}, {"description", tool.description}, {"parameters", tool.parameters}}));
  }
  Json json = Json::object({{"model", request.model},
                            {"messages", std::move(messages)},
                            {"tools", std::move(tools)},
                            {"tool_required", request.tool_required},
                            {"output_tokens_max", request.output_tokens_max},
                            {"effort", request.effort},
                            {"stream", request.stream}});
  if (request.temperature) json.set("temperature", *request.temperature);
  return json;
}

base::Result<ModelRequest> model_request_from_json(const Json& json) {
  ModelRequest request;
  request.model = json["model"].as_string();
  for (const Json& message : json["messages"].items()) {
    request.messages.push_back(TRY(Message::from_json(message)));
  }
  for (const Json& tool : json["tools"].items()) {
    request.tools.push_back(
        {tool["name"].as_string(), tool["description"].as_string(), tool["parameters"]});
  }
  request.tool_required = json["tool_required"].as_bool();
  request.output_tokens_max = json["output_tokens_max"].as_int();
  request.effort = json["effort"].as_string();
  request.stream = json["stream"].as_bool(true);
  if (json.has("temperature")) request.temperature = json["temperature"].as_double();
  return request;
}

Json to_json(const base::Error& error) {
  return Json::object({{"code", static_cast<i64>(error.code())}, {"error", error.message()}});
}

base::Error error_from_json(const Json& json) {
  return base::Error(static_cast<base::ErrorCode>(json["code"].as_int()),
                     json["error"].as_string());
}

}  // namespace team
