// .dump and .schema: a database as SQL text.
#pragma once

#include "db/shell/shell.h"

#include <string>
#include <vector>

namespace db::shell {

void dump_command(Shell& shell, const std::vector<std::string>& words);
void schema_command(Shell& shell, const std::vector<std::string>& words);

}  // namespace db::shell
