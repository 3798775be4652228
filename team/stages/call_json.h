// Model replies and tool results as JSON, for the record of effects. Thread-safe: pure functions.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "team/agent/machine.h"
#include "team/model/model.h"

namespace team {

base::Json to_json(const CallResult& result);
base::Result<CallResult> call_result_from_json(const base::Json& json);

base::Json to_json(const ToolResult& result);
ToolResult tool_result_from_json(const base::Json& json);

// What a request says, for its hash: messages, names of the tools. Not the model: a fork may go on
// with another one.
base::Json describe(const ModelRequest& request);

}  // namespace team
