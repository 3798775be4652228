// A pragma that runs, and the parts that pragmas are kept in. Single-threaded.
#pragma once

#include "db/engine/command.h"
#include "db/engine/transaction.h"

namespace db {

struct Pragma {
  const Command& command;
  const sql::PragmaStatement& syntax;
  Session& session;
  std::vector<std::vector<Value>> rows;
  int database = 0;

  bool has_value() const { return syntax.has_value; }
  std::string text() const { return (syntax.negative ? "-" : "") + std::string(syntax.value); }
  i64 integer() const { return parse_integer_prefix(text()); }
  bool boolean() const {
    std::string value = lower_ascii(text());
    if (value == "on" || value == "yes" || value == "true") return true;
    if (value == "off" || value == "no" || value == "false") return false;
    return integer() != 0;
  }
  Store& store() { return *session.databases[static_cast<size_t>(database)]->store; }
  Schema& schema() { return session.databases[static_cast<size_t>(database)]->schema; }
  void answer(i64 value) { rows.push_back({Value::integer(value)}); }
  void answer(std::string_view value) { rows.push_back({Value::text(value)}); }
  Status write() { return begin_write(session, database); }
};

// Pragmas that tell of the schema, of the session's registries and of the file's soundness. *known
// is false when `name` is none of them.
Status run_schema_pragma(Pragma& pragma, std::string_view name, bool* known);

}  // namespace db
