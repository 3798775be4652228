// ATTACH, DETACH, VACUUM, ANALYZE.
#include "db/engine/command.h"
#include "db/engine/connection.h"
#include "db/engine/schema_store.h"
#include "db/engine/transaction.h"
#include "db/exec/table_cursor.h"

#include <algorithm>

namespace db {
namespace {

Error failure(std::string text) {
  return Error(rc::kError, std::move(text));
}

// All databases of a connection store text in one encoding.
Status check_encoding(const Session& session, const Database& attached) {
  if (attached.store->page_count() == 0) return {};
  if (stored_encoding(*attached.store) == session.encoding) return {};
  return failure("attached databases must use the same text encoding as main database");
}

}  // namespace

Status attach(const Command& command) {
  const auto& statement = *command.statement->as<sql::AttachStatement>();
  Session& session = command.session;
  Value file = TRY(constant_of(command, statement.file));
  Value name = TRY(constant_of(command, statement.schema));
  std::string schema = name.to_text();
  TRY(authorize_command(command, 24, file.to_text(), "", ""));
  if (command.checking) return {};
  if (static_cast<i64>(session.databases.size()) >= session.limit(Limit::kAttached) + 2) {
    return failure("too many attached databases - max " +
                   std::to_string(session.limit(Limit::kAttached)));
  }
  if (session.database_index(schema) >= 0)
    return failure("database " + schema + " is already in use");
  std::string path = file.to_text();
  if (path.starts_with("file:"))
    path = path.substr(
        5, path.find('?') == std::string::npos ? std::string::npos : path.find('?') - 5);
  Status added = session.connection->add_database(schema, path, false, true);
  if (!added.ok()) return failure("unable to open database: " + path);
  Status loaded = load_schema(session, static_cast<int>(session.databases.size()) - 1);
  if (loaded.ok()) loaded = check_encoding(session, *session.databases.back());
  if (!loaded.ok()) {
    session.databases.pop_back();
    return loaded;
  }
  ++session.schema_epoch;
  return {};
}

Status detach(const Command& command) {
  const auto& statement = *command.statement->as<sql::DetachStatement>();
  Session& session = command.session;
  Value name = TRY(constant_of(command, statement.schema));
  std::string schema = name.to_text();
  TRY(authorize_command(command, 25, schema, "", ""));
  if (command.checking) return {};
  int at = session.database_index(schema);
  if (at < 0) return failure("no such database: " + schema);
  if (at < 2) return failure("cannot detach database " + schema);
  Database& database = *session.databases[static_cast<size_t>(at)];
  if (!session.autocommit && database.store->state() != TransactionState::kNone) {
    return failure("database " + schema + " is locked");
  }
  session.connection->drop_executions();
  if (database.store->state() == TransactionState::kWrite)
    return failure("database " + schema + " is locked");
  if (database.store->state() == TransactionState::kRead) database.store->end_read();
  session.databases.erase(session.databases.begin() + at);
  ++session.schema_epoch;
  return {};
}

Status vacuum(const Command& command) {
  const auto& statement = *command.statement->as<sql::VacuumStatement>();
  Session& session = command.session;
  int at = statement.schema.present() ? session.database_index(statement.schema.text) : 0;
  if (at < 0) {
    return failure("unknown database " + std::string(statement.schema.text))
        .at(static_cast<int>(statement.schema.span.begin));
  }
  if (statement.into != nullptr) TRY(constant_of(command, statement.into));
  if (command.checking) return {};
  if (!session.autocommit) return failure("cannot VACUUM from within a transaction");
  if (session.running_readers + session.running_writers > 0) {
    return failure("cannot VACUUM - SQL statements in progress");
  }
  if (at == 1) return {};
  session.connection->drop_executions();
  Database& source = *session.databases[static_cast<size_t>(at)];
  TRY(begin_read(session, at));
  std::string path;
  if (statement.into != nullptr) {
    Value file = TRY(constant_of(command, statement.into));
    if (!file.is_text()) return failure("non-text filename");
    path = file.to_text();
    auto exists = posix_vfs().exists(path);
    if (exists.ok() && exists.value()) return failure("output file already exists");
  }
  auto made = Store::open(path, {});
  if (!made.ok()) return storage_error(made.error());
  Store& copy = *made.value();
  (void)copy.set_page_size(source.store->page_bytes(), 0);
  (void)copy.set_auto_vacuum(source.store->auto_vacuum());
  auto begun = copy.begin_write();
  if (!begun.ok()) return storage_error(begun.error());
  for (Meta which : {Meta::kSchemaCookie, Meta::kSchemaFormat, Meta::kUserVersion,
                     Meta::kApplicationId, Meta::kTextEncoding}) {
    u32 value = source.store->meta(which);
    auto set = copy.set_meta(which, which == Meta::kSchemaCookie ? value + 1 : value);
    if (!set.ok()) return storage_error(set.error());
  }
  Cursor from(*source.store, 1, nullptr);
  Cursor to(copy, 1, nullptr);
  for (Hit hit = from.first(); hit == Hit::kRow; hit = from.next()) {
    ByteView payload;
    if (from.payload(&payload) != Hit::kRow) return storage_error(from.error());
    std::vector<Value> row;
    if (!decode_record(base::as_text(payload), row, session.encoding) || row.size() < 5) {
      return Error(rc::kCorrupt, "database disk image is malformed");
    }
    for (Value& value : row) value.keep();
    u32 root = static_cast<u32>(row[3].to_integer());
    if (root > 0) {
      bool index = row[0].bytes() == "index";
      Table* table = index ? nullptr : source.schema.find_table(row[1].to_text());
      if (index) {
        Index* one = source.schema.find_index(row[1].to_text());
        if (one != nullptr && one->table->primary == one) continue;
      }
      TreeKind kind =
          index || (table != nullptr && table->without_rowid) ? TreeKind::kIndex : TreeKind::kTable;
      auto made_root = copy.create_tree(kind);
      if (!made_root.ok()) return storage_error(made_root.error());
      auto copied = copy.copy_tree(made_root.value(), *source.store, root);
      if (!copied.ok()) return storage_error(copied.error());
      row[3].set_integer(made_root.value());
    }
    std::string record;
    encode_record(row, record, session.encoding);
    if (to.insert(from.rowid(), base::as_bytes(record)) == Hit::kError)
      return storage_error(to.error());
  }
  from.close();
  to.close();
  if (statement.into == nullptr) {
    TRY(begin_write(session, at));
    auto replaced = source.store->replace_content(copy);
    if (!replaced.ok()) return storage_error(replaced.error());
    source.schema_changed = true;
    auto rolled = copy.rollback();
    (void)rolled;
    source.schema.clear();
    ++session.write_epoch;
    return {};
  }
  auto committed = copy.commit();
  if (!committed.ok()) return storage_error(committed.error());
  copy.end_read();
  return {};
}

namespace {

// Rows, then average rows per distinct prefix of the index's columns: what sqlite_stat1 holds.
Result<std::string> index_stat(Session& session, const Table& table, const Index& index) {
  IndexOrder order(index, session);
  Cursor cursor(*table.schema->store, index.root, &order);
  size_t columns = static_cast<size_t>(index.key_columns);
  std::vector<i64> distinct(columns, 0);
  std::vector<Value> previous;
  i64 rows = 0;
  Hit hit = cursor.first();
  for (; hit == Hit::kRow; hit = cursor.next()) {
    ByteView payload;
    if (cursor.payload(&payload) != Hit::kRow) return storage_error(cursor.error());
    std::vector<Value> key;
    if (!decode_record(base::as_text(payload), key, session.encoding)) {
      return Error(rc::kCorrupt, "database disk image is malformed");
    }
    // A damaged entry may be short.
    if (key.size() < columns) key.resize(columns);
    size_t same = 0;
    while (rows > 0 && same < columns &&
           compare(key[same], previous[same], order.info().columns[same].collation) == 0) {
      ++same;
    }
    for (size_t i = same; i < columns; ++i) ++distinct[i];
    ++rows;
    for (Value& value : key) value.keep();
    previous = std::move(key);
  }
  if (hit == Hit::kError) return storage_error(cursor.error());
  if (rows == 0) return std::string();
  std::string text = std::to_string(rows);
  for (i64 count : distinct)
    text += " " + std::to_string((rows + count - 1) / std::max<i64>(1, count));
  return text;
}

}  // namespace

Status analyze(const Command& command) {
  const auto& statement = *command.statement->as<sql::AnalyzeStatement>();
  Session& session = command.session;
  std::string_view schema = statement.schema.present() ? statement.schema.text : std::string_view();
  std::string_view name = statement.name.present() ? statement.name.text : std::string_view();
  if (!name.empty() && schema.empty() && session.database_index(name) >= 0) std::swap(schema, name);
  if (!schema.empty() && session.database_index(schema) < 0)
    return failure("unknown database " + std::string(schema))
        .at(static_cast<int>(statement.schema.span.begin));
  if (!name.empty() && session.find_index(schema, name) == nullptr &&
      session.find_table(schema, name) == nullptr) {
    return failure("no such table: " + (schema.empty() ? "" : std::string(schema) + ".") +
                   std::string(name));
  }
  if (command.checking) return {};
  for (size_t i = 0; i < session.databases.size(); ++i) {
    Database& database = *session.databases[i];
    if (!schema.empty() && !equal_nocase(database.schema.name, schema)) continue;
    if (i == 1 && database.schema.tables.size() <= 1) continue;
    TRY(begin_write(session, static_cast<int>(i)));
    std::string prefix = quote_name(database.schema.name) + ".";
    if (database.schema.find_table("sqlite_stat1") == nullptr) {
      auto root = database.store->create_tree(TreeKind::kTable);
      if (!root.ok()) return storage_error(root.error());
      SchemaRow row{"table", "sqlite_stat1", "sqlite_stat1", root.value(),
                    "CREATE TABLE sqlite_stat1(tbl,idx,stat)"};
      TRY(add_schema_row(session, static_cast<int>(i), row));
      TRY(database.schema.add_object(row.type, row.name, row.table, row.root, row.sql));
      TRY(bump_cookie(session, static_cast<int>(i)));
    }
    std::vector<Table*> tables;
    for (auto& [table_name, table] : database.schema.tables) {
      if (table->kind != TableKind::kTable || table->is_system() || table->root == 1) continue;
      bool wanted = name.empty() || equal_nocase(table->name, name);
      for (auto& index : table->indexes) wanted |= equal_nocase(index->name, name);
      if (wanted) tables.push_back(table.get());
    }
    std::sort(tables.begin(), tables.end(), [](Table* a, Table* b) { return a->root < b->root; });
    for (Table* table : tables) {
      Value table_name = Value::text(table->name);
      TRY(run_internal(session, "DELETE FROM " + prefix + "sqlite_stat1 WHERE tbl=?1", nullptr,
                       {&table_name, 1}));
      bool any = false;
      for (auto& index : table->indexes) {
        std::string stat = TRY(index_stat(session, *table, *index));
        if (stat.empty()) continue;
        any |= index->where == nullptr;
        Value row[3] = {table_name,
                        Value::text(index.get() == table->primary ? table->name : index->name),
                        Value::text(stat)};
        TRY(run_internal(session, "INSERT INTO " + prefix + "sqlite_stat1 VALUES(?1,?2,?3)",
                         nullptr, row));
      }
      if (any) continue;
      Cursor cursor(*database.store, table->root, nullptr);
      auto count = cursor.count();
      if (!count.ok() || count.value() == 0) continue;
      Value row[3] = {table_name, Value(), Value::text(std::to_string(count.value()))};
      TRY(run_internal(session, "INSERT INTO " + prefix + "sqlite_stat1 VALUES(?1,?2,?3)", nullptr,
                       row));
    }
    // The figures count from the next statement on.
    database.schema_changed = true;
    database.schema.clear_stats();
    std::vector<std::vector<Value>> rows;
    TRY(run_internal(session, "SELECT tbl, idx, stat FROM " + prefix + "sqlite_stat1", &rows));
    for (auto& row : rows)
      database.schema.set_stat(row[0].to_text(), row[1].to_text(), row[2].to_text());
  }
  return {};
}

}  // namespace db
