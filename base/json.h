// JSON values, a parser with byte offsets in its errors, and a writer whose output is canonical
// when asked (keys sorted), so that hashes of it are stable. Parsing is done by Boost.JSON behind
// this header; the value type is ours and light to include. Integers keep 64 bits.
// Thread-compatible.
#pragma once

#include "base/result.h"
#include "base/types.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace base {

class Json {
 public:
  using Array = std::vector<Json>;
  // Members in the order they were written.
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(i64{value}) {}
  Json(i64 value) : value_(value) {}
  Json(u32 value) : value_(i64{value}) {}
  Json(u64 value) : value_(static_cast<i64>(value)) {}
  Json(f64 value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  // Json::object({{"a", 1}, {"b", Json::array({1, 2})}})
  static Json object(std::initializer_list<Member> members = {}) { return Json(Object(members)); }
  static Json array(std::initializer_list<Json> items = {}) { return Json(Array(items)); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<i64>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<f64>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // The value, or the given one when it is of another type.
  bool as_bool(bool other = false) const;
  i64 as_int(i64 other = 0) const;
  f64 as_double(f64 other = 0) const;
  const std::string& as_string() const;  // "" for another type
  std::string as_string_or(std::string_view other) const;
  const Array& items() const;     // empty for another type
  const Object& members() const;  // empty for another type
  size_t size() const { return is_object() ? members().size() : items().size(); }

  // Null when the member or item is not there, so that look-ups chain: j["a"]["b"][0].
  const Json& operator[](std::string_view key) const;
  const Json& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  const Json& operator[](size_t index) const;
  const Json& operator[](int index) const { return (*this)[static_cast<size_t>(index)]; }
  bool has(std::string_view key) const;

  // Sets a member; null becomes an object.
  Json& set(std::string_view key, Json value);
  void remove(std::string_view key);
  // Appends an item; null becomes an array.
  Json& push(Json value);
  // The member to change in place, created as null when it is not there; null becomes an object.
  Json& at(std::string_view key);

  bool operator==(const Json& other) const = default;

  struct ParseOptions {
    int depth_max = 64;
  };
  // Errors: kInvalidArgument with the byte offset.
  static Result<Json> parse(std::string_view text, ParseOptions options);
  static Result<Json> parse(std::string_view text) { return parse(text, {}); }

  std::string dump() const;            // one line
  std::string dump_pretty() const;     // two spaces of indent
  std::string dump_canonical() const;  // one line, keys sorted

 private:
  std::variant<std::monostate, bool, i64, f64, std::string, Array, Object> value_;
};

// A quoted JSON string.
std::string json_quote(std::string_view text);

}  // namespace base
