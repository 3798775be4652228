#include "team/agent/tool_table.h"

namespace team {
namespace {

const std::vector<ToolRow>& table() {
  static const auto* const rows = new std::vector<ToolRow>{
      {"read",
       false,
       "Shows a file with line numbers.",
       {{"path", "string", true, "relative to the workspace"},
        {"from", "integer", false, "first line, 1-based"},
        {"to", "integer", false, "last line"}}},
      {"list",
       false,
       "Lists the files of the workspace or of one folder.",
       {{"path", "string", false, "a folder; absent: all"}}},
      {"search",
       false,
       "Searches all files for a regular expression (RE2), line by line.",
       {{"pattern", "string", true, "the expression"},
        {"glob", "string", false, "only files that match, such as src/**"}}},
      {"symbols",
       false,
       "Lists the definitions in the source files, with line numbers.",
       {{"path", "string", false, "a file or folder; absent: all"}}},
      {"patch",
       true,
       "Changes files. Takes '*** Begin Patch' envelopes, unified diffs and SEARCH/REPLACE blocks. "
       "All "
       "of a patch is applied or none.",
       {{"patch", "string", true, "the patch text"}}},
      {"write",
       true,
       "Writes a whole file, replacing what was there.",
       {{"path", "string", true, "relative to the workspace"},
        {"content", "string", true, "the whole content"}}},
      {"run",
       true,
       "Runs a bash command in the workspace, in a sandbox without network.",
       {{"command", "string", true, "the command"},
        {"stdin", "string", false, "fed to it"},
        {"timeout_s", "integer", false, "seconds, at most 600"}}},
      {"start",
       true,
       "Starts a bash command in the background; it shares loopback with run.",
       {{"command", "string", true, "the command"}}},
      {"poll",
       false,
       "Shows what a background program printed since the last poll.",
       {{"id", "string", true, "as start gave it"}}},
      {"stop", false, "Ends a background program.", {{"id", "string", true, "as start gave it"}}},
      {"check",
       false,
       "Runs the visible gates of the task as the engine will, and shows the outcome.",
       {{"gate", "string", false, "one gate; absent: all"}}},
      {"note",
       false,
       "Keeps a finding; notes survive when the context is renewed.",
       {{"note", "string", true, "one sentence"}}},
      {"ask",
       false,
       "Asks the decider. The answer comes later; go on with your best assumption.",
       {{"question", "string", true, "one question"}}},
      {"submit",
       false,
       "Ends the task as done. The gates decide whether it is.",
       {{"summary", "string", true, "what changed and why"}}},
      {"give_up",
       false,
       "Ends the task as impossible for you.",
       {{"reason", "string", true, "what stands in the way"}}},
  };
  return *rows;
}

}  // namespace

const ToolRow* find_tool(const std::string& name) {
  for (const ToolRow& row : table()) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

ToolSpec spec_of(const ToolRow& row) {
  base::Json properties = base::Json::object();
  base::Json required = base::Json::array();
  for (const ToolArgument& argument : row.arguments) {
    properties.set(argument.name, base::Json::object({{"type", argument.type},
                                                      {"description", argument.description}}));
    if (argument.required) required.push(argument.name);
  }
  base::Json schema = base::Json::object({{"type", "object"},
                                          {"properties", std::move(properties)},
                                          {"required", std::move(required)},
                                          {"additionalProperties", false}});
  return {row.name, row.description, std::move(schema)};
}

std::string check_arguments(const ToolRow& row, const base::Json& arguments) {
  if (!arguments.is_object()) {
    return "The arguments of " + std::string(row.name) + " must be a JSON object.";
  }
  for (const ToolArgument& argument : row.arguments) {
    const base::Json& value = arguments[argument.name];
    if (value.is_null()) {
      if (!argument.required) continue;
      return "The call of " + std::string(row.name) + " lacks '" + argument.name + "' (" +
             argument.description + ").";
    }
    const bool fits =
        std::string_view(argument.type) == "integer" ? value.is_integer() : value.is_string();
    if (!fits) {
      return "'" + std::string(argument.name) + "' of " + row.name + " must be of type " +
             argument.type + ".";
    }
  }
  return "";
}

}  // namespace team
