// DROP TABLE, INDEX, VIEW, TRIGGER; REINDEX.
#include "db/catalog/virtual_table.h"
#include "db/engine/command.h"
#include "db/engine/schema_store.h"
#include "db/engine/transaction.h"

#include <algorithm>

namespace db {
namespace {

Error failure(std::string text) {
  return Error(rc::kError, std::move(text));
}

// In an auto-vacuum file a tree may move into the freed root's place.
Status drop_root(Session& session, int at, u32 root) {
  Database& database = *session.databases[static_cast<size_t>(at)];
  auto moved = database.store->drop_tree(root);
  if (!moved.ok()) return storage_error(moved.error());
  u32 from = moved.value();
  if (from == 0) return {};
  for (auto& [name, table] : database.schema.tables) {
    if (table->root == from) table->root = root;
    for (auto& index : table->indexes) {
      if (index->root == from) index->root = root;
    }
  }
  return edit_schema_rows(session, at, [&](SchemaRow& row) {
    if (row.root != static_cast<i64>(from)) return SchemaEdit::kKeep;
    row.root = root;
    return SchemaEdit::kUpdate;
  });
}

Status drop_table(Session& session, int at, Table& table) {
  Database& database = *session.databases[static_cast<size_t>(at)];
  std::string name = table.name;
  if (table.kind == TableKind::kTable && session.foreign_keys) {
    TRY(run_internal(session,
                     "DELETE FROM " + quote_name(database.schema.name) + "." + quote_name(name),
                     nullptr));
  }
  std::vector<u32> roots;
  if (table.kind == TableKind::kTable) {
    roots.push_back(table.root);
    for (const auto& index : table.indexes) {
      if (index.get() != table.primary) roots.push_back(index->root);
    }
  }
  TRY(edit_schema_rows(session, at, [&](SchemaRow& row) {
    return equal_nocase(row.table, name) ? SchemaEdit::kRemove : SchemaEdit::kKeep;
  }));
  for (const char* side : {"sqlite_sequence", "sqlite_stat1", "sqlite_stat4"}) {
    if (database.schema.find_table(side) == nullptr) continue;
    const char* column = std::string_view(side) == "sqlite_sequence" ? "name" : "tbl";
    Value parameter = Value::text(name);
    TRY(run_internal(
        session,
        "DELETE FROM " + quote_name(database.schema.name) + "." + side + " WHERE " + column + "=?1",
        nullptr, {&parameter, 1}));
  }
  if (table.virtual_table != nullptr) TRY(table.virtual_table->destroy());
  database.schema.drop_table(name);
  std::sort(roots.rbegin(), roots.rend());
  for (u32 root : roots) TRY(drop_root(session, at, root));
  // Triggers of temp that watched the table go with it.
  Database& temp = *session.databases[1];
  if (at != 1 && temp.store != nullptr) {
    std::vector<std::string> names;
    for (const auto& [trigger_name, trigger] : temp.schema.triggers) {
      if (equal_nocase(trigger->table, name)) names.push_back(trigger_name);
    }
    for (const std::string& one : names) temp.schema.drop_trigger(one);
  }
  return bump_cookie(session, at);
}

}  // namespace

Status drop_object(const Command& command) {
  const auto& drop = *command.statement->as<sql::DropStatement>();
  Session& session = command.session;
  std::string name(drop.name.text);
  std::string_view schema = drop.schema.present() ? drop.schema.text : std::string_view();
  std::string full = (schema.empty() ? "" : std::string(schema) + ".") + name;
  switch (drop.object) {
    case sql::ObjectKind::kTable:
    case sql::ObjectKind::kView: {
      Table* table = session.find_table(schema, name);
      bool view = drop.object == sql::ObjectKind::kView;
      if (table == nullptr) {
        if (drop.if_exists) return {};
        return failure(std::string("no such ") + (view ? "view: " : "table: ") + full);
      }
      if (view && table->kind != TableKind::kView) {
        return failure("use DROP TABLE to delete table " + table->name);
      }
      if (!view && table->kind == TableKind::kView) {
        return failure("use DROP VIEW to delete view " + table->name);
      }
      if ((table->is_system() && !equal_nocase(table->name.substr(0, 11), "sqlite_stat") &&
           !equal_nocase(table->name, "sqlite_parameters")) ||  // the shell's table of parameters
          table->root == 1) {
        return failure("table " + table->name + " may not be dropped");
      }
      int at = session.index_of(*table->schema);
      TRY(authorize_command(command, view ? (at == 1 ? 15 : 17) : (at == 1 ? 13 : 11), table->name,
                            "", table->schema->name));
      if (command.checking) return {};
      if (session.running_readers > 0 && table->kind == TableKind::kTable) {
        return Error(rc::kLocked, "database table is locked");
      }
      TRY(begin_write(session, at));
      return drop_table(session, at, *table);
    }
    case sql::ObjectKind::kIndex: {
      Index* index = session.find_index(schema, name);
      if (index == nullptr) {
        if (drop.if_exists) return {};
        return failure("no such index: " + full);
      }
      if (index->origin != 'c') {
        return failure("index associated with UNIQUE or PRIMARY KEY constraint cannot be dropped");
      }
      int at = session.index_of(*index->table->schema);
      TRY(authorize_command(command, at == 1 ? 12 : 10, index->name, index->table->name,
                            index->table->schema->name));
      if (command.checking) return {};
      if (session.running_readers > 0) return Error(rc::kLocked, "database table is locked");
      TRY(begin_write(session, at));
      u32 root = index->root;
      TRY(edit_schema_rows(session, at, [&](SchemaRow& row) {
        return row.type == "index" && equal_nocase(row.name, name) ? SchemaEdit::kRemove
                                                                   : SchemaEdit::kKeep;
      }));
      session.databases[static_cast<size_t>(at)]->schema.drop_index(name);
      TRY(drop_root(session, at, root));
      return bump_cookie(session, at);
    }
    case sql::ObjectKind::kTrigger: {
      for (size_t i = 0; i < session.databases.size(); ++i) {
        Schema& one = session.databases[i == 0 ? 1 : i == 1 ? 0 : i]->schema;
        if (!schema.empty() && !equal_nocase(one.name, schema)) continue;
        Trigger* trigger = one.find_trigger(name);
        if (trigger == nullptr) continue;
        int at = session.index_of(one);
        TRY(authorize_command(command, at == 1 ? 14 : 16, trigger->name, trigger->table, one.name));
        if (command.checking) return {};
        TRY(begin_write(session, at));
        TRY(edit_schema_rows(session, at, [&](SchemaRow& row) {
          return row.type == "trigger" && equal_nocase(row.name, name) ? SchemaEdit::kRemove
                                                                       : SchemaEdit::kKeep;
        }));
        one.drop_trigger(name);
        return bump_cookie(session, at);
      }
      if (drop.if_exists) return {};
      return failure("no such trigger: " + full);
    }
  }
  return {};
}

Status reindex(const Command& command) {
  const auto& statement = *command.statement->as<sql::ReindexStatement>();
  Session& session = command.session;
  std::string_view schema = statement.schema.present() ? statement.schema.text : std::string_view();
  std::string_view name = statement.name.present() ? statement.name.text : std::string_view();
  bool matched = name.empty();
  bool is_collation = !name.empty() && schema.empty() && session.collation(name) != nullptr;
  for (size_t i = 0; i < session.databases.size(); ++i) {
    Schema& one = session.databases[i]->schema;
    if (!schema.empty() && !equal_nocase(one.name, schema)) continue;
    for (auto& [table_name, table] : one.tables) {
      for (auto& index : table->indexes) {
        if (index.get() == table->primary) continue;
        bool wanted =
            name.empty() || equal_nocase(table->name, name) || equal_nocase(index->name, name);
        for (const IndexColumn& column : index->columns) {
          wanted |= is_collation &&
                    equal_nocase(column.collation.empty() ? "BINARY" : column.collation, name);
        }
        matched |= equal_nocase(table->name, name);
        if (!wanted) continue;
        matched = true;
        if (command.checking) continue;
        TRY(begin_write(session, static_cast<int>(i)));
        auto cleared = session.databases[i]->store->clear_tree(index->root);
        if (!cleared.ok()) return storage_error(cleared.error());
        ++session.write_epoch;
        TRY(fill_index(session, *table, *index));
      }
      matched |= !name.empty() && equal_nocase(table->name, name);
    }
  }
  if (!schema.empty() && session.database_index(schema) < 0) {
    return failure("unknown database " + std::string(schema))
        .at(static_cast<int>(statement.schema.span.begin));
  }
  if (!matched && !is_collation) {
    return failure("unable to identify the object to be reindexed");
  }
  return {};
}

}  // namespace db
