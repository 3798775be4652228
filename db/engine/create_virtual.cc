// CREATE VIRTUAL TABLE.
#include "db/catalog/virtual_table.h"
#include "db/catalog/virtual_transaction.h"
#include "db/engine/command.h"
#include "db/engine/schema_store.h"
#include "db/engine/transaction.h"

namespace db {

Status create_virtual_table(const Command& command) {
  const auto& create = *command.statement->as<sql::CreateVirtualTableStatement>();
  Session& session = command.session;
  int at = TRY(database_for(session, create.schema, false));
  Database& database = *session.databases[static_cast<size_t>(at)];
  std::string name(create.name.text);
  TRY(authorize_command(command, 29, name, create.module.text, database.schema.name));
  if (database.schema.find_table(name) != nullptr) {
    if (create.if_not_exists) return {};
    const sql::Name& first = create.schema.present() ? create.schema : create.name;
    return Error(rc::kError,
                 "table " + std::string(create.name.span.in(command.sql)) + " already exists")
        .at(static_cast<int>(first.span.begin));
  }
  if (command.checking) return {};
  if (session.modules.find(create.module.text) == session.modules.end()) {
    return Error(rc::kError, "no such module: " + std::string(create.module.text));
  }
  TRY(begin_write(session, at));
  SchemaRow row{"table", name, name, 0,
                "CREATE VIRTUAL TABLE " + std::string(create.body.in(command.sql))};
  TRY(add_schema_row(session, at, row));
  TRY(database.schema.add_object(row.type, row.name, row.table, row.root, row.sql));
  Status connected = session.connect_virtual(*database.schema.find_table(name), true);
  if (!connected.ok()) {
    database.schema.drop_table(name);
    (void)edit_schema_rows(session, at, [&](SchemaRow& one) {
      return one.type == "table" && equal_nocase(one.name, name) ? SchemaEdit::kRemove
                                                                 : SchemaEdit::kKeep;
    });
    return connected;
  }
  join_created_virtual(session, database.schema.find_table(name)->virtual_table);
  return bump_cookie(session, at);
}

}  // namespace db
