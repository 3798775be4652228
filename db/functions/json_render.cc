// Nodes into JSON text, JSONB and SQL text.
#include "db/functions/builtins.h"
#include "db/functions/json.h"

#include <charconv>

namespace db::json {
namespace {

int hex_value(char c) {
  return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

u32 read_hex(std::string_view text, size_t at, size_t digits) {
  u32 value = 0;
  for (size_t i = 0; i < digits && at + i < text.size(); ++i) {
    value = value * 16 + static_cast<u32>(hex_value(text[at + i]));
  }
  return value;
}

void append_control(std::string& out, u8 c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  switch (c) {
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kDigits[c >> 4];
      out += kDigits[c & 15];
  }
}

// A JSON5 string in standard JSON's spelling.
void append_text5(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size(); ++i) {
    u8 c = static_cast<u8>(text[i]);
    if (c == '"') {
      out += "\\\"";
    } else if (c < 0x20) {
      append_control(out, c);
    } else if (c != '\\' || i + 1 >= text.size()) {
      out += text[i];
    } else {
      char next = text[++i];
      switch (next) {
        case '\'':
          out += '\'';
          break;
        case 'v':
          out += "\\u000b";
          break;
        case '0':
          out += "\\u0000";
          break;
        case 'x':
          out += "\\u00";
          out += text.substr(i + 1, 2);
          i += 2;
          break;
        case '\n':
          break;
        case '\r':
          if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
          break;
        case '\xe2':
          i += 2;
          break;
        default:
          out += '\\';
          out += next;
      }
    }
  }
  out += '"';
}

// Hexadecimal as decimal; beyond 64 bits as something that overflows to infinity.
void append_int5(std::string& out, std::string_view text) {
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  u64 value = 0;
  auto parsed = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  if (negative) out += '-';
  out += parsed.ec == std::errc() ? std::to_string(value) : "9.0e999";
}

void append_float5(std::string& out, std::string_view text) {
  if (text.starts_with('-')) {
    out += '-';
    text.remove_prefix(1);
  }
  if (text.starts_with('.')) out += '0';
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    bool lonely =
        text[i] == '.' && (i + 1 == text.size() || text[i + 1] < '0' || text[i + 1] > '9');
    if (lonely) out += '0';
  }
}

void render_scalar(const Node& node, std::string& out) {
  switch (node.kind) {
    case Kind::kNull:
      out += "null";
      return;
    case Kind::kTrue:
      out += "true";
      return;
    case Kind::kFalse:
      out += "false";
      return;
    case Kind::kInt5:
      append_int5(out, node.text);
      return;
    case Kind::kFloat5:
      append_float5(out, node.text);
      return;
    case Kind::kText:
    case Kind::kTextJ:
      out += '"';
      out += node.text;
      out += '"';
      return;
    case Kind::kText5:
      append_text5(out, node.text);
      return;
    case Kind::kTextRaw:
      append_escaped(out, node.text);
      return;
    default:
      out += node.text;
  }
}

void render_indented(const Node& node, std::string_view indent, int depth, std::string& out) {
  if (!node.is_container()) return render_scalar(node, out);
  bool array = node.kind == Kind::kArray;
  if (node.count == 0) {
    out += array ? "[]" : "{}";
    return;
  }
  auto new_line = [&](int levels) {
    out += '\n';
    for (int i = 0; i < levels; ++i) out += indent;
  };
  out += array ? '[' : '{';
  for (const Node* child = node.first; child != nullptr; child = child->next) {
    if (child != node.first) out += ',';
    new_line(depth + 1);
    if (!array) {
      render_scalar(*child, out);
      out += ": ";
      child = child->next;
    }
    render_indented(*child, indent, depth + 1, out);
  }
  new_line(depth);
  out += array ? ']' : '}';
}

void append_header(std::string& out, Kind kind, u64 size) {
  auto type = static_cast<u8>(kind);
  if (size < 12) {
    out += static_cast<char>(size << 4 | type);
    return;
  }
  int bytes = size < 0x100 ? 1 : size < 0x10000 ? 2 : size < 0x100000000 ? 4 : 8;
  int code = bytes == 1 ? 12 : bytes == 2 ? 13 : bytes == 4 ? 14 : 15;
  out += static_cast<char>(code << 4 | type);
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(size >> (8 * i));
}

}  // namespace

void append_escaped(std::string& out, std::string_view raw) {
  out += '"';
  for (char c : raw) {
    if (static_cast<u8>(c) < 0x20) {
      append_control(out, static_cast<u8>(c));
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  out += '"';
}

void render(const Node& node, std::string& out) {
  if (!node.is_container()) return render_scalar(node, out);
  bool array = node.kind == Kind::kArray;
  out += array ? '[' : '{';
  bool label = true;
  for (const Node* child = node.first; child != nullptr; child = child->next) {
    if (child != node.first) out += array || label ? ',' : ':';
    render(*child, out);
    label = !label;
  }
  out += array ? ']' : '}';
}

void render_pretty(const Node& node, std::string_view indent, std::string& out) {
  render_indented(node, indent, 0, out);
}

void to_jsonb(const Node& node, std::string& out) {
  if (!node.is_container()) {
    append_header(out, node.kind, node.text.size());
    out += node.text;
    return;
  }
  std::string payload;
  for (const Node* child = node.first; child != nullptr; child = child->next)
    to_jsonb(*child, payload);
  append_header(out, node.kind, payload.size());
  out += payload;
}

u64 header_bytes(u64 payload) {
  if (payload < 12) return 1;
  return payload < 0x100 ? 2 : payload < 0x10000 ? 3 : payload < 0x100000000 ? 5 : 9;
}

u64 measure(Node& node) {
  node.payload = node.text.size();
  for (Node* child = node.first; child != nullptr; child = child->next) {
    node.payload += measure(*child);
  }
  return header_bytes(node.payload) + node.payload;
}

std::string unescape(const Node& node) {
  std::string_view text = node.text;
  if (node.kind == Kind::kText || node.kind == Kind::kTextRaw) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      out += text[i];
      continue;
    }
    char c = text[++i];
    switch (c) {
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'v':
        out += '\v';
        break;
      case '0':
        out += '\0';
        break;
      case '\n':
        break;
      case '\r':
        if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
        break;
      case '\xe2':
        i += 2;
        break;
      case 'x':
        append_utf8(out, read_hex(text, i + 1, 2));
        i += 2;
        break;
      case 'u': {
        u32 code = read_hex(text, i + 1, 4);
        i += 4;
        bool pair = (code & 0xfc00) == 0xd800 && i + 6 < text.size() + 0 && text[i + 1] == '\\' &&
                    text[i + 2] == 'u';
        if (pair) {
          u32 low = read_hex(text, i + 3, 4);
          if ((low & 0xfc00) == 0xdc00) {
            code = ((code & 0x3ff) << 10) + (low & 0x3ff) + 0x10000;
            i += 6;
          }
        }
        append_utf8(out, code);
        break;
      }
      default:
        out += c;
    }
  }
  return out;
}

const char* type_name(const Node& node) {
  static constexpr const char* kNames[] = {"null", "true",  "false", "integer", "integer",
                                           "real", "real",  "text",  "text",    "text",
                                           "text", "array", "object"};
  return kNames[static_cast<size_t>(node.kind)];
}

}  // namespace db::json
