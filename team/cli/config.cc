#include "team/cli/config.h"

#include "base/files.h"

#include <cmath>
#include <limits>
#include <utility>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;

constexpr const char* kDefaultPath = "fleet.json";
constexpr f64 kNusdPerTokenOfUsdPerMillion = 1'000;  // 1 USD / 10^6 tokens = 1000 nano-USD a token
constexpr f64 kNusdPerUsd = 1e9;

Error bad(const std::string& message) {
  return Error(ErrorCode::kInvalidArgument, message);
}

base::Result<i64> whole(const std::string& key, const Json& value, i64 low, i64 high) {
  if (!value.is_integer() || value.as_int() < low || value.as_int() > high) {
    return bad("'" + key + "' must be a whole number from " + std::to_string(low) + " to " +
               std::to_string(high));
  }
  return value.as_int();
}

base::Result<std::string> text(const std::string& key, const Json& value) {
  if (!value.is_string() || value.as_string().empty()) return bad("'" + key + "' must be a text");
  return value.as_string();
}

base::Status apply_key(RunRequest& request, const std::string& key, const Json& value) {
  const bool recorded = !request.script.empty() || !request.cassette.empty();
  if (key == "url" || key == "model" || key == "api") {
    const std::string said = TRY(text(key, value));
    if (key == "api" && said != "openai" && said != "anthropic") {
      return bad("'api' is openai or anthropic, not '" + said + "'");
    }
    if (recorded) return {};  // a recorded team brings its own words
    (key == "url" ? request.url : key == "model" ? request.model : request.api) = said;
    request.backend = "live";
  } else if (key == "other_model") {
    if (!recorded) request.other_model = TRY(text(key, value));
  } else if (key == "prices") {
    if (!value.is_object()) return bad("'prices' must be an object: model to price");
    for (const auto& [model, price] : value.members()) {
      request.prices[model] = TRY(price_from_json(model, price));
    }
  } else if (key == "budget_usd") {
    if (!value.is_number() || value.as_double() <= 0 || value.as_double() > 1e9) {
      return bad("'budget_usd' must be a number above 0");
    }
    request.budget_nusd = std::llround(value.as_double() * kNusdPerUsd);
  } else if (key == "agents") {
    request.agents = static_cast<int>(TRY(whole(key, value, 1, 64)));
  } else if (key == "port") {
    request.port = static_cast<int>(TRY(whole(key, value, 1, 65'535)));
  } else if (key == "lease_ms") {
    request.lease_ms = TRY(whole(key, value, 100, 3'600'000));
  } else {
    return bad("unknown key '" + key +
               "'; the keys are url, model, api, other_model, prices, budget_usd, agents, port and "
               "lease_ms");
  }
  return {};
}

bool is_on_this_machine(const std::string& url) {
  size_t at = url.find("://");
  const std::string host = url.substr(at == std::string::npos ? 0 : at + 3);
  for (const char* local : {"127.", "localhost", "[::1]"}) {
    if (host.rfind(local, 0) == 0) return true;
  }
  return false;
}

}  // namespace

base::Result<Price> price_from_json(const std::string& model, const Json& json) {
  if (json.is_string() && json.as_string() == "free") return Price{.id = "free"};
  const std::string where = "the price of " + model;
  if (!json.is_object()) {
    return bad(where + " must be \"free\" or {\"input\": USD, \"output\": USD} per million tokens");
  }
  Price price;
  std::string id;
  bool has_input = false, has_output = false, has_cached = false, has_written = false;
  for (const auto& [key, value] : json.members()) {
    if (!value.is_number() || value.as_double() < 0 || value.as_double() > 1e6) {
      return bad(where + ": '" + key + "' must be US dollars per million tokens");
    }
    const i64 nusd = std::llround(value.as_double() * kNusdPerTokenOfUsdPerMillion);
    if (key == "input") {
      price.in_nusd = nusd, has_input = true;
    } else if (key == "cached") {
      price.cached_nusd = nusd, has_cached = true;
    } else if (key == "written") {
      price.write_nusd = nusd, has_written = true;
    } else if (key == "output") {
      price.out_nusd = nusd, has_output = true;
    } else {
      return bad(where + " has an unknown key '" + key +
                 "'; the keys are input, cached, written and output");
    }
    id += (id.empty() ? "" : ", ") + key + " " + value.dump();
  }
  if (!has_input || !has_output) return bad(where + " needs input and output");
  if (!has_cached) price.cached_nusd = price.in_nusd;
  if (!has_written) price.write_nusd = price.in_nusd;
  price.id = model + ": " + id + " USD per million tokens";
  return price;
}

base::Status apply_config(RunRequest& request, const std::string& path) {
  const std::string file = path.empty() ? kDefaultPath : path;
  if (path.empty() && !base::file_exists(file)) return {};
  auto content = base::read_file(file);
  if (!content.ok()) return bad("there is no configuration at " + file);
  auto json = Json::parse(*content);
  if (!json.ok()) return std::move(json).error().with(file);
  if (!json->is_object()) return bad(file + " must be a JSON object");
  for (const auto& [key, value] : json->members()) {
    base::Status applied = apply_key(request, key, value);
    if (!applied.ok()) return base::Error(applied.error()).with(file);
  }
  return {};
}

base::Status settle_price(RunRequest& request) {
  if (request.url.empty() || !request.script.empty()) return {};
  auto known = request.prices.find(request.model);
  if (known != request.prices.end()) {
    request.price = known->second;
  } else if (is_on_this_machine(request.url)) {
    request.price = Price{.id = "free"};
  } else {
    return bad("the price of model " + request.model +
               " is not known, so its cost could not be held to a budget; write fleet.json here: "
               "{\"prices\": {\"" +
               request.model +
               "\": {\"input\": 0.60, \"output\": 2.20}}} with your provider's US dollars per "
               "million tokens, or \"free\"");
  }
  return {};
}

}  // namespace team
