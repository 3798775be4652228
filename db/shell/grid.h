// The modes that align columns: column, table, box, markdown. They hold all rows of a statement.
#pragma once

#include "db/shell/table.h"

#include <memory>
#include <string>
#include <string_view>

namespace db::shell {

std::unique_ptr<Printer> make_grid_printer(const Style& style, std::string& out);

// Columns that a text takes on a terminal.
int display_width(std::string_view text);

}  // namespace db::shell
