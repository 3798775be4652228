// LIKE and GLOB matching as SQLite does it; also behind sqlite3_strlike() and sqlite3_strglob().
// Thread-compatible.
#pragma once

#include "base/types.h"

#include <string_view>

namespace db {

// `escape` 0: none. Letters A-Z match either case unless `case_sensitive`.
bool like_match(std::string_view pattern, std::string_view text, u32 escape, bool case_sensitive);
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace db
