#include "team/core/gate_spec.h"

#include <array>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;

constexpr std::array<const char*, 11> kKinds = {"build",    "unit",   "black_box", "differential",
                                                "property", "fuzz",   "sanitizer", "performance",
                                                "fault",    "formal", "lint"};

Error bad(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

base::Status check_keys(const Json& json, std::string_view where,
                        std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : json.members()) {
    bool found = false;
    for (std::string_view name : known) found = found || name == key;
    if (!found) {
      return bad("unknown key '" + key + "' in " + std::string(where) + "; remove or correct it");
    }
  }
  return {};
}

Result<std::vector<std::string>> strings(const Json& json, std::string_view key) {
  std::vector<std::string> out;
  const Json& list = json[key];
  if (list.is_null()) return out;
  if (!list.is_array()) return bad("'" + std::string(key) + "' must be a list of strings");
  for (const Json& item : list.items()) {
    if (!item.is_string()) return bad("'" + std::string(key) + "' must be a list of strings");
    out.push_back(item.as_string());
  }
  return out;
}

Json to_array(const std::vector<std::string>& list) {
  Json::Array items(list.begin(), list.end());
  return Json(std::move(items));
}

Result<GateLimits> limits_from(const Json& json) {
  TRY(check_keys(json, "limits", {"wall_ms", "memory_bytes", "processes", "file_bytes"}));
  GateLimits limits;
  limits.wall_ms = json["wall_ms"].as_int(limits.wall_ms);
  limits.memory_bytes = json["memory_bytes"].as_int(limits.memory_bytes);
  limits.processes = json["processes"].as_int(limits.processes);
  limits.file_bytes = json["file_bytes"].as_int(limits.file_bytes);
  if (limits.wall_ms <= 0 || limits.memory_bytes <= 0 || limits.processes <= 0 ||
      limits.file_bytes <= 0) {
    return bad("limits of a gate must be above zero");
  }
  return limits;
}

Result<GateService> service_from(const Json& json) {
  TRY(check_keys(json, "service", {"argv", "ready_path", "ready_timeout_ms", "manual_start"}));
  GateService service;
  service.argv = TRY(strings(json, "argv"));
  if (service.argv.empty()) return bad("'service' needs an 'argv'");
  service.ready_path = json["ready_path"].as_string();
  service.ready_timeout_ms = json["ready_timeout_ms"].as_int(service.ready_timeout_ms);
  service.manual_start = json["manual_start"].as_bool();
  return service;
}

}  // namespace

const char* name_of(GateKind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

Result<GateKind> parse_gate_kind(std::string_view text) {
  std::string known;
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i] == text) return static_cast<GateKind>(i);
    known += (i ? ", " : "") + std::string(kKinds[i]);
  }
  return bad("'" + std::string(text) + "' is not a gate kind; use one of " + known);
}

Result<GateSpec> gate_from_json(const Json& json) {
  if (!json.is_object()) return bad("a gate file must hold one JSON object");
  TRY(check_keys(json, "the gate",
                 {"id", "title", "kind", "criteria", "visibility", "trigger", "argv", "cwd",
                  "writable", "service", "parser", "manifest", "limits"}));
  GateSpec gate;
  gate.id = json["id"].as_string();
  if (gate.id.empty()) return bad("a gate needs an 'id'");
  gate.title = json["title"].as_string_or(gate.id);
  gate.kind = TRY(parse_gate_kind(json["kind"].as_string()));
  gate.criteria = TRY(strings(json, "criteria"));
  gate.visibility = TRY(parse_visibility(json["visibility"].as_string_or("visible")));
  gate.trigger = json["trigger"].as_string_or("merge");
  gate.argv = TRY(strings(json, "argv"));
  if (gate.argv.empty()) return bad("gate '" + gate.id + "' needs an 'argv'");
  gate.cwd = json["cwd"].as_string();
  gate.writable = json["writable"].as_bool();
  if (json.has("service")) gate.service = TRY(service_from(json["service"]));
  std::string parser = json["parser"].as_string_or("tap");
  if (parser != "tap" && parser != "exit") {
    return bad("'" + parser + "' is not a parser; use tap or exit");
  }
  gate.parser = parser == "tap" ? GateParser::kTap : GateParser::kExit;
  gate.manifest = TRY(strings(json, "manifest"));
  if (json.has("limits")) gate.limits = TRY(limits_from(json["limits"]));
  return gate;
}

Json to_json(const GateSpec& gate) {
  Json json = Json::object({{"id", gate.id},
                            {"title", gate.title},
                            {"kind", name_of(gate.kind)},
                            {"criteria", to_array(gate.criteria)},
                            {"visibility", name_of(gate.visibility)},
                            {"trigger", gate.trigger},
                            {"argv", to_array(gate.argv)},
                            {"cwd", gate.cwd},
                            {"writable", gate.writable},
                            {"parser", gate.parser == GateParser::kTap ? "tap" : "exit"},
                            {"manifest", to_array(gate.manifest)}});
  if (!gate.service.argv.empty()) {
    json.set("service", Json::object({{"argv", to_array(gate.service.argv)},
                                      {"ready_path", gate.service.ready_path},
                                      {"ready_timeout_ms", gate.service.ready_timeout_ms},
                                      {"manual_start", gate.service.manual_start}}));
  }
  json.set("limits", Json::object({{"wall_ms", gate.limits.wall_ms},
                                   {"memory_bytes", gate.limits.memory_bytes},
                                   {"processes", gate.limits.processes},
                                   {"file_bytes", gate.limits.file_bytes}}));
  return json;
}

}  // namespace team
