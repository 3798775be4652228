// The dot commands, in one table: name, arguments, what it does.
#include "base/files.h"
#include "db/shell/dump.h"
#include "db/shell/import.h"
#include "db/shell/shell.h"
#include "db/shell/source.h"
#include "db/shell/words.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace db::shell {
namespace {

using Words = std::vector<std::string>;

bool is_on(const std::string& word) {
  return word == "on" || word == "1" || word == "yes" || word == "true";
}

// Sets a switch from "on" and "off", or complains.
void set_switch(Shell& shell, const Words& words, bool& value) {
  if (words.size() != 2) {
    shell.complain("usage: " + words[0] + " on|off");
    return;
  }
  value = is_on(words[1]);
}

void set_mode(Shell& shell, const Words& words) {
  Style& style = shell.settings().style;
  if (words.size() == 1) {
    shell.print(std::string("current output mode: ") + name_of(style.mode) + "\n");
    return;
  }
  if (!parse_mode(words[1], style.mode)) {
    shell.complain(
        "mode should be one of: ascii box column csv html insert json line list markdown quote "
        "table tabs");
    return;
  }
  if (style.mode == Mode::kInsert) style.insert_table = words.size() > 2 ? words[2] : "table";
  style.row_separator = "\n";
  switch (style.mode) {
    case Mode::kCsv:
      style.column_separator = ",";
      style.row_separator = "\r\n";
      break;
    case Mode::kTabs:
      style.column_separator = "\t";
      break;
    case Mode::kList:
      style.column_separator = "|";
      break;
    case Mode::kAscii:
      style.column_separator = "\x1f";
      style.row_separator = "\x1e";
      break;
    case Mode::kColumn:
      style.headers = true;
      break;
    default:
      break;
  }
}

void set_separator(Shell& shell, const Words& words) {
  if (words.size() < 2 || words.size() > 3) {
    shell.complain("usage: .separator COL ?ROW?");
    return;
  }
  shell.settings().style.column_separator = unescape(words[1]);
  if (words.size() > 2) shell.settings().style.row_separator = unescape(words[2]);
}

void set_widths(Shell& shell, const Words& words) {
  shell.settings().style.widths.clear();
  for (size_t i = 1; i < words.size(); ++i)
    shell.settings().style.widths.push_back(std::atoi(words[i].c_str()));
}

void set_null_text(Shell& shell, const Words& words) {
  shell.settings().style.null_text = words.size() > 1 ? words[1] : "";
}

void set_prompt(Shell& shell, const Words& words) {
  if (words.size() > 1) shell.settings().prompt = words[1];
  if (words.size() > 2) shell.settings().continue_prompt = words[2];
}

void open_database(Shell& shell, const Words& words) {
  std::string path = ":memory:";
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--readonly") {
      shell.settings().read_only = true;
    } else if (words[i] == "--new") {
      shell.settings().read_only = false;
    } else {
      path = words[i];
    }
  }
  if (std::find(words.begin(), words.end(), "--new") != words.end()) ::unlink(path.c_str());
  shell.open(path);
}

void read_script(Shell& shell, const Words& words) {
  if (words.size() != 2) {
    shell.complain("usage: .read FILE");
    return;
  }
  std::unique_ptr<LineSource> source = file_source(words[1]);
  if (source == nullptr) {
    shell.complain("cannot open \"" + words[1] + "\"");
    return;
  }
  shell.run(*source);
}

void run_system(Shell& shell, const Words& words) {
  std::string command;
  for (size_t i = 1; i < words.size(); ++i) {
    command += (i > 1 ? " " : "") +
               (words[i].find(' ') == std::string::npos ? words[i] : "\"" + words[i] + "\"");
  }
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) {
    shell.complain("cannot run \"" + command + "\"");
    return;
  }
  char buffer[4096];
  while (size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) shell.print({buffer, got});
  ::pclose(pipe);
}

void change_folder(Shell& shell, const Words& words) {
  if (words.size() != 2 || ::chdir(words[1].c_str()) != 0) {
    shell.complain(words.size() != 2 ? "usage: .cd DIRECTORY"
                                     : "cannot change to directory \"" + words[1] + "\"");
  }
}

void print_words(Shell& shell, const Words& words) {
  for (size_t i = 1; i < words.size(); ++i) shell.print((i > 1 ? " " : "") + words[i]);
  shell.print("\n");
}

void list_databases(Shell& shell, const Words&) {
  shell.query("PRAGMA database_list", [&](const std::vector<Cell>& cells) {
    const char* access =
        sqlite3_db_readonly(shell.db(), cells[1].text.c_str()) == 1 ? "r/o" : "r/w";
    shell.print(cells[1].text + ": " + (cells[2].text.empty() ? "\"\"" : cells[2].text) + " " +
                access + "\n");
  });
}

// Names in as many columns as 80 letters hold, going down first.
void print_names(Shell& shell, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  const size_t columns = std::max<size_t>(1, 80 / (width + 2));
  const size_t rows = (names.size() + columns - 1) / std::max<size_t>(1, columns);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = row; i < names.size(); i += rows) {
      shell.print((i < rows ? "" : "  ") + names[i] + std::string(width - names[i].size(), ' '));
    }
    shell.print("\n");
  }
}

std::string like_clause(const Words& words, const char* column) {
  if (words.size() < 2) return "";
  return std::string(" AND ") + column + " LIKE " + sql_literal({SQLITE_TEXT, words[1]});
}

// One SELECT for each database, joined; %s stands for the quoted name of the schema.
std::string over_schemas(Shell& shell, const std::string& select) {
  std::string sql;
  shell.query("PRAGMA database_list", [&](const std::vector<Cell>& cells) {
    std::string one = select;
    one.replace(one.find("%s"), 2, sql_name(cells[1].text));
    sql += (sql.empty() ? "" : " UNION ALL ") + one;
  });
  return sql;
}

void list_tables(Shell& shell, const Words& words) {
  print_names(shell,
              shell.column_of(over_schemas(
                  shell,
                  "SELECT name FROM %s.sqlite_schema WHERE type IN ('table','view') AND name NOT "
                  "LIKE 'sqlite__%' ESCAPE '_'" +
                      like_clause(words, "name"))));
}

void list_indexes(Shell& shell, const Words& words) {
  print_names(shell, shell.column_of(over_schemas(
                         shell, "SELECT name FROM %s.sqlite_schema WHERE type='index'" +
                                    like_clause(words, "tbl_name"))));
}

void show_limits(Shell& shell, const Words& words) {
  static constexpr const char* kNames[] = {
      "length",        "sql_length",    "column",   "expr_depth",          "compound_select",
      "vdbe_op",       "function_arg",  "attached", "like_pattern_length", "variable_number",
      "trigger_depth", "worker_threads"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    const int which = static_cast<int>(i);
    if (words.size() > 1 && words[1] != kNames[i]) continue;
    if (words.size() > 2) sqlite3_limit(shell.db(), which, std::atoi(words[2].c_str()));
    char line[64];
    std::snprintf(line, sizeof line, "%20s %d\n", kNames[i], sqlite3_limit(shell.db(), which, -1));
    shell.print(line);
  }
}

void set_timeout(Shell& shell, const Words& words) {
  sqlite3_busy_timeout(shell.db(), words.size() > 1 ? std::atoi(words[1].c_str()) : 0);
}

void show_settings(Shell& shell, const Words&) {
  const Settings& settings = shell.settings();
  const auto line = [&](const char* name, const std::string& value) {
    char text[32];
    std::snprintf(text, sizeof text, "%12s: ", name);
    shell.print(text + value + "\n");
  };
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (char c : text)
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : std::string(1, c);
    return out + "\"";
  };
  line("echo", settings.echo ? "on" : "off");
  line("headers", settings.style.headers ? "on" : "off");
  line("mode", name_of(settings.style.mode));
  line("nullvalue", quoted(settings.style.null_text));
  line("colseparator", quoted(settings.style.column_separator));
  line("rowseparator", quoted(settings.style.row_separator));
  line("filename", shell.path());
}

void show_version(Shell& shell, const Words&) {
  shell.print(std::string("FleetDB, answering as SQLite ") + sqlite3_libversion() + "\n");
}

void quit(Shell& shell, const Words&) {
  shell.quit();
}

void quit_with_code(Shell& shell, const Words& words) {
  shell.quit();
  if (words.size() > 1 && std::atoi(words[1].c_str()) != 0) {
    shell.end_redirect();
    std::exit(std::atoi(words[1].c_str()));
  }
}

void set_output(Shell& shell, const Words& words) {
  shell.redirect(words.size() > 1 ? words[1] : "", false);
}
void set_output_once(Shell& shell, const Words& words) {
  if (words.size() != 2) {
    shell.complain("usage: .once FILE|'|COMMAND'");
    return;
  }
  shell.redirect(words[1], true);
}

void backup(Shell& shell, const Words& words) {
  if (words.size() < 2 || words.size() > 3) {
    shell.complain("usage: .backup ?DB? FILE");
    return;
  }
  const std::string& file = words.back();
  const std::string schema = words.size() == 3 ? words[1] : "main";
  // Into a file beside it first, so that a failure leaves an older backup alone.
  const std::string beside = file + ".new";
  ::unlink(beside.c_str());
  if (!shell.execute("VACUUM " + sql_name(schema) + " INTO " + sql_literal({SQLITE_TEXT, beside})))
    return;
  if (std::rename(beside.c_str(), file.c_str()) != 0)
    shell.complain("cannot write \"" + file + "\"");
}

void restore(Shell& shell, const Words& words) {
  if (words.size() < 2 || words.size() > 3) {
    shell.complain("usage: .restore ?DB? FILE");
    return;
  }
  sqlite3* source = nullptr;
  const std::string schema = words.size() == 3 ? words[1] : "main";
  if (sqlite3_open_v2(words.back().c_str(), &source, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK) {
    shell.complain("cannot open \"" + words.back() + "\"");
  } else {
    sqlite3_backup* copy = sqlite3_backup_init(shell.db(), schema.c_str(), source, "main");
    if (copy != nullptr) sqlite3_backup_step(copy, -1);
    // Finishing tells what stepping met, and frees the source even then.
    if (copy == nullptr || sqlite3_backup_finish(copy) != SQLITE_OK)
      shell.complain(sqlite3_errmsg(shell.db()));
  }
  sqlite3_close(source);
}

constexpr const char* kMakeParameters =
    "CREATE TABLE IF NOT EXISTS temp.sqlite_parameters(key TEXT PRIMARY KEY, value) WITHOUT ROWID";

// Runs SQL about the table of parameters, whose name only the shell may use.
bool on_parameters(Shell& shell, const std::string& sql) {
  int before = 0;
  sqlite3_db_config(shell.db(), SQLITE_DBCONFIG_WRITABLE_SCHEMA, -1, &before);
  sqlite3_db_config(shell.db(), SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, nullptr);
  const bool ok = sqlite3_exec(shell.db(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  sqlite3_db_config(shell.db(), SQLITE_DBCONFIG_WRITABLE_SCHEMA, before, nullptr);
  return ok;
}

void list_parameters(Shell& shell) {
  std::vector<std::pair<std::string, std::string>> pairs;
  size_t width = 0;
  if (shell.column_of("SELECT 1 FROM temp.sqlite_schema WHERE name = 'sqlite_parameters'").empty())
    return;
  shell.query("SELECT key, quote(value) FROM temp.sqlite_parameters",
              [&](const std::vector<Cell>& cells) {
                pairs.emplace_back(cells[0].text, cells[1].text);
                width = std::max(width, cells[0].text.size());
              });
  for (const auto& [key, value] : pairs)
    shell.print(key + std::string(width - key.size(), ' ') + " " + value + "\n");
}

void parameter(Shell& shell, const Words& words) {
  const std::string what = words.size() > 1 ? words[1] : "";
  if (what == "clear" && words.size() == 2) {
    on_parameters(shell, "DROP TABLE IF EXISTS temp.sqlite_parameters");
  } else if (what == "init" && words.size() == 2) {
    on_parameters(shell, kMakeParameters);
  } else if (what == "list" && words.size() == 2) {
    list_parameters(shell);
  } else if (what == "set" && words.size() == 4) {
    on_parameters(shell, kMakeParameters);
    const std::string put =
        "REPLACE INTO temp.sqlite_parameters VALUES(" + sql_literal({SQLITE_TEXT, words[2]}) + ",";
    // The value is an expression, or else a text.
    if (!on_parameters(shell, put + words[3] + ")") &&
        !on_parameters(shell, put + sql_literal({SQLITE_TEXT, words[3]}) + ")")) {
      shell.complain(sqlite3_errmsg(shell.db()));
    }
  } else if (what == "unset" && words.size() == 3) {
    on_parameters(shell, "DELETE FROM temp.sqlite_parameters WHERE key = " +
                             sql_literal({SQLITE_TEXT, words[2]}));
  } else {
    shell.complain("usage: .parameter clear | init | list | set NAME VALUE | unset NAME");
  }
}

template <bool Settings::* kSwitch>
void switch_command(Shell& shell, const Words& words) {
  set_switch(shell, words, shell.settings().*kSwitch);
}
void set_headers(Shell& shell, const Words& words) {
  set_switch(shell, words, shell.settings().style.headers);
}

void help(Shell& shell, const Words& words);

constexpr struct {
  const char* name;
  const char* arguments;
  const char* what;
  void (*run)(Shell&, const Words&);
} kCommands[] = {
    {".backup", "?DB? FILE", "Back up DB (default \"main\") to FILE", backup},
    {".bail", "on|off", "Stop after hitting an error", switch_command<&Settings::bail>},
    {".cd", "DIRECTORY", "Change the working directory", change_folder},
    {".changes", "on|off", "Show the number of rows changed by SQL",
     switch_command<&Settings::changes>},
    {".databases", "", "List names and files of attached databases", list_databases},
    {".dump", "?OBJECTS?", "Render the database content as SQL", dump_command},
    {".echo", "on|off", "Print commands before running them", switch_command<&Settings::echo>},
    {".eqp", "on|off", "Print the query plan before each result",
     switch_command<&Settings::explain_plan>},
    {".exit", "?CODE?", "Leave the shell, with CODE", quit_with_code},
    {".headers", "on|off", "Turn display of headers on or off", set_headers},
    {".help", "?PATTERN?", "Show help for the commands that match", help},
    {".import", "FILE TABLE", "Import data from FILE into TABLE", import_command},
    {".indexes", "?TABLE?", "Show names of indexes", list_indexes},
    {".limit", "?NAME? ?VALUE?", "Show or change a limit", show_limits},
    {".mode", "MODE ?TABLE?", "Set the output mode", set_mode},
    {".nullvalue", "STRING", "Print STRING in place of NULL", set_null_text},
    {".once", "FILE", "Send the next statement's output to FILE or '|COMMAND'", set_output_once},
    {".open", "?--readonly? ?--new? ?FILE?", "Close the database and open FILE", open_database},
    {".output", "?FILE?", "Send output to FILE, '|COMMAND' or back to stdout", set_output},
    {".parameter", "clear|init|list|set NAME VALUE|unset NAME", "Values for ?1, :a, @b and $c",
     parameter},
    {".print", "STRING...", "Print the words", print_words},
    {".prompt", "MAIN CONTINUE", "Replace the prompts", set_prompt},
    {".quit", "", "Leave the shell", quit},
    {".read", "FILE", "Run the lines of FILE", read_script},
    {".restore", "?DB? FILE", "Replace the content of DB (default \"main\") by FILE's", restore},
    {".save", "?DB? FILE", "The same as .backup", backup},
    {".schema", "?PATTERN?", "Show the CREATE statements that match", schema_command},
    {".separator", "COL ?ROW?", "Change the column and row separators", set_separator},
    {".shell", "COMMAND...", "Run COMMAND in the system's shell", run_system},
    {".show", "", "Show the current settings", show_settings},
    {".system", "COMMAND...", "Run COMMAND in the system's shell", run_system},
    {".tables", "?PATTERN?", "List tables and views that match", list_tables},
    {".timeout", "MS", "Try locked tables for MS milliseconds", set_timeout},
    {".timer", "on|off", "Print the time each statement took", switch_command<&Settings::timer>},
    {".version", "", "Show the version", show_version},
    {".width", "NUM1 NUM2 ...", "Set column widths for the aligned modes", set_widths},
};

void help(Shell& shell, const Words& words) {
  bool found = false;
  for (const auto& command : kCommands) {
    if (words.size() > 1 && std::string_view(command.name).find(words[1]) == std::string_view::npos)
      continue;
    found = true;
    std::string left = std::string(command.name) + " " + command.arguments;
    left.resize(std::max<size_t>(left.size() + 1, 34), ' ');
    shell.print(left + command.what + "\n");
  }
  if (!found) shell.print("Nothing matches '" + words[1] + "'\n");
}

}  // namespace

void run_command(Shell& shell, const std::string& line) {
  const Words words = words_of(line);
  if (words.empty()) return;
  // The whole name, or a prefix that only one command has.
  decltype(&kCommands[0]) match = nullptr;
  int matches = 0;
  for (const auto& command : kCommands) {
    if (words[0] == command.name) {
      command.run(shell, words);
      return;
    }
    if (words[0].size() > 1 && std::string_view(command.name).starts_with(words[0])) {
      if (matches++ == 0) match = &command;
    }
  }
  if (match != nullptr) {
    match->run(shell, words);
  } else {
    shell.complain("unknown command or invalid arguments:  \"" + words[0].substr(1) +
                   "\". Enter \".help\" for help");
  }
}

}  // namespace db::shell
