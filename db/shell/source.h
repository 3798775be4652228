// Where the shell's lines come from: a file, standard input, or a terminal with editing, history
// and completion (libedit).
#pragma once

#include "db/shell/shell.h"

#include <memory>
#include <string>

namespace db::shell {

// Null when the file cannot be read. "-" is standard input.
std::unique_ptr<LineSource> file_source(const std::string& path);

// Reads from the terminal; history is kept in ~/.fleetdb_history between runs.
std::unique_ptr<LineSource> terminal_source(Shell& shell);

}  // namespace db::shell
