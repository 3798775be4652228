#include "db/value/value.h"

#include <cmath>

namespace db {
namespace {

u8 fold(u8 c) {
  return c >= 'A' && c <= 'Z' ? static_cast<u8>(c + 32) : c;
}

int compare_bytes(std::string_view a, std::string_view b) {
  size_t common = a.size() < b.size() ? a.size() : b.size();
  int order = common == 0 ? 0 : std::memcmp(a.data(), b.data(), common);
  if (order != 0) return order;
  return a.size() < b.size() ? -1 : a.size() > b.size();
}

int compare_nocase(std::string_view a, std::string_view b) {
  size_t common = a.size() < b.size() ? a.size() : b.size();
  for (size_t i = 0; i < common; ++i) {
    int order = fold(static_cast<u8>(a[i])) - fold(static_cast<u8>(b[i]));
    if (order != 0) return order;
  }
  return a.size() < b.size() ? -1 : a.size() > b.size();
}

std::string_view rtrim(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string_view view(int size, const void* data) {
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

u64 mix(u64 h) {
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93u;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93u;
  return h ^ (h >> 32);
}

u64 hash_bytes(std::string_view bytes, bool folded) {
  u64 h = 0x9e3779b97f4a7c15u ^ bytes.size();
  const char* p = bytes.data();
  size_t left = bytes.size();
  while (!folded && left >= 8) {
    u64 word;
    std::memcpy(&word, p, 8);
    h = (h ^ word) * 0x9fb21c651e98df25u;
    h ^= h >> 29;
    p += 8;
    left -= 8;
  }
  for (; left > 0; --left, ++p) {
    u8 c = static_cast<u8>(*p);
    h = (h ^ (folded ? fold(c) : c)) * 0x100000001b3u;
  }
  return mix(h);
}

}  // namespace

const Collation kBinary{"BINARY",
                        [](void*, int a_size, const void* a, int b_size, const void* b) {
                          return compare_bytes(view(a_size, a), view(b_size, b));
                        },
                        nullptr, Collation::Kind::kBinary};
const Collation kNocase{"NOCASE",
                        [](void*, int a_size, const void* a, int b_size, const void* b) {
                          return compare_nocase(view(a_size, a), view(b_size, b));
                        },
                        nullptr, Collation::Kind::kNocase};
const Collation kRtrim{"RTRIM",
                       [](void*, int a_size, const void* a, int b_size, const void* b) {
                         return compare_bytes(rtrim(view(a_size, a)), rtrim(view(b_size, b)));
                       },
                       nullptr, Collation::Kind::kRtrim};

const Collation* builtin_collation(std::string_view name) {
  if (equal_nocase(name, "BINARY")) return &kBinary;
  if (equal_nocase(name, "NOCASE")) return &kNocase;
  if (equal_nocase(name, "RTRIM")) return &kRtrim;
  return nullptr;
}

int compare_text(std::string_view a, std::string_view b, const Collation* collation) {
  switch (collation->kind) {
    case Collation::Kind::kBinary:
      return compare_bytes(a, b);
    case Collation::Kind::kNocase:
      return compare_nocase(a, b);
    case Collation::Kind::kRtrim:
      return compare_bytes(rtrim(a), rtrim(b));
    case Collation::Kind::kUser:
      break;
  }
  return collation->compare(collation->context, static_cast<int>(a.size()), a.data(),
                            static_cast<int>(b.size()), b.data());
}

int compare_integer_real(i64 a, f64 b) {
  if (b < -9223372036854775808.0) return 1;
  if (b >= 9223372036854775808.0) return -1;
  i64 whole = static_cast<i64>(b);
  if (a != whole) return a < whole ? -1 : 1;
  f64 fraction = b - static_cast<f64>(whole);
  return fraction > 0 ? -1 : fraction < 0;
}

int compare_slow(const Value& a, const Value& b, const Collation* collation) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integer()) {
      if (b.is_integer()) {
        return a.raw_integer() < b.raw_integer() ? -1 : a.raw_integer() > b.raw_integer();
      }
      return compare_integer_real(a.raw_integer(), b.raw_real());
    }
    if (b.is_integer()) return -compare_integer_real(b.raw_integer(), a.raw_real());
    return a.raw_real() < b.raw_real() ? -1 : a.raw_real() > b.raw_real();
  }
  if (a.type() != b.type()) {
    auto rank = [](const Value& v) { return v.is_real() ? Type::kInteger : v.type(); };
    return rank(a) < rank(b) ? -1 : 1;
  }
  if (a.is_text()) return compare_text(a.bytes(), b.bytes(), collation);
  if (a.is_blob()) return compare_bytes(a.bytes(), b.bytes());
  return 0;
}

u64 hash_value(const Value& value, const Collation* collation) {
  switch (value.type()) {
    case Type::kNull:
      return 0x5bd1e995;
    case Type::kInteger:
      return mix(static_cast<u64>(value.raw_integer()) + 1);
    case Type::kReal: {
      f64 real = value.raw_real();
      if (real >= -9223372036854775808.0 && real < 9223372036854775808.0 &&
          static_cast<f64>(static_cast<i64>(real)) == real) {
        return mix(static_cast<u64>(static_cast<i64>(real)) + 1);
      }
      u64 bits;
      std::memcpy(&bits, &real, sizeof bits);
      return mix(bits ^ 0xabcdef);
    }
    case Type::kText:
      if (collation->kind == Collation::Kind::kNocase) return hash_bytes(value.bytes(), true);
      if (collation->kind == Collation::Kind::kRtrim)
        return hash_bytes(rtrim(value.bytes()), false);
      if (collation->kind == Collation::Kind::kUser)
        return 7;  // equality is the collation's secret
      return hash_bytes(value.bytes(), false);
    case Type::kBlob:
      return ~hash_bytes(value.bytes(), false);
  }
  return 0;
}

bool equal_nocase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (fold(static_cast<u8>(a[i])) != fold(static_cast<u8>(b[i]))) return false;
  }
  return true;
}

std::string lower_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(fold(static_cast<u8>(c)));
  return out;
}

}  // namespace db
