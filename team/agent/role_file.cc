#include "team/agent/role_file.h"

#include "base/files.h"
#include "base/hash.h"

#include <charconv>
#include <set>

namespace team {
namespace {

using base::Error;
using base::ErrorCode;

std::string trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

Error bad(int line, const std::string& what) {
  return Error(ErrorCode::kInvalidArgument,
               "role file, line " + std::to_string(line) + ": " + what);
}

base::Status take_key(RoleFile& role, const std::string& key, const std::string& value, int line) {
  if (key == "role") {
    role.role = value;
  } else if (key == "effort") {
    role.effort = value;
  } else if (key == "model") {
    role.model_class = value;
  } else if (key == "turns") {
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), role.turns);
    if (error != std::errc() || end != value.data() + value.size() || role.turns <= 0) {
      return bad(line, "'turns' must be a number above zero, not '" + value + "'");
    }
  } else if (key == "tools") {
    size_t at = 0;
    while (at <= value.size()) {
      const size_t comma = std::min(value.find(',', at), value.size());
      const std::string tool = trim(std::string_view(value).substr(at, comma - at));
      if (tool.empty()) return bad(line, "'tools' has an empty name");
      role.tools.push_back(tool);
      at = comma + 1;
    }
  } else {
    return bad(line, "unknown key '" + key + "'; known are role, tools, turns, effort, model");
  }
  return {};
}

}  // namespace

base::Result<RoleFile> RoleFile::parse(std::string_view file) {
  RoleFile role;
  role.hash = base::sha256_hex(file);
  int line_number = 0;
  int fences = 0;
  size_t at = 0;
  while (fences < 2) {
    if (at >= file.size())
      return bad(line_number, "the front matter between '---' lines is missing");
    const size_t end = std::min(file.find('\n', at), file.size());
    const std::string line = trim(file.substr(at, end - at));
    at = end + 1;
    ++line_number;
    if (line == "---") {
      ++fences;
    } else if (fences == 0) {
      return bad(line_number, "the first line must be '---'");
    } else if (!line.empty()) {
      const size_t colon = line.find(':');
      if (colon == std::string::npos) return bad(line_number, "expected 'key: value'");
      TRY(take_key(role, trim(line.substr(0, colon)), trim(line.substr(colon + 1)), line_number));
    }
  }
  if (role.role.empty()) return bad(line_number, "'role' is missing");
  role.text = std::string(at < file.size() ? file.substr(at) : "");
  return role;
}

base::Result<RoleFile> RoleFile::load(const std::string& path) {
  base::Result<RoleFile> parsed = parse(TRY(base::read_file(path)));
  if (!parsed.ok()) return std::move(parsed).error().with(path);
  return parsed;
}

base::Result<std::string> RoleFile::render(
    const std::map<std::string, std::string>& variables) const {
  std::string out;
  std::set<std::string> used;
  size_t at = 0;
  for (;;) {
    const size_t open = text.find("{{", at);
    out += text.substr(at, open == std::string::npos ? open : open - at);
    if (open == std::string::npos) break;
    const size_t close = text.find("}}", open);
    if (close == std::string::npos) {
      return Error(ErrorCode::kInvalidArgument, "role '" + role + "': a '{{' has no '}}'");
    }
    const std::string name = trim(std::string_view(text).substr(open + 2, close - open - 2));
    const auto found = variables.find(name);
    if (found == variables.end()) {
      return Error(ErrorCode::kInvalidArgument,
                   "role '" + role + "' uses the variable '" + name + "', which nothing sets");
    }
    out += found->second;
    used.insert(name);
    at = close + 2;
  }
  for (const auto& [name, value] : variables) {
    if (used.count(name) == 0) {
      return Error(ErrorCode::kInvalidArgument,
                   "role '" + role + "' does not use the variable '" + name + "'");
    }
  }
  return out;
}

}  // namespace team
