#include "team/core/evidence.h"

namespace team {

using base::Json;

Json to_json(const Evidence& evidence) {
  Json json = Json::object({{"id", evidence.id},
                            {"gate", evidence.gate},
                            {"tree", evidence.tree},
                            {"command_hash", evidence.command_hash},
                            {"profile_hash", evidence.profile_hash},
                            {"verdict", name_of(evidence.verdict)},
                            {"num", evidence.numerator},
                            {"denom", evidence.denominator},
                            {"list_hash", evidence.list_hash},
                            {"why", evidence.why},
                            {"wall_us", evidence.wall_us},
                            {"cpu_us", evidence.cpu_us},
                            {"rss", evidence.rss_max_bytes},
                            {"host", evidence.host}});
  Json cases = Json::array();
  for (const CaseResult& c : evidence.cases) {
    Json item = Json::object({{"id", c.id}, {"pass", c.pass}});
    if (!c.reason.empty()) item.set("reason", c.reason);
    cases.push(std::move(item));
  }
  json.set("cases", std::move(cases));
  Json metrics = Json::object();
  for (const auto& [name, value] : evidence.metrics) metrics.set(name, value);
  json.set("metrics", std::move(metrics));
  return json;
}

Evidence evidence_from_json(const Json& json) {
  Evidence evidence;
  evidence.id = json["id"].as_string();
  evidence.gate = json["gate"].as_string();
  evidence.tree = json["tree"].as_string();
  evidence.command_hash = json["command_hash"].as_string();
  evidence.profile_hash = json["profile_hash"].as_string();
  evidence.verdict = parse_verdict(json["verdict"].as_string()).value_or(Verdict::kError);
  evidence.numerator = json["num"].as_int();
  evidence.denominator = json["denom"].as_int();
  evidence.list_hash = json["list_hash"].as_string();
  evidence.why = json["why"].as_string();
  evidence.wall_us = json["wall_us"].as_int();
  evidence.cpu_us = json["cpu_us"].as_int();
  evidence.rss_max_bytes = json["rss"].as_int();
  evidence.host = json["host"].as_string();
  for (const Json& item : json["cases"].items()) {
    evidence.cases.push_back(
        {item["id"].as_string(), item["pass"].as_bool(), item["reason"].as_string()});
  }
  for (const auto& [name, value] : json["metrics"].members()) {
    evidence.metrics.emplace_back(name, value.as_double());
  }
  return evidence;
}

std::string feedback_for_agent(const Evidence& evidence, Visibility visibility) {
  std::string counts =
      std::to_string(evidence.numerator) + " of " + std::to_string(evidence.denominator);
  std::string text = std::string("gate ") + evidence.gate + ": " + name_of(evidence.verdict) +
                     ", " + counts + " cases pass";
  if (visibility == Visibility::kHeldOut) return text + " (held out: counts only)\n";
  text += evidence.why.empty() ? "\n" : "; " + evidence.why + "\n";
  for (const CaseResult& c : evidence.cases) {
    if (!c.pass) text += "  not ok " + c.id + (c.reason.empty() ? "" : ": " + c.reason) + "\n";
  }
  return text;
}

}  // namespace team
