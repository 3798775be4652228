#include "db/catalog/session.h"

#include "db/catalog/virtual_table.h"
#include "db/sql/parser.h"
#include "db/value/utf16.h"

namespace db {

const Collation* Session::collation(std::string_view name) {
  if (name.empty()) return binary_collation(encoding);
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto it = collations.find(name);
    if (it != collations.end()) return it->second.get();
    if (const Collation* builtin = builtin_collation(name); builtin != nullptr)
      return builtin == &kBinary ? binary_collation(encoding) : builtin;
    if (attempt == 0 && hooks.collation_needed) {
      hooks.collation_needed(name);
    } else {
      break;
    }
  }
  return nullptr;
}

int Session::database_index(std::string_view schema) const {
  for (size_t i = 0; i < databases.size(); ++i) {
    if (equal_nocase(databases[i]->schema.name, schema)) return static_cast<int>(i);
  }
  return equal_nocase(schema, "main") ? 0 : -1;
}

int Session::index_of(const Schema& schema) const {
  for (size_t i = 0; i < databases.size(); ++i) {
    if (&databases[i]->schema == &schema) return static_cast<int>(i);
  }
  return 0;
}

namespace {

bool is_schema_table(std::string_view name, bool temp) {
  if (temp) {
    return equal_nocase(name, "sqlite_temp_master") || equal_nocase(name, "sqlite_temp_schema");
  }
  return equal_nocase(name, "sqlite_master") || equal_nocase(name, "sqlite_schema");
}

Table* table_in(Database& database, bool temp, std::string_view name) {
  Table* table = database.schema.find_table(name);
  if (table != nullptr || name.size() < 13) return table;
  if (is_schema_table(name, false) || (temp && is_schema_table(name, true))) {
    return database.schema.find_table("sqlite_schema");
  }
  return nullptr;
}

}  // namespace

Table* Session::find_table(std::string_view schema, std::string_view name) {
  if (!schema.empty()) {
    int at = database_index(schema);
    return at < 0 ? nullptr : table_in(*databases[static_cast<size_t>(at)], at == 1, name);
  }
  // temp hides main, main hides the attached ones; sqlite_schema means main's.
  if (is_schema_table(name, false)) return table_in(*databases[0], false, name);
  if (Table* table = table_in(*databases[1], true, name); table != nullptr) return table;
  for (size_t i = 0; i < databases.size(); ++i) {
    if (i == 1) continue;
    if (Table* table = table_in(*databases[i], false, name); table != nullptr) return table;
  }
  return nullptr;
}

Index* Session::find_index(std::string_view schema, std::string_view name) {
  if (!schema.empty()) {
    int at = database_index(schema);
    return at < 0 ? nullptr : databases[static_cast<size_t>(at)]->schema.find_index(name);
  }
  if (Index* index = databases[1]->schema.find_index(name); index != nullptr) return index;
  for (size_t i = 0; i < databases.size(); ++i) {
    if (i == 1) continue;
    if (Index* index = databases[i]->schema.find_index(name); index != nullptr) return index;
  }
  return nullptr;
}

Status Session::connect_virtual(Table& table, bool create) {
  if (table.virtual_table != nullptr) return {};
  const auto& syntax = *table.definition->statement->as<sql::CreateVirtualTableStatement>();
  auto it = modules.find(syntax.module.text);
  if (it == modules.end()) {
    return Error(rc::kError, "no such module: " + std::string(syntax.module.text));
  }
  std::vector<std::string> args = {std::string(syntax.module.text), table.schema->name, table.name};
  for (std::string_view arg : syntax.args) args.emplace_back(arg);
  VirtualDeclaration declaration = TRY(it->second->connect(*this, args, create));
  std::shared_ptr<Table> shape = TRY(declare_virtual_table(std::move(declaration)));
  table.columns = shape->columns;
  table.record_columns = shape->record_columns;
  table.stored_columns = shape->stored_columns;
  table.without_rowid = shape->without_rowid;
  table.rowid_column = -1;
  table.virtual_table = shape->virtual_table;
  virtual_shapes.push_back(std::move(shape));  // defaults in `columns` point into its text
  return {};
}

Table* Session::eponymous_table(std::string_view name) {
  auto made = eponymous_tables.find(name);
  if (made != eponymous_tables.end()) return made->second.get();
  auto it = modules.find(name);
  if (it == modules.end() || !it->second->eponymous()) return nullptr;
  auto declared = it->second->connect(*this, {std::string(name), "main", std::string(name)}, false);
  if (!declared.ok()) return nullptr;
  auto table = declare_virtual_table(std::move(declared).value());
  if (!table.ok()) return nullptr;
  (*table)->name = name;
  (*table)->schema = &databases[0]->schema;
  return (eponymous_tables[std::string(name)] = std::move(table).value()).get();
}

u64 Session::plan_version() const {
  u64 version = schema_epoch + functions.version();
  for (const auto& database : databases) version += database->schema.generation;
  return version;
}

}  // namespace db
