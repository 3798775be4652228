// The sqlite3_api_routines table that loadable extensions are handed. Thread-safe.
#pragma once

#include <span>

namespace db::capi {

std::span<const void* const> extension_table();

}  // namespace db::capi
