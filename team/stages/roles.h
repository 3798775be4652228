// The roles' texts (team/roles/*.md), built into the program. Thread-safe.
#pragma once

#include "base/result.h"
#include "team/agent/role_file.h"
#include "team/core/names.h"

#include <string_view>

namespace team {

base::Result<RoleFile> role_file(Role role);

}  // namespace team
