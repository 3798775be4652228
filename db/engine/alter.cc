// ALTER TABLE: ADD COLUMN, DROP COLUMN, RENAME TO, RENAME COLUMN.
#include "db/engine/command.h"
#include "db/engine/schema_store.h"
#include "db/engine/transaction.h"
#include "db/exec/table_cursor.h"

namespace db {
namespace {

Error failure(std::string text) {
  return Error(rc::kError, std::move(text));
}

Status reload(Session& session, int at) {
  TRY(bump_cookie(session, at));
  Database& database = *session.databases[static_cast<size_t>(at)];
  database.schema.clear();
  database.schema_changed = true;
  Status loaded = load_schema(session, at);
  database.schema_changed = true;
  return loaded;
}

Status add_column(const Command& command, const sql::AlterStatement& alter, Table& table, int at) {
  Session& session = command.session;
  std::string definition(alter.text.in(command.sql));
  const sql::ColumnDef& added = *alter.added;
  bool not_null = false;
  bool has_default = false;
  bool null_default = true;
  for (const sql::ColumnConstraint* one : added.constraints) {
    switch (one->kind) {
      case sql::ColumnConstraintKind::kPrimaryKey:
        return failure("Cannot add a PRIMARY KEY column");
      case sql::ColumnConstraintKind::kUnique:
        return failure("Cannot add a UNIQUE column");
      case sql::ColumnConstraintKind::kNotNull:
        not_null = true;
        break;
      case sql::ColumnConstraintKind::kDefault: {
        has_default = true;
        Value value = TRY(constant_of(command, one->expr));
        null_default = value.is_null();
        if (const auto* call = one->expr->is<sql::FunctionExpr>(); call != nullptr) {
          if (command.checking) break;  // SQLite finds these two when it runs
          return failure("Cannot add a column with non-constant default");
        }
        break;
      }
      case sql::ColumnConstraintKind::kGenerated:
        if (one->stored && !command.checking) return failure("cannot add a STORED column");
        break;
      default:
        break;
    }
  }
  if (table.find_column(added.name.text) >= 0) {
    return failure("duplicate column name: " + std::string(added.name.text));
  }
  if (command.checking) return {};
  Cursor cursor(*table.schema->store, table.root, nullptr);
  auto empty = cursor.empty();
  bool has_rows = empty.ok() && !empty.value();
  if (not_null && (!has_default || null_default) && has_rows) {
    return failure("Cannot add a NOT NULL column with default value NULL");
  }
  cursor.close();
  std::string name = table.name;
  TRY(edit_schema_rows(session, at, [&](SchemaRow& row) {
    if (row.type != "table" || !equal_nocase(row.name, name)) return SchemaEdit::kKeep;
    // Behind the last column definition: before the first table constraint or the closing bracket.
    const auto& create = *table.definition->statement->as<sql::CreateTableStatement>();
    u32 end = create.columns[create.columns.size() - 1]->span.end;
    row.sql.insert(end, ", " + definition);
    return SchemaEdit::kUpdate;
  }));
  return reload(session, at);
}

Status drop_column(const Command& command, const sql::AlterStatement& alter, Table& table, int at) {
  Session& session = command.session;
  std::string column_name(alter.column.text);
  int column = table.find_column(column_name);
  if (column < 0) {
    return failure("no such column: \"" + column_name + "\"")
        .at(static_cast<int>(alter.column.span.begin));
  }
  const Column& definition = table.columns[static_cast<size_t>(column)];
  if (definition.primary_key > 0)
    return failure("cannot drop PRIMARY KEY column: \"" + column_name + "\"");
  for (const auto& index : table.indexes) {
    for (int i = 0; i < index->key_columns; ++i) {
      if (index->columns[static_cast<size_t>(i)].column != column) continue;
      if (index->origin == 'u')
        return failure("cannot drop UNIQUE column: \"" + column_name + "\"");
    }
  }
  if (table.columns.size() == 1)
    return failure("cannot drop column \"" + column_name + "\": no other columns exist");
  if (command.checking) return {};
  for (const auto& index : table.indexes) {
    for (int i = 0; i < index->key_columns; ++i) {
      if (index->columns[static_cast<size_t>(i)].column != column) continue;
      return failure("error in index " + index->name +
                     " after drop column: no such column: " + column_name);
    }
  }
  const auto& create = *table.definition->statement->as<sql::CreateTableStatement>();
  size_t place = static_cast<size_t>(column);
  u32 begin = place == 0 ? create.columns[0]->span.begin : create.columns[place - 1]->span.end;
  u32 end = place == 0 ? create.columns[1]->span.begin : create.columns[place]->span.end;
  // Rewrite the rows first, with the table as it is.
  std::string name = table.name;
  if (definition.generated != Generated::kVirtual) {
    Cursor cursor(*table.schema->store, table.root, nullptr);
    if (table.without_rowid)
      return failure("cannot drop column \"" + column_name + "\" of a WITHOUT ROWID table");
    std::vector<std::pair<i64, std::string>> rows;
    for (Hit hit = cursor.first(); hit == Hit::kRow; hit = cursor.next()) {
      ByteView payload;
      if (cursor.payload(&payload) != Hit::kRow) return storage_error(cursor.error());
      std::vector<Value> values;
      decode_record(base::as_text(payload), values);
      if (static_cast<size_t>(definition.record_at) < values.size()) {
        values.erase(values.begin() + definition.record_at);
      }
      std::string record;
      encode_record(values, record);
      rows.emplace_back(cursor.rowid(), std::move(record));
    }
    for (const auto& [rowid, record] : rows) {
      if (cursor.insert(rowid, base::as_bytes(record)) == Hit::kError)
        return storage_error(cursor.error());
    }
    ++session.write_epoch;
  }
  TRY(edit_schema_rows(session, at, [&](SchemaRow& row) {
    if (row.type != "table" || !equal_nocase(row.name, name)) return SchemaEdit::kKeep;
    row.sql.erase(begin, end - begin);
    return SchemaEdit::kUpdate;
  }));
  return reload(session, at);
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (static_cast<u8>(c) & 0x80) != 0;
}

// Replaces an identifier wherever it stands as a token of its own outside strings and comments.
std::string replace_identifier(const std::string& text, std::string_view from,
                               const std::string& to, bool quote) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    char c = text[at];
    size_t end = at + 1;
    if (c == '\'') {
      while (end < text.size() && text[end] != '\'') ++end;
      if (end < text.size()) ++end;
    } else if (c == '"' || c == '`' || c == '[') {
      char close = c == '[' ? ']' : c;
      while (end < text.size() && text[end] != close) ++end;
      if (end < text.size()) ++end;
      if (end - at >= 2 &&
          equal_nocase(std::string_view(text).substr(at + 1, end - at - 2), from)) {
        out += quote_name(to);
        at = end;
        continue;
      }
    } else if (c == '-' && end < text.size() && text[end] == '-') {
      while (end < text.size() && text[end] != '\n') ++end;
    } else if (is_word(c)) {
      while (end < text.size() && is_word(text[end])) ++end;
      if (equal_nocase(std::string_view(text).substr(at, end - at), from)) {
        bool plain = !quote && !to.empty() && !(to[0] >= '0' && to[0] <= '9');
        for (char one : to) plain &= is_word(one);
        out += plain ? to : quote_name(to);
        at = end;
        continue;
      }
    }
    out.append(text, at, end - at);
    at = end;
  }
  return out;
}

Status rename_table(const Command& command, const sql::AlterStatement& alter, Table& table,
                    int at) {
  Session& session = command.session;
  std::string from = table.name;
  std::string to(alter.new_name.text);
  Schema& schema = session.databases[static_cast<size_t>(at)]->schema;
  if (schema.find_table(to) != nullptr && !equal_nocase(from, to)) {
    return failure("there is already another table or index with this name: " + to);
  }
  if (schema.find_index(to) != nullptr) {
    return failure("there is already another table or index with this name: " + to);
  }
  if (to.size() >= 7 && equal_nocase(to.substr(0, 7), "sqlite_")) {
    return failure("object name reserved for internal use: " + to);
  }
  if (command.checking) return {};
  TRY(edit_schema_rows(session, at, [&](SchemaRow& row) {
    bool mine = equal_nocase(row.table, from);
    std::string before = row.sql;
    if (mine && row.type == "table") {
      // The name stands right behind CREATE TABLE; references to itself follow.
      row.sql = replace_identifier(row.sql, from, to, true);
      row.name = to;
    } else {
      row.sql = replace_identifier(row.sql, from, to, true);
    }
    if (mine) {
      row.table = to;
      if (row.type == "index" && row.sql.empty()) {
        std::string prefix = "sqlite_autoindex_" + from + "_";
        if (row.name.starts_with(prefix))
          row.name = "sqlite_autoindex_" + to + "_" + row.name.substr(prefix.size());
      }
    }
    return mine || row.sql != before ? SchemaEdit::kUpdate : SchemaEdit::kKeep;
  }));
  if (schema.find_table("sqlite_sequence") != nullptr) {
    Value names[2] = {Value::text(to), Value::text(from)};
    TRY(run_internal(
        session, "UPDATE " + quote_name(schema.name) + ".sqlite_sequence SET name=?1 WHERE name=?2",
        nullptr, names));
  }
  return reload(session, at);
}

Status rename_column(const Command& command, const sql::AlterStatement& alter, Table& table,
                     int at) {
  Session& session = command.session;
  std::string from(alter.column.text);
  std::string to(alter.new_name.text);
  int column = table.find_column(from);
  if (column < 0) {
    return failure("no such column: \"" + from + "\"")
        .at(static_cast<int>(alter.column.span.begin));
  }
  if (command.checking) return {};
  if (table.find_column(to) >= 0 && !equal_nocase(from, to))
    return failure("duplicate column name: " + to);
  std::string name = table.name;
  TRY(edit_schema_rows(session, at, [&](SchemaRow& row) {
    if (row.sql.empty()) return SchemaEdit::kKeep;
    bool mentions = equal_nocase(row.table, name) ||
                    ((row.type == "view" || row.type == "trigger") &&
                     lower_ascii(row.sql).find(lower_ascii(name)) != std::string::npos);
    if (!mentions) {
      // A child's REFERENCES name(column).
      if (row.type != "table" ||
          lower_ascii(row.sql).find("references " + lower_ascii(name)) == std::string::npos) {
        return SchemaEdit::kKeep;
      }
    }
    std::string renamed = replace_identifier(row.sql, from, to, false);
    if (renamed == row.sql) return SchemaEdit::kKeep;
    row.sql = renamed;
    return SchemaEdit::kUpdate;
  }));
  return reload(session, at);
}

}  // namespace

Status alter_table(const Command& command) {
  const auto& alter = *command.statement->as<sql::AlterStatement>();
  Session& session = command.session;
  std::string_view schema = alter.schema.present() ? alter.schema.text : std::string_view();
  Table* table = session.find_table(schema, alter.table.text);
  if (table == nullptr) {
    return failure("no such table: " + (schema.empty() ? "" : std::string(schema) + ".") +
                   std::string(alter.table.text));
  }
  if (table->is_system() || table->root == 1)
    return failure("table " + table->name + " may not be altered");
  int at = session.index_of(*table->schema);
  TRY(authorize_command(command, 26, table->schema->name, table->name, ""));
  if (table->kind == TableKind::kView) {
    return failure(alter.action == sql::AlterKind::kRenameColumn
                       ? "cannot rename columns of view \"" + table->name + "\""
                   : alter.action == sql::AlterKind::kAddColumn
                       ? std::string("Cannot add a column to a view")
                   : alter.action == sql::AlterKind::kDropColumn
                       ? "cannot drop column from view \"" + table->name + "\""
                       : "view " + table->name + " may not be altered");
  }
  if (!command.checking) TRY(begin_write(session, at));
  std::shared_ptr<Table> alive =
      session.databases[static_cast<size_t>(at)]->schema.tables[table->name];
  switch (alter.action) {
    case sql::AlterKind::kAddColumn:
      return add_column(command, alter, *table, at);
    case sql::AlterKind::kDropColumn:
      return drop_column(command, alter, *table, at);
    case sql::AlterKind::kRenameTable:
      return rename_table(command, alter, *table, at);
    case sql::AlterKind::kRenameColumn:
      return rename_column(command, alter, *table, at);
    default:
      return failure("ALTER TABLE of constraints is not supported by this version");
  }
}

}  // namespace db
