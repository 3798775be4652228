#include "db/catalog/schema.h"

#include "db/sql/parser.h"

#include <charconv>

namespace db {
namespace {

Error malformed(std::string_view object, std::string_view why) {
  std::string text = "malformed database schema (" + std::string(object) + ")";
  if (!why.empty()) text += " - " + std::string(why);
  return Error(rc::kCorrupt, std::move(text));
}

}  // namespace

int Table::find_column(std::string_view column_name) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (equal_nocase(columns[i].name, column_name)) return static_cast<int>(i);
  }
  return -1;
}

bool is_rowid_name(std::string_view name) {
  return equal_nocase(name, "rowid") || equal_nocase(name, "oid") || equal_nocase(name, "_rowid_");
}

std::shared_ptr<Table> make_schema_table(std::string_view name) {
  auto table = std::make_shared<Table>();
  table->name = name;
  table->root = 1;
  static constexpr const char* kColumns[][2] = {{"type", "TEXT"},
                                                {"name", "TEXT"},
                                                {"tbl_name", "TEXT"},
                                                {"rootpage", "INT"},
                                                {"sql", "TEXT"}};
  for (const auto& [column_name, type] : kColumns) {
    Column column;
    column.name = column_name;
    column.declared_type = type;
    column.affinity = affinity_of_type(type);
    column.record_at = static_cast<int>(table->columns.size());
    table->record_columns.push_back(column.record_at);
    table->columns.push_back(std::move(column));
  }
  table->stored_columns = 5;
  return table;
}

Schema::Schema() = default;

void Schema::clear() {
  tables.clear();
  indexes.clear();
  triggers.clear();
  table_order.clear();
  loaded = false;
  ++generation;
}

Status Schema::add_object(std::string_view type, std::string_view object_name,
                          std::string_view table_name, i64 root, std::string_view sql_text) {
  ++generation;
  if (type == "index" && sql_text.empty()) {
    Index* index = find_index(object_name);
    if (index == nullptr) return malformed(object_name, "orphan index");
    index->root = static_cast<u32>(root);
    if (index->table->primary == index) index->table->root = index->root;
    return {};
  }
  auto definition = std::make_shared<Definition>();
  definition->sql = sql_text;
  sql::Parsed parsed = sql::parse(definition->sql, definition->arena);
  if (parsed.failed || parsed.statement == nullptr) return malformed(object_name, parsed.error);
  definition->statement = parsed.statement;
  Status added = malformed(object_name, "");
  switch (parsed.statement->kind) {
    case sql::StatementKind::kCreateTable:
    case sql::StatementKind::kCreateView:
    case sql::StatementKind::kCreateVirtualTable:
      added = add_table(std::move(definition), root);
      break;
    case sql::StatementKind::kCreateIndex:
      added = add_index(object_name, table_name, root, std::move(definition));
      break;
    case sql::StatementKind::kCreateTrigger:
      added = add_trigger(std::move(definition));
      break;
    default:
      break;
  }
  if (!added.ok() && added.error().code() != rc::kCorrupt) {
    return malformed(object_name, added.error().message());
  }
  return added;
}

Status Schema::add_table(std::shared_ptr<Definition> definition, i64 root) {
  std::shared_ptr<Table> table;
  switch (definition->statement->kind) {
    case sql::StatementKind::kCreateTable: {
      const auto& create = *definition->statement->as<sql::CreateTableStatement>();
      table = TRY(build_table(create, definition->sql));
      break;
    }
    case sql::StatementKind::kCreateView: {
      const auto& create = *definition->statement->as<sql::CreateViewStatement>();
      table = std::make_shared<Table>();
      table->name = create.name.text;
      table->kind = TableKind::kView;
      table->view = create.select;
      for (const sql::Name& name : create.columns) table->view_columns.emplace_back(name.text);
      break;
    }
    default: {
      const auto& create = *definition->statement->as<sql::CreateVirtualTableStatement>();
      table = std::make_shared<Table>();
      table->name = create.name.text;
      table->kind = TableKind::kVirtual;
      break;
    }
  }
  table->schema = this;
  table->root = static_cast<u32>(root);
  if (table->primary != nullptr) table->primary->root = table->root;
  table->definition = std::move(definition);
  for (auto& index : table->indexes) indexes[index->name] = index.get();
  if (tables.find(table->name) == tables.end()) table_order.push_back(table->name);
  tables[table->name] = std::move(table);
  return {};
}

Status Schema::add_index(std::string_view index_name, std::string_view table_name, i64 root,
                         std::shared_ptr<Definition> definition) {
  Table* table = find_table(table_name);
  if (table == nullptr) return malformed(index_name, "orphan index");
  const auto& create = *definition->statement->as<sql::CreateIndexStatement>();
  std::shared_ptr<Index> index = TRY(build_index(create, *table));
  index->root = static_cast<u32>(root);
  index->definition = std::move(definition);
  indexes[index->name] = index.get();
  table->indexes.push_back(std::move(index));
  return {};
}

Status Schema::add_trigger(std::shared_ptr<Definition> definition) {
  auto trigger = std::make_shared<Trigger>();
  trigger->statement = definition->statement->as<sql::CreateTriggerStatement>();
  trigger->name = trigger->statement->name.text;
  trigger->table = trigger->statement->table.text;
  trigger->schema = this;
  trigger->definition = std::move(definition);
  if (Table* table = find_table(trigger->table); table != nullptr) {
    table->triggers.push_back(trigger);
  }
  triggers[trigger->name] = std::move(trigger);
  return {};
}

void Schema::drop_table(std::string_view table_name) {
  auto it = tables.find(table_name);
  if (it == tables.end()) return;
  for (auto& index : it->second->indexes) indexes.erase(index->name);
  for (auto& trigger : it->second->triggers) {
    if (trigger->schema == this) triggers.erase(trigger->name);
  }
  std::erase_if(table_order,
                [&](const std::string& name) { return equal_nocase(name, table_name); });
  tables.erase(it);
  ++generation;
}

void Schema::drop_index(std::string_view index_name) {
  auto it = indexes.find(index_name);
  if (it == indexes.end()) return;
  // Statements that still run hold the table, and with it its indexes, as they were.
  Index* index = it->second;
  Table* table = index->table;
  indexes.erase(it);
  std::erase_if(table->indexes, [&](const auto& one) { return one.get() == index; });
  ++generation;
}

void Schema::drop_trigger(std::string_view trigger_name) {
  auto it = triggers.find(trigger_name);
  if (it == triggers.end()) return;
  std::shared_ptr<Trigger> trigger = it->second;
  triggers.erase(it);
  if (Table* table = find_table(trigger->table); table != nullptr) {
    std::erase_if(table->triggers, [&](const auto& one) { return one == trigger; });
  }
  ++generation;
}

void Schema::clear_stats() {
  for (auto& [name, table] : tables) {
    table->stat_rows = -1;
    for (auto& index : table->indexes) index->stat.clear();
  }
  ++generation;
}

void Schema::set_stat(std::string_view table_name, std::string_view index_name,
                      std::string_view stat) {
  Table* table = find_table(table_name);
  if (table == nullptr) return;
  std::vector<f64> figures;
  const char* p = stat.data();
  const char* end = p + stat.size();
  while (p < end) {
    while (p < end && *p == ' ') ++p;
    i64 figure = 0;
    auto [at, error] = std::from_chars(p, end, figure);
    if (error != std::errc()) break;
    figures.push_back(static_cast<f64>(figure));
    p = at;
  }
  if (figures.empty()) return;
  Index* index = index_name.empty() ? nullptr : find_index(index_name);
  if (index == nullptr && !index_name.empty() && equal_nocase(index_name, table_name)) {
    index = table->primary;
  }
  if (index != nullptr && index->table == table) {
    index->stat = figures;
    index->stat_unordered = stat.find("unordered") != std::string_view::npos;
    if (index->where == nullptr) table->stat_rows = figures[0];
  } else {
    table->stat_rows = figures[0];
  }
}

}  // namespace db
