#include "db/shell/shell.h"

#include "base/clock.h"
#include "db/shell/explain.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace db::shell {
namespace {

Cell cell_of(sqlite3_stmt* statement, int column) {
  Cell cell;
  cell.type = sqlite3_column_type(statement, column);
  if (cell.type == SQLITE_BLOB) {
    const char* data = static_cast<const char*>(sqlite3_column_blob(statement, column));
    cell.text.assign(data != nullptr ? data : "",
                     static_cast<size_t>(sqlite3_column_bytes(statement, column)));
  } else if (cell.type != SQLITE_NULL) {
    cell.text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  }
  return cell;
}

std::vector<Cell> row_of(sqlite3_stmt* statement) {
  std::vector<Cell> cells;
  const int count = sqlite3_column_count(statement);
  for (int i = 0; i < count; ++i) cells.push_back(cell_of(statement, i));
  return cells;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n;") == std::string_view::npos;
}

i64 cpu_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) { return i64{time.tv_sec} * 1'000'000 + time.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

}  // namespace

Shell::Shell(Settings settings) : settings_(std::move(settings)) {}

Shell::~Shell() {
  end_redirect();
  sqlite3_close_v2(db_);
}

bool Shell::open(const std::string& path) {
  sqlite3* opened = nullptr;
  const int flags =
      SQLITE_OPEN_URI |
      (settings_.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (sqlite3_open_v2(path.c_str(), &opened, flags, nullptr) != SQLITE_OK) {
    complain("unable to open database \"" + path + "\": " + sqlite3_errmsg(opened));
    sqlite3_close_v2(opened);
    return false;
  }
  sqlite3_close_v2(db_);
  db_ = opened;
  path_ = path;
  return true;
}

int Shell::run(LineSource& source) {
  const int before = errors_;
  std::string statement;
  int line = 0, first_line = 0;
  while (!quitting_ && !(settings_.bail && errors_ > before)) {
    std::optional<std::string> text = source.next(!statement.empty());
    if (!text) break;
    ++line;
    if (statement.empty() && is_blank(*text)) continue;
    if (statement.empty() && (text->starts_with('.') || text->starts_with('#'))) {
      source.remember(*text);
      if (settings_.echo) print(*text + "\n");
      if (text->starts_with('.')) run_command(*this, *text);
      continue;
    }
    if (statement.empty()) first_line = line;
    statement += *text + "\n";
    // A line of "/" or "go" alone ends a statement too, as other databases' shells have it.
    const bool ends = *text == "/" || *text == "go";
    if (ends) statement.resize(statement.size() - text->size() - 1);
    if (!ends && sqlite3_complete(statement.c_str()) == 0) continue;
    source.remember(statement.substr(0, statement.find_last_not_of('\n') + 1));
    run_text(statement, first_line);
    statement.clear();
  }
  if (!quitting_ && !is_blank(statement) && !(settings_.bail && errors_ > before)) {
    run_text(statement, first_line);
  }
  return errors_ - before;
}

int Shell::run_text(const std::string& text, int first_line) {
  const int before = errors_;
  if (text.starts_with('.')) {
    run_command(*this, text);
  } else {
    if (settings_.echo) print(text);
    execute(text, first_line);
  }
  return errors_ - before;
}

bool Shell::execute(const std::string& sql, int first_line) {
  const i64 wall_start = base::system_clock().monotonic_us();
  const i64 cpu_start = cpu_us();
  const char* left = sql.c_str();
  bool ok = true;
  while (ok && *left != 0) {
    sqlite3_stmt* statement = nullptr;
    const char* at = left;
    const int line = first_line + static_cast<int>(std::count(sql.c_str(), at, '\n'));
    if (sqlite3_prepare_v2(db_, left, -1, &statement, &left) != SQLITE_OK) {
      report("Parse error", line);
      ok = false;
    } else if (statement != nullptr) {
      ok = run_statement(statement);
      if (sqlite3_finalize(statement) != SQLITE_OK && !ok) report("Runtime error", line);
    }
  }
  if (settings_.changes && ok) {
    print("changes: " + std::to_string(sqlite3_changes64(db_)) +
          "   total_changes: " + std::to_string(sqlite3_total_changes64(db_)) + "\n");
  }
  if (settings_.timer) {
    char text[96];
    std::snprintf(text, sizeof text, "Run Time: real %.3f cpu %.3f\n",
                  static_cast<double>(base::system_clock().monotonic_us() - wall_start) / 1e6,
                  static_cast<double>(cpu_us() - cpu_start) / 1e6);
    print(text);
  }
  if (output_once_) end_redirect();
  return ok;
}

bool Shell::run_statement(sqlite3_stmt* statement) {
  bind_parameters(statement);
  const int explains = sqlite3_stmt_isexplain(statement);
  if (settings_.explain_plan && explains == 0) print_plan(statement);
  std::string out;
  std::unique_ptr<Printer> printer = explains == 2   ? make_plan_printer(out)
                                     : explains == 1 ? make_program_printer(out)
                                                     : make_printer(settings_.style, out);
  int code = sqlite3_step(statement);
  print_rows(statement, *printer, out, &code);
  return code == SQLITE_DONE;
}

void Shell::print_rows(sqlite3_stmt* statement, Printer& printer, std::string& out, int* code) {
  constexpr size_t kFlushBytes = 64 << 10;
  if (*code == SQLITE_ROW) {
    std::vector<std::string> names;
    for (int i = 0; i < sqlite3_column_count(statement); ++i)
      names.emplace_back(sqlite3_column_name(statement, i));
    printer.begin(names);
    for (; *code == SQLITE_ROW; *code = sqlite3_step(statement)) {
      printer.row(row_of(statement));
      if (out.size() > kFlushBytes) {
        print(out);
        out.clear();
      }
    }
    printer.finish();
  }
  print(out);
}

void Shell::print_plan(sqlite3_stmt* statement) {
  const std::string sql = std::string("EXPLAIN QUERY PLAN ") + sqlite3_sql(statement);
  sqlite3_stmt* plan = nullptr;
  if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &plan, nullptr) == SQLITE_OK) {
    std::string out;
    std::unique_ptr<Printer> printer = make_plan_printer(out);
    int code = sqlite3_step(plan);
    print_rows(plan, *printer, out, &code);
  }
  sqlite3_finalize(plan);  // a statement without a plan has none to print
}

void Shell::bind_parameters(sqlite3_stmt* statement) {
  const int count = sqlite3_bind_parameter_count(statement);
  if (count == 0) return;
  sqlite3_stmt* lookup = nullptr;
  if (sqlite3_prepare_v2(db_, "SELECT value FROM temp.sqlite_parameters WHERE key = ?1", -1,
                         &lookup, nullptr) != SQLITE_OK) {
    return;  // nothing was ever set
  }
  for (int i = 1; i <= count; ++i) {
    const char* name = sqlite3_bind_parameter_name(statement, i);
    const std::string numbered = "?" + std::to_string(i);
    sqlite3_bind_text(lookup, 1, name != nullptr ? name : numbered.c_str(), -1, SQLITE_TRANSIENT);
    if (sqlite3_step(lookup) == SQLITE_ROW) {
      sqlite3_bind_value(statement, i, sqlite3_column_value(lookup, 0));
    } else {
      sqlite3_bind_null(statement, i);
    }
    sqlite3_reset(lookup);
  }
  sqlite3_finalize(lookup);
}

bool Shell::query(const std::string& sql,
                  const std::function<void(const std::vector<Cell>&)>& row) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    complain(sqlite3_errmsg(db_));
    return false;
  }
  while (sqlite3_step(statement) == SQLITE_ROW) row(row_of(statement));
  if (sqlite3_finalize(statement) != SQLITE_OK) {
    complain(sqlite3_errmsg(db_));
    return false;
  }
  return true;
}

std::vector<std::string> Shell::column_of(const std::string& sql) {
  std::vector<std::string> values;
  query(sql, [&](const std::vector<Cell>& cells) { values.push_back(cells[0].text); });
  return values;
}

void Shell::print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), output_);
  if (output_ == stdout && ::isatty(STDOUT_FILENO) != 0) std::fflush(output_);
}

bool Shell::redirect(const std::string& target, bool once) {
  end_redirect();
  if (target.empty() || target == "stdout") return true;
  output_is_pipe_ = target[0] == '|';
  output_ = output_is_pipe_ ? ::popen(target.c_str() + 1, "w") : std::fopen(target.c_str(), "wb");
  if (output_ == nullptr) {
    output_ = stdout;
    output_is_pipe_ = false;
    complain("cannot open \"" + target + "\"");
    return false;
  }
  output_once_ = once;
  return true;
}

void Shell::end_redirect() {
  if (output_ != stdout) {
    if (output_is_pipe_) {
      ::pclose(output_);
    } else {
      std::fclose(output_);
    }
  }
  output_ = stdout;
  output_is_pipe_ = output_once_ = false;
}

void Shell::complain(const std::string& message) {
  std::fflush(output_);
  std::fprintf(stderr, "Error: %s\n", message.c_str());
  ++errors_;
}

void Shell::report(const char* kind, int line) {
  std::fflush(output_);
  const int code = sqlite3_errcode(db_);
  std::string text = kind;
  if (line > 0) text += " near line " + std::to_string(line);
  text += std::string(": ") + sqlite3_errmsg(db_);
  // Parse errors are all code 1; for the others the code helps to look them up.
  if (code != SQLITE_ERROR) text += " (" + std::to_string(code) + ")";
  std::fprintf(stderr, "%s\n", text.c_str());
  ++errors_;
}

}  // namespace db::shell
