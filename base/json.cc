#include "base/json.h"

#include <boost/json/basic_parser_impl.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace base {
namespace {

const Json kNull;
const std::string kEmptyString;
const Json::Array kEmptyArray;
const Json::Object kEmptyObject;

// Builds our value from Boost.JSON's parse events.
struct Builder {
  static constexpr size_t max_object_size = ~size_t{0};
  static constexpr size_t max_array_size = ~size_t{0};
  static constexpr size_t max_key_size = ~size_t{0};
  static constexpr size_t max_string_size = ~size_t{0};
  using Code = boost::system::error_code;
  using Piece = boost::json::string_view;

  std::vector<Json> stack;
  std::vector<std::string> keys;
  std::string text;
  Json root;

  void add(Json value) {
    if (stack.empty()) {
      root = std::move(value);
    } else if (stack.back().is_array()) {
      stack.back().push(std::move(value));
    } else {
      // A repeated key: the last one wins, as in most parsers.
      stack.back().set(keys.back(), std::move(value));
      keys.pop_back();
    }
  }
  bool open(Json value) {
    stack.push_back(std::move(value));
    return true;
  }
  bool close() {
    Json value = std::move(stack.back());
    stack.pop_back();
    add(std::move(value));
    return true;
  }

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return open(Json::object()); }
  bool on_object_end(size_t, Code&) { return close(); }
  bool on_array_begin(Code&) { return open(Json::array()); }
  bool on_array_end(size_t, Code&) { return close(); }
  bool on_key_part(Piece piece, size_t, Code&) { return append(piece); }
  bool on_key(Piece piece, size_t, Code&) {
    append(piece);
    keys.push_back(std::exchange(text, {}));
    return true;
  }
  bool on_string_part(Piece piece, size_t, Code&) { return append(piece); }
  bool on_string(Piece piece, size_t, Code&) {
    append(piece);
    add(std::exchange(text, {}));
    return true;
  }
  bool on_number_part(Piece piece, Code&) { return append(piece); }
  bool on_int64(i64 value, Piece, Code&) { return add(value), number_done(); }
  bool on_uint64(u64 value, Piece, Code&) { return add(static_cast<f64>(value)), number_done(); }
  // Boost.JSON's own value may be off in the last bit; hashes of what was written must not be.
  bool on_double(f64 value, Piece piece, Code&) {
    append(piece);
    f64 exact = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
    bool whole = error == std::errc() && end == text.data() + text.size();
    return add(whole ? exact : value), number_done();
  }
  bool on_bool(bool value, Code&) { return add(value), true; }
  bool on_null(Code&) { return add(nullptr), true; }
  bool on_comment_part(Piece, Code&) { return true; }
  bool on_comment(Piece, Code&) { return true; }

  bool number_done() {
    text.clear();
    return true;
  }
  bool append(Piece piece) {
    text.append(piece.data(), piece.size());
    return true;
  }
};

void append_double(std::string& out, f64 value) {
  if (!std::isfinite(value)) {
    out += "null";  // JSON has no infinities
    return;
  }
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string_view digits(buffer, static_cast<size_t>(end - buffer));
  out += digits;
  if (digits.find_first_of(".eE") == std::string_view::npos) out += ".0";
}

struct Writer {
  bool pretty;
  bool sorted;
  std::string out;

  void newline(int depth) {
    if (!pretty) return;
    out += '\n';
    out.append(static_cast<size_t>(depth) * 2, ' ');
  }

  void write(const Json& value, int depth) {
    if (value.is_null()) {
      out += "null";
    } else if (value.is_bool()) {
      out += value.as_bool() ? "true" : "false";
    } else if (value.is_integer()) {
      out += std::to_string(value.as_int());
    } else if (value.is_number()) {
      append_double(out, value.as_double());
    } else if (value.is_string()) {
      out += json_quote(value.as_string());
    } else if (value.is_array()) {
      write_array(value.items(), depth);
    } else {
      write_object(value.members(), depth);
    }
  }

  void write_array(const Json::Array& items, int depth) {
    out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ',';
      newline(depth + 1);
      write(items[i], depth + 1);
    }
    if (!items.empty()) newline(depth);
    out += ']';
  }

  void write_object(const Json::Object& members, int depth) {
    std::vector<const Json::Member*> order;
    for (const Json::Member& member : members) order.push_back(&member);
    if (sorted) {
      std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->first < b->first; });
    }
    out += '{';
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0) out += ',';
      newline(depth + 1);
      out += json_quote(order[i]->first);
      out += pretty ? ": " : ":";
      write(order[i]->second, depth + 1);
    }
    if (!order.empty()) newline(depth);
    out += '}';
  }
};

std::string written(const Json& value, bool pretty, bool sorted) {
  Writer writer{pretty, sorted, {}};
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace

bool Json::as_bool(bool other) const {
  const bool* value = std::get_if<bool>(&value_);
  return value != nullptr ? *value : other;
}

i64 Json::as_int(i64 other) const {
  if (const i64* value = std::get_if<i64>(&value_)) return *value;
  if (const f64* value = std::get_if<f64>(&value_)) {
    if (*value >= -0x1p63 && *value < 0x1p63) return static_cast<i64>(*value);
  }
  return other;
}

f64 Json::as_double(f64 other) const {
  if (const f64* value = std::get_if<f64>(&value_)) return *value;
  if (const i64* value = std::get_if<i64>(&value_)) return static_cast<f64>(*value);
  return other;
}

const std::string& Json::as_string() const {
  const std::string* value = std::get_if<std::string>(&value_);
  return value != nullptr ? *value : kEmptyString;
}

std::string Json::as_string_or(std::string_view other) const {
  return is_string() ? as_string() : std::string(other);
}

const Json::Array& Json::items() const {
  const Array* value = std::get_if<Array>(&value_);
  return value != nullptr ? *value : kEmptyArray;
}

const Json::Object& Json::members() const {
  const Object* value = std::get_if<Object>(&value_);
  return value != nullptr ? *value : kEmptyObject;
}

const Json& Json::operator[](std::string_view key) const {
  for (const Member& member : members()) {
    if (member.first == key) return member.second;
  }
  return kNull;
}

const Json& Json::operator[](size_t index) const {
  return index < items().size() ? items()[index] : kNull;
}

bool Json::has(std::string_view key) const {
  return std::any_of(members().begin(), members().end(),
                     [&](const Member& member) { return member.first == key; });
}

Json& Json::at(std::string_view key) {
  if (is_null()) value_ = Object();
  CHECK(is_object());
  Object& object = std::get<Object>(value_);
  for (Member& member : object) {
    if (member.first == key) return member.second;
  }
  return object.emplace_back(std::string(key), Json()).second;
}

Json& Json::set(std::string_view key, Json value) {
  at(key) = std::move(value);
  return *this;
}

void Json::remove(std::string_view key) {
  if (!is_object()) return;
  std::erase_if(std::get<Object>(value_),
                [&](const Member& member) { return member.first == key; });
}

Json& Json::push(Json value) {
  if (is_null()) value_ = Array();
  CHECK(is_array());
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

Result<Json> Json::parse(std::string_view text, ParseOptions options) {
  boost::json::parse_options parse_options;
  parse_options.max_depth = static_cast<size_t>(options.depth_max);
  boost::json::basic_parser<Builder> parser(parse_options);
  boost::system::error_code error;
  size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used < text.size()) {
    const size_t extra = text.find_first_not_of(" \t\r\n", used);
    if (extra != std::string_view::npos) {
      return Error(ErrorCode::kInvalidArgument,
                   "not JSON: something follows the value at byte " + std::to_string(extra));
    }
  }
  if (error) {
    return Error(ErrorCode::kInvalidArgument,
                 "not JSON: " + error.message() + " at byte " + std::to_string(used));
  }
  return std::move(parser.handler().root);
}

std::string Json::dump() const {
  return written(*this, false, false);
}
std::string Json::dump_pretty() const {
  return written(*this, true, false);
}
std::string Json::dump_canonical() const {
  return written(*this, false, true);
}

std::string json_quote(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const u8 byte = static_cast<u8>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (byte < 0x20) {
          out += "\\u00";
          out += kDigits[byte >> 4];
          out += kDigits[byte & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
  return out;
}

}  // namespace base
