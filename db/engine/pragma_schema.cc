// PRAGMA: tables, indexes, foreign keys, registries of the session, and the checks of a file.
#include "db/engine/pragma.h"
#include "db/plan/binder.h"

namespace db {
namespace {

Value optional_text(const std::string& text, bool present) {
  return present ? Value::text(text) : Value();
}

Result<Table*> table_of(Pragma& pragma) {
  Session& session = pragma.session;
  std::string_view schema =
      pragma.syntax.schema.present() ? pragma.syntax.schema.text : std::string_view();
  Table* table = session.find_table(schema, pragma.text());
  if (table != nullptr && table->kind == TableKind::kView && !table->view_resolved) {
    sql::Arena arena;
    Binder binder(session, arena);
    if (!binder.view_columns(table)) return binder.error();
  }
  return table;
}

Status table_info(Pragma& pragma, bool extended) {
  Table* table = TRY(table_of(pragma));
  if (table == nullptr) return {};
  i64 number = 0;
  for (const Column& column : table->columns) {
    int hidden = column.hidden                             ? 1
                 : column.generated == Generated::kVirtual ? 2
                 : column.generated == Generated::kStored  ? 3
                                                           : 0;
    if (!extended && hidden != 0) continue;
    std::vector<Value> row = {Value::integer(number++),
                              Value::text(column.name),
                              Value::text(column.declared_type),
                              Value::integer(column.not_null),
                              optional_text(column.default_text, column.has_default),
                              Value::integer(column.primary_key)};
    if (extended) row.push_back(Value::integer(hidden));
    pragma.rows.push_back(std::move(row));
  }
  return {};
}

void table_list(Pragma& pragma) {
  for (auto& database : pragma.session.databases) {
    if (pragma.syntax.schema.present() &&
        !equal_nocase(database->schema.name, pragma.syntax.schema.text))
      continue;
    for (auto& [name, table] : database->schema.tables) {
      if (pragma.has_value() && !equal_nocase(name, pragma.text())) continue;
      const char* type = table->kind == TableKind::kView      ? "view"
                         : table->kind == TableKind::kVirtual ? "virtual"
                                                              : "table";
      pragma.rows.push_back(
          {Value::text(database->schema.name),
           Value::text(table->root == 1 ? (&database->schema == &pragma.session.databases[1]->schema
                                               ? "sqlite_temp_schema"
                                               : "sqlite_schema")
                                        : table->name),
           Value::text(type), Value::integer(static_cast<i64>(table->columns.size())),
           Value::integer(table->without_rowid), Value::integer(table->strict)});
    }
  }
}

Status index_list(Pragma& pragma) {
  Table* table = TRY(table_of(pragma));
  if (table == nullptr) return {};
  i64 number = 0;
  for (size_t i = table->indexes.size(); i-- > 0;) {
    const Index& index = *table->indexes[i];
    pragma.rows.push_back(
        {Value::integer(number++), Value::text(index.name), Value::integer(index.unique),
         Value::text(std::string_view(&index.origin, 1)), Value::integer(index.where != nullptr)});
  }
  return {};
}

void index_info(Pragma& pragma, bool extended) {
  std::string_view schema =
      pragma.syntax.schema.present() ? pragma.syntax.schema.text : std::string_view();
  Index* index = pragma.session.find_index(schema, pragma.text());
  if (index == nullptr) {
    Table* table = pragma.session.find_table(schema, pragma.text());
    if (table == nullptr || !table->without_rowid) return;
    index = table->primary;
  }
  size_t count = extended ? index->columns.size() : static_cast<size_t>(index->key_columns);
  for (size_t i = 0; i < count; ++i) {
    const IndexColumn& column = index->columns[i];
    int at = column.column;
    const Table& table = *index->table;
    if (at == kRowid && table.rowid_column >= 0 && i < static_cast<size_t>(index->key_columns))
      at = table.rowid_column;
    std::vector<Value> row = {
        Value::integer(static_cast<i64>(i)), Value::integer(at),
        at >= 0 ? Value::text(table.columns[static_cast<size_t>(at)].name) : Value()};
    if (extended) {
      row.push_back(Value::integer(column.descending));
      row.push_back(Value::text(column.collation.empty() ? "BINARY" : column.collation));
      row.push_back(Value::integer(i < static_cast<size_t>(index->key_columns)));
    }
    pragma.rows.push_back(std::move(row));
  }
}

const char* action_name(sql::ForeignAction action) {
  switch (action) {
    case sql::ForeignAction::kRestrict:
      return "RESTRICT";
    case sql::ForeignAction::kSetNull:
      return "SET NULL";
    case sql::ForeignAction::kSetDefault:
      return "SET DEFAULT";
    case sql::ForeignAction::kCascade:
      return "CASCADE";
    default:
      return "NO ACTION";
  }
}

Status foreign_key_list(Pragma& pragma) {
  Table* table = TRY(table_of(pragma));
  if (table == nullptr) return {};
  i64 id = 0;
  for (size_t k = table->foreign_keys.size(); k-- > 0;) {
    const ForeignKey& key = table->foreign_keys[k];
    for (size_t i = 0; i < key.columns.size(); ++i) {
      pragma.rows.push_back(
          {Value::integer(id), Value::integer(static_cast<i64>(i)), Value::text(key.parent),
           Value::text(table->columns[static_cast<size_t>(key.columns[i])].name),
           i < key.parent_columns.size() ? Value::text(key.parent_columns[i]) : Value(),
           Value::text(action_name(key.on_update)), Value::text(action_name(key.on_delete)),
           Value::text("NONE")});
    }
    ++id;
  }
  return {};
}

// Rows without a parent: one query for each foreign key.
Status foreign_key_check(Pragma& pragma) {
  Schema& schema = pragma.schema();
  for (auto& [name, table] : schema.tables) {
    if (pragma.has_value() && !equal_nocase(name, pragma.text())) continue;
    i64 id = static_cast<i64>(table->foreign_keys.size()) - 1;
    for (const ForeignKey& key : table->foreign_keys) {
      i64 this_id = id--;
      Table* parent = schema.find_table(key.parent);
      std::string text = "SELECT " + std::string(table->without_rowid ? "NULL" : "c.rowid") +
                         " FROM " + quote_name(schema.name) + "." + quote_name(table->name) +
                         " AS c WHERE ";
      std::string match;
      std::vector<int> primary;
      for (size_t i = 0; i < key.columns.size(); ++i) {
        std::string child =
            "c." + quote_name(table->columns[static_cast<size_t>(key.columns[i])].name);
        text += child + " IS NOT NULL AND ";
        if (parent == nullptr) continue;
        std::string parent_column = i < key.parent_columns.size() ? key.parent_columns[i] : "";
        for (const Column& column : parent->columns) {
          if (parent_column.empty() && column.primary_key == static_cast<int>(i) + 1)
            parent_column = column.name;
        }
        if (parent_column.empty() || parent->find_column(parent_column) < 0) {
          return Error(rc::kError, "foreign key mismatch - " + quote_name(table->name) +
                                       " referencing " + quote_name(key.parent));
        }
        match += (match.empty() ? "" : " AND ") + std::string("p.") + quote_name(parent_column) +
                 "=" + child;
      }
      text += parent == nullptr ? "1"
                                : "NOT EXISTS (SELECT 1 FROM " + quote_name(schema.name) + "." +
                                      quote_name(key.parent) + " AS p WHERE " + match + ")";
      std::vector<std::vector<Value>> found;
      TRY(run_internal(pragma.session, text, &found));
      for (auto& row : found) {
        pragma.rows.push_back(
            {Value::text(table->name), row[0], Value::text(key.parent), Value::integer(this_id)});
      }
    }
  }
  return {};
}

Status integrity_check(Pragma& pragma, bool quick) {
  i64 limit = pragma.has_value() && pragma.integer() > 0 ? pragma.integer() : 100;
  size_t found = 0;
  for (size_t d = 0; d < pragma.session.databases.size(); ++d) {
    Database& database = *pragma.session.databases[d];
    if (pragma.syntax.schema.present() && static_cast<int>(d) != pragma.database) continue;
    if (database.store == nullptr) continue;
    TRY(begin_read(pragma.session, static_cast<int>(d)));
    std::vector<PageNo> roots;
    for (auto& [name, table] : database.schema.tables) {
      if (table->kind != TableKind::kTable || table->root == 1) continue;
      roots.push_back(table->root);
      for (auto& index : table->indexes) {
        if (index.get() != table->primary) roots.push_back(index->root);
      }
    }
    auto messages = database.store->integrity_check(roots, static_cast<int>(limit));
    if (!messages.ok()) return storage_error(messages.error());
    for (const std::string& message : messages.value()) {
      if (static_cast<i64>(found++) < limit) pragma.answer(message);
    }
    if (quick) continue;
    for (auto& [name, table] : database.schema.tables) {
      if (table->kind != TableKind::kTable || table->root == 1) continue;
      Cursor rows(*database.store, table->root, nullptr);
      auto count = rows.count();
      if (!count.ok()) continue;
      for (auto& index : table->indexes) {
        if (index.get() == table->primary || index->where != nullptr) continue;
        Cursor entries(*database.store, index->root, nullptr);
        auto entry_count = entries.count();
        if (entry_count.ok() && entry_count.value() != count.value() &&
            static_cast<i64>(found++) < limit) {
          pragma.answer("wrong # of entries in index " + index->name);
        }
      }
    }
  }
  if (found == 0) pragma.answer("ok");
  return {};
}
}  // namespace

Status run_schema_pragma(Pragma& pragma, std::string_view name, bool* known) {
  Session& session = pragma.session;
  *known = true;
  if (name == "table_info") return table_info(pragma, false);
  if (name == "table_xinfo") return table_info(pragma, true);
  if (name == "table_list") return table_list(pragma), Status();
  if (name == "index_list") return index_list(pragma);
  if (name == "index_info") return index_info(pragma, false), Status();
  if (name == "index_xinfo") return index_info(pragma, true), Status();
  if (name == "foreign_key_list") return foreign_key_list(pragma);
  if (name == "foreign_key_check") return foreign_key_check(pragma);
  if (name == "integrity_check") return integrity_check(pragma, false);
  if (name == "quick_check") return integrity_check(pragma, true);
  if (name == "database_list") {
    for (size_t i = 0; i < session.databases.size(); ++i) {
      Database& database = *session.databases[i];
      if (i == 1 && database.schema.tables.size() <= 1) continue;
      pragma.rows.push_back({Value::integer(static_cast<i64>(i)), Value::text(database.schema.name),
                             Value::text(database.path)});
    }
    return {};
  }
  if (name == "collation_list") {
    i64 number = 0;
    for (const auto& [collation, one] : session.collations) {
      pragma.rows.push_back({Value::integer(number++), Value::text(collation)});
    }
    for (const char* builtin : {"RTRIM", "NOCASE", "BINARY"}) {
      pragma.rows.push_back({Value::integer(number++), Value::text(builtin)});
    }
    return {};
  }
  if (name == "module_list") {
    for (const auto& [module, code] : session.modules) pragma.rows.push_back({Value::text(module)});
    return {};
  }
  if (name == "function_list") {
    for (const Function* function : session.functions.all()) {
      pragma.rows.push_back(
          {Value::text(function->name), Value::integer(function->has(function_flag::kBuiltIn)),
           Value::text(function->is_window_capable() ? "w"
                       : function->is_aggregate()    ? "a"
                                                     : "s"),
           Value::text("utf8"), Value::integer(function->arg_count),
           Value::integer(function->has(function_flag::kDeterministic) ? 2048 : 0)});
    }
    return {};
  }
  *known = false;
  return {};
}

}  // namespace db
