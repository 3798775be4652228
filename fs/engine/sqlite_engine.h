// The engine of one machine: a SQLite file in write-ahead mode, through the sqlite3 C API (so
// SQLite itself or FleetDB). Tables `row(key, version, value)`, `log(...)` and `segment(...)`;
// values are JSON, so that `sqlite3 agentfs.db` shows everything. Several processes may use one
// file. Thread-safe.
#pragma once

#include "fs/engine/engine.h"

#include <memory>
#include <string>

namespace fs {

// Opens or creates. Errors: kIo, kCorruption.
base::Result<std::unique_ptr<Engine>> open_sqlite_engine(const std::string& path);

}  // namespace fs
