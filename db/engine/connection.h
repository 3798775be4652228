// The engine's own C++ surface: a Connection to one main database (and attached ones) and the
// Statements prepared on it. The C API (db/capi) is a thin layer over these two classes.
//
// Errors: calls that fail return a Result or a code, and the connection remembers code, text and
// offset of the latest one (error_code(), error_message()), as sqlite3_errcode() wants it.
// Threads: one thread at a time per connection; the C API adds the mutex. interrupt() is the only
// call that may come from another thread.
#pragma once

#include "db/catalog/session.h"
#include "db/value/result.h"
#include "db/value/value.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace db {

class Statement;
class Store;
class Vfs;

struct OpenOptions {
  bool read_only = false;
  bool create = true;
  bool memory = false;  // SQLITE_OPEN_MEMORY or mode=memory
  Vfs* vfs = nullptr;   // null: the operating system's files
};

struct Prepared {
  std::unique_ptr<Statement> statement;  // null for blank text
  size_t tail = 0;                       // byte offset just past the statement
};

struct PrepareOptions {
  bool persistent = false;
  bool no_vtab = false;
};

class Connection {
 public:
  // `path`: a file, ":memory:", or "" (a temporary database).
  static Result<std::unique_ptr<Connection>> open(const std::string& path, OpenOptions options);
  ~Connection();  // statements must be gone
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<Prepared> prepare(std::string_view sql, PrepareOptions options = {});
  // Runs every statement of the text; rows go to `row` (false stops with SQLITE_ABORT).
  Status execute(std::string_view sql, const std::function<bool(Statement&)>& row = nullptr);

  // The latest error, SQLite's extended code; kOk when the latest call succeeded.
  int error_code() const;
  const std::string& error_message() const;
  int error_offset() const;
  void set_error(int code, std::string message, int offset = -1);
  void clear_error();

  i64 last_insert_rowid() const;
  void set_last_insert_rowid(i64 rowid);
  i64 changes() const;
  i64 total_changes() const;
  bool autocommit() const;
  void interrupt();
  bool is_interrupted() const;

  Hooks& hooks();
  FunctionRegistry& functions();
  // Registers or replaces; `destroy` (may be empty) runs when it goes away. A null compare removes.
  Status create_collation(std::string_view name,
                          int (*compare)(void*, int, const void*, int, const void*), void* context,
                          void (*destroy)(void*));

  i64 limit(Limit which) const;
  i64 set_limit(Limit which, i64 value);  // negative: only asks; returns the old value
  bool config(DbConfig which) const;
  void set_config(DbConfig which, bool on);
  void set_busy_timeout(int milliseconds);

  // Databases: 0 main, 1 temp, then attached. Names for sqlite3_db_name and friends.
  int database_count() const;
  const std::string* database_name(int index) const;
  const std::string* database_path(std::string_view schema) const;  // null: no such database
  bool database_read_only(std::string_view schema, bool* known) const;
  Store* store(std::string_view schema);  // null: no such database
  // 0 none, 1 read, 2 write; over all databases when `schema` is null.
  int transaction_state(const std::string* schema) const;
  // Replaces the content of a schema's store (deserialize, backup restore); reloads the schema.
  Status replace_store(std::string_view schema, std::unique_ptr<Store> store);
  // Reloads schemas at the next prepare (after a change behind the engine's back).
  void forget_schema();

  struct ColumnMetadata {
    std::string declared_type, collation;
    bool not_null = false, primary_key = false, autoincrement = false;
  };
  Result<ColumnMetadata> column_metadata(const std::string* schema, std::string_view table,
                                         std::string_view column);

  // Statements in the order of their making, for sqlite3_next_stmt.
  Statement* next_statement(Statement* after);
  Session& session() { return *session_; }

  // Opens another database under a schema name (ATTACH).
  Status add_database(const std::string& name, const std::string& path, bool read_only,
                      bool create);
  // Statements that do not run let go of their cursors (DETACH, VACUUM).
  void drop_executions();

 private:
  friend class Statement;
  struct State;
  Connection();
  void forget(Statement* statement);
  // After a change that the plans kept for later do not know of.
  void drop_plans();
  std::unique_ptr<Session> session_;
  std::unique_ptr<State> state_;
};

class Statement {
 public:
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // rc::kRow, rc::kDone or an error code; re-prepares itself when the schema has changed.
  // SQLITE_ROW, SQLITE_DONE or an error. An allocation that fails ends the statement with
  // SQLITE_NOMEM and takes the transaction back.
  int step();
  // Ends the run; the code of the latest step if that failed, else kOk.
  int reset();
  bool busy() const;  // stepped and neither done nor reset
  bool readonly() const;
  int explain() const;  // 0, 1 EXPLAIN, 2 EXPLAIN QUERY PLAN

  int column_count() const;
  // column_count() while on a row, else 0.
  int data_count() const { return static_cast<int>(row_.size()); }
  // A value of the current row, which the caller may convert in place; good until the next step.
  // REQUIRES: 0 <= index < data_count().
  Value& column(int index) { return row_[static_cast<size_t>(index)]; }
  std::string_view column_name(int index) const;
  // "" when the column is an expression. Names refer to the schema as of the latest prepare.
  std::string_view column_declared_type(int index) const;
  std::string_view column_database(int index) const;
  std::string_view column_table(int index) const;
  std::string_view column_origin(int index) const;

  // Parameters count from 1. Binding keeps what `value` holds: keep() it first if it borrows.
  int parameter_count() const;
  std::string_view parameter_name(int index) const;  // "" when it has none
  int parameter_index(std::string_view name) const;  // 0 when there is none
  int bind(int index, Value&& value);                // kOk, kRange, kMisuse (while running)
  const Value& parameter(int index) const;
  // What was bound, leaving NULL; NULL when there is no such parameter that may be bound now.
  Value take_parameter(int index);
  void clear_bindings();

  std::string_view sql() const;      // this statement's text alone
  std::string expanded_sql() const;  // parameters replaced by their values
  Connection& connection() const;
  // Counters of sqlite3_stmt_status, by its numbers (1 full scan steps, 2 sorts, 4 steps, ...).
  i64 status(int counter, bool reset);

  struct State;
  State& state() { return *state_; }

 private:
  int run_step();
  friend class Connection;
  explicit Statement(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  std::span<Value> row_;  // of state_, while on a row
};

}  // namespace db
