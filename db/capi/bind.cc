// Parameters of a statement.
#include "db/capi/handle.h"

#include <cstring>

using db::Type;
using db::Value;
using db::capi::Entered;
using db::capi::take_bytes;

static int bind_entered(sqlite3_stmt* s, int index, Value&& value) {
  const int code = s->statement->bind(index, std::move(value));
  if (code == SQLITE_OK) return SQLITE_OK;
  return db::capi::fail(s->db, code,
                        code == SQLITE_MISUSE ? "bad parameter or other API misuse" : "");
}

// `make` makes the value, which may find no memory.
template <class Make>
static int bind_made(sqlite3_stmt* s, int index, Make&& make) {
  if (s == nullptr) return SQLITE_MISUSE;
  Entered entered(s->db);
  return db::capi::guarded(s->db, [&] { return bind_entered(s, index, make()); });
}

static int bind(sqlite3_stmt* s, int index, Value&& value) {
  if (s == nullptr) return SQLITE_MISUSE;
  Entered entered(s->db);
  return bind_entered(s, index, std::move(value));
}

// Text or a blob, in the buffer of what was bound before where that fits.
static int bind_bytes(sqlite3_stmt* s, int index, Type type, const void* data, sqlite3_int64 bytes,
                      void (*free)(void*)) {
  if (s == nullptr) return SQLITE_MISUSE;
  Entered entered(s->db);
  return db::capi::guarded(s->db, [&] {
    Value spare = s->statement->take_parameter(index);
    return bind_entered(s, index, take_bytes(type, data, bytes, free, &spare));
  });
}

int sqlite3_bind_blob64(sqlite3_stmt* s, int index, const void* data, sqlite3_uint64 bytes,
                        void (*free)(void*)) {
  // An empty blob may come as a null pointer with a length of zero in some clients: that is NULL.
  return bind_bytes(s, index, Type::kBlob, data, static_cast<sqlite3_int64>(bytes), free);
}

int sqlite3_bind_blob(sqlite3_stmt* s, int index, const void* data, int bytes,
                      void (*free)(void*)) {
  if (bytes < 0) return SQLITE_MISUSE;
  return sqlite3_bind_blob64(s, index, data, static_cast<sqlite3_uint64>(bytes), free);
}

int sqlite3_bind_double(sqlite3_stmt* s, int index, double value) {
  return bind(s, index, Value::real(value));
}
int sqlite3_bind_int(sqlite3_stmt* s, int index, int value) {
  return bind(s, index, Value::integer(value));
}
int sqlite3_bind_int64(sqlite3_stmt* s, int index, sqlite3_int64 value) {
  return bind(s, index, Value::integer(value));
}
int sqlite3_bind_null(sqlite3_stmt* s, int index) {
  return bind(s, index, Value());
}

int sqlite3_bind_text(sqlite3_stmt* s, int index, const char* text, int bytes,
                      void (*free)(void*)) {
  return bind_bytes(s, index, Type::kText, text, bytes, free);
}

int sqlite3_bind_text16(sqlite3_stmt* s, int index, const void* text, int bytes,
                        void (*free)(void*)) {
  return bind_made(
      s, index, [&] { return db::capi::take_text16(text, bytes, free, db::Encoding::kUtf16le); });
}

int sqlite3_bind_text64(sqlite3_stmt* s, int index, const char* text, sqlite3_uint64 bytes,
                        void (*free)(void*), unsigned char encoding) {
  const auto size = static_cast<sqlite3_int64>(bytes);
  if (encoding == SQLITE_UTF8) return bind_bytes(s, index, Type::kText, text, size, free);
  const auto order = encoding == SQLITE_UTF16BE ? db::Encoding::kUtf16be : db::Encoding::kUtf16le;
  return bind_made(s, index, [&] { return db::capi::take_text16(text, size, free, order); });
}

int sqlite3_bind_value(sqlite3_stmt* s, int index, const sqlite3_value* value) {
  Value copy = db::capi::value_of(value);
  copy.keep();
  return bind(s, index, std::move(copy));
}

int sqlite3_bind_pointer(sqlite3_stmt* s, int index, void* pointer, const char* type,
                         void (*free)(void*)) {
  return bind(s, index, Value::pointer(pointer, type != nullptr ? type : "", free));
}

static Value zeros(sqlite3_uint64 bytes) {
  Value value = Value::buffer(Type::kBlob, bytes);
  std::memset(value.mutable_data(), 0, bytes);
  return value;
}

int sqlite3_bind_zeroblob64(sqlite3_stmt* s, int index, sqlite3_uint64 bytes) {
  if (s == nullptr) return SQLITE_MISUSE;
  if (bytes > static_cast<sqlite3_uint64>(s->db->connection->limit(db::Limit::kLength))) {
    return db::capi::fail(s->db, SQLITE_TOOBIG);
  }
  return bind(s, index, zeros(bytes));
}

int sqlite3_bind_zeroblob(sqlite3_stmt* s, int index, int bytes) {
  return sqlite3_bind_zeroblob64(s, index, bytes < 0 ? 0 : static_cast<sqlite3_uint64>(bytes));
}

int sqlite3_bind_parameter_count(sqlite3_stmt* s) {
  return s == nullptr ? 0 : s->statement->parameter_count();
}

const char* sqlite3_bind_parameter_name(sqlite3_stmt* s, int index) {
  if (s == nullptr || index < 1 || index > s->statement->parameter_count()) return nullptr;
  Entered entered(s->db);
  if (s->parameter_names.empty()) {
    for (int i = 1; i <= s->statement->parameter_count(); ++i) {
      s->parameter_names.emplace_back(s->statement->parameter_name(i));
    }
  }
  const std::string& name = s->parameter_names[static_cast<size_t>(index - 1)];
  return name.empty() ? nullptr : name.c_str();
}

int sqlite3_bind_parameter_index(sqlite3_stmt* s, const char* name) {
  return s == nullptr || name == nullptr ? 0 : s->statement->parameter_index(name);
}

int sqlite3_clear_bindings(sqlite3_stmt* s) {
  if (s == nullptr) return SQLITE_MISUSE;
  Entered entered(s->db);
  s->statement->clear_bindings();
  return SQLITE_OK;
}
