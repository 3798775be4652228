// Writing and reading the fields of wire messages in one place each: a `fields(archive, value)`
// function lists a struct's members, and both directions follow it. Little-endian, lengths before
// bytes, no padding. A Reader never reads outside its bytes; after the first misfit it is `bad()`
// and yields zeros, so that decoders check once at the end. Single-threaded.
#pragma once

#include "base/bytes.h"

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fs::wire {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void operator()(T& value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void operator()(std::string_view& value) { text(value); }
  void operator()(std::string& value) { text(value); }
  template <class T>
  void operator()(std::optional<T>& value) {
    bool there = value.has_value();
    (*this)(there);
    if (there) (*this)(*value);
  }
  template <class T>
    requires(std::is_class_v<T>)
  void operator()(T& value) {
    fields(*this, value);
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    u32 count = static_cast<u32>(list.size());
    (*this)(count);
    for (T& item : list) (*this)(item);
  }
  template <class First, class Second, class... Rest>
  void operator()(First& first, Second& second, Rest&... rest) {
    (*this)(first);
    (*this)(second, rest...);
  }

 private:
  void text(std::string_view value) {
    u32 length = static_cast<u32>(value.size());
    (*this)(length);
    out_.append(value);
  }
  std::string& out_;
};

// Views that it yields point into the bytes it was given.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  bool bad() const { return bad_; }
  // All bytes were used and all fitted.
  bool done() const { return !bad_ && left_.empty(); }
  std::string_view rest() {
    std::string_view all = left_;
    left_ = {};
    return all;
  }

  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void operator()(T& value) {
    std::string_view bytes = take(sizeof(T));
    value = T{};
    if (bad_) return;
    if constexpr (std::is_same_v<T, bool>) {
      value = bytes[0] != 0;  // any other bit pattern is not a bool
    } else {
      std::memcpy(&value, bytes.data(), sizeof(T));
    }
  }
  void operator()(std::string_view& value) { value = text(); }
  void operator()(std::string& value) { value = text(); }
  template <class T>
  void operator()(std::optional<T>& value) {
    bool there = false;
    (*this)(there);
    value.reset();
    if (there) (*this)(value.emplace());
  }
  template <class T>
    requires(std::is_class_v<T>)
  void operator()(T& value) {
    fields(*this, value);
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    u32 count = 0;
    (*this)(count);
    list.clear();
    // Every item takes a byte or more: a lying count ends with the bytes, not with the memory.
    for (u32 i = 0; i < count && !bad_; i++) (*this)(list.emplace_back());
    if (bad_) list.clear();
  }
  template <class First, class Second, class... Rest>
  void operator()(First& first, Second& second, Rest&... rest) {
    (*this)(first);
    (*this)(second, rest...);
  }

 private:
  std::string_view take(size_t length) {
    if (bad_ || left_.size() < length) {
      bad_ = true;
      return {};
    }
    std::string_view bytes = left_.substr(0, length);
    left_.remove_prefix(length);
    return bytes;
  }
  std::string_view text() {
    u32 length = 0;
    (*this)(length);
    return take(length);
  }
  std::string_view left_;
  bool bad_ = false;
};

}  // namespace fs::wire
