// Values that functions receive, or that the application duplicated.
#include "db/capi/handle.h"

#include <array>

using db::Type;
using db::Value;
using db::capi::value_of;

namespace {

// Text made from a value that is not text, or not in the wanted encoding. The application may hold
// the pointer until its function returns; 64 of them per thread are kept, far more than any call
// has.
template <class Text>
Text& scratch() {
  thread_local std::array<Text, 64> ring;
  thread_local size_t next = 0;
  return ring[next++ % ring.size()];
}

// The bytes as text with a zero behind them.
const char* text_of(Value& value) {
  if (!value.has_bytes()) return (scratch<std::string>() = value.to_text()).c_str();
  value.keep();  // shared buffers end in a zero
  return value.bytes().data();
}

const void* text16_of(Value& value, bool big_endian) {
  std::u16string& wide = scratch<std::u16string>();
  wide = db::capi::utf8_to_utf16(value.has_bytes() ? std::string(value.bytes()) : value.to_text());
  if (big_endian) {
    for (char16_t& unit : wide) unit = __builtin_bswap16(unit);
  }
  return wide.c_str();
}

}  // namespace

int db::capi::type_number(const Value& value) {
  switch (value.type()) {
    case Type::kInteger:
      return SQLITE_INTEGER;
    case Type::kReal:
      return SQLITE_FLOAT;
    case Type::kText:
      return SQLITE_TEXT;
    case Type::kBlob:
      return SQLITE_BLOB;
    case Type::kNull:
      break;
  }
  return SQLITE_NULL;
}

int sqlite3_value_type(sqlite3_value* v) {
  return db::capi::type_number(value_of(v));
}
double sqlite3_value_double(sqlite3_value* v) {
  return value_of(v).to_real();
}
sqlite3_int64 sqlite3_value_int64(sqlite3_value* v) {
  return value_of(v).to_integer();
}
int sqlite3_value_int(sqlite3_value* v) {
  return static_cast<int>(value_of(v).to_integer());
}

void* sqlite3_value_pointer(sqlite3_value* v, const char* type) {
  return value_of(v).pointer_of(type != nullptr ? type : "");
}

const unsigned char* sqlite3_value_text(sqlite3_value* v) {
  if (value_of(v).is_null()) return nullptr;
  return reinterpret_cast<const unsigned char*>(text_of(value_of(v)));
}

const void* sqlite3_value_text16(sqlite3_value* v) {
  return sqlite3_value_text16le(v);
}
const void* sqlite3_value_text16le(sqlite3_value* v) {
  return value_of(v).is_null() ? nullptr : text16_of(value_of(v), false);
}
const void* sqlite3_value_text16be(sqlite3_value* v) {
  return value_of(v).is_null() ? nullptr : text16_of(value_of(v), true);
}

const void* sqlite3_value_blob(sqlite3_value* v) {
  Value& value = value_of(v);
  if (value.is_null() || (value.has_bytes() && value.bytes().empty())) return nullptr;
  return text_of(value);
}

int sqlite3_value_bytes(sqlite3_value* v) {
  const Value& value = value_of(v);
  if (value.is_null()) return 0;
  return static_cast<int>(value.has_bytes() ? value.bytes().size() : value.to_text().size());
}

int sqlite3_value_bytes16(sqlite3_value* v) {
  const Value& value = value_of(v);
  if (value.is_null()) return 0;
  if (value.is_blob()) return static_cast<int>(value.bytes().size());
  return static_cast<int>(db::capi::utf8_to_utf16(value.to_text()).size() * 2);
}

int sqlite3_value_numeric_type(sqlite3_value* v) {
  if (value_of(v).is_text()) db::apply_numeric_affinity(value_of(v));
  return sqlite3_value_type(v);
}

int sqlite3_value_nochange(sqlite3_value*) {
  return 0;
}
int sqlite3_value_frombind(sqlite3_value*) {
  return 0;
}
int sqlite3_value_encoding(sqlite3_value*) {
  return SQLITE_UTF8;
}
unsigned int sqlite3_value_subtype(sqlite3_value* v) {
  return value_of(v).subtype();
}

sqlite3_value* sqlite3_value_dup(const sqlite3_value* v) {
  if (v == nullptr) return nullptr;
  Value* copy = new Value(value_of(v));
  // The duplicate may outlive the connection and go to another thread: no shared count.
  if (copy->is_text()) *copy = Value::text(copy->bytes());
  if (copy->is_blob()) *copy = Value::blob(copy->bytes());
  copy->set_subtype(value_of(v).subtype());
  return db::capi::handle_of(copy);
}

void sqlite3_value_free(sqlite3_value* v) {
  delete reinterpret_cast<Value*>(v);
}
