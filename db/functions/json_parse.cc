// JSON text and JSONB into nodes.
#include "base/bytes.h"
#include "db/functions/json.h"
#include "db/value/value.h"

#include <cstring>

namespace db::json {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}
bool is_id(char c) {
  return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '$' ||
         static_cast<u8>(c) >= 0x80;
}

}  // namespace

class TextParser {
 public:
  TextParser(Document& document, std::string_view text) : document_(document), text_(text) {}

  Node* run() {
    skip_space();
    Node* node = value(0);
    if (node == nullptr) return nullptr;
    skip_space();
    if (at_ < text_.size() && text_[at_] != 0) return fail();
    return node;
  }
  size_t error_at() const { return error_at_; }
  bool strict() const { return strict_; }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  Node* fail() {
    if (error_at_ == 0) error_at_ = at_ + 1;
    return nullptr;
  }

  Node* fail_at(size_t position) {
    at_ = position;
    return fail();
  }

  // Blanks, and JSON5's other blanks and comments.
  void skip_space() {
    // Most often there are none.
    if (at_ < text_.size() && text_[at_] > ' ' && text_[at_] != '/') return;
    for (;;) {
      char c = peek();
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
        continue;
      }
      // What begins one of JSON5's blanks; hardly any text has them.
      if (c != '/' && c != '\v' && c != '\f' && static_cast<u8>(c) < 0x80) [[likely]]
        return;
      const size_t wide = json5_space();
      if (wide == 0) return;
      strict_ = false;
      at_ += wide;
    }
  }

  size_t json5_space() const {
    std::string_view rest = text_.substr(at_);
    if (rest.empty()) return 0;
    if (rest[0] == '\v' || rest[0] == '\f') return 1;
    if (rest.starts_with("/*")) {
      size_t end = rest.find("*/", 2);
      return end == std::string_view::npos ? 0 : end + 2;
    }
    if (rest.starts_with("//")) {
      size_t end = rest.find_first_of("\n\r");
      return end == std::string_view::npos ? rest.size() : end;
    }
    if (rest.starts_with("\xc2\xa0")) return 2;
    static constexpr std::string_view kWide[] = {"\xe1\x9a\x80", "\xe2\x80\xa8", "\xe2\x80\xa9",
                                                 "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80",
                                                 "\xef\xbb\xbf"};
    for (std::string_view one : kWide) {
      if (rest.starts_with(one)) return 3;
    }
    bool en_quad = rest.size() >= 3 && rest.starts_with("\xe2\x80") &&
                   static_cast<u8>(rest[2]) >= 0x80 && static_cast<u8>(rest[2]) <= 0x8a;
    return en_quad ? 3 : 0;
  }

  Node* value(int depth) {
    if (depth > kDepthMax) return fail();
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string('"');
      case '\'':
        strict_ = false;
        return string('\'');
      case 't':
        return word("true", Kind::kTrue);
      case 'f':
        return word("false", Kind::kFalse);
      case 'n':
        if (text_.substr(at_, 4) == "null" && !is_id(peek(4))) return word("null", Kind::kNull);
        return infinity_or_nan();
      default:
        if (is_digit(peek()) || peek() == '-' || peek() == '+' || peek() == '.') return number();
        return infinity_or_nan();
    }
  }

  Node* word(std::string_view word, Kind kind) {
    if (text_.substr(at_, word.size()) != word || is_id(peek(word.size()))) return fail();
    at_ += word.size();
    return document_.make(kind);
  }

  // Infinity becomes 9e999, which overflows to it; NaN becomes null.
  Node* infinity_or_nan(std::string_view sign = {}) {
    static constexpr std::string_view kInfinity[] = {"infinity", "inf"};
    static constexpr std::string_view kNan[] = {"nan", "qnan", "snan"};
    for (std::string_view one : kInfinity) {
      if (equal_nocase(text_.substr(at_, one.size()), one) && !is_id(peek(one.size()))) {
        strict_ = false;
        at_ += one.size();
        return document_.make(Kind::kFloat, sign == "-" ? "-9e999" : "9e999");
      }
    }
    for (std::string_view one : kNan) {
      if (sign.empty() && equal_nocase(text_.substr(at_, one.size()), one) &&
          !is_id(peek(one.size()))) {
        strict_ = false;
        at_ += one.size();
        return document_.make(Kind::kNull);
      }
    }
    return fail();
  }

  // A plain integer, as most numbers are; null, and nothing read, for others.
  Node* plain_integer() {
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    if (*begin < '1' || *begin > '9') return nullptr;
    const char* p = begin + 1;
    while (p < end && is_digit(*p)) ++p;
    if (p < end && *p != ',' && *p != ']' && *p != '}') return nullptr;
    const size_t size = static_cast<size_t>(p - begin);
    Node* node = document_.make(Kind::kInt, text_.substr(at_, size));
    at_ += size;
    return node;
  }

  Node* number() {
    if (Node* node = plain_integer()) return node;
    size_t begin = at_;
    bool json5 = false;
    if (peek() == '+') {
      json5 = true;
      ++at_;
      begin = at_;
    } else if (peek() == '-') {
      ++at_;
    }
    if ((peek() | 0x20) == 'i') return infinity_or_nan(text_.substr(begin, at_ - begin));
    if (peek() == '0' && (peek(1) | 0x20) == 'x' && is_hex(peek(2))) {
      strict_ = false;
      at_ += 2;
      while (is_hex(peek())) ++at_;
      return end_number(Kind::kInt5, begin);
    }
    size_t digits = at_;
    while (is_digit(peek())) ++at_;
    size_t whole = at_ - digits;
    if (whole > 1 && text_[digits] == '0') {
      at_ = digits + 1;
      return fail();
    }
    Kind kind = Kind::kInt;
    if (peek() == '.') {
      kind = Kind::kFloat;
      ++at_;
      size_t fraction = at_;
      while (is_digit(peek())) ++at_;
      if (whole == 0 && at_ == fraction) return fail();
      if (whole == 0 || at_ == fraction) {
        kind = Kind::kFloat5;
        json5 = true;
      }
    } else if (whole == 0) {
      return fail_at(begin);
    }
    if ((peek() | 0x20) == 'e') {
      if (kind == Kind::kInt) kind = Kind::kFloat;
      size_t exponent = at_++;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!is_digit(peek())) return fail_at(exponent);
      while (is_digit(peek())) ++at_;
    }
    if (json5) strict_ = false;
    return end_number(kind, begin);
  }

  Node* end_number(Kind kind, size_t begin) {
    if (is_id(peek()) || peek() == '.') return fail();
    return document_.make(kind, text_.substr(begin, at_ - begin));
  }

  Node* string(char quote) {
    size_t begin = ++at_;
    Kind kind = Kind::kText;
    for (;; ++at_) {
      if (at_ >= text_.size()) return fail();
      u8 c = static_cast<u8>(text_[at_]);
      if (c == static_cast<u8>(quote)) break;
      if (c == '\\') {
        if (!escape(kind)) return fail();
      } else if (c < 0x20) {
        if (c == 0) return fail();
        strict_ = false;
        kind = Kind::kText5;
      } else if (c == '"') {
        kind = Kind::kText5;
      }
    }
    Node* node = document_.make(kind, text_.substr(begin, at_ - begin));
    ++at_;
    return node;
  }

  // At a backslash; ends on the escape's last byte.
  bool escape(Kind& kind) {
    ++at_;
    char c = peek();
    auto json5 = [&] {
      kind = Kind::kText5;
      strict_ = false;
      return true;
    };
    switch (c) {
      case '"':
      case '\\':
      case '/':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
        if (kind == Kind::kText) kind = Kind::kTextJ;
        return true;
      case 'u':
        for (size_t i = 1; i <= 4; ++i) {
          if (!is_hex(peek(i))) return false;
        }
        if (kind == Kind::kText) kind = Kind::kTextJ;
        return true;
      case '\'':
      case 'v':
      case '\n':
        return json5();
      case '0':
        return is_digit(peek(1)) ? false : json5();
      case 'x':
        return is_hex(peek(1)) && is_hex(peek(2)) ? json5() : false;
      case '\r':
        if (peek(1) == '\n') ++at_;
        return json5();
      default:
        if (static_cast<u8>(c) == 0xe2 && static_cast<u8>(peek(1)) == 0x80 &&
            (static_cast<u8>(peek(2)) | 1) == 0xa9) {
          at_ += 2;
          return json5();
        }
        return false;
    }
  }

  Node* array(int depth) {
    Node* node = document_.make(Kind::kArray);
    ++at_;
    for (bool any = false;; any = true) {
      skip_space();
      if (peek() == ']') {
        if (any) strict_ = false;  // a comma before the bracket
        break;
      }
      Node* item = value(depth + 1);
      if (item == nullptr) return nullptr;
      node->append(item);
      skip_space();
      if (peek() == ']') break;
      if (peek() != ',') return fail();
      ++at_;
    }
    ++at_;
    return node;
  }

  Node* label() {
    if (peek() == '"') return string('"');
    if (peek() == '\'') {
      strict_ = false;
      return string('\'');
    }
    size_t begin = at_;
    if (is_digit(peek())) return fail();
    while (is_id(peek())) ++at_;
    if (at_ == begin) return fail();
    strict_ = false;
    return document_.make(Kind::kText, text_.substr(begin, at_ - begin));
  }

  Node* object(int depth) {
    Node* node = document_.make(Kind::kObject);
    ++at_;
    for (bool any = false;; any = true) {
      skip_space();
      if (peek() == '}') {
        if (any) strict_ = false;
        break;
      }
      Node* name = label();
      if (name == nullptr) return nullptr;
      skip_space();
      if (peek() != ':') return fail();
      ++at_;
      skip_space();
      Node* item = value(depth + 1);
      if (item == nullptr) return nullptr;
      node->append(name);
      node->append(item);
      skip_space();
      if (peek() == '}') break;
      if (peek() != ',') return fail();
      ++at_;
    }
    ++at_;
    return node;
  }

  Document& document_;
  std::string_view text_;
  size_t at_ = 0;
  size_t error_at_ = 0;
  bool strict_ = true;
};

bool Document::parse_text(std::string_view text) {
  TextParser parser(*this, text);
  root_ = parser.run();
  error_at_ = parser.error_at();
  strict_ = parser.strict();
  return root_ != nullptr;
}

Node* Document::adopt_text(std::string_view text) {
  return TextParser(*this, keep(text)).run();
}

Node* Document::make_text(std::string_view text) {
  bool plain = true;
  for (char c : text) plain = plain && static_cast<u8>(c) >= 0x20 && c != '"' && c != '\\';
  return make(plain ? Kind::kText : Kind::kTextRaw, keep(text));
}

// ---------------------------------------------------------------- JSONB

namespace {

struct Header {
  Kind kind = Kind::kNull;
  size_t header_bytes = 0;
  u64 payload_bytes = 0;
};

bool read_header(std::string_view blob, Header& out) {
  if (blob.empty()) return false;
  u8 first = static_cast<u8>(blob[0]);
  if ((first & 15) > static_cast<u8>(Kind::kObject)) return false;
  out.kind = static_cast<Kind>(first & 15);
  u8 size = first >> 4;
  size_t bytes = size < 12 ? 0 : size_t{1} << (size - 12);
  if (blob.size() < 1 + bytes) return false;
  u64 value = size;
  if (bytes > 0) {
    value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<u8>(blob[1 + i]);
  }
  out.header_bytes = 1 + bytes;
  out.payload_bytes = value;
  return value <= blob.size() - out.header_bytes;
}

Node* read_element(Document& document, std::string_view& blob, int depth) {
  Header header;
  if (depth > kDepthMax || !read_header(blob, header)) return nullptr;
  std::string_view payload = blob.substr(header.header_bytes, header.payload_bytes);
  blob.remove_prefix(header.header_bytes + header.payload_bytes);
  Node* node = document.make(header.kind);
  if (!node->is_container()) {
    if (header.kind <= Kind::kFalse && !payload.empty()) return nullptr;
    node->text = payload;
    return node;
  }
  while (!payload.empty()) {
    Node* child = read_element(document, payload, depth + 1);
    bool label = node->kind == Kind::kObject && node->count % 2 == 0;
    if (child == nullptr || (label && !child->is_text())) return nullptr;
    node->append(child);
  }
  return node->kind == Kind::kObject && node->count % 2 != 0 ? nullptr : node;
}

}  // namespace

bool Document::parse_blob(std::string_view blob) {
  root_ = read_element(*this, blob, 0);
  if (!blob.empty()) root_ = nullptr;
  error_at_ = root_ == nullptr ? 1 : 0;
  return root_ != nullptr;
}

Node* Document::adopt_blob(std::string_view blob) {
  std::string_view rest = keep(blob);
  Node* node = read_element(*this, rest, 0);
  return rest.empty() ? node : nullptr;
}

bool looks_like_jsonb(std::string_view blob, bool deep) {
  if (deep) {
    Document document;
    return document.parse_blob(blob);
  }
  Header header;
  if (!read_header(blob, header)) return false;
  bool empty_only = header.kind <= Kind::kFalse;
  return header.header_bytes + header.payload_bytes == blob.size() &&
         (!empty_only || header.payload_bytes == 0);
}

}  // namespace db::json
