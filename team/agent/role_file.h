// Role files: plain text in roles/<name>.md, front matter between "---" lines, then a template.
// Strict: an unknown front-matter key, an unknown {{variable}} and a variable nobody uses are
// errors that name the line.
//   ---
//   role: coder
//   tools: read, list, search, patch, write, run, check, note, submit, give_up
//   turns: 40
//   effort: medium
//   ---
//   Role: coder
//   You implement task {{task_id}} ...
// The hash of the file goes into every call's record, so a prompt edit is visible.
#pragma once

#include "base/result.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace team {

struct RoleFile {
  std::string role;
  std::vector<std::string> tools;
  int turns = 40;
  std::string effort;
  std::string model_class;  // "model" key: "" or a name that routing knows
  std::string text;         // the template
  std::string hash;         // SHA-256 of the whole file

  // Errors: kInvalidArgument with the line.
  static base::Result<RoleFile> parse(std::string_view file);
  static base::Result<RoleFile> load(const std::string& path);
  // Errors: kInvalidArgument names the variable that is missing or not used.
  base::Result<std::string> render(const std::map<std::string, std::string>& variables) const;
};

}  // namespace team
