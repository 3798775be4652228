// The table-valued functions that every connection has: json_each, json_tree, pragma_*.
#pragma once

#include "db/catalog/session.h"

namespace db {

void register_builtin_modules(Session& session);
void register_session_functions(Session& session);

}  // namespace db
