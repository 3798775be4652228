// What a Statement keeps: its text, its program, its parameters, and the run in progress.
#pragma once

#include "db/engine/command.h"
#include "db/engine/connection.h"
#include "db/exec/execution.h"
#include "db/exec/table_cursor.h"
#include "db/sql/parser.h"

namespace db {

struct Statement::State {
  explicit State(Connection& connection) : connection(connection), session(connection.session()) {}

  // Parses and compiles `sql`. Again, when the schema has changed.
  Status compile();
  int start();
  int finish(int code);
  int out_of_memory();
  int fail(int code, std::string text, int offset = -1);
  void drop_execution();
  void forget_savepoint();
  void explain_plan();
  // Takes the row of the execution over into `row`, and shows it.
  void take_row();
  void leave_row() { self->row_ = {}; }
  // Makes it fit to wait for the next prepare of its text; false: it is not.
  bool retire();

  Connection& connection;
  Session& session;
  Statement* self = nullptr;
  std::string sql;
  size_t tail = 0;
  sql::Arena arena{2048};
  sql::Statement* statement = nullptr;
  // Set when `sql` is the shape of what the application prepared (plan_cache.h): that text, and
  // parameters that it does not know of.
  bool hides_parameters = false;
  std::string shown_sql;
  bool reusable = false;  // may be kept in the plan cache
  std::vector<std::string> parameter_names;
  std::vector<Value> parameters;
  u64 version = 0;

  std::unique_ptr<Program> program;
  std::unique_ptr<Cx> cx;
  std::unique_ptr<Execution> execution;
  std::vector<std::string> command_columns;
  std::vector<std::vector<Value>> command_rows;
  size_t command_at = 0;

  // The current row. Texts and blobs that others own are copied side by side into row_bytes; all
  // have a zero byte behind them.
  std::vector<Value> row;
  std::vector<char> row_bytes;
  bool running = false;
  bool done = false;
  bool is_writer = false;
  int savepoint = -1;         // of this statement, in write_database
  int virtual_savepoint = 0;  // and its number for virtual tables
  int latest = 0;             // code of the latest step
  std::array<i64, 10> counters{};
};

}  // namespace db
