// Incremental blob I/O over ordinary statements: the value is read when the handle opens, a write
// changes it in place and stores it. A handle whose row another statement changed is expired.
#include "db/capi/handle.h"

#include <cstring>

using namespace db::capi;

struct sqlite3_blob {
  sqlite3* db = nullptr;
  std::string schema, table, column;
  i64 rowid = 0;
  bool writable = false;
  bool expired = false;
  bool is_text = false;
  std::string bytes;
  i64 seen_changes = 0;  // total_changes() when `bytes` was last known to be right
};

namespace {

std::string quoted(const std::string& name) {
  std::string out = "\"";
  for (char c : name) {
    out += c;
    if (c == '"') out += c;
  }
  return out + "\"";
}

std::string target(const sqlite3_blob& blob) {
  return quoted(blob.schema) + "." + quoted(blob.table);
}

// Reads the row's value. `found` is false when there is no such row.
int load(sqlite3_blob& blob, std::string& bytes, int& type, bool& found) {
  std::string sql = "SELECT " + quoted(blob.column) + " FROM " + target(blob) + " WHERE rowid=?1";
  sqlite3_stmt* stmt = nullptr;
  int code = sqlite3_prepare_v2(blob.db, sql.c_str(), -1, &stmt, nullptr);
  if (code != SQLITE_OK) return code;
  sqlite3_bind_int64(stmt, 1, blob.rowid);
  code = sqlite3_step(stmt);
  found = code == SQLITE_ROW;
  if (found) {
    type = sqlite3_column_type(stmt, 0);
    auto* data = static_cast<const char*>(sqlite3_column_blob(stmt, 0));
    bytes.assign(data == nullptr ? "" : data, static_cast<size_t>(sqlite3_column_bytes(stmt, 0)));
  }
  return sqlite3_finalize(stmt);
}

int open_row(sqlite3_blob& blob) {
  int type = SQLITE_NULL;
  bool found = false;
  int code = load(blob, blob.bytes, type, found);
  if (code != SQLITE_OK) return code;
  if (!found) return fail(blob.db, SQLITE_ERROR, "no such rowid: " + std::to_string(blob.rowid));
  if (type != SQLITE_TEXT && type != SQLITE_BLOB) {
    const char* name = type == SQLITE_NULL ? "null" : type == SQLITE_INTEGER ? "integer" : "real";
    return fail(blob.db, SQLITE_ERROR, "cannot open value of type " + std::string(name));
  }
  blob.is_text = type == SQLITE_TEXT;
  blob.expired = false;
  blob.seen_changes = sqlite3_total_changes64(blob.db);
  return clear_error(blob.db);
}

// Has the row changed behind the handle?
bool check_expired(sqlite3_blob& blob) {
  if (blob.expired) return true;
  i64 changes = sqlite3_total_changes64(blob.db);
  if (changes == blob.seen_changes) return false;
  std::string bytes;
  int type = SQLITE_NULL;
  bool found = false;
  int code = load(blob, bytes, type, found);
  bool same_type = type == (blob.is_text ? SQLITE_TEXT : SQLITE_BLOB);
  blob.expired = code != SQLITE_OK || !found || !same_type || bytes != blob.bytes;
  blob.seen_changes = changes;
  return blob.expired;
}

// SQLite refuses columns of views and virtual tables, and to write into indexed columns.
int check_target(sqlite3_blob& blob) {
  auto metadata = blob.db->connection->column_metadata(&blob.schema, blob.table, blob.column);
  if (metadata.ok()) return SQLITE_OK;
  std::string message = metadata.error().message();
  if (message.starts_with("no such table column")) {
    auto table = blob.db->connection->column_metadata(&blob.schema, blob.table, "");
    message = table.ok() ? "no such column: \"" + blob.column + "\""
                         : "no such table: " + blob.schema + "." + blob.table;
  }
  return fail(blob.db, SQLITE_ERROR, message);
}

}  // namespace

extern "C" {

int sqlite3_blob_open(sqlite3* db, const char* schema, const char* table, const char* column,
                      sqlite3_int64 rowid, int writable, sqlite3_blob** out) {
  if (out == nullptr) return SQLITE_MISUSE;
  *out = nullptr;
  if (db == nullptr || db->connection == nullptr || table == nullptr || column == nullptr)
    return SQLITE_MISUSE;
  Entered entered(db);
  auto* blob = new sqlite3_blob();
  blob->db = db;
  blob->schema = schema == nullptr ? "main" : schema;
  blob->table = table;
  blob->column = column;
  blob->rowid = rowid;
  blob->writable = writable != 0;
  int code = check_target(*blob);
  if (code == SQLITE_OK) code = open_row(*blob);
  if (code != SQLITE_OK) {
    delete blob;
    return code;
  }
  ++db->statements;
  *out = blob;
  return SQLITE_OK;
}

int sqlite3_blob_reopen(sqlite3_blob* blob, sqlite3_int64 rowid) {
  Entered entered(blob->db);
  blob->rowid = rowid;
  int code = open_row(*blob);
  if (code != SQLITE_OK) blob->expired = true;
  return code;
}

int sqlite3_blob_close(sqlite3_blob* blob) {
  if (blob == nullptr) return SQLITE_OK;
  sqlite3* db = blob->db;
  delete blob;
  release_handle(db);
  return SQLITE_OK;
}

int sqlite3_blob_bytes(sqlite3_blob* blob) {
  return blob == nullptr || blob->expired ? 0 : static_cast<int>(blob->bytes.size());
}

static int check_range(sqlite3_blob* blob, int size, int offset) {
  if (size < 0 || offset < 0 ||
      static_cast<i64>(offset) + size > static_cast<i64>(blob->bytes.size())) {
    return fail(blob->db, SQLITE_ERROR);
  }
  if (check_expired(*blob)) return fail(blob->db, SQLITE_ABORT);
  return SQLITE_OK;
}

int sqlite3_blob_read(sqlite3_blob* blob, void* out, int size, int offset) {
  if (blob == nullptr) return SQLITE_MISUSE;
  Entered entered(blob->db);
  int code = check_range(blob, size, offset);
  if (code != SQLITE_OK) return code;
  std::memcpy(out, blob->bytes.data() + offset, static_cast<size_t>(size));
  return clear_error(blob->db);
}

int sqlite3_blob_write(sqlite3_blob* blob, const void* data, int size, int offset) {
  if (blob == nullptr) return SQLITE_MISUSE;
  Entered entered(blob->db);
  int code = check_range(blob, size, offset);
  if (code != SQLITE_OK) return code;
  if (!blob->writable) return fail(blob->db, SQLITE_READONLY);
  std::string changed = blob->bytes;
  std::memcpy(changed.data() + offset, data, static_cast<size_t>(size));
  std::string sql =
      "UPDATE " + target(*blob) + " SET " + quoted(blob->column) + "=?1 WHERE rowid=?2";
  sqlite3_stmt* stmt = nullptr;
  code = sqlite3_prepare_v2(blob->db, sql.c_str(), -1, &stmt, nullptr);
  if (code != SQLITE_OK) return code;
  int bytes = static_cast<int>(changed.size());
  if (blob->is_text) {
    sqlite3_bind_text(stmt, 1, changed.data(), bytes, SQLITE_STATIC);
  } else {
    sqlite3_bind_blob(stmt, 1, changed.data(), bytes, SQLITE_STATIC);
  }
  sqlite3_bind_int64(stmt, 2, blob->rowid);
  sqlite3_step(stmt);
  code = sqlite3_finalize(stmt);
  if (code != SQLITE_OK) return code;
  blob->bytes = std::move(changed);
  blob->seen_changes = sqlite3_total_changes64(blob->db);
  return clear_error(blob->db);
}

}  // extern "C"
