// Attempts' orders and results, and requests to models, as JSON for the channel to a worker. What
// is a function in AttemptSpec (`check`) is not carried; the worker asks through its port instead.
// Thread-safe: pure functions.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/model/model.h"
#include "team/stages/attempt.h"

namespace team {

base::Json to_json(const AttemptSpec& spec);
base::Result<AttemptSpec> attempt_spec_from_json(const base::Json& json);

base::Json to_json(const AttemptResult& result);
base::Result<AttemptResult> attempt_result_from_json(const base::Json& json);

base::Json to_json(const ModelRequest& request);
base::Result<ModelRequest> model_request_from_json(const base::Json& json);

base::Json to_json(const base::Error& error);  // {"code":, "error":}
base::Error error_from_json(const base::Json& json);

}  // namespace team
