#include "llm/tokenizer/unicode.h"

#include <utf8proc.h>

namespace llm {
namespace {

// Expected length by first byte; 0 when no sequence starts with it.
u32 sequence_length(u8 first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return 4;
  return 0;
}

// Rejects overlong forms, surrogates and values past U+10FFFF by the second byte alone.
bool second_byte_fits(u8 first, u8 second) {
  if ((second & 0xc0) != 0x80) return false;
  if (first == 0xe0) return second >= 0xa0;
  if (first == 0xed) return second < 0xa0;
  if (first == 0xf0) return second >= 0x90;
  if (first == 0xf4) return second < 0x90;
  return true;
}

int category(u32 code_point) {
  return code_point > 0x10ffff ? UTF8PROC_CATEGORY_CN
                               : utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<u8>(text[i]); };
  const CodePoint invalid{0xfffd, static_cast<u32>(at), 1};
  const u8 first = byte(at);
  const u32 length = sequence_length(first);
  if (length == 0 || text.size() - at < length) return invalid;
  if (length == 1) return {first, static_cast<u32>(at), 1};
  if (!second_byte_fits(first, byte(at + 1))) return invalid;
  u32 value = first & (0xffu >> (length + 1));
  for (u32 i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return invalid;
    value = value << 6 | (byte(at + i) & 0x3fu);
  }
  return {value, static_cast<u32>(at), length};
}

std::vector<CodePoint> decode_utf8(std::string_view text) {
  std::vector<CodePoint> points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    points.push_back(decode_utf8(text, at));
    at += points.back().length;
  }
  return points;
}

void append_utf8(u32 code_point, std::string* out) {
  u8 bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

size_t incomplete_utf8_tail(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const u8 byte = static_cast<u8>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    return sequence_length(byte) > back ? back : 0;
  }
  return 0;
}

std::string sanitize_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (point.value == 0xfffd) {
      append_utf8(0xfffd, &out);
    } else {
      out.append(text.substr(at, point.length));
    }
    at += point.length;
  }
  return out;
}

bool is_letter(u32 code_point) {
  if (code_point < 0x80) return (code_point | 32) >= 'a' && (code_point | 32) <= 'z';
  const int c = category(code_point);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_number(u32 code_point) {
  if (code_point < 0x80) return code_point >= '0' && code_point <= '9';
  const int c = category(code_point);
  return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool is_whitespace(u32 code_point) {
  if (code_point < 0x80) return code_point == ' ' || (code_point >= 9 && code_point <= 13);
  if (code_point == 0x85) return true;
  const int c = category(code_point);
  return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP;
}

}  // namespace llm
