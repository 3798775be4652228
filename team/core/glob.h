// Path globs: `?` one character, `*` any run within one name, `**` any run across folders.
// "src/**" matches all below src. Paths are relative, with '/'. Thread-safe: pure functions.
#pragma once

#include <string_view>

namespace team {

bool glob_matches(std::string_view glob, std::string_view path);
// True when some path matches both: two tasks that touch them could collide.
bool globs_overlap(std::string_view a, std::string_view b);

}  // namespace team
