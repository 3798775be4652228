#include "team/core/names.h"

#include <array>
#include <span>

namespace team {
namespace {

constexpr std::array<const char*, kStageCount> kStages = {"converge", "design", "plan",
                                                          "build",    "verify", "operate"};
constexpr std::array<const char*, kRoleCount> kRoles = {"decider", "architect", "coder",
                                                        "tester",  "reviewer",  "qa"};
constexpr std::array<const char*, 4> kVerdicts = {"pass", "fail", "timeout", "error"};
constexpr std::array<const char*, 2> kVisibilities = {"visible", "held_out"};

template <class T>
base::Result<T> parse_name(std::span<const char* const> names, std::string_view text,
                           std::string_view what) {
  std::string known;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return static_cast<T>(i);
    known += (i ? ", " : "") + std::string(names[i]);
  }
  return base::Error(
      base::ErrorCode::kInvalidArgument,
      "'" + std::string(text) + "' is not a " + std::string(what) + "; use one of " + known);
}

}  // namespace

const char* name_of(Stage stage) {
  return kStages[static_cast<size_t>(stage)];
}
const char* name_of(Role role) {
  return kRoles[static_cast<size_t>(role)];
}
const char* name_of(Verdict verdict) {
  return kVerdicts[static_cast<size_t>(verdict)];
}
const char* name_of(Visibility visibility) {
  return kVisibilities[static_cast<size_t>(visibility)];
}

base::Result<Stage> parse_stage(std::string_view text) {
  return parse_name<Stage>(kStages, text, "stage");
}
base::Result<Role> parse_role(std::string_view text) {
  return parse_name<Role>(kRoles, text, "role");
}
base::Result<Verdict> parse_verdict(std::string_view text) {
  return parse_name<Verdict>(kVerdicts, text, "verdict");
}
base::Result<Visibility> parse_visibility(std::string_view text) {
  return parse_name<Visibility>(kVisibilities, text, "visibility");
}

}  // namespace team
