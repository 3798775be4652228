// A sqlite3-compatible shared library, loaded at run time, so that one runner drives FleetDB,
// Debian's SQLite or any other with the same C API. Only the calls the runner needs are looked up.
// The symbols stay private to the handle (RTLD_LOCAL): two libraries can be loaded side by side.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <memory>
#include <string>

namespace db::slt {

// Result codes of the C API that the runner tells apart.
inline constexpr int kOk = 0;
inline constexpr int kRow = 100;
inline constexpr int kDone = 101;
inline constexpr int kTypeNull = 5;

class Library {
 public:
  // Errors: kNotFound when the file cannot be loaded; kUnsupported when it lacks a call.
  static base::Result<std::unique_ptr<Library>> load(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  struct Calls {
    const char* (*libversion)();
    int (*open)(const char* path, void** db);
    int (*close)(void* db);
    const char* (*errmsg)(void* db);
    int (*exec)(void* db, const char* sql, int (*row)(void*, int, char**, char**), void*,
                char** error);
    int (*prepare_v2)(void* db, const char* sql, int bytes, void** statement, const char** tail);
    int (*step)(void* statement);
    int (*finalize)(void* statement);
    int (*column_count)(void* statement);
    int (*column_type)(void* statement, int column);
    int (*column_int)(void* statement, int column);
    double (*column_double)(void* statement, int column);
    const unsigned char* (*column_text)(void* statement, int column);
    char* (*mprintf)(const char* format, ...);
    void (*free)(void* memory);
  };
  const Calls& calls() const { return calls_; }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
  Calls calls_{};
};

}  // namespace db::slt
