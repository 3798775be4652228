// The interactive shell: a connection, how results are printed, and where they go. Lines come from
// a LineSource (terminal, file, argument); a line that starts with '.' is a command (command.cc),
// others gather until they are a whole statement.
//
// Errors are printed to stderr as `Error: ...` or `Parse error near line N: ...`; the shell goes on
// unless `bail` is set. Single-threaded; interrupt() may be called from a signal handler.
#pragma once

#include "db/capi/sqlite3.h"
#include "db/shell/table.h"

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace db::shell {

class LineSource {
 public:
  virtual ~LineSource() = default;
  // The next line without its end; nullopt at the end. `continues`: inside a statement.
  virtual std::optional<std::string> next(bool continues) = 0;
  virtual bool interactive() const { return false; }
  virtual void remember(const std::string&) {}  // a whole statement or command, for the history
};

struct Settings {
  Style style;
  bool bail = false;
  bool echo = false;
  bool timer = false;
  bool explain_plan = false;  // print the query plan before each statement's rows
  bool changes = false;
  bool read_only = false;
  std::string prompt = "fleetdb> ";
  std::string continue_prompt = "    ...> ";
};

class Shell {
 public:
  explicit Shell(Settings settings);
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // Closes the database that is open and opens another. False after printing why not.
  bool open(const std::string& path);
  // Runs lines to the end or to .quit. Returns the number of errors.
  int run(LineSource& source);
  // Runs one text of SQL, or one command. Returns the number of errors.
  int run_text(const std::string& text, int first_line = 1);

  Settings& settings() { return settings_; }
  sqlite3* db() { return db_; }
  const std::string& path() const { return path_; }
  void quit() { quitting_ = true; }
  bool is_quitting() const { return quitting_; }
  void interrupt() {
    if (db_ != nullptr) sqlite3_interrupt(db_);
  }

  // Runs SQL and prints the rows; false after printing the error.
  bool execute(const std::string& sql, int first_line = 0);
  // Calls `row` for each row of one query; false after printing the error.
  bool query(const std::string& sql, const std::function<void(const std::vector<Cell>&)>& row);
  // The first column of each row.
  std::vector<std::string> column_of(const std::string& sql);

  // Output goes to stdout, a file or a command; once: only for the next statement.
  void print(std::string_view text);
  bool redirect(const std::string& target, bool once);
  void end_redirect();
  void complain(const std::string& message);  // "Error: message" on stderr
  int& errors() { return errors_; }

 private:
  bool run_statement(sqlite3_stmt* statement);
  void print_rows(sqlite3_stmt* statement, Printer& printer, std::string& out, int* code);
  void print_plan(sqlite3_stmt* statement);
  // Gives each named parameter the value that .parameter set kept for it.
  void bind_parameters(sqlite3_stmt* statement);
  void report(const char* kind, int line);

  Settings settings_;
  sqlite3* db_ = nullptr;
  std::string path_;
  FILE* output_ = stdout;
  bool output_is_pipe_ = false;
  bool output_once_ = false;
  bool quitting_ = false;
  int errors_ = 0;
};

// Runs the command in `line` (which starts with '.').
void run_command(Shell& shell, const std::string& line);

}  // namespace db::shell
