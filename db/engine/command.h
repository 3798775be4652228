// Statements that are not queries or row changes: DDL, transactions, PRAGMA, ATTACH, ANALYZE,
// VACUUM, REINDEX. A command is checked when it is prepared (names, authorizer: `checking`), runs
// at the first step and may leave rows to be read.
//
// Errors: SQLite's texts. Single-threaded.
#pragma once

#include "db/catalog/session.h"
#include "db/sql/ast.h"

#include <string>
#include <vector>

namespace db {

struct CommandResult {
  std::vector<std::vector<Value>> rows;
};

struct Command {
  Session& session;
  const sql::Statement* statement;
  std::string_view sql;
  std::span<const Value> parameters;
  bool checking = false;  // look for what is wrong, change nothing
};

// What the command will answer, known when it is prepared.
std::vector<std::string> command_columns(const Command& command);
// Does it change the database file?
bool command_writes(const sql::Statement& statement);
// What prepare must find: unknown and taken names, faulty definitions, what the authorizer forbids.
// REQUIRES: `checking`.
Status check_command(const Command& command);
Result<CommandResult> run_command(const Command& command);

// --- one file each
Status create_table(const Command& command);
Status create_index(const Command& command);
Status create_view(const Command& command);
Status create_trigger(const Command& command);
Status create_virtual_table(const Command& command);
Status drop_object(const Command& command);
Status alter_table(const Command& command);
Status reindex(const Command& command);
Status analyze(const Command& command);
Status vacuum(const Command& command);
Status attach(const Command& command);
Status detach(const Command& command);
Status check_pragma(const Command& command);
Result<CommandResult> run_pragma(const Command& command);
std::vector<std::string> pragma_columns(const sql::PragmaStatement& pragma);

// Fills an empty index from its table.
Status fill_index(Session& session, const Table& table, const Index& index);
// Runs SQL inside the current transaction; `rows` may be null.
Status run_internal(Session& session, std::string_view sql, std::vector<std::vector<Value>>* rows,
                    std::span<const Value> parameters = {});
// Which database a CREATE's name refers to; the error is "unknown database x".
Result<int> database_for(Session& session, const sql::Name& schema, bool temporary);
// The value of an expression without columns, a bare name being its text.
Result<Value> constant_of(const Command& command, const sql::Expr* expr);
std::string quote_name(std::string_view name);
// Asks the authorizer, which wants to be asked when a statement is prepared: nothing while it runs.
Status authorize_command(const Command& command, int action, std::string_view a, std::string_view b,
                         std::string_view schema);

}  // namespace db
