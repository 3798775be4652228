// Writing and reading of values: LEB128 varints and fixed little-endian numbers. A reader never
// leaves its bytes; after the first short or malformed field ok() is false and all reads give
// zeros.
#pragma once

#include "base/bytes.h"

#include <string>
#include <string_view>

namespace fs {

inline void put_varint(std::string& out, u64 value) {
  char bytes[10];
  size_t used = 0;
  while (value >= 0x80) {
    bytes[used++] = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes[used++] = static_cast<char>(value);
  out.append(bytes, used);
}

template <class T>
inline void put_fixed(std::string& out, T value) {
  char bytes[sizeof(T)];
  base::store_le<T>(bytes, value);
  out.append(bytes, sizeof(T));
}

inline void put_text(std::string& out, std::string_view text) {
  put_varint(out, text.size());
  out.append(text);
}

class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  u64 varint() {
    u64 value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return fail();
      u8 byte = static_cast<u8>(rest_.front());
      rest_.remove_prefix(1);
      if (shift == 63 && byte > 1) return fail();
      value |= u64{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }
  u32 varint32() {
    u64 value = varint();
    return value <= 0xffffffffu ? static_cast<u32>(value) : static_cast<u32>(fail());
  }
  template <class T>
  T fixed() {
    if (rest_.size() < sizeof(T)) return static_cast<T>(fail());
    T value = base::load_le<T>(rest_.data());
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view bytes(u64 count) {
    if (count > rest_.size()) {
      fail();
      return {};
    }
    std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string_view text() { return bytes(varint()); }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }
  size_t left() const { return rest_.size(); }

 private:
  u64 fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace fs
