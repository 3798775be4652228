// Text on its way across the border: UTF-16, ownership, copies for the caller.
#include "base/bytes.h"
#include "db/capi/handle.h"
#include "db/functions/builtins.h"

#include <cstring>

namespace db::capi {
size_t utf16_length(const void* data) {
  const u8* at = static_cast<const u8*>(data);
  size_t bytes = 0;
  while (at[bytes] != 0 || at[bytes + 1] != 0) bytes += 2;
  return bytes;
}

std::string utf16_to_utf8(const void* data, size_t bytes, Encoding encoding) {
  return db::utf16_to_utf8({static_cast<const char*>(data), bytes}, encoding);
}

std::u16string utf8_to_utf16(std::string_view text) {
  std::u16string wide;
  wide.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const u32 point = decode_utf8(text, at);
    if (point < 0x10000) {
      wide += static_cast<char16_t>(point);
    } else {
      wide += static_cast<char16_t>(0xd800 + ((point - 0x10000) >> 10));
      wide += static_cast<char16_t>(0xdc00 + ((point - 0x10000) & 0x3ff));
    }
  }
  return wide;
}

Value take_bytes(Type type, const void* data, sqlite3_int64 bytes, sqlite3_destructor_type destroy,
                 Value* spare) {
  if (data == nullptr) return Value();
  const char* begin = static_cast<const char*>(data);
  const size_t size = bytes < 0 ? std::strlen(begin) : static_cast<size_t>(bytes);
  if (destroy == SQLITE_STATIC) {
    return type == Type::kText ? Value::borrowed_text({begin, size})
                               : Value::borrowed_blob({begin, size});
  }
  Value value = spare != nullptr ? Value::buffer(type, size, *spare) : Value::buffer(type, size);
  if (size > 0) std::memcpy(value.mutable_data(), begin, size);
  if (destroy != SQLITE_TRANSIENT) destroy(const_cast<void*>(data));
  return value;
}

Value take_text16(const void* data, sqlite3_int64 bytes, sqlite3_destructor_type destroy,
                  Encoding encoding) {
  if (data == nullptr) return Value();
  const size_t size = bytes < 0 ? utf16_length(data) : static_cast<size_t>(bytes);
  Value value = Value::text(utf16_to_utf8(data, size, encoding));
  if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy(const_cast<void*>(data));
  return value;
}

char* copy_for_caller(std::string_view text) {
  char* copy = static_cast<char*>(sqlite3_malloc64(text.size() + 1));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  return copy;
}

}  // namespace db::capi
