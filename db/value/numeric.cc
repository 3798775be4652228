#include "db/value/decimal.h"
#include "db/value/value.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace db {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

ParsedNumber parse_number(std::string_view text) {
  ParsedNumber out;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end && is_space(*p)) ++p;
  const char* start = p;
  bool negative = false;
  if (p < end && (*p == '-' || *p == '+')) {
    negative = *p == '-';
    ++p;
  }
  const char* digits = p;
  u64 magnitude = 0;
  bool overflow = false;
  while (p < end && is_digit(*p)) {
    u64 digit = static_cast<u64>(*p - '0');
    overflow |= magnitude > (std::numeric_limits<u64>::max() - digit) / 10;
    magnitude = magnitude * 10 + digit;
    ++p;
  }
  size_t whole_digits = static_cast<size_t>(p - digits);
  size_t fraction_digits = 0;
  bool is_real = false;
  if (p < end && *p == '.') {
    const char* dot = p++;
    while (p < end && is_digit(*p)) ++p;
    fraction_digits = static_cast<size_t>(p - dot - 1);
    if (whole_digits + fraction_digits == 0) p = dot;
    is_real = p != dot;
  }
  if (whole_digits + fraction_digits == 0) return out;
  if (p < end && (*p == 'e' || *p == 'E')) {
    const char* q = p + 1;
    if (q < end && (*q == '-' || *q == '+')) ++q;
    if (q < end && is_digit(*q)) {
      while (q < end && is_digit(*q)) ++q;
      p = q;
      is_real = true;
    }
  }
  const char* number_end = p;
  while (p < end && is_space(*p)) ++p;
  out.whole = p == end;
  u64 limit = u64{1} << 63;
  if (!is_real && !overflow && magnitude <= (negative ? limit : limit - 1)) {
    out.type = Type::kInteger;
    out.integer = static_cast<i64>(negative ? ~magnitude + 1 : magnitude);
    out.real = static_cast<f64>(out.integer);
    return out;
  }
  out.type = Type::kReal;
  const char* from = *start == '+' ? start + 1 : start;
  auto [at, error] = std::from_chars(from, number_end, out.real);
  if (error == std::errc::result_out_of_range) {
    // Too large or too small: a leading digit other than zero with a positive exponent is infinity.
    const char* e = number_end;
    while (e > from && *e != 'e' && *e != 'E') --e;
    bool tiny = e > from && e[1] == '-';
    out.real = tiny ? 0.0 : std::numeric_limits<f64>::infinity();
    if (negative) out.real = -out.real;
  }
  return out;
}

i64 parse_integer_prefix(std::string_view text) {
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end && is_space(*p)) ++p;
  bool negative = false;
  if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  u64 limit = (u64{1} << 63) - (negative ? 0 : 1);
  u64 magnitude = 0;
  for (; p < end && is_digit(*p); ++p) {
    u64 digit = static_cast<u64>(*p - '0');
    if (magnitude > (limit - digit) / 10) {
      magnitude = limit;
      break;
    }
    magnitude = magnitude * 10 + digit;
  }
  return static_cast<i64>(negative ? ~magnitude + 1 : magnitude);
}

f64 parse_real_prefix(std::string_view text) {
  return parse_number(text).real;
}

i64 real_to_integer(f64 value) {
  if (value <= -9223372036854775808.0) return std::numeric_limits<i64>::min();
  if (value >= 9223372036854775808.0) return std::numeric_limits<i64>::max();
  return value == value ? static_cast<i64>(value) : 0;
}

size_t format_integer(i64 value, char* out) {
  return static_cast<size_t>(std::to_chars(out, out + 21, value).ptr - out);
}

size_t format_real(f64 value, char* out, int digits) {
  if (value != value) return 0;
  char* p = out;
  if (std::isinf(value)) {
    const char* text = value < 0 ? "-Inf" : "Inf";
    size_t size = std::strlen(text);
    std::memcpy(out, text, size);
    return size;
  }
  if (value == 0) {
    std::memcpy(out, "0.0", 3);
    return 3;
  }
  Decimal decimal = decimal_of(value, digits, 26);
  const char* mantissa = decimal.digits;
  int count = decimal.count;
  int exponent = decimal.point - 1;
  if (decimal.negative) *p++ = '-';
  if (exponent < -4 || exponent >= digits) {
    *p++ = mantissa[0];
    *p++ = '.';
    if (count == 1) *p++ = '0';
    for (int i = 1; i < count; ++i) *p++ = mantissa[i];
    *p++ = 'e';
    *p++ = exponent < 0 ? '-' : '+';
    int magnitude = exponent < 0 ? -exponent : exponent;
    if (magnitude >= 100) *p++ = static_cast<char>('0' + magnitude / 100);
    *p++ = static_cast<char>('0' + magnitude / 10 % 10);
    *p++ = static_cast<char>('0' + magnitude % 10);
  } else if (exponent < 0) {
    *p++ = '0';
    *p++ = '.';
    for (int i = -1; i > exponent; --i) *p++ = '0';
    for (int i = 0; i < count; ++i) *p++ = mantissa[i];
  } else {
    for (int i = 0; i <= exponent; ++i) *p++ = i < count ? mantissa[i] : '0';
    *p++ = '.';
    if (count <= exponent + 1) *p++ = '0';
    for (int i = exponent + 1; i < count; ++i) *p++ = mantissa[i];
  }
  return static_cast<size_t>(p - out);
}

}  // namespace db
