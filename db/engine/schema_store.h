// The schema as it is stored: loading it from sqlite_schema, changing its rows, the schema cookie.
// REQUIRES for changes: a write transaction. Single-threaded.
#pragma once

#include "db/catalog/session.h"

namespace db {

// Loads what is not loaded or has changed behind our back. Leaves a read transaction open.
Status load_schema(Session& session, int database);
Status load_all_schemas(Session& session);
// Does the stored cookie still agree with the loaded schema? Reading.
bool schema_is_current(const Database& database);

// The text encoding that a database's header names.
Encoding stored_encoding(const Store& store);
// Text of new databases from now on; nothing when main has one already. See PRAGMA encoding.
void choose_encoding(Session& session, Encoding encoding);

struct SchemaRow {
  std::string type, name, table;
  i64 root = 0;
  std::string sql;  // empty: NULL
};
Status add_schema_row(Session& session, int database, const SchemaRow& row);
// Rows for which `change` answers true are written back; `remove` takes them away.
enum class SchemaEdit : u8 { kKeep, kUpdate, kRemove };
Status edit_schema_rows(Session& session, int database,
                        const std::function<SchemaEdit(SchemaRow&)>& edit);
// Tells other connections (and our statements) that the schema is another one.
Status bump_cookie(Session& session, int database);

}  // namespace db
