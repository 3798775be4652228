// fleet.json, the settings of a person for new runs; read from the working folder, or from the file
// named with --config. Unknown keys are errors. Prices are US dollars per million tokens, as
// providers print them:
//
//   {"url": "https://host/v1", "model": "glm-5.2", "api": "openai", "other_model": "qwen3",
//    "prices": {"glm-5.2": {"input": 0.60, "cached": 0.11, "output": 2.20}, "qwen3": "free"},
//    "budget_usd": 20, "agents": 4, "port": 7379, "lease_ms": 20000}
//
// The environment (FLEET_MODEL_URL, FLEET_MODEL, FLEET_MODEL_API) wins over it. Errors:
// kInvalidArgument naming file and key.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/stages/run.h"

#include <string>

namespace team {

// `path` "": fleet.json of the working folder, if there is one.
base::Status apply_config(RunRequest& request, const std::string& path);

// {"input":, "cached":, "written":, "output":} or "free". What is not named costs as input does.
base::Result<Price> price_from_json(const std::string& model, const base::Json& json);

// The price of a live run's model: from the configuration, or none because the model runs on this
// machine. Errors: kInvalidArgument that says what to write where; money must not be spent
// uncounted.
base::Status settle_price(RunRequest& request);

}  // namespace team
