// One sqlite3-compatible library, loaded beside others in the same process: the calls that the
// benchmark uses, as function pointers. Nothing is linked, so FleetDB and any SQLite can be
// compared.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace bench {

inline constexpr int kRow = 100;
inline constexpr int kDone = 101;

struct Engine {
  std::string path;
  const char* (*libversion)();
  int (*open_v2)(const char*, sqlite3**, int, const char*);
  int (*close_v2)(sqlite3*);
  int (*exec)(sqlite3*, const char*, int (*)(void*, int, char**, char**), void*, char**);
  int (*busy_timeout)(sqlite3*, int);
  const char* (*errmsg)(sqlite3*);
  int (*prepare_v2)(sqlite3*, const char*, int, sqlite3_stmt**, const char**);
  int (*step)(sqlite3_stmt*);
  int (*reset)(sqlite3_stmt*);
  int (*finalize)(sqlite3_stmt*);
  int (*bind_int64)(sqlite3_stmt*, int, i64);
  int (*bind_double)(sqlite3_stmt*, int, f64);
  int (*bind_text)(sqlite3_stmt*, int, const char*, int, void (*)(void*));
  int (*column_count)(sqlite3_stmt*);
  int (*column_type)(sqlite3_stmt*, int);
  i64 (*column_int64)(sqlite3_stmt*, int);
  f64 (*column_double)(sqlite3_stmt*, int);
  const unsigned char* (*column_text)(sqlite3_stmt*, int);
  int (*column_bytes)(sqlite3_stmt*, int);

  // Stays loaded to the end of the process. kNotFound: no such library, or one without these calls.
  static base::Result<std::unique_ptr<Engine>> load(const std::string& path);
};

}  // namespace bench
