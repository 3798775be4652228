// Names of the form file:PATH?key=value&..., as SQLite's documentation "Uniform Resource
// Identifiers" lays them down: mode, cache, vfs, immutable; %XX escapes; an authority of "" or
// "localhost".
#pragma once

#include "db/capi/handle.h"

#include <string>

namespace db::capi {

// Replaces `name` by the path and adjusts the options. Returns SQLITE_OK, or a code with the
// connection's error set.
int apply_uri(sqlite3* db, std::string& name, OpenOptions& options);

}  // namespace db::capi
