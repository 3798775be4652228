// The vocabulary of a run: its stages, roles, ids and verdicts, and their spelling in files.
//
// Ids are short strings a person can type. They are derived, never random, so that a replay names
// the same things alike: run "r-7f3a", criterion "C3", task "T2", attempt "T2.a1", call
// "T2.a1.c7", evidence "E12", decision "D4", experiment "X1", incident "I1".
// Thread-safe: all are pure functions.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <string>
#include <string_view>

namespace team {

enum class Stage { kConverge, kDesign, kPlan, kBuild, kVerify, kOperate };
inline constexpr int kStageCount = 6;

enum class Role { kDecider, kArchitect, kCoder, kTester, kReviewer, kQa };
inline constexpr int kRoleCount = 6;

// Outcome of a gate. kError is neither a pass nor the author's fault: the gate could
// not be run (its own tool is missing, the sandbox did not start), so it counts for nothing.
enum class Verdict { kPass, kFail, kTimeout, kError };

// Who may see a criterion's cases. Of a held-out one, agents learn counts only.
enum class Visibility { kVisible, kHeldOut };

const char* name_of(Stage stage);
const char* name_of(Role role);
const char* name_of(Verdict verdict);
const char* name_of(Visibility visibility);

// Errors: kInvalidArgument, listing the known names.
base::Result<Stage> parse_stage(std::string_view text);
base::Result<Role> parse_role(std::string_view text);
base::Result<Verdict> parse_verdict(std::string_view text);
base::Result<Visibility> parse_visibility(std::string_view text);

}  // namespace team
