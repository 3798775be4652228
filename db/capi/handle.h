// What the opaque pointers of the C API point at, and the small helpers every file of this folder
// uses. sqlite3_value is a db::Value and sqlite3_context a db::FunctionContext, so values and
// contexts cross the border without a copy.
//
// Locking: each connection has one recursive mutex; every call that touches it holds an Entered for
// its duration. close_v2() on a connection with statements makes it a zombie that the last finalize
// frees. Destructors passed by the application run exactly once, on error paths too.
#pragma once

#include "db/capi/recursive_lock.h"
#include "db/capi/sqlite3.h"
#include "db/engine/connection.h"
#include "db/functions/function.h"
#include "db/value/value.h"

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

struct sqlite3_mutex {
  db::capi::RecursiveLock lock;
};

struct sqlite3 {
  static constexpr u32 kOpen = 0xa029a697;
  static constexpr u32 kZombie = 0x64cffc7f;

  u32 magic = kOpen;  // tells a live handle from a freed or a wrong one
  sqlite3_mutex mutex;
  std::unique_ptr<db::Connection> connection;  // null when opening failed
  int open_error = 0;                          // used while there is no connection
  std::string open_message;
  bool extended_codes = false;
  bool extensions_enabled = false;
  int statements = 0;  // and blobs and backups: handles that keep the connection
  // The C handle of each engine statement, for traces and sqlite3_next_stmt().
  std::unordered_map<const db::Statement*, sqlite3_stmt*> handles;
  std::u16string message16;

  // The application's hooks, so that setting one returns the context of the one before.
  void* commit_context = nullptr;
  void* rollback_context = nullptr;
  void* update_context = nullptr;
  void* wal_context = nullptr;
  void* trace_context = nullptr;
  void* profile_context = nullptr;
  unsigned trace_mask = 0;
  int (*trace)(unsigned, void*, void*, void*) = nullptr;
  void* trace_v2_context = nullptr;

  struct ClientData {
    void* data;
    void (*destroy)(void*);
  };
  std::map<std::string, ClientData> client_data;
  std::map<std::string, std::string> filenames;  // what sqlite3_db_filename() returned
  std::string* declared_vtab = nullptr;  // where sqlite3_declare_vtab() writes, inside xConnect
  // Strings that sqlite3_table_column_metadata() and kin returned; good until the next such call.
  std::string metadata_type, metadata_collation;
};

struct sqlite3_stmt {
  sqlite3* db = nullptr;
  std::unique_ptr<db::Statement> statement;

  // Text of a column of the current row as the application asked for it. Kept beside the value, so
  // that asking for text does not change the column's type; memory is reused from row to row.
  struct Column {
    bool has_text = false, has_text16 = false;
    std::string text;
    std::u16string text16;
  };
  std::vector<Column> columns;
  // Names, made when asked for; good until the statement goes.
  std::map<std::pair<int, int>, std::string> names;
  std::map<std::pair<int, int>, std::u16string> names16;
  std::string sql;
  std::vector<std::string> parameter_names;
  bool legacy = false;  // made by sqlite3_prepare(): step() answers with SQLITE_ERROR alone
};

namespace db::capi {

class Entered {
 public:
  explicit Entered(sqlite3* db) : lock_(db->mutex.lock) {}

 private:
  std::lock_guard<RecursiveLock> lock_;
};

inline bool is_live(const sqlite3* db) {
  return db != nullptr && db->magic == sqlite3::kOpen;
}

// The code as the application asked to see it: primary, or extended when it switched that on.
inline int shown_code(const sqlite3* db, int code) {
  return db->extended_codes ? code : code & 0xff;
}

inline Value& value_of(sqlite3_value* value) {
  return *reinterpret_cast<Value*>(value);
}
inline const Value& value_of(const sqlite3_value* value) {
  return *reinterpret_cast<const Value*>(value);
}
inline sqlite3_value* handle_of(Value* value) {
  return reinterpret_cast<sqlite3_value*>(value);
}
inline FunctionContext& context_of(sqlite3_context* context) {
  return *reinterpret_cast<FunctionContext*>(context);
}

// SQLITE_INTEGER and so on.
int type_number(const Value& value);

// Takes over text or a blob the way the application asked: copied, borrowed or freed afterwards.
// `bytes` < 0: up to the zero. The destructor has run, or will, when this returns.
// A copy may take over the buffer of `spare`, which is then NULL.
Value take_bytes(Type type, const void* data, sqlite3_int64 bytes, sqlite3_destructor_type destroy,
                 Value* spare = nullptr);
// The same for UTF-16 text, which is converted.
Value take_text16(const void* data, sqlite3_int64 bytes, sqlite3_destructor_type destroy,
                  Encoding encoding);

// Conversions; malformed input becomes U+FFFD.
std::string utf16_to_utf8(const void* data, size_t bytes, Encoding encoding);
std::u16string utf8_to_utf16(std::string_view text);
size_t utf16_length(const void* data);  // bytes up to the zero character

// A copy that sqlite3_free() frees.
char* copy_for_caller(std::string_view text);

// Frees a zombie whose last statement went. The mutex must not be held.
void free_if_done(sqlite3* db);

// One blob or backup handle less; they count as statements do.
void release_handle(sqlite3* db);
// Runs what sqlite3_auto_extension() collected on a new connection.
int run_auto_extensions(sqlite3* db);
// Forgets the latest error; SQLITE_OK.
int clear_error(sqlite3* db);

// Sets the connection's error and returns the code as shown.
int fail(sqlite3* db, int code, std::string message = {});
// Runs what may allocate; out of memory is an answer, too.
template <class Call>
int guarded(sqlite3* db, Call&& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail(db, SQLITE_NOMEM, "out of memory");
  }
}

// Tells the callback of SQLITE_CONFIG_LOG.
void log(int code, const char* text);

// SQLite's text for a result code.
const char* text_of_code(int code);

}  // namespace db::capi
