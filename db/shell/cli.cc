// fleetdb: the shell. Options follow the sqlite3 program, so that scripts and fingers need not
// change.
#include "db/shell/source.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

using db::shell::Mode;
using db::shell::Settings;
using db::shell::Shell;

constexpr char kUsage[] =
    "Usage: fleetdb [OPTIONS] [FILENAME [SQL...]]\n"
    "FILENAME is a SQLite database; it is created when it does not exist. Without one the database "
    "is in\n"
    "memory. SQL arguments are run instead of standard input.\n"
    "OPTIONS include:\n"
    "   -ascii -box -column -csv -html -json -line -list -markdown -quote -table -tabs\n"
    "                        set the output mode\n"
    "   -bail                stop after hitting an error\n"
    "   -batch               force batch I/O, no prompt\n"
    "   -cmd COMMAND         run COMMAND before reading standard input\n"
    "   -echo                print inputs before running them\n"
    "   -init FILE           read and run FILE first\n"
    "   -[no]header          turn headers on or off\n"
    "   -interactive         force interactive I/O\n"
    "   -newline SEP         set the row separator\n"
    "   -nullvalue TEXT      print TEXT for NULL\n"
    "   -readonly            open the database read-only\n"
    "   -separator SEP       set the column separator\n"
    "   -help                show this message\n"
    "   -version             show the version\n";

struct Invocation {
  Settings settings;
  std::string path = ":memory:";
  std::string init_file;
  std::vector<std::string> commands;  // -cmd
  std::vector<std::string> sql;
  bool batch = false;
  bool interactive = false;
};

Shell* g_shell = nullptr;

void on_interrupt(int) {
  if (g_shell != nullptr) g_shell->interrupt();
}

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "fleetdb: %s\nUse -help for a list of options.\n", what.c_str());
  std::exit(1);
}

// Options that take no value; true when `name` was one.
bool apply_flag(Invocation& call, std::string_view name) {
  db::shell::Style& style = call.settings.style;
  if (name == "bail") {
    call.settings.bail = true;
  } else if (name == "batch") {
    call.batch = true;
  } else if (name == "interactive") {
    call.interactive = true;
  } else if (name == "echo") {
    call.settings.echo = true;
  } else if (name == "header" || name == "noheader") {
    style.headers = name == "header";
  } else if (name == "readonly") {
    call.settings.read_only = true;
  } else {
    Mode mode;
    if (!db::shell::parse_mode(name, mode) || db::shell::name_of(mode) != name) return false;
    call.commands.insert(call.commands.begin(), ".mode " + std::string(name));
  }
  return true;
}

// Options with a value; true when `name` was one.
bool apply_option(Invocation& call, std::string_view name, const std::string& value) {
  if (name == "cmd") {
    call.commands.push_back(value);
  } else if (name == "init") {
    call.init_file = value;
  } else if (name == "newline") {
    call.settings.style.row_separator = value;
  } else if (name == "nullvalue") {
    call.settings.style.null_text = value;
  } else if (name == "separator") {
    call.commands.push_back(".separator '" + value + "'");
  } else {
    return false;
  }
  return true;
}

Invocation parse(int argc, char** argv) {
  Invocation call;
  bool has_path = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument.size() < 2 || argument[0] != '-') {
      if (has_path) {
        call.sql.emplace_back(argument);
      } else {
        call.path = argument;
        has_path = true;
      }
      continue;
    }
    const std::string_view name = argument.substr(argument.starts_with("--") ? 2 : 1);
    if (name == "help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (name == "version") {
      std::printf("%s (FleetDB)\n", sqlite3_libversion());
      std::exit(0);
    }
    if (apply_flag(call, name)) continue;
    if (i + 1 >= argc) refuse("unknown option, or a value is missing: " + std::string(argument));
    if (!apply_option(call, name, argv[++i])) refuse("unknown option: " + std::string(argument));
  }
  return call;
}

int run_interactive(Shell& shell) {
  std::printf("FleetDB, answering as SQLite %s. Enter \".help\" for usage hints.\n",
              sqlite3_libversion());
  if (shell.path() == ":memory:") {
    std::printf(
        "Connected to a transient in-memory database. Use \".open FILENAME\" for a file.\n");
  }
  return shell.run(*db::shell::terminal_source(shell));
}

}  // namespace

int main(int argc, char** argv) {
  Invocation call = parse(argc, argv);
  Shell shell(call.settings);
  if (!shell.open(call.path)) return 1;
  g_shell = &shell;
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  int errors = 0;
  if (!call.init_file.empty()) {
    std::unique_ptr<db::shell::LineSource> source = db::shell::file_source(call.init_file);
    if (source == nullptr) refuse("cannot open \"" + call.init_file + "\"");
    errors += shell.run(*source);
  }
  for (const std::string& command : call.commands) errors += shell.run_text(command);
  if (errors > 0 && call.settings.bail) return 1;
  const bool terminal = ::isatty(STDIN_FILENO) != 0;
  if (!call.sql.empty()) {
    for (const std::string& text : call.sql) {
      errors += shell.run_text(text);
      if (errors > 0 || shell.is_quitting()) break;
    }
  } else if (call.interactive || (terminal && !call.batch)) {
    errors = 0;  // a person has seen each one
    run_interactive(shell);
  } else {
    errors += shell.run(*db::shell::file_source("-"));
  }
  g_shell = nullptr;
  return errors > 0 ? 1 : 0;
}
