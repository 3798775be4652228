#include "db/value/value.h"

#include "db/value/result.h"

#include <cmath>
#include <cstdlib>
#include <new>

namespace db {

int rc_of(base::ErrorCode code) {
  switch (code) {
    case base::ErrorCode::kBusy:
      return rc::kBusy;
    case base::ErrorCode::kConflict:
      return rc::kBusySnapshot;
    case base::ErrorCode::kCorruption:
      return rc::kCorrupt;
    case base::ErrorCode::kIo:
      return rc::kIoErr;
    case base::ErrorCode::kFull:
      return rc::kFull;
    case base::ErrorCode::kPermission:
      return rc::kReadOnly;
    case base::ErrorCode::kNotFound:
      return rc::kCantOpen;
    case base::ErrorCode::kCancelled:
      return rc::kInterrupt;
    case base::ErrorCode::kLimit:
      return rc::kTooBig;
    default:
      return rc::kError;
  }
}

struct Value::PointerBox {
  void* pointer;
  const char* type_name;
  void (*destroy)(void*);
};

void Value::drop() {
  Header* h = header();
  if (--h->count != 0) return;
  if (memory_ == Memory::kPointer) {
    auto* box = reinterpret_cast<PointerBox*>(const_cast<char*>(p_.p));
    if (box->destroy != nullptr) box->destroy(box->pointer);
  }
  std::free(h);
}

Value Value::buffer(Type type, size_t size) {
  auto* h = static_cast<Header*>(std::malloc(sizeof(Header) + size + 1));
  if (h == nullptr) throw std::bad_alloc();
  h->count = 1;
  h->capacity = static_cast<u32>(size);
  Value v;
  v.p_.p = reinterpret_cast<char*>(h + 1);
  const_cast<char*>(v.p_.p)[size] = 0;
  v.size_ = static_cast<u32>(size);
  v.type_ = type;
  v.memory_ = Memory::kShared;
  return v;
}

Value Value::buffer(Type type, size_t size, Value& spare) {
  if (spare.memory_ != Memory::kShared || spare.header()->count != 1 ||
      spare.header()->capacity < size) {
    return buffer(type, size);
  }
  Value v;
  v.p_ = spare.p_;
  spare.tag_ = tag(Type::kNull);
  v.tag_ = tag(type, static_cast<u32>(size));
  v.memory_ = Memory::kShared;
  const_cast<char*>(v.p_.p)[size] = 0;
  return v;
}

Value Value::shared(Type type, std::string_view bytes) {
  Value v = buffer(type, bytes.size());
  if (!bytes.empty()) std::memcpy(v.mutable_data(), bytes.data(), bytes.size());
  return v;
}

Value Value::pointer(void* pointer, const char* type_name, void (*destroy)(void*)) {
  Value v = buffer(Type::kNull, sizeof(PointerBox));
  new (v.mutable_data()) PointerBox{pointer, type_name, destroy};
  v.memory_ = Memory::kPointer;
  v.subtype_ = 'p';
  return v;
}

void* Value::pointer_of(const char* type_name) const {
  if (memory_ != Memory::kPointer) return nullptr;
  const auto* box = reinterpret_cast<const PointerBox*>(p_.p);
  return box->type_name != nullptr && std::strcmp(box->type_name, type_name) == 0 ? box->pointer
                                                                                  : nullptr;
}

void Value::own_bytes() {
  u8 subtype = subtype_;
  *this = shared(type_, bytes());
  subtype_ = subtype;
}

i64 Value::to_integer_slow() const {
  switch (type_) {
    case Type::kInteger:
      return p_.i;
    case Type::kReal:
      return real_to_integer(p_.r);
    case Type::kText:
    case Type::kBlob:
      return parse_integer_prefix(bytes());
    case Type::kNull:
      break;
  }
  return 0;
}

f64 Value::to_real_slow() const {
  switch (type_) {
    case Type::kInteger:
      return static_cast<f64>(p_.i);
    case Type::kReal:
      return p_.r;
    case Type::kText:
    case Type::kBlob:
      return parse_real_prefix(bytes());
    case Type::kNull:
      break;
  }
  return 0;
}

std::string Value::to_text() const {
  char buffer[40];
  switch (type_) {
    case Type::kInteger:
      return std::string(buffer, format_integer(p_.i, buffer));
    case Type::kReal:
      return std::string(buffer, format_real(p_.r, buffer));
    case Type::kText:
    case Type::kBlob:
      return std::string(bytes());
    case Type::kNull:
      break;
  }
  return {};
}

namespace {

bool contains_nocase(std::string_view text, std::string_view lower_needle) {
  if (text.size() < lower_needle.size()) return false;
  for (size_t i = 0; i + lower_needle.size() <= text.size(); ++i) {
    size_t j = 0;
    while (j < lower_needle.size() && (text[i + j] | 0x20) == lower_needle[j]) ++j;
    if (j == lower_needle.size()) return true;
  }
  return false;
}

}  // namespace

Affinity affinity_of_type(std::string_view type) {
  if (type.empty()) return Affinity::kBlob;
  if (contains_nocase(type, "int")) return Affinity::kInteger;
  if (contains_nocase(type, "char") || contains_nocase(type, "clob") ||
      contains_nocase(type, "text")) {
    return Affinity::kText;
  }
  if (contains_nocase(type, "blob")) return Affinity::kBlob;
  if (contains_nocase(type, "real") || contains_nocase(type, "floa") ||
      contains_nocase(type, "doub")) {
    return Affinity::kReal;
  }
  return Affinity::kNumeric;
}

void apply_numeric_affinity(Value& value) {
  if (!value.is_text()) return;
  ParsedNumber number = parse_number(value.bytes());
  if (!number.whole) return;
  if (number.type == Type::kInteger) {
    value.set_integer(number.integer);
    return;
  }
  // "1e3" and "5.0" become integers when nothing is lost.
  f64 real = number.real;
  if (real >= -9.2e18 && real <= 9.2e18 && real == std::trunc(real) &&
      std::fabs(real) < 4503599627370496.0) {
    value.set_integer(static_cast<i64>(real));
  } else {
    value.set_real(real);
  }
}

void apply_affinity(Value& value, Affinity affinity) {
  switch (affinity) {
    case Affinity::kNone:
    case Affinity::kBlob:
      return;
    case Affinity::kText:
      if (value.is_number()) value = Value::text(value.to_text());
      return;
    case Affinity::kReal:
      if (value.is_text()) apply_numeric_affinity(value);
      if (value.is_integer()) value.set_real(static_cast<f64>(value.raw_integer()));
      return;
    case Affinity::kNumeric:
    case Affinity::kInteger:
      if (value.is_text()) {
        apply_numeric_affinity(value);
      } else if (value.is_real()) {
        f64 real = value.raw_real();
        if (real > -9.2233720368547748e18 && real < 9.2233720368547748e18 &&
            static_cast<f64>(static_cast<i64>(real)) == real) {
          value.set_integer(static_cast<i64>(real));
        }
      }
      return;
  }
}

void cast_value(Value& value, Affinity affinity) {
  if (value.is_null()) return;
  switch (affinity) {
    case Affinity::kNone:
    case Affinity::kBlob:
      if (value.is_number()) value = Value::text(value.to_text());
      value.retype(Type::kBlob);
      return;
    case Affinity::kText:
      if (value.is_number()) {
        value = Value::text(value.to_text());
      } else {
        value.retype(Type::kText);
      }
      return;
    case Affinity::kReal:
      value.set_real(value.to_real());
      return;
    case Affinity::kInteger:
      value.set_integer(value.to_integer());
      return;
    case Affinity::kNumeric: {
      if (value.is_number()) return;
      ParsedNumber number = parse_number(value.bytes());
      if (number.type == Type::kInteger) {
        value.set_integer(number.integer);
      } else if (number.type == Type::kReal) {
        f64 real = number.real;
        if (real == std::trunc(real) && std::fabs(real) < 4503599627370496.0) {
          value.set_integer(static_cast<i64>(real));
        } else {
          value.set_real(real);
        }
      } else {
        value.set_integer(0);
      }
      return;
    }
  }
}

}  // namespace db
