#include "db/engine/schema_store.h"

#include "db/engine/transaction.h"

namespace db {
namespace {

SchemaRow decode(std::string_view record, Encoding encoding) {
  RecordView view(record);
  view.set_encoding(encoding);
  SchemaRow row;
  Value value;
  view.column(0, value);
  row.type = value.to_text();
  view.column(1, value);
  row.name = value.to_text();
  view.column(2, value);
  row.table = value.to_text();
  view.column(3, value);
  row.root = value.to_integer();
  view.column(4, value);
  row.sql = value.to_text();
  return row;
}

std::string encode(const SchemaRow& row, Encoding encoding) {
  Value values[5] = {Value::borrowed_text(row.type), Value::borrowed_text(row.name),
                     Value::borrowed_text(row.table), Value::integer(row.root),
                     row.sql.empty() ? Value() : Value::borrowed_text(row.sql)};
  std::string record;
  encode_record(values, record, encoding);
  return record;
}

Status load_stats(Schema& schema, Store& store, Encoding encoding) {
  Table* table = schema.find_table("sqlite_stat1");
  if (table == nullptr) return {};
  Cursor cursor(store, table->root, nullptr);
  for (Hit hit = cursor.first(); hit == Hit::kRow; hit = cursor.next()) {
    ByteView payload;
    if (cursor.payload(&payload) != Hit::kRow) break;
    RecordView view(base::as_text(payload));
    view.set_encoding(encoding);
    Value name;
    Value index;
    Value stat;
    view.column(0, name);
    view.column(1, index);
    view.column(2, stat);
    schema.set_stat(name.to_text(), index.to_text(), stat.to_text());
  }
  return {};
}

}  // namespace

namespace {

// A database that nobody has written to has no pages, and the cookie 0.
u32 cookie_of(const Store& store) {
  return store.page_count() == 0 ? 0 : store.meta(Meta::kSchemaCookie);
}

}  // namespace

Encoding stored_encoding(const Store& store) {
  switch (store.page_count() == 0 ? 0 : store.meta(Meta::kTextEncoding)) {
    case 2:
      return Encoding::kUtf16le;
    case 3:
      return Encoding::kUtf16be;
    default:
      return Encoding::kUtf8;
  }
}

void choose_encoding(Session& session, Encoding encoding) {
  const Store* main = session.databases[0]->store.get();
  if (session.encoding == encoding || (main != nullptr && main->page_count() > 0)) return;
  session.encoding = encoding;
  ++session.schema_epoch;
}

bool schema_is_current(const Database& database) {
  if (database.store == nullptr) return true;
  return database.schema.loaded && database.store->state() != TransactionState::kNone &&
         database.schema.cookie == cookie_of(*database.store);
}

Status load_schema(Session& session, int at) {
  Database& database = *session.databases[static_cast<size_t>(at)];
  if (database.store == nullptr) {
    database.schema.loaded = true;
    return {};
  }
  TRY(begin_read(session, at));
  if (schema_is_current(database)) return {};
  Schema& schema = database.schema;
  schema.clear();
  schema.store = database.store.get();
  schema.cookie = cookie_of(*database.store);
  auto self = make_schema_table(at == 1 ? "sqlite_temp_schema" : "sqlite_schema");
  self->name = at == 1 ? "sqlite_temp_master" : "sqlite_master";
  self->schema = &schema;
  schema.tables["sqlite_schema"] = std::move(self);
  if (database.store->page_count() == 0) {
    schema.loaded = true;
    return {};
  }
  if (at == 0 && session.encoding != stored_encoding(*database.store)) {
    session.encoding = stored_encoding(*database.store);
    ++session.schema_epoch;
  }
  std::vector<SchemaRow> rows;
  Cursor cursor(*database.store, 1, nullptr);
  Hit hit = cursor.first();
  for (; hit == Hit::kRow; hit = cursor.next()) {
    ByteView payload;
    if (cursor.payload(&payload) != Hit::kRow) break;
    rows.push_back(decode(base::as_text(payload), stored_encoding(*database.store)));
  }
  if (hit == Hit::kError) return storage_error(cursor.error());
  for (const char* type : {"table", "view", "index", "trigger"}) {
    for (const SchemaRow& row : rows) {
      if (row.type != type) continue;
      Status added = schema.add_object(row.type, row.name, row.table, row.root, row.sql);
      if (!added.ok() && !session.writable_schema) {
        schema.clear();
        return added;
      }
    }
  }
  schema.loaded = true;
  return load_stats(schema, *database.store, session.encoding);
}

Status load_all_schemas(Session& session) {
  for (size_t i = 0; i < session.databases.size(); ++i) {
    if (session.databases[i]->schema.loaded && session.databases[i]->store != nullptr &&
        session.databases[i]->store->in_memory()) {
      continue;  // nobody else can have changed it
    }
    TRY(load_schema(session, static_cast<int>(i)));
  }
  return {};
}

namespace {

// The first object of a new database decides how it is stored: descending indexes (schema format 4)
// and the text encoding. Other engines read both from the header.
Status stamp_new_database(Session& session, Store& store) {
  constexpr u32 kFormatWithDescendingIndexes = 4;
  if (store.meta(Meta::kSchemaFormat) != 0) return {};
  auto set = store.set_meta(Meta::kSchemaFormat, kFormatWithDescendingIndexes);
  if (set.ok()) set = store.set_meta(Meta::kTextEncoding, static_cast<u32>(session.encoding));
  return set.ok() ? Status() : storage_error(set.error());
}

}  // namespace

Status add_schema_row(Session& session, int at, const SchemaRow& row) {
  Store& store = *session.databases[static_cast<size_t>(at)]->store;
  TRY(stamp_new_database(session, store));
  Cursor cursor(store, 1, nullptr);
  Hit hit = cursor.last();
  if (hit == Hit::kError) return storage_error(cursor.error());
  i64 rowid = hit == Hit::kRow ? cursor.rowid() + 1 : 1;
  if (cursor.insert(rowid, base::as_bytes(encode(row, session.encoding))) == Hit::kError) {
    return storage_error(cursor.error());
  }
  session.databases[static_cast<size_t>(at)]->schema_changed = true;
  ++session.write_epoch;
  return {};
}

Status edit_schema_rows(Session& session, int at,
                        const std::function<SchemaEdit(SchemaRow&)>& edit) {
  Database& database = *session.databases[static_cast<size_t>(at)];
  Cursor cursor(*database.store, 1, nullptr);
  std::vector<std::pair<i64, SchemaRow>> rows;
  Hit hit = cursor.first();
  for (; hit == Hit::kRow; hit = cursor.next()) {
    ByteView payload;
    if (cursor.payload(&payload) != Hit::kRow) return storage_error(cursor.error());
    rows.emplace_back(cursor.rowid(), decode(base::as_text(payload), session.encoding));
  }
  if (hit == Hit::kError) return storage_error(cursor.error());
  for (auto& [rowid, row] : rows) {
    SchemaEdit what = edit(row);
    if (what == SchemaEdit::kKeep) continue;
    Hit done = Hit::kRow;
    if (what == SchemaEdit::kUpdate) {
      done = cursor.insert(rowid, base::as_bytes(encode(row, session.encoding)));
    } else if (cursor.seek_equal(rowid) == Hit::kRow) {
      done = cursor.erase();
    }
    if (done == Hit::kError) return storage_error(cursor.error());
  }
  database.schema_changed = true;
  ++session.write_epoch;
  return {};
}

Status bump_cookie(Session& session, int at) {
  Database& database = *session.databases[static_cast<size_t>(at)];
  u32 cookie = database.store->meta(Meta::kSchemaCookie) + 1;
  auto set = database.store->set_meta(Meta::kSchemaCookie, cookie);
  if (!set.ok()) return storage_error(set.error());
  database.schema.cookie = cookie;
  database.schema_changed = true;
  ++database.schema.generation;
  return {};
}

}  // namespace db
