// The tools by name: what a model is told about each and which arguments it takes. Thread-safe.
#pragma once

#include "base/json.h"
#include "team/model/model.h"

#include <string>
#include <vector>

namespace team {

struct ToolArgument {
  const char* name;
  const char* type;  // "string" or "integer"
  bool required;
  const char* description;
};

struct ToolRow {
  const char* name;
  bool changes_workspace;
  const char* description;
  std::vector<ToolArgument> arguments;
};

// Null for an unknown name.
const ToolRow* find_tool(const std::string& name);
ToolSpec spec_of(const ToolRow& row);
// What is wrong with the arguments, told to the model, or "".
std::string check_arguments(const ToolRow& row, const base::Json& arguments);

}  // namespace team
