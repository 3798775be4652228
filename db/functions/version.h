// Which SQLite this library answers as: clients compare these with the header they were built with.
#pragma once

#include "base/types.h"

#include <array>
#include <string_view>

namespace db {

inline constexpr const char* kSqliteVersion = "3.53.2";
inline constexpr int kSqliteVersionNumber = 3053002;
inline constexpr const char* kSqliteSourceId =
    "2026-06-03 19:12:13 d6e03d8c777cfa2d35e3b60d8ec3e0187f3e9f99d8e2ee9cac695fd6fcdf1a24";

inline constexpr std::array<std::string_view, 11> kCompileOptions = {"DEFAULT_FOREIGN_KEYS=0",
                                                                     "ENABLE_COLUMN_METADATA",
                                                                     "ENABLE_DBPAGE_VTAB",
                                                                     "ENABLE_MATH_FUNCTIONS",
                                                                     "ENABLE_UPDATE_DELETE_LIMIT",
                                                                     "MAX_EXPR_DEPTH=1000",
                                                                     "MAX_VARIABLE_NUMBER=250000",
                                                                     "SOUNDEX",
                                                                     "SYSTEM_MALLOC",
                                                                     "TEMP_STORE=1",
                                                                     "THREADSAFE=1"};

// With or without "SQLITE_" before the name and "=value" behind it; case does not matter.
bool is_compile_option(std::string_view name);

}  // namespace db
