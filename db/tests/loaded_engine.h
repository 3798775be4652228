// One SQLite-compatible library, loaded beside others in the process, with a database in memory.
// Rows come out as text, one a line, sorted. Single-threaded.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace db_fuzz {

class Engine {
 public:
  explicit Engine(const char* path) {
    // A name alone would find a library that is loaded already, ours, unless it has a namespace of
    // its own; there, a library built with sanitizers does not find their runtime in the program.
    const bool whole_path = std::strchr(path, '/') != nullptr;
    void* library = whole_path ? dlopen(path, RTLD_NOW | RTLD_LOCAL)
                               : dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "cannot load %s: %s\n", path, dlerror());
      std::exit(2);
    }
    load(library, open_, "sqlite3_open");
    load(library, prepare_, "sqlite3_prepare_v2");
    load(library, step_, "sqlite3_step");
    load(library, finalize_, "sqlite3_finalize");
    load(library, errmsg_, "sqlite3_errmsg");
    load(library, count_, "sqlite3_column_count");
    load(library, type_, "sqlite3_column_type");
    load(library, int64_, "sqlite3_column_int64");
    load(library, double_, "sqlite3_column_double");
    load(library, blob_, "sqlite3_column_blob");
    load(library, bytes_, "sqlite3_column_bytes");
    load(library, version_, "sqlite3_libversion_number");
    open_(":memory:", &db_);
  }
  int version() const { return version_(); }

  // Rows as text, sorted; or "error".
  std::string run(const std::string& sql, std::string& message) {
    int columns = 0;
    bool merged = false;
    for (const char* word : {"GROUP BY", "DISTINCT", "UNION ", "EXCEPT", "INTERSECT"}) {
      merged = merged || sql.find(word) != std::string::npos;
    }
    std::vector<std::string> found = rows(sql, message, merged, &columns);
    if (!message.empty()) return "error";
    std::string out = "columns " + std::to_string(columns) + "\n";
    for (const std::string& one : found) out += one + "\n";
    return out;
  }

  // The rows, sorted; `merged`: numbers are written by value, whatever their type. `message` says
  // what failed and is empty when nothing did.
  std::vector<std::string> rows(const std::string& sql, std::string& message, bool merged = false,
                                int* columns = nullptr) {
    void* stmt = nullptr;
    message.clear();
    if (prepare_(db_, sql.c_str(), -1, &stmt, nullptr) != 0) {
      message = errmsg_(db_);
      return {};
    }
    std::vector<std::string> rows;
    int code = 0;
    while ((code = step_(stmt)) == 100 && rows.size() < 5000) rows.push_back(row(stmt, merged));
    if (code != 101 && code != 100) message = errmsg_(db_);
    if (columns != nullptr) *columns = count_(stmt);
    finalize_(stmt);
    std::sort(rows.begin(), rows.end());
    return rows;
  }

 private:
  template <class F>
  static void load(void* library, F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
  }

  std::string row(void* stmt, bool merged) {
    std::string out;
    for (int i = 0; i < count_(stmt); ++i) {
      int type = type_(stmt, i);
      // 1, 1.0 and -0.0, 0.0 are equal to GROUP BY and DISTINCT, and which of them stands for the
      // group is nobody's promise: where rows are merged, numbers compare by value.
      bool number = type == 1 || type == 2;
      out += number && merged ? "|n:" : "|" + std::to_string(type) + ":";
      if (type == 1) out += std::to_string(int64_(stmt, i));
      if (type == 2) {
        char text[40];
        std::snprintf(text, sizeof text, "%.15g", double_(stmt, i) + 0.0);
        out += text;
      }
      if (type == 3 || type == 4) {
        const void* data = blob_(stmt, i);
        if (data != nullptr)
          out.append(static_cast<const char*>(data), static_cast<size_t>(bytes_(stmt, i)));
      }
    }
    return out;
  }

  void* db_ = nullptr;
  int (*open_)(const char*, void**) = nullptr;
  int (*prepare_)(void*, const char*, int, void**, const char**) = nullptr;
  int (*step_)(void*) = nullptr;
  int (*finalize_)(void*) = nullptr;
  const char* (*errmsg_)(void*) = nullptr;
  int (*count_)(void*) = nullptr;
  int (*type_)(void*, int) = nullptr;
  long long (*int64_)(void*, int) = nullptr;
  double (*double_)(void*, int) = nullptr;
  const void* (*blob_)(void*, int) = nullptr;
  int (*bytes_)(void*, int) = nullptr;
  int (*version_)() = nullptr;
};

}  // namespace db_fuzz
