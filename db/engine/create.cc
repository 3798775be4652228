// CREATE TABLE, INDEX, VIEW, TRIGGER.
#include "db/engine/command.h"
#include "db/engine/schema_store.h"
#include "db/engine/transaction.h"
#include "db/exec/execution.h"
#include "db/exec/table_cursor.h"
#include "db/plan/dml_binder.h"
#include "db/sql/parser.h"

namespace db {
namespace {

Error failure(std::string text) {
  return Error(rc::kError, std::move(text));
}
Error failure(std::string text, const sql::Name& at) {
  return Error(rc::kError, std::move(text)).at(static_cast<int>(at.span.begin));
}

const sql::Name& first_name(const sql::Name& schema, const sql::Name& name) {
  return schema.present() ? schema : name;
}

// A name as it was written, quotes and all.
std::string as_written(const Command& command, const sql::Name& name) {
  return std::string(name.span.in(command.sql));
}

Status check_name(Session& session, std::string_view name) {
  if (name.size() >= 7 && equal_nocase(name.substr(0, 7), "sqlite_") && !session.writable_schema) {
    return failure("object name reserved for internal use: " + std::string(name));
  }
  return {};
}

// A new row of sqlite_schema and the object that it describes.
Status add_object(Session& session, int database, const SchemaRow& row) {
  TRY(add_schema_row(session, database, row));
  return session.databases[static_cast<size_t>(database)]->schema.add_object(
      row.type, row.name, row.table, row.root, row.sql);
}

Result<u32> create_tree(Session& session, int database, TreeKind kind) {
  auto root = session.databases[static_cast<size_t>(database)]->store->create_tree(kind);
  if (!root.ok()) return storage_error(root.error());
  return root.value();
}

const char* type_of_affinity(Affinity affinity) {
  switch (affinity) {
    case Affinity::kText:
      return " TEXT";
    case Affinity::kNumeric:
      return " NUM";
    case Affinity::kInteger:
      return " INT";
    case Affinity::kReal:
      return " REAL";
    default:
      return "";
  }
}

bool is_plain_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (char c : name) {
    bool word =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!word) return false;
  }
  sql::Arena arena;
  return sql::parse_expr(name, arena).error.empty();
}

std::string as_identifier(std::string_view name) {
  return is_plain_name(name) ? std::string(name) : quote_name(name);
}

// The text of CREATE TABLE ... AS, as SQLite writes it.
std::string table_text(std::string_view name, const std::vector<std::string>& columns,
                       const std::vector<Affinity>& affinities) {
  size_t width = 0;
  for (const std::string& column : columns) width += column.size() + 5;
  width += name.size();
  bool brief = width < 50;
  std::string text = "CREATE TABLE " + as_identifier(name) + "(";
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) text += ",";
    if (!brief) text += "\n  ";
    text += as_identifier(columns[i]) + type_of_affinity(affinities[i]);
  }
  return text + (brief ? ")" : "\n)");
}

Status create_as(const Command& command, const sql::CreateTableStatement& create, SchemaRow* row,
                 Program* program) {
  Binder binder(command.session, program->arena);
  binder.sql = command.sql;
  program->select = binder.bind_select(create.as_select, nullptr, nullptr);
  if (program->select == nullptr) return binder.error();
  program->take_counts(binder);
  std::vector<std::string> names;
  std::vector<Affinity> affinities;
  for (const RowColumn& column : program->select->columns) {
    std::string name(column.name);
    for (int number = 1;; ++number) {
      bool taken = false;
      for (const std::string& other : names) taken |= equal_nocase(other, name);
      if (!taken) break;
      name = std::string(column.name) + ":" + std::to_string(number);
    }
    names.push_back(name);
    affinities.push_back(column.affinity);
  }
  row->sql = table_text(create.name.text, names, affinities);
  return {};
}

Status fill_table(const Command& command, Table& table, const Program& program) {
  Cx cx(command.session);
  program.fit(cx);
  cx.parameters = command.parameters.data();
  cx.parameter_count = static_cast<int>(command.parameters.size());
  auto execution = make_select(*program.select, cx);
  Cursor cursor(*table.schema->store, table.root, nullptr);
  int code = rc::kDone;
  i64 rowid = 0;
  RecordBuilder record;
  record.set_encoding(command.session.encoding);
  std::vector<Value> row(static_cast<size_t>(program.select->width));
  while ((code = execution->step(cx)) == rc::kRow) {
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = execution->row()[i];
      apply_affinity(row[i], table.columns[i].affinity);
      if (table.columns[i].affinity == Affinity::kReal) real_as_integer(row[i]);
    }
    record.clear();
    for (const Value& value : row) record.add(value);
    if (cursor.insert(++rowid, base::as_bytes(record.finish())) == Hit::kError)
      return cursor.error();
  }
  execution->close(cx);
  if (code != rc::kDone) return Error(cx.code, cx.message);
  return {};
}

}  // namespace

Status create_table(const Command& command) {
  const auto& create = *command.statement->as<sql::CreateTableStatement>();
  Session& session = command.session;
  int at = TRY(database_for(session, create.schema, create.temporary));
  Database& database = *session.databases[static_cast<size_t>(at)];
  std::string name(create.name.text);
  TRY(authorize_command(command, at == 1 ? 4 : 2, name, "", database.schema.name));
  TRY(check_name(session, name));
  if (Table* existing = database.schema.find_table(name); existing != nullptr) {
    if (create.if_not_exists) return {};
    return failure(std::string(existing->kind == TableKind::kView ? "view " : "table ") +
                       as_written(command, create.name) + " already exists",
                   first_name(create.schema, create.name));
  }
  if (database.schema.find_index(name) != nullptr) {
    return failure("there is already an index named " + name);
  }
  SchemaRow row{"table", name, name, 0, "CREATE TABLE " + std::string(create.body.in(command.sql))};
  Program program;
  if (create.as_select != nullptr) {
    TRY(create_as(command, create, &row, &program));
  } else {
    // Built once here for its errors; the stored text builds the table that stays.
    std::shared_ptr<Table> table = TRY(build_table(create, command.sql));
    table->schema = &database.schema;
    Binder binder(session, program.arena);
    binder.dqs_ddl = 1;
    DmlBinder dml(binder, nullptr);
    for (const Column& column : table->columns) {
      if (session.collation(column.collation) == nullptr) {
        return Error(rc::kErrorMissingCollation, "no such collation sequence: " + column.collation);
      }
      if (column.default_expr == nullptr) continue;
      binder.sql = command.sql;
      Scope* scope = binder.new_scope(nullptr);
      Expr* value = binder.bind(column.default_expr, scope);
      if (value == nullptr || !is_constant(value)) {
        if (value != nullptr && value->has(expr_flag::kVolatile)) continue;
        return failure("default value of column [" + column.name + "] is not constant");
      }
    }
    if (!table->checks.empty() || table->has_generated) {
      auto definition = std::make_shared<Definition>();
      definition->sql = command.sql;
      table->definition = definition;
      if (dml.write_plan(table.get()) == nullptr) return binder.error();
    }
  }
  if (command.checking) return {};
  sql::Arena arena;
  std::string text = row.sql;
  sql::Parsed parsed = sql::parse(text, arena);
  if (parsed.failed) return failure(parsed.error);
  std::shared_ptr<Table> shape =
      TRY(build_table(*parsed.statement->as<sql::CreateTableStatement>(), text));
  row.root =
      TRY(create_tree(session, at, shape->without_rowid ? TreeKind::kIndex : TreeKind::kTable));
  TRY(add_object(session, at, row));
  for (const auto& index : shape->indexes) {
    SchemaRow index_row{"index", index->name, name, row.root, ""};
    if (index.get() != shape->primary) {
      index_row.root = TRY(create_tree(session, at, TreeKind::kIndex));
      TRY(add_object(session, at, index_row));
    } else {
      TRY(database.schema.add_object("index", index->name, name, row.root, ""));
    }
  }
  if (shape->autoincrement && database.schema.find_table("sqlite_sequence") == nullptr) {
    SchemaRow sequence{"table", "sqlite_sequence", "sqlite_sequence", 0,
                       "CREATE TABLE sqlite_sequence(name,seq)"};
    sequence.root = TRY(create_tree(session, at, TreeKind::kTable));
    TRY(add_object(session, at, sequence));
  }
  TRY(bump_cookie(session, at));
  if (create.as_select != nullptr)
    TRY(fill_table(command, *database.schema.find_table(name), program));
  return {};
}

Status create_index(const Command& command) {
  const auto& create = *command.statement->as<sql::CreateIndexStatement>();
  Session& session = command.session;
  std::string name(create.name.text);
  std::string_view schema = create.schema.present() ? create.schema.text : std::string_view();
  if (!schema.empty() && session.database_index(schema) < 0) {
    return failure("unknown database " + std::string(schema), create.schema);
  }
  Table* table = session.find_table(schema, create.table.text);
  if (table == nullptr) {
    return failure("no such table: " + (schema.empty() ? "main" : std::string(schema)) + "." +
                   std::string(create.table.text));
  }
  int at = session.index_of(*table->schema);
  Database& database = *session.databases[static_cast<size_t>(at)];
  TRY(check_name(session, name));
  if (table->kind == TableKind::kView) return failure("views may not be indexed");
  if (table->kind == TableKind::kVirtual) return failure("virtual tables may not be indexed");
  if (table->is_system()) return failure("table " + table->name + " may not be indexed");
  if (database.schema.find_table(name) != nullptr) {
    return failure("there is already a table named " + name);
  }
  if (database.schema.find_index(name) != nullptr) {
    if (create.if_not_exists) return {};
    return failure("index " + as_identifier(name) + " already exists");
  }
  TRY(authorize_command(command, at == 1 ? 3 : 1, name, table->name, database.schema.name));
  std::shared_ptr<Index> shape = TRY(build_index(create, *table));
  Program program;
  Binder binder(session, program.arena);
  binder.sql = command.sql;
  binder.dqs_ddl = 1;
  Scope* scope = binder.new_scope(nullptr);
  scope->sources.push_back(binder.table_source(table, binder.new_slot(), table->name));
  for (const IndexColumn& column : shape->columns) {
    if (session.collation(column.collation) == nullptr) {
      return Error(rc::kErrorMissingCollation, "no such collation sequence: " + column.collation);
    }
    if (column.column != kExpression) continue;
    binder.prohibited_place = "index expressions";
    if (binder.bind(column.expr, scope) == nullptr) return binder.error();
  }
  if (shape->where != nullptr) {
    binder.prohibited_place = "partial index WHERE clauses";
    if (binder.bind(shape->where, scope) == nullptr) return binder.error();
  }
  if (command.checking) return {};
  SchemaRow row{"index", name, table->name, 0,
                std::string(create.unique ? "CREATE UNIQUE INDEX " : "CREATE INDEX ") +
                    std::string(create.body.in(command.sql))};
  row.root = TRY(create_tree(session, at, TreeKind::kIndex));
  TRY(add_object(session, at, row));
  TRY(bump_cookie(session, at));
  return fill_index(session, *table, *database.schema.find_index(name));
}

Status create_view(const Command& command) {
  const auto& create = *command.statement->as<sql::CreateViewStatement>();
  Session& session = command.session;
  int at = TRY(database_for(session, create.schema, create.temporary));
  Database& database = *session.databases[static_cast<size_t>(at)];
  std::string name(create.name.text);
  TRY(authorize_command(command, at == 1 ? 6 : 8, name, "", database.schema.name));
  TRY(check_name(session, name));
  if (Table* existing = database.schema.find_table(name); existing != nullptr) {
    if (create.if_not_exists) return {};
    return failure(std::string(existing->kind == TableKind::kView ? "view " : "table ") +
                       as_written(command, create.name) + " already exists",
                   first_name(create.schema, create.name));
  }
  if (database.schema.find_index(name) != nullptr) {
    return failure("there is already an index named " + name);
  }
  if (command.checking) return {};
  SchemaRow row{"view", name, name, 0, "CREATE VIEW " + std::string(create.body.in(command.sql))};
  TRY(add_object(session, at, row));
  return bump_cookie(session, at);
}

Status create_trigger(const Command& command) {
  const auto& create = *command.statement->as<sql::CreateTriggerStatement>();
  Session& session = command.session;
  std::string name(create.name.text);
  int at = TRY(database_for(session, create.schema, create.temporary));
  std::string_view schema = create.table_schema.present() ? create.table_schema.text
                            : create.schema.present()     ? create.schema.text
                                                          : std::string_view();
  Table* table = session.find_table(schema, create.table.text);
  if (table == nullptr) {
    return failure("no such table: " + session.databases[static_cast<size_t>(at)]->schema.name +
                   "." + std::string(create.table.text));
  }
  if (!create.schema.present() && session.index_of(*table->schema) == 1) at = 1;
  if (!create.schema.present() && !create.temporary) at = session.index_of(*table->schema);
  Database& database = *session.databases[static_cast<size_t>(at)];
  TRY(authorize_command(command, at == 1 ? 5 : 7, name, table->name, database.schema.name));
  TRY(check_name(session, name));
  if (database.schema.find_trigger(name) != nullptr) {
    if (create.if_not_exists) return {};
    return failure("trigger " + as_written(command, create.name) + " already exists",
                   first_name(create.schema, create.name));
  }
  if (table->is_system() || table->root == 1)
    return failure("cannot create trigger on system table");
  if (table->kind == TableKind::kVirtual)
    return failure("cannot create triggers on virtual tables");
  if (table->kind == TableKind::kView && create.time != sql::TriggerTime::kInsteadOf) {
    return failure(std::string("cannot create ") +
                   (create.time == sql::TriggerTime::kBefore ? "BEFORE" : "AFTER") +
                   " trigger on view: " + table->name);
  }
  if (table->kind != TableKind::kView && create.time == sql::TriggerTime::kInsteadOf) {
    return failure("cannot create INSTEAD OF trigger on table: " + table->name);
  }
  if (command.checking) return {};
  SchemaRow row{"trigger", name, table->name, 0,
                "CREATE TRIGGER " + std::string(create.body.in(command.sql))};
  TRY(add_object(session, at, row));
  return bump_cookie(session, at);
}

}  // namespace db
