// Columns of a statement: values of the current row, names and origins.
#include "db/capi/handle.h"

using db::Value;
using db::capi::Entered;

namespace {

const Value kNull;

// The value, or NULL when there is no row or no such column (SQLITE_RANGE is then the error).
const Value& column_value(sqlite3_stmt* s, int column) {
  if (s == nullptr) return kNull;
  if (column >= 0 && column < s->statement->data_count()) [[likely]]
    return s->statement->column(column);
  db::capi::fail(s->db, SQLITE_RANGE);
  return kNull;
}

sqlite3_stmt::Column& cell(sqlite3_stmt* s, int column) {
  const size_t index = static_cast<size_t>(column);
  if (index >= s->columns.size())
    s->columns.resize(static_cast<size_t>(s->statement->column_count()));
  return s->columns[index];
}

const std::string& text_of(sqlite3_stmt* s, int column, const Value& value) {
  sqlite3_stmt::Column& kept = cell(s, column);
  if (!kept.has_text) {
    if (value.has_bytes()) {
      kept.text.assign(value.bytes());
    } else {
      kept.text = value.to_text();
    }
    kept.has_text = true;
  }
  return kept.text;
}

const std::u16string& text16_of(sqlite3_stmt* s, int column, const Value& value) {
  const std::string& text = text_of(s, column, value);
  sqlite3_stmt::Column& kept = cell(s, column);
  if (!kept.has_text16) {
    kept.text16 = db::capi::utf8_to_utf16(text);
    kept.has_text16 = true;
  }
  return kept.text16;
}

// What `make` points to, or null with SQLITE_NOMEM when there is no memory for it.
template <class Make>
auto pointer_or_null(sqlite3_stmt* s, Make&& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    db::capi::fail(s->db, SQLITE_NOMEM, "out of memory");
    return nullptr;
  }
}

enum NameKind { kName, kDeclaredType, kDatabase, kTable, kOrigin };

std::string_view name_of(const db::Statement& statement, int column, NameKind kind) {
  switch (kind) {
    case kName:
      return statement.column_name(column);
    case kDeclaredType:
      return statement.column_declared_type(column);
    case kDatabase:
      return statement.column_database(column);
    case kTable:
      return statement.column_table(column);
    case kOrigin:
      return statement.column_origin(column);
  }
  return {};
}

const char* column_text(sqlite3_stmt* s, int column, NameKind kind) {
  if (s == nullptr || column < 0 || column >= s->statement->column_count()) return nullptr;
  Entered entered(s->db);
  return pointer_or_null(s, [&]() -> const char* {
    const std::string_view name = name_of(*s->statement, column, kind);
    if (name.empty() && kind != kName) return nullptr;
    std::string& kept = s->names[{column, kind}];
    if (kept != name) kept = name;
    return kept.c_str();
  });
}

const void* column_text16(sqlite3_stmt* s, int column, NameKind kind) {
  const char* name = column_text(s, column, kind);
  if (name == nullptr) return nullptr;
  return pointer_or_null(s, [&]() -> const void* {
    std::u16string& kept = s->names16[{column, kind}];
    kept = db::capi::utf8_to_utf16(name);
    return kept.c_str();
  });
}

}  // namespace

int sqlite3_column_count(sqlite3_stmt* s) {
  return s == nullptr ? 0 : s->statement->column_count();
}
int sqlite3_data_count(sqlite3_stmt* s) {
  return s == nullptr ? 0 : s->statement->data_count();
}

const char* sqlite3_column_name(sqlite3_stmt* s, int column) {
  return column_text(s, column, kName);
}
const void* sqlite3_column_name16(sqlite3_stmt* s, int column) {
  return column_text16(s, column, kName);
}
const char* sqlite3_column_decltype(sqlite3_stmt* s, int column) {
  return column_text(s, column, kDeclaredType);
}
const void* sqlite3_column_decltype16(sqlite3_stmt* s, int column) {
  return column_text16(s, column, kDeclaredType);
}
const char* sqlite3_column_database_name(sqlite3_stmt* s, int column) {
  return column_text(s, column, kDatabase);
}
const void* sqlite3_column_database_name16(sqlite3_stmt* s, int column) {
  return column_text16(s, column, kDatabase);
}
const char* sqlite3_column_table_name(sqlite3_stmt* s, int column) {
  return column_text(s, column, kTable);
}
const void* sqlite3_column_table_name16(sqlite3_stmt* s, int column) {
  return column_text16(s, column, kTable);
}
const char* sqlite3_column_origin_name(sqlite3_stmt* s, int column) {
  return column_text(s, column, kOrigin);
}
const void* sqlite3_column_origin_name16(sqlite3_stmt* s, int column) {
  return column_text16(s, column, kOrigin);
}

int sqlite3_column_type(sqlite3_stmt* s, int column) {
  return db::capi::type_number(column_value(s, column));
}
double sqlite3_column_double(sqlite3_stmt* s, int column) {
  return column_value(s, column).to_real();
}
sqlite3_int64 sqlite3_column_int64(sqlite3_stmt* s, int column) {
  return column_value(s, column).to_integer();
}
int sqlite3_column_int(sqlite3_stmt* s, int column) {
  return static_cast<int>(sqlite3_column_int64(s, column));  // the low word, as SQLite gives it
}

const unsigned char* sqlite3_column_text(sqlite3_stmt* s, int column) {
  const Value& value = column_value(s, column);
  if (value.is_null()) return nullptr;
  // Texts and blobs of a row end with a zero byte.
  if (value.has_bytes()) return reinterpret_cast<const unsigned char*>(value.bytes().data());
  return pointer_or_null(
      s, [&] { return reinterpret_cast<const unsigned char*>(text_of(s, column, value).c_str()); });
}

const void* sqlite3_column_text16(sqlite3_stmt* s, int column) {
  const Value& value = column_value(s, column);
  if (value.is_null()) return nullptr;
  return pointer_or_null(s, [&]() -> const void* { return text16_of(s, column, value).c_str(); });
}

const void* sqlite3_column_blob(sqlite3_stmt* s, int column) {
  const Value& value = column_value(s, column);
  if (value.is_null()) return nullptr;
  if (value.has_bytes()) return value.bytes().empty() ? nullptr : value.bytes().data();
  return pointer_or_null(s, [&]() -> const void* { return text_of(s, column, value).data(); });
}

int sqlite3_column_bytes(sqlite3_stmt* s, int column) {
  const Value& value = column_value(s, column);
  if (value.is_null()) return 0;
  if (value.has_bytes()) return static_cast<int>(value.bytes().size());
  const void* text = sqlite3_column_text(s, column);
  return text == nullptr ? 0 : static_cast<int>(text_of(s, column, value).size());
}

int sqlite3_column_bytes16(sqlite3_stmt* s, int column) {
  const Value& value = column_value(s, column);
  if (value.is_null()) return 0;
  if (value.is_blob()) return static_cast<int>(value.bytes().size());
  const void* text = sqlite3_column_text16(s, column);
  return text == nullptr ? 0 : static_cast<int>(text16_of(s, column, value).size() * 2);
}

sqlite3_value* sqlite3_column_value(sqlite3_stmt* s, int column) {
  return db::capi::handle_of(const_cast<Value*>(&column_value(s, column)));
}
