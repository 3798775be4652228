// Connections: open, close, errors, counters, limits, configuration.
#include "db/capi/handle.h"
#include "db/capi/uri.h"

#include <climits>
#include <cstring>

using db::Connection;
using db::capi::Entered;
using db::capi::is_live;
using db::capi::shown_code;

namespace db::capi {

int fail(sqlite3* db, int code, std::string message) {
  if (message.empty()) message = text_of_code(code);
  if (db->connection != nullptr) {
    db->connection->set_error(code, std::move(message));
  } else {
    db->open_error = code;
    db->open_message = std::move(message);
  }
  return shown_code(db, code);
}

void free_if_done(sqlite3* db) {
  if (db->magic != sqlite3::kZombie || db->statements > 0) return;
  if (db->trace != nullptr && (db->trace_mask & SQLITE_TRACE_CLOSE) != 0) {
    db->trace(SQLITE_TRACE_CLOSE, db->trace_v2_context, db, nullptr);
  }
  for (auto& [name, data] : db->client_data) {
    if (data.destroy != nullptr) data.destroy(data.data);
  }
  db->connection.reset();
  db->magic = 0;
  delete db;
}

void release_handle(sqlite3* db) {
  {
    Entered entered(db);
    --db->statements;
  }
  free_if_done(db);
}

int clear_error(sqlite3* db) {
  db->connection->clear_error();
  return SQLITE_OK;
}

}  // namespace db::capi

static int close_connection(sqlite3* db, bool may_wait) {
  if (db == nullptr) return SQLITE_OK;
  if (!is_live(db)) return SQLITE_MISUSE;
  {
    Entered entered(db);
    if (db->statements > 0 && !may_wait) {
      return db::capi::fail(db, SQLITE_BUSY,
                            "unable to close due to unfinalized statements or unfinished backups");
    }
    db->magic = sqlite3::kZombie;
  }
  db::capi::free_if_done(db);
  return SQLITE_OK;
}

static int open_connection(const char* path, sqlite3** out, int flags, const char* vfs) {
  auto handle = std::make_unique<sqlite3>();
  handle->extended_codes = (flags & SQLITE_OPEN_EXRESCODE) != 0;
  db::OpenOptions options;
  options.read_only = (flags & SQLITE_OPEN_READWRITE) == 0;
  options.create = (flags & SQLITE_OPEN_CREATE) != 0;
  options.memory = (flags & SQLITE_OPEN_MEMORY) != 0;
  std::string file = path != nullptr ? path : "";
  int code = SQLITE_OK;
  if (vfs != nullptr && std::strcmp(vfs, "unix") != 0) {
    code = db::capi::fail(handle.get(), SQLITE_ERROR, std::string("no such vfs: ") + vfs);
  } else if ((flags & SQLITE_OPEN_URI) != 0 && file.starts_with("file:")) {
    code = db::capi::apply_uri(handle.get(), file, options);
  }
  if (code == SQLITE_OK) {
    db::Result<std::unique_ptr<Connection>> opened = Connection::open(file, options);
    if (opened.ok()) {
      handle->connection = std::move(opened).value();
      code = db::capi::run_auto_extensions(handle.get());
    } else {
      code = db::capi::fail(handle.get(), opened.error().code(), opened.error().message());
    }
  }
  *out = handle.release();  // also after a failure: the caller reads the message and closes it
  return code;
}

int sqlite3_open_v2(const char* path, sqlite3** out, int flags, const char* vfs) {
  if (out == nullptr) return SQLITE_MISUSE;
  *out = nullptr;
  sqlite3_initialize();
  try {
    return open_connection(path, out, flags, vfs);
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
}

int sqlite3_open(const char* path, sqlite3** out) {
  return sqlite3_open_v2(path, out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
}

int sqlite3_open16(const void* path, sqlite3** out) {
  const std::string narrow =
      path == nullptr
          ? ""
          : db::capi::utf16_to_utf8(path, db::capi::utf16_length(path), db::Encoding::kUtf16le);
  const int code = sqlite3_open(narrow.c_str(), out);
  // A database that this call creates stores its text as the caller writes it.
  if (code == SQLITE_OK) (*out)->connection->execute("PRAGMA encoding='UTF-16'").ok();
  return code;
}

int sqlite3_close(sqlite3* db) {
  return close_connection(db, false);
}
int sqlite3_close_v2(sqlite3* db) {
  return close_connection(db, true);
}

// --- Errors ----------------------------------------------------------------------------------

int sqlite3_extended_errcode(sqlite3* db) {
  if (db == nullptr) return SQLITE_NOMEM;
  return db->connection != nullptr ? db->connection->error_code() : db->open_error;
}

int sqlite3_errcode(sqlite3* db) {
  const int code = sqlite3_extended_errcode(db);
  return db == nullptr ? code : shown_code(db, code);
}

const char* sqlite3_errmsg(sqlite3* db) {
  if (db == nullptr) return db::capi::text_of_code(SQLITE_NOMEM);
  if (db->magic != sqlite3::kOpen && db->magic != sqlite3::kZombie)
    return db::capi::text_of_code(SQLITE_MISUSE);
  if (db->connection == nullptr) return db->open_message.c_str();
  if (db->connection->error_code() == SQLITE_OK) return "not an error";
  return db->connection->error_message().c_str();
}

const void* sqlite3_errmsg16(sqlite3* db) {
  if (db == nullptr) return u"out of memory";
  db->message16 = db::capi::utf8_to_utf16(sqlite3_errmsg(db));
  return db->message16.c_str();
}

int sqlite3_error_offset(sqlite3* db) {
  return db != nullptr && db->connection != nullptr ? db->connection->error_offset() : -1;
}

int sqlite3_set_errmsg(sqlite3* db, int code, const char* message) {
  if (!is_live(db)) return SQLITE_MISUSE;
  Entered entered(db);
  db::capi::fail(db, code, message != nullptr ? message : "");
  return SQLITE_OK;
}

int sqlite3_extended_result_codes(sqlite3* db, int on) {
  if (!is_live(db)) return SQLITE_MISUSE;
  db->extended_codes = on != 0;
  return SQLITE_OK;
}

int sqlite3_system_errno(sqlite3*) {
  return 0;
}

const char* sqlite3_errstr(int code) {
  return db::capi::text_of_code(code);
}

// --- Counters and state ------------------------------------------------------------------------

sqlite3_int64 sqlite3_last_insert_rowid(sqlite3* db) {
  return is_live(db) ? db->connection->last_insert_rowid() : 0;
}

void sqlite3_set_last_insert_rowid(sqlite3* db, sqlite3_int64 rowid) {
  if (is_live(db)) db->connection->set_last_insert_rowid(rowid);
}

sqlite3_int64 sqlite3_changes64(sqlite3* db) {
  return is_live(db) ? db->connection->changes() : 0;
}
int sqlite3_changes(sqlite3* db) {
  return static_cast<int>(sqlite3_changes64(db));
}
sqlite3_int64 sqlite3_total_changes64(sqlite3* db) {
  return is_live(db) ? db->connection->total_changes() : 0;
}
int sqlite3_total_changes(sqlite3* db) {
  return static_cast<int>(sqlite3_total_changes64(db));
}

void sqlite3_interrupt(sqlite3* db) {
  if (is_live(db) && db->connection != nullptr) db->connection->interrupt();
}

int sqlite3_is_interrupted(sqlite3* db) {
  return is_live(db) && db->connection != nullptr && db->connection->is_interrupted() ? 1 : 0;
}

int sqlite3_get_autocommit(sqlite3* db) {
  return is_live(db) && (db->connection == nullptr || db->connection->autocommit()) ? 1 : 0;
}

int sqlite3_txn_state(sqlite3* db, const char* schema) {
  if (!is_live(db)) return -1;
  Entered entered(db);
  if (schema == nullptr) return db->connection->transaction_state(nullptr);
  const std::string name = schema;
  return db->connection->transaction_state(&name);
}

int sqlite3_limit(sqlite3* db, int which, int value) {
  if (!is_live(db) || which < 0 || which >= static_cast<int>(db::Limit::kCount)) return -1;
  Entered entered(db);
  return static_cast<int>(db->connection->set_limit(static_cast<db::Limit>(which), value));
}

int sqlite3_db_config(sqlite3* db, int option, ...) {
  if (!is_live(db)) return SQLITE_MISUSE;
  constexpr int kMainDbName = 1000, kLookaside = 1001, kFirstSwitch = 1002;
  va_list args;
  va_start(args, option);
  int code = SQLITE_ERROR;
  Entered entered(db);
  if (option == kLookaside) {
    code = SQLITE_OK;  // there is no look-aside memory to configure
  } else if (option != kMainDbName && option >= kFirstSwitch &&
             option - 1000 < static_cast<int>(db::DbConfig::kCount)) {
    const auto which = static_cast<db::DbConfig>(option - 1000);
    const int on = va_arg(args, int);
    int* now = va_arg(args, int*);
    if (on >= 0) db->connection->set_config(which, on != 0);
    if (now != nullptr) *now = db->connection->config(which) ? 1 : 0;
    code = SQLITE_OK;
  }
  va_end(args);
  return code;
}

int sqlite3_db_status64(sqlite3* db, int counter, sqlite3_int64* current, sqlite3_int64* highest,
                        int) {
  if (!is_live(db) || current == nullptr || highest == nullptr) return SQLITE_MISUSE;
  constexpr int kCounters = 14;
  if (counter < 0 || counter >= kCounters) return SQLITE_ERROR;
  *current = 0;  // the counters of SQLite's allocator and page cache have no counterpart here
  *highest = 0;
  return SQLITE_OK;
}

int sqlite3_db_status(sqlite3* db, int counter, int* current, int* highest, int reset) {
  if (current == nullptr || highest == nullptr) return SQLITE_MISUSE;
  sqlite3_int64 now = 0, most = 0;
  const int code = sqlite3_db_status64(db, counter, &now, &most, reset);
  *current = static_cast<int>(now);
  *highest = static_cast<int>(most);
  return code;
}

const char* sqlite3_db_filename(sqlite3* db, const char* schema) {
  if (!is_live(db)) return nullptr;
  Entered entered(db);
  const std::string name = schema != nullptr ? schema : "main";
  const std::string* path = db->connection->database_path(name);
  if (path == nullptr) return nullptr;
  return (db->filenames[name] = *path).c_str();
}

const char* sqlite3_db_name(sqlite3* db, int index) {
  if (!is_live(db) || index < 0) return nullptr;
  const std::string* name = db->connection->database_name(index);
  return name == nullptr ? nullptr : name->c_str();
}

int sqlite3_db_readonly(sqlite3* db, const char* schema) {
  if (!is_live(db)) return -1;
  Entered entered(db);
  bool known = false;
  const bool read_only =
      db->connection->database_read_only(schema != nullptr ? schema : "main", &known);
  return known ? (read_only ? 1 : 0) : -1;
}

int sqlite3_db_release_memory(sqlite3*) {
  return SQLITE_OK;
}
int sqlite3_db_cacheflush(sqlite3*) {
  return SQLITE_OK;
}
sqlite3_mutex* sqlite3_db_mutex(sqlite3* db) {
  return db == nullptr ? nullptr : &db->mutex;
}

int sqlite3_table_column_metadata(sqlite3* db, const char* schema, const char* table,
                                  const char* column, const char** type, const char** collation,
                                  int* not_null, int* primary_key, int* autoincrement) {
  if (!is_live(db) || table == nullptr) return SQLITE_MISUSE;
  Entered entered(db);
  const std::string schema_name = schema != nullptr ? schema : "";
  auto found = db->connection->column_metadata(schema != nullptr ? &schema_name : nullptr, table,
                                               column != nullptr ? column : "");
  if (!found.ok()) return db::capi::fail(db, found.error().code(), found.error().message());
  db->metadata_type = found->declared_type;
  db->metadata_collation = found->collation;
  if (type != nullptr) *type = db->metadata_type.empty() ? nullptr : db->metadata_type.c_str();
  if (collation != nullptr) *collation = db->metadata_collation.c_str();
  if (not_null != nullptr) *not_null = found->not_null ? 1 : 0;
  if (primary_key != nullptr) *primary_key = found->primary_key ? 1 : 0;
  if (autoincrement != nullptr) *autoincrement = found->autoincrement ? 1 : 0;
  return SQLITE_OK;
}

void* sqlite3_get_clientdata(sqlite3* db, const char* name) {
  if (!is_live(db) || name == nullptr) return nullptr;
  Entered entered(db);
  auto found = db->client_data.find(name);
  return found == db->client_data.end() ? nullptr : found->second.data;
}

int sqlite3_set_clientdata(sqlite3* db, const char* name, void* data, void (*destroy)(void*)) {
  if (!is_live(db) || name == nullptr) return SQLITE_MISUSE;
  Entered entered(db);
  auto found = db->client_data.find(name);
  if (found != db->client_data.end()) {
    if (found->second.destroy != nullptr) found->second.destroy(found->second.data);
    db->client_data.erase(found);
  }
  if (data != nullptr) db->client_data[name] = {data, destroy};
  return SQLITE_OK;
}
