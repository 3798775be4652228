// Statements: prepare, step, reset, finalize, exec.
#include "db/capi/handle.h"

#include <climits>
#include <cstring>

using db::Statement;
using db::capi::Entered;
using db::capi::is_live;
using db::capi::shown_code;

static int prepare_entered(sqlite3* db, std::string_view sql, unsigned flags, bool legacy,
                           sqlite3_stmt** out, size_t* tail) {
  db::PrepareOptions options;
  options.persistent = (flags & SQLITE_PREPARE_PERSISTENT) != 0;
  options.no_vtab = (flags & SQLITE_PREPARE_NO_VTAB) != 0;
  db::Result<db::Prepared> prepared = db->connection->prepare(sql, options);
  if (!prepared.ok()) {
    db->connection->set_error(prepared.error().code(), prepared.error().message(),
                              prepared.error().offset());
    db::capi::log(prepared.error().code(), prepared.error().message().c_str());
    return shown_code(db, prepared.error().code());
  }
  db->connection->clear_error();
  *tail = prepared->tail;
  if (prepared->statement == nullptr) return SQLITE_OK;  // nothing but blanks and comments
  auto handle = std::make_unique<sqlite3_stmt>();
  handle->db = db;
  handle->legacy = legacy;
  handle->statement = std::move(prepared->statement);
  db->handles[handle->statement.get()] = handle.get();
  ++db->statements;
  *out = handle.release();
  return SQLITE_OK;
}

static int prepare(sqlite3* db, std::string_view sql, unsigned flags, bool legacy,
                   sqlite3_stmt** out, size_t* tail) {
  *out = nullptr;
  *tail = sql.size();
  if (!is_live(db) || db->connection == nullptr) return SQLITE_MISUSE;
  Entered entered(db);
  const int code =
      db::capi::guarded(db, [&] { return prepare_entered(db, sql, flags, legacy, out, tail); });
  // A schema that was being loaded may be half there.
  if (code == SQLITE_NOMEM) db->connection->forget_schema();
  return code;
}

// Text up to the zero, or `bytes` of it, whichever ends first.
static std::string_view text_of(const char* sql, int bytes) {
  if (bytes < 0) return sql;
  return {sql, ::strnlen(sql, static_cast<size_t>(bytes))};
}

static int prepare_utf8(sqlite3* db, const char* sql, int bytes, unsigned flags, bool legacy,
                        sqlite3_stmt** out, const char** tail) {
  if (out == nullptr) return SQLITE_MISUSE;
  *out = nullptr;
  if (sql == nullptr) return SQLITE_MISUSE;
  size_t used = 0;
  const int code = prepare(db, text_of(sql, bytes), flags, legacy, out, &used);
  if (tail != nullptr) *tail = sql + used;
  return code;
}

int sqlite3_prepare(sqlite3* db, const char* sql, int bytes, sqlite3_stmt** out,
                    const char** tail) {
  return prepare_utf8(db, sql, bytes, 0, true, out, tail);
}

int sqlite3_prepare_v2(sqlite3* db, const char* sql, int bytes, sqlite3_stmt** out,
                       const char** tail) {
  return prepare_utf8(db, sql, bytes, 0, false, out, tail);
}

int sqlite3_prepare_v3(sqlite3* db, const char* sql, int bytes, unsigned flags, sqlite3_stmt** out,
                       const char** tail) {
  return prepare_utf8(db, sql, bytes, flags, false, out, tail);
}

static int prepare_utf16(sqlite3* db, const void* sql, int bytes, unsigned flags, bool legacy,
                         sqlite3_stmt** out, const void** tail) {
  if (out == nullptr) return SQLITE_MISUSE;
  *out = nullptr;
  if (sql == nullptr) return SQLITE_MISUSE;
  size_t size = db::capi::utf16_length(sql);
  if (bytes >= 0) size = std::min(size, static_cast<size_t>(bytes) & ~size_t{1});
  return db::capi::guarded(db, [&] {
    const std::string narrow = db::capi::utf16_to_utf8(sql, size, db::Encoding::kUtf16le);
    size_t used = 0;
    const int code = prepare(db, narrow, flags, legacy, out, &used);
    if (tail != nullptr) {
      *tail =
          static_cast<const char*>(sql) + db::capi::utf8_to_utf16({narrow.data(), used}).size() * 2;
    }
    return code;
  });
}

int sqlite3_prepare16(sqlite3* db, const void* sql, int bytes, sqlite3_stmt** out,
                      const void** tail) {
  return prepare_utf16(db, sql, bytes, 0, true, out, tail);
}

int sqlite3_prepare16_v2(sqlite3* db, const void* sql, int bytes, sqlite3_stmt** out,
                         const void** tail) {
  return prepare_utf16(db, sql, bytes, 0, false, out, tail);
}

int sqlite3_prepare16_v3(sqlite3* db, const void* sql, int bytes, unsigned flags,
                         sqlite3_stmt** out, const void** tail) {
  return prepare_utf16(db, sql, bytes, flags, false, out, tail);
}

int sqlite3_step(sqlite3_stmt* s) {
  if (s == nullptr || s->statement == nullptr) return SQLITE_MISUSE;
  Entered entered(s->db);
  for (sqlite3_stmt::Column& column : s->columns) column.has_text = column.has_text16 = false;
  const int code = s->statement->step();
  if (code == SQLITE_ROW || code == SQLITE_DONE) return code;
  db::capi::log(code, s->db->connection->error_message().c_str());
  if (s->legacy && (code & 0xff) != SQLITE_BUSY && (code & 0xff) != SQLITE_MISUSE)
    return SQLITE_ERROR;
  return shown_code(s->db, code);
}

int sqlite3_reset(sqlite3_stmt* s) {
  if (s == nullptr) return SQLITE_OK;
  Entered entered(s->db);
  return shown_code(s->db, s->statement->reset());
}

int sqlite3_finalize(sqlite3_stmt* s) {
  if (s == nullptr) return SQLITE_OK;
  sqlite3* db = s->db;
  int code = SQLITE_OK;
  {
    Entered entered(db);
    code = shown_code(db, s->statement->reset());
    db->handles.erase(s->statement.get());
    delete s;
    --db->statements;
  }
  db::capi::free_if_done(db);
  return code;
}

sqlite3* sqlite3_db_handle(sqlite3_stmt* s) {
  return s == nullptr ? nullptr : s->db;
}

sqlite3_stmt* sqlite3_next_stmt(sqlite3* db, sqlite3_stmt* after) {
  if (!is_live(db)) return nullptr;
  Entered entered(db);
  Statement* next =
      db->connection->next_statement(after == nullptr ? nullptr : after->statement.get());
  auto found = db->handles.find(next);
  return found == db->handles.end() ? nullptr : found->second;
}

const char* sqlite3_sql(sqlite3_stmt* s) {
  if (s == nullptr) return nullptr;
  if (s->sql.empty()) s->sql = s->statement->sql();
  return s->sql.c_str();
}

char* sqlite3_expanded_sql(sqlite3_stmt* s) {
  if (s == nullptr) return nullptr;
  Entered entered(s->db);
  std::string sql = s->statement->expanded_sql();
  if (sql.empty()) return nullptr;  // longer than the limit on lengths
  return db::capi::copy_for_caller(sql);
}

const char* sqlite3_normalized_sql(sqlite3_stmt* s) {
  return sqlite3_sql(s);
}
int sqlite3_stmt_busy(sqlite3_stmt* s) {
  return s != nullptr && s->statement->busy() ? 1 : 0;
}
int sqlite3_stmt_readonly(sqlite3_stmt* s) {
  return s == nullptr || s->statement->readonly() ? 1 : 0;
}
int sqlite3_stmt_isexplain(sqlite3_stmt* s) {
  return s == nullptr ? 0 : s->statement->explain();
}

int sqlite3_stmt_explain(sqlite3_stmt* s, int mode) {
  if (s == nullptr) return SQLITE_MISUSE;
  return mode == s->statement->explain() ? SQLITE_OK : SQLITE_ERROR;  // a statement keeps its mode
}

int sqlite3_stmt_status(sqlite3_stmt* s, int counter, int reset) {
  return s == nullptr ? 0 : static_cast<int>(s->statement->status(counter, reset != 0));
}

int sqlite3_expired(sqlite3_stmt*) {
  return 0;
}

int sqlite3_transfer_bindings(sqlite3_stmt* from, sqlite3_stmt* to) {
  if (from == nullptr || to == nullptr) return SQLITE_MISUSE;
  const int count = from->statement->parameter_count();
  if (count != to->statement->parameter_count()) return SQLITE_ERROR;
  for (int i = 1; i <= count; ++i) to->statement->bind(i, db::Value(from->statement->parameter(i)));
  from->statement->clear_bindings();
  return SQLITE_OK;
}

// --- exec and get_table ------------------------------------------------------------------------

namespace {

// Calls the application's row function; the texts live as long as the statement's row.
class RowCall {
 public:
  RowCall(sqlite3_callback row, void* context) : row_(row), context_(context) {}

  bool call(sqlite3_stmt* s) {
    const int count = sqlite3_column_count(s);
    names_.clear();
    values_.clear();
    for (int i = 0; i < count; ++i) {
      names_.push_back(const_cast<char*>(sqlite3_column_name(s, i)));
      const bool is_null = sqlite3_data_count(s) == 0 || sqlite3_column_type(s, i) == SQLITE_NULL;
      values_.push_back(
          is_null ? nullptr
                  : const_cast<char*>(reinterpret_cast<const char*>(sqlite3_column_text(s, i))));
    }
    values_.push_back(nullptr);
    names_.push_back(nullptr);
    return row_(context_, count, values_.data(), names_.data()) == 0;
  }

 private:
  sqlite3_callback row_;
  void* context_;
  std::vector<char*> names_, values_;
};

}  // namespace

int sqlite3_exec(sqlite3* db, const char* sql, sqlite3_callback row, void* context, char** error) {
  if (error != nullptr) *error = nullptr;
  if (!is_live(db) || db->connection == nullptr) return SQLITE_MISUSE;
  Entered entered(db);
  RowCall rows(row, context);
  const char* left = sql != nullptr ? sql : "";
  int code = SQLITE_OK;
  while (code == SQLITE_OK && *left != 0) {
    sqlite3_stmt* s = nullptr;
    code = sqlite3_prepare_v2(db, left, -1, &s, &left);
    if (code != SQLITE_OK || s == nullptr) continue;
    int step = sqlite3_step(s);
    while (step == SQLITE_ROW) {
      if (row != nullptr && !rows.call(s)) {
        sqlite3_finalize(s);
        code = db::capi::fail(db, SQLITE_ABORT, "query aborted");
        break;
      }
      step = sqlite3_step(s);
    }
    if (code == SQLITE_OK) code = sqlite3_finalize(s);
    while (*left == ' ' || (*left >= '\t' && *left <= '\r')) ++left;
  }
  if (code != SQLITE_OK && error != nullptr) *error = db::capi::copy_for_caller(sqlite3_errmsg(db));
  return code;
}

namespace {

struct Table {
  std::vector<char*> cells;
  int columns = 0;
  int rows = 0;
  bool uneven = false;
};

int add_row(void* context, int columns, char** values, char** names) {
  Table& table = *static_cast<Table*>(context);
  if (table.rows == 0 && table.cells.size() == 1) {
    table.columns = columns;
    for (int i = 0; i < columns; ++i) table.cells.push_back(db::capi::copy_for_caller(names[i]));
  } else if (columns != table.columns) {
    table.uneven = true;
    return 1;
  }
  for (int i = 0; i < columns; ++i) {
    table.cells.push_back(values[i] == nullptr ? nullptr : db::capi::copy_for_caller(values[i]));
  }
  ++table.rows;
  return 0;
}

}  // namespace

int sqlite3_get_table(sqlite3* db, const char* sql, char*** out, int* rows, int* columns,
                      char** error) {
  if (out == nullptr) return SQLITE_MISUSE;
  *out = nullptr;
  Table table;
  table.cells.push_back(nullptr);  // holds the count that free_table() needs
  int code = sqlite3_exec(db, sql, add_row, &table, error);
  if (table.uneven) {
    if (error != nullptr) {
      sqlite3_free(*error);
      *error = db::capi::copy_for_caller(
          "sqlite3_get_table() called with two or more incompatible queries");
    }
    code = SQLITE_ERROR;
  }
  char** cells = static_cast<char**>(sqlite3_malloc64(table.cells.size() * sizeof(char*)));
  std::memcpy(cells, table.cells.data(), table.cells.size() * sizeof(char*));
  cells[0] = reinterpret_cast<char*>(table.cells.size());
  if (code != SQLITE_OK) {
    sqlite3_free_table(cells + 1);
    return code;
  }
  *out = cells + 1;
  if (rows != nullptr) *rows = table.rows;
  if (columns != nullptr) *columns = table.columns;
  return SQLITE_OK;
}

void sqlite3_free_table(char** table) {
  if (table == nullptr) return;
  char** cells = table - 1;
  const size_t count = reinterpret_cast<size_t>(cells[0]);
  for (size_t i = 1; i < count; ++i) sqlite3_free(cells[i]);
  sqlite3_free(cells);
}
