// For tests: a real SQLite, loaded apart from any other copy in the process, that evaluates one
// expression over bound values. FLEETDB_ORACLE names another library than the system's.
#pragma once

#include "db/value/value.h"

#include <dlfcn.h>

#include <cstdlib>
#include <span>
#include <string>

namespace db {

class SqliteOracle {
 public:
  SqliteOracle() {
    const char* path = std::getenv("FLEETDB_ORACLE");
    library_ = dlopen(path != nullptr ? path : "libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return;
    load(open_, "sqlite3_open");
    load(prepare_, "sqlite3_prepare_v2");
    load(step_, "sqlite3_step");
    load(finalize_, "sqlite3_finalize");
    load(errmsg_, "sqlite3_errmsg");
    load(type_, "sqlite3_column_type");
    load(int64_, "sqlite3_column_int64");
    load(double_, "sqlite3_column_double");
    load(blob_, "sqlite3_column_blob");
    load(bytes_, "sqlite3_column_bytes");
    load(bind_null_, "sqlite3_bind_null");
    load(bind_int64_, "sqlite3_bind_int64");
    load(bind_double_, "sqlite3_bind_double");
    load(bind_text_, "sqlite3_bind_text");
    load(bind_blob_, "sqlite3_bind_blob");
    load(version_, "sqlite3_libversion_number");
    open_(":memory:", &db_);
  }
  bool loaded() const { return db_ != nullptr; }
  int version() const { return version_(); }

  // False with the error's text when SQLite fails.
  bool evaluate(const std::string& sql, std::span<const Value> args, Value& result,
                std::string& error) {
    void* stmt = nullptr;
    if (prepare_(db_, sql.c_str(), -1, &stmt, nullptr) != 0) {
      error = errmsg_(db_);
      return false;
    }
    for (size_t i = 0; i < args.size(); ++i) bind(stmt, static_cast<int>(i + 1), args[i]);
    bool ok = step_(stmt) == 100;
    if (ok) {
      result = column(stmt);
    } else {
      error = errmsg_(db_);
    }
    finalize_(stmt);
    return ok;
  }

 private:
  template <class F>
  void load(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library_, name));
  }
  void bind(void* stmt, int index, const Value& value) {
    void* const copy = reinterpret_cast<void*>(-1);
    switch (value.type()) {
      case Type::kNull:
        bind_null_(stmt, index);
        break;
      case Type::kInteger:
        bind_int64_(stmt, index, value.raw_integer());
        break;
      case Type::kReal:
        bind_double_(stmt, index, value.raw_real());
        break;
      case Type::kText:
        bind_text_(stmt, index, value.bytes().data(), static_cast<int>(value.bytes().size()), copy);
        break;
      case Type::kBlob:
        bind_blob_(stmt, index, value.bytes().data(), static_cast<int>(value.bytes().size()), copy);
        break;
    }
  }
  Value column(void* stmt) {
    switch (type_(stmt, 0)) {
      case 1:
        return Value::integer(int64_(stmt, 0));
      case 2:
        return Value::real(double_(stmt, 0));
      case 3: {
        auto* text = static_cast<const char*>(blob_(stmt, 0));
        return Value::text({text == nullptr ? "" : text, static_cast<size_t>(bytes_(stmt, 0))});
      }
      case 4: {
        auto* text = static_cast<const char*>(blob_(stmt, 0));
        return Value::blob({text == nullptr ? "" : text, static_cast<size_t>(bytes_(stmt, 0))});
      }
      default:
        return Value();
    }
  }

  void* library_ = nullptr;
  void* db_ = nullptr;
  int (*open_)(const char*, void**) = nullptr;
  int (*prepare_)(void*, const char*, int, void**, const char**) = nullptr;
  int (*step_)(void*) = nullptr;
  int (*finalize_)(void*) = nullptr;
  const char* (*errmsg_)(void*) = nullptr;
  int (*type_)(void*, int) = nullptr;
  i64 (*int64_)(void*, int) = nullptr;
  f64 (*double_)(void*, int) = nullptr;
  const void* (*blob_)(void*, int) = nullptr;
  int (*bytes_)(void*, int) = nullptr;
  int (*bind_null_)(void*, int) = nullptr;
  int (*bind_int64_)(void*, int, i64) = nullptr;
  int (*bind_double_)(void*, int, f64) = nullptr;
  int (*bind_text_)(void*, int, const char*, int, void*) = nullptr;
  int (*bind_blob_)(void*, int, const void*, int, void*) = nullptr;
  int (*version_)() = nullptr;
};

}  // namespace db
