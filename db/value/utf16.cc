#include "db/value/utf16.h"

#include "base/bytes.h"

#include <algorithm>

namespace db {
namespace {

u16 unit_at(const u8* at, Encoding encoding) {
  return encoding == Encoding::kUtf16be ? base::load_be16(at) : base::load_le<u16>(at);
}

void append_unit(std::string& out, u32 unit, Encoding encoding) {
  char low = static_cast<char>(unit & 0xff);
  char high = static_cast<char>(unit >> 8);
  if (encoding == Encoding::kUtf16be) std::swap(low, high);
  out += low;
  out += high;
}

template <Encoding kEncoding>
int compare_stored(void*, int a_size, const void* a, int b_size, const void* b) {
  std::string one =
      utf8_to_utf16({static_cast<const char*>(a), static_cast<size_t>(a_size)}, kEncoding);
  std::string other =
      utf8_to_utf16({static_cast<const char*>(b), static_cast<size_t>(b_size)}, kEncoding);
  return one.compare(other);
}

const Collation kBinaryLe = {"BINARY", compare_stored<Encoding::kUtf16le>, nullptr,
                             Collation::Kind::kUser};
const Collation kBinaryBe = {"BINARY", compare_stored<Encoding::kUtf16be>, nullptr,
                             Collation::Kind::kUser};

}  // namespace

u32 decode_utf8(std::string_view text, size_t& at) {
  u32 c = static_cast<u8>(text[at++]);
  if (c < 0xc0) return c;
  // No character begins with the bytes from 0xf8 on; SQLite takes these bits of them.
  if (c >= 0xfc) {
    c = c == 0xfd ? 1 : 0;
  } else {
    c = c < 0xe0 ? c & 0x1f : c < 0xf0 ? c & 0x0f : c < 0xf8 ? c & 0x07 : c & 0x03;
  }
  while (at < text.size() && (static_cast<u8>(text[at]) & 0xc0) == 0x80) {
    c = (c << 6) | (static_cast<u8>(text[at++]) & 0x3f);
  }
  bool bad = c < 0x80 || (c & 0xfffff800) == 0xd800 || (c & 0xfffffffe) == 0xfffe;
  return bad ? 0xfffd : c;
}

void append_utf8(std::string& out, u32 c) {
  auto put = [&out](u32 byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      put(0xe0 | (c >> 12));
    } else {
      put(0xf0 | (c >> 18));
      put(0x80 | ((c >> 12) & 0x3f));
    }
    put(0x80 | ((c >> 6) & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

std::string utf16_to_utf8(std::string_view bytes, Encoding encoding) {
  const u8* at = reinterpret_cast<const u8*>(bytes.data());
  const u8* end = at + (bytes.size() & ~size_t{1});
  std::string text;
  text.reserve(bytes.size() / 2);
  while (at < end) {
    u32 point = unit_at(at, encoding);
    at += 2;
    if (point >= 0xd800 && point < 0xdc00 && at < end) {
      const u32 low = unit_at(at, encoding);
      if (low >= 0xdc00 && low < 0xe000) {
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        at += 2;
      }
    }
    if (point >= 0xd800 && point < 0xe000) point = 0xfffd;  // half a pair
    append_utf8(text, point);
  }
  return text;
}

std::string utf8_to_utf16(std::string_view text, Encoding encoding) {
  std::string wide;
  wide.reserve(text.size() * 2);
  for (size_t at = 0; at < text.size();) {
    const u32 point = decode_utf8(text, at);
    if (point < 0x10000) {
      append_unit(wide, point, encoding);
    } else {
      append_unit(wide, 0xd800 + ((point - 0x10000) >> 10), encoding);
      append_unit(wide, 0xdc00 + ((point - 0x10000) & 0x3ff), encoding);
    }
  }
  return wide;
}

const Collation* binary_collation(Encoding encoding) {
  if (encoding == Encoding::kUtf16le) return &kBinaryLe;
  return encoding == Encoding::kUtf16be ? &kBinaryBe : &kBinary;
}

}  // namespace db
