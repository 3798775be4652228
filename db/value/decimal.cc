#include "db/value/decimal.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace db {
namespace {

// Digits and exponent of std::to_chars's scientific form.
void split(Decimal& out, const char* begin, const char* end) {
  out.count = 0;
  const char* p = begin;
  for (; p < end && *p != 'e'; ++p) {
    if (*p != '.') out.digits[out.count++] = *p;
  }
  int exponent = 0;
  if (p < end) ++p;
  if (p < end && *p == '+') ++p;
  std::from_chars(p, end, exponent);
  out.point = exponent + 1;
}

void strip_zeros(Decimal& out) {
  while (out.count > 1 && out.digits[out.count - 1] == '0') --out.count;
}

// Keeps `keep` digits, rounding half up; keep may be 0 or negative.
void round_at(Decimal& out, int keep) {
  if (keep >= out.count) return;
  bool up = keep >= 0 && out.digits[keep] >= '5';
  if (keep < 0) keep = 0;
  out.count = keep;
  while (up) {
    if (out.count == 0) {
      out.digits[0] = '1';
      out.count = 1;
      ++out.point;
      break;
    }
    if (out.digits[out.count - 1] < '9') {
      ++out.digits[out.count - 1];
      break;
    }
    --out.count;
  }
  if (out.count == 0) {
    out.digits[0] = '0';
    out.count = 1;
    out.point = 1;
  }
}

bool reads_back_as(const Decimal& d, f64 value) {
  char text[40] = "0.";
  std::memcpy(text + 2, d.digits, static_cast<size_t>(d.count));
  char* p = text + 2 + d.count;
  *p++ = 'e';
  p = std::to_chars(p, text + sizeof text, d.point).ptr;
  f64 parsed = 0;
  return std::from_chars(text, p, parsed).ec == std::errc() && parsed == value;
}

// 17 digits that end in ..99x or ..000x are the noise of a shorter number: SQLite writes that one
// if it reads back as the same double.
void shorten(Decimal& out, f64 value) {
  if (out.count != 17) return;
  bool nines = out.digits[14] == '9' && out.digits[15] == '9';
  bool zeros = out.digits[13] == '0' && out.digits[14] == '0' && out.digits[15] == '0';
  if (!nines && !zeros) return;
  Decimal shorter = out;
  if (nines) {
    shorter.digits[14] = '9';
    round_at(shorter, 14);
  } else {
    shorter.count = 13;
    strip_zeros(shorter);
  }
  if (reads_back_as(shorter, value)) out = shorter;
}

}  // namespace

Decimal decimal_of(f64 value, int round_to, int digits_max) {
  Decimal out;
  out.nan = std::isnan(value);
  out.negative = value < 0;
  out.infinite = std::isinf(value);
  if (out.nan || out.infinite) return out;
  value = std::fabs(value);
  if (value == 0) {
    out.digits[0] = '0';
    out.count = 1;
    out.point = 1;
    return out;
  }
  char text[48];
  int decade = static_cast<int>(std::floor(std::ilogb(value) * 0.30102999566398119521));
  auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, 17).ptr;
  split(out, text, end);
  if (out.point - 1 > decade) {
    end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, 18).ptr;
    split(out, text, end);
  }
  int keep = round_to > 0 ? round_to : out.point - round_to;
  if (keep > digits_max) keep = digits_max;
  round_at(out, keep);
  if (keep == 17) shorten(out, value);
  strip_zeros(out);
  return out;
}

}  // namespace db
