#include "team/ops/triggers.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace team {
namespace {

struct Metric {
  const char* name;
  const char* unit;
};
constexpr Metric kMetrics[] = {
    {"p50", "ms"},   {"p99", "ms"},    {"p999", "ms"},          {"restart", "ms"}, {"memory", "MB"},
    {"errors", "%"}, {"restarts", ""}, {"answers", "a second"}, {"cost", "USD"},   {"budget", "%"}};

// How many base units one of `unit` is; 0 when it does not measure the same thing.
f64 factor(const std::string& base, const std::string& unit) {
  if (unit.empty() || unit == base) return 1;
  if (base == "ms") return unit == "us" ? 1e-3 : unit == "s" ? 1e3 : 0;
  if (base == "MB") return unit == "kB" ? 1e-3 : unit == "GB" ? 1e3 : 0;
  return 0;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string number(f64 value) {
  char text[40];
  std::snprintf(text, sizeof text, value != 0 && value < 1 ? "%.3g" : "%.4g", value);
  return text;
}

}  // namespace

std::optional<Trigger> parse_trigger(const std::string& text) {
  std::vector<std::string> words = words_of(text);
  if (words.size() < 3 || (words[1] != "above" && words[1] != "below")) return std::nullopt;
  Trigger trigger;
  trigger.above = words[1] == "above";
  for (const Metric& metric : kMetrics) {
    if (words[0] != metric.name) continue;
    trigger.metric = metric.name;
    trigger.unit = metric.unit;
  }
  if (trigger.metric.empty()) return std::nullopt;
  if (trigger.metric == "cost" && words[2] == "budget" && words.size() == 3) {
    return Trigger{"budget", trigger.above, 100, "%"};
  }
  char* end = nullptr;
  trigger.limit = std::strtod(words[2].c_str(), &end);
  std::string unit = end;  // "5ms" is as good as "5 ms"
  if (end == words[2].c_str()) return std::nullopt;
  for (size_t i = 3; i < words.size(); ++i) unit += (unit.empty() ? "" : " ") + words[i];
  const f64 times = factor(trigger.unit, unit);
  if (times == 0) return std::nullopt;
  trigger.limit *= times;
  return trigger;
}

std::string fired(const Trigger& trigger, const Measured& measured) {
  auto at = measured.find(trigger.metric);
  if (at == measured.end()) return "";
  const bool fires = trigger.above ? at->second > trigger.limit : at->second < trigger.limit;
  if (!fires) return "";
  const std::string unit = trigger.unit.empty() ? "" : " " + trigger.unit;
  return trigger.metric + " was " + number(at->second) + unit + ", " +
         (trigger.above ? "above " : "below ") + number(trigger.limit) + unit;
}

}  // namespace team
