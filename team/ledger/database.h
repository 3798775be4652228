// A thin layer over the sqlite3 C API: open, prepare, bind, step, with errors as values. Only a
// small SQL subset is used above it (no triggers, no JSON or window functions, no RETURNING,
// integers for money and time), so that the same statements run on FleetDB and PostgreSQL. Errors:
// kFull, kCorruption, kBusy, kPermission, kIo, each naming the file. Single-threaded: the ledger
// holds a lock around it.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace team {

class Database;

// One prepared statement. Bind, then step until it says there is no row.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  Statement& bind(i64 value);
  Statement& bind(std::string_view text);
  Statement& bind_blob(std::string_view bytes);
  Statement& bind_null();
  // True: a row is there.
  base::Result<bool> step();
  // Steps to the end, ignoring rows.
  base::Status run();

  i64 integer(int column) const;
  std::string text(int column) const;
  std::string blob(int column) const;

 private:
  friend class Database;
  Statement(Database& database, sqlite3_stmt* statement)
      : database_(database), statement_(statement) {}
  Database& database_;
  sqlite3_stmt* statement_;
  int next_ = 1;
};

class Database {
 public:
  enum class Mode { kCreate, kWrite, kRead };
  static base::Result<std::unique_ptr<Database>> open(const std::string& path, Mode mode);
  ~Database();
  Database(const Database&) = delete;

  base::Result<Statement> prepare(std::string_view sql);
  base::Status run(std::string_view sql);  // one or more statements without parameters
  i64 changes() const;
  const std::string& path() const { return path_; }
  base::Error error(int code) const;

 private:
  Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}
  std::string path_;
  sqlite3* handle_;
};

}  // namespace team
