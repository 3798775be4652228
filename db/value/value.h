// A SQL value: NULL, INTEGER, REAL, TEXT or BLOB in 16 bytes.
//
// Ownership. Numbers live in the value. Text and blobs are a pointer and a length whose bytes are
// either *borrowed* (a page, a parameter, a constant: the maker says how long they live) or
// *shared* (a reference-counted heap buffer). Copying never copies bytes: a copy of a borrowed
// value borrows too. Call keep() before a borrowed value must outlive its source. Text is UTF-8 by
// custom but may hold any bytes, NUL included; it is not zero-terminated unless the buffer is
// shared (a shared buffer always has a zero byte after its end). Reference counts are not atomic: a
// value belongs to one connection. Thread-compatible.
#pragma once

#include "base/types.h"

#include <bit>
#include <cstring>
#include <string>
#include <string_view>

namespace db {

enum class Type : u8 { kNull, kInteger, kReal, kText, kBlob };  // in sort order, numbers together

enum class Affinity : u8 { kNone, kBlob, kText, kNumeric, kInteger, kReal };

enum class Encoding : u8 { kUtf8 = 1, kUtf16le = 2, kUtf16be = 3 };

class Value {
 public:
  Value() : tag_(tag(Type::kNull)) { p_.i = 0; }
  Value(const Value& other) {
    take_bits(other);
    if (memory_ != Memory::kNone) ++header()->count;
  }
  Value(Value&& other) noexcept {
    take_bits(other);
    other.tag_ = tag(Type::kNull);
  }
  Value& operator=(const Value& other) {
    if (this == &other) return *this;
    if (other.memory_ != Memory::kNone) ++other.header()->count;
    release();
    take_bits(other);
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    if (this == &other) return *this;
    release();
    take_bits(other);
    other.tag_ = tag(Type::kNull);
    return *this;
  }
  ~Value() { release(); }

  static Value integer(i64 value) {
    Value v;
    v.set_integer(value);
    return v;
  }
  // NaN becomes NULL, as everywhere in SQLite.
  static Value real(f64 value) {
    Value v;
    v.set_real(value);
    return v;
  }
  // Copies the bytes into a shared buffer.
  static Value text(std::string_view bytes) { return shared(Type::kText, bytes); }
  static Value blob(std::string_view bytes) { return shared(Type::kBlob, bytes); }
  // Points at bytes that somebody else keeps alive.
  static Value borrowed_text(std::string_view bytes) { return borrowed(Type::kText, bytes); }
  static Value borrowed_blob(std::string_view bytes) { return borrowed(Type::kBlob, bytes); }
  static Value boolean(bool value) { return integer(value ? 1 : 0); }
  // A shared buffer of `size` bytes, not filled; write through mutable_data() before sharing it.
  static Value buffer(Type type, size_t size);
  // The same in the buffer of `spare`, when that is large enough and nobody else's.
  static Value buffer(Type type, size_t size, Value& spare);
  // NULL to SQL, a typed pointer to functions that know `type_name` (sqlite3_bind_pointer).
  static Value pointer(void* pointer, const char* type_name, void (*destroy)(void*));

  Type type() const { return type_; }
  bool is_null() const { return type_ == Type::kNull; }
  bool is_integer() const { return type_ == Type::kInteger; }
  bool is_real() const { return type_ == Type::kReal; }
  bool is_text() const { return type_ == Type::kText; }
  bool is_blob() const { return type_ == Type::kBlob; }
  bool is_number() const { return type_ == Type::kInteger || type_ == Type::kReal; }
  bool has_bytes() const { return type_ >= Type::kText; }

  // The payload as stored; only for the matching type.
  i64 raw_integer() const { return p_.i; }
  f64 raw_real() const { return p_.r; }
  std::string_view bytes() const { return {p_.p, size_}; }
  char* mutable_data() { return const_cast<char*>(p_.p); }
  void shrink(size_t size) {
    size_ = static_cast<u32>(size);
    const_cast<char*>(p_.p)[size] = 0;
  }

  void set_null() {
    release();
    tag_ = tag(Type::kNull);
  }
  void set_integer(i64 value) {
    release();
    p_.i = value;
    tag_ = tag(Type::kInteger);
  }
  void set_real(f64 value) {
    release();
    p_.r = value;
    tag_ = tag(value == value ? Type::kReal : Type::kNull);
  }
  void set_borrowed(Type type, const char* data, size_t size) {
    release();
    p_.p = data;
    tag_ = tag(type, static_cast<u32>(size));
  }

  // After this the value owns its bytes (shares them, counted).
  void keep() {
    if (type_ >= Type::kText && memory_ == Memory::kNone) own_bytes();
  }
  bool is_shared() const { return memory_ == Memory::kShared; }
  // Text as blob and back, bytes unchanged. Only when has_bytes().
  void retype(Type type) { type_ = type; }

  u8 subtype() const { return subtype_; }  // JSON marks its results with 'J'
  void set_subtype(u8 subtype) { subtype_ = subtype; }
  void* pointer_of(const char* type_name) const;

  // Conversions that never fail, SQLite's sqlite3_value_* rules: the longest numeric prefix of
  // text, truncation toward zero with saturation for reals, 0 for NULL.
  i64 to_integer() const { return type_ == Type::kInteger ? p_.i : to_integer_slow(); }
  f64 to_real() const { return type_ == Type::kReal ? p_.r : to_real_slow(); }
  std::string to_text() const;  // NULL gives ""
  // Truth in a WHERE clause; NULL is -1.
  int to_truth() const {
    if (type_ == Type::kInteger) return p_.i != 0;
    if (type_ == Type::kNull) return -1;
    return to_real() != 0.0;
  }

 private:
  enum class Memory : u8 { kNone, kShared, kPointer };
  struct Header {
    u32 count;
    u32 capacity;
  };
  struct PointerBox;

  static Value borrowed(Type type, std::string_view bytes) {
    Value v;
    v.set_borrowed(type, bytes.data(), bytes.size());
    return v;
  }
  static Value shared(Type type, std::string_view bytes);
  Header* header() const { return reinterpret_cast<Header*>(const_cast<char*>(p_.p)) - 1; }
  // The payload and the tag are written and copied as one word each: a copy right after a write
  // then reads what is still on its way to the cache, which it cannot when written in pieces or
  // read as one.
  static u64 tag(Type type, u32 size = 0) { return size | u64{static_cast<u8>(type)} << 32; }
  void take_bits(const Value& other) {
    p_.i = other.p_.i;
    tag_ = other.tag_;
  }
  void release() {
    if (memory_ != Memory::kNone) drop();
  }
  void drop();
  void own_bytes();
  i64 to_integer_slow() const;
  f64 to_real_slow() const;

  union {
    i64 i;
    f64 r;
    const char* p;
  } p_;
  union {
    u64 tag_;
    struct {
      u32 size_;
      Type type_;
      Memory memory_;
      u8 subtype_;
    };
  };
};
static_assert(sizeof(Value) == 16);
static_assert(std::endian::native == std::endian::little);  // tag()

// --- Affinity ---------------------------------------------------------------------------------

// The affinity that a declared column type gives ("VARCHAR(10)" is text, "" is blob).
Affinity affinity_of_type(std::string_view declared_type);
// Changes the value as storing it in a column of this affinity does.
void apply_affinity(Value& value, Affinity affinity);
// Text that looks like a number becomes that number (INTEGER if exact); blobs are left alone.
void apply_numeric_affinity(Value& value);
// CAST(value AS type): unlike affinity it always converts.
void cast_value(Value& value, Affinity affinity);

// --- Numbers and text (numeric.cc) -------------------------------------------------------------

// What a text says as a number.
struct ParsedNumber {
  Type type = Type::kNull;  // kInteger or kReal; kNull when there is no numeric prefix at all
  bool whole = false;       // the entire text is the number, white space around it allowed
  i64 integer = 0;
  f64 real = 0;  // set for both types
};
ParsedNumber parse_number(std::string_view text);
// False when the whole text is surely no number ("1994-01-01", "abc"): a cheap first look.
inline bool may_be_number(std::string_view text) {
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end && (*p == ' ' || (*p >= '\t' && *p <= '\r'))) ++p;
  if (p < end && (*p == '-' || *p == '+')) ++p;
  const char* digits = p;
  while (p < end && *p >= '0' && *p <= '9') ++p;
  if (p == end) return p != digits;
  return *p == '.' || *p == 'e' || *p == 'E' || *p == ' ' || (*p >= '\t' && *p <= '\r');
}
// The decimal prefix as a 64-bit integer, saturating (CAST AS INTEGER of text).
i64 parse_integer_prefix(std::string_view text);
f64 parse_real_prefix(std::string_view text);
// A real that is outside the range of i64 saturates; fractions are cut.
i64 real_to_integer(f64 value);
// "1.0", "1.0e+20", "0.30000000000000004", "Inf", "-Inf". `digits` is FP_DIGITS, 17 by default.
// Returns the length; `out` needs 40 bytes.
size_t format_real(f64 value, char* out, int digits = 17);
size_t format_integer(i64 value, char* out);  // `out` needs 21 bytes

// --- Comparison (compare.cc) ---------------------------------------------------------------------

// A collating sequence; the user's own are objects that the connection keeps.
struct Collation {
  std::string name;
  int (*compare)(void* context, int a_size, const void* a, int b_size, const void* b) = nullptr;
  void* context = nullptr;
  enum class Kind : u8 { kBinary, kNocase, kRtrim, kUser } kind = Kind::kUser;
};
extern const Collation kBinary;
extern const Collation kNocase;
extern const Collation kRtrim;
// One of the three built-in ones by name (any case), or nullptr.
const Collation* builtin_collation(std::string_view name);

// NULL < numbers < text < blob; integers and reals compare exactly. <0, 0, >0.
int compare_slow(const Value& a, const Value& b, const Collation* collation);
inline int compare(const Value& a, const Value& b, const Collation* collation = &kBinary) {
  if (a.is_integer() && b.is_integer()) {
    return a.raw_integer() < b.raw_integer() ? -1 : a.raw_integer() > b.raw_integer();
  }
  return compare_slow(a, b, collation);
}
int compare_text(std::string_view a, std::string_view b, const Collation* collation);
int compare_integer_real(i64 a, f64 b);
// Equal under compare() means equal hash (1 and 1.0 alike; text by the collation).
u64 hash_value(const Value& value, const Collation* collation = &kBinary);

// ASCII-only case folding, SQLite's idea of case.
bool equal_nocase(std::string_view a, std::string_view b);
std::string lower_ascii(std::string_view text);

}  // namespace db
