// String functions.
#include "db/functions/builtins.h"
#include "db/functions/format.h"
#include "db/functions/version.h"
#include "db/value/decimal.h"

#include <algorithm>

namespace db {

bool is_compile_option(std::string_view name) {
  if (name.size() > 7 && equal_nocase(name.substr(0, 7), "SQLITE_")) name.remove_prefix(7);
  return std::any_of(kCompileOptions.begin(), kCompileOptions.end(), [&](std::string_view option) {
    if (option.size() < name.size() || !equal_nocase(option.substr(0, name.size()), name))
      return false;
    return option.size() == name.size() || option[name.size()] == '=';
  });
}

std::string quote_value(const Value& value) {
  switch (value.type()) {
    case Type::kNull:
      return "NULL";
    case Type::kInteger:
      return std::to_string(value.raw_integer());
    case Type::kReal: {
      Decimal d = decimal_of(value.raw_real(), 17, 26);
      if (d.infinite) return d.negative ? "-9.0e+999" : "9.0e+999";
      char buffer[40];
      std::string text(buffer, format_real(value.raw_real(), buffer));
      // The literal must read back as REAL: 1e+300 is written 1.0e+300.
      size_t e = text.find('e');
      if (e != std::string::npos && text.find('.') == std::string::npos) text.insert(e, ".0");
      return text;
    }
    case Type::kText: {
      std::string out = "'";
      append_quoted(out, value.bytes().substr(0, value.bytes().find('\0')), '\'');
      return out + "'";
    }
    default: {
      static constexpr char kDigits[] = "0123456789ABCDEF";
      std::string out = "X'";
      for (char c : value.bytes()) {
        out += kDigits[static_cast<u8>(c) >> 4];
        out += kDigits[static_cast<u8>(c) & 15];
      }
      return out + "'";
    }
  }
}

namespace {

using Args = std::span<Value>;

void set_text(FunctionContext& context, std::string_view text) {
  if (text.size() > kValueBytesMax) return too_big(context);
  context.result = Value::text(text);
}

constexpr u64 kOnes = 0x0101010101010101;
constexpr u64 kTops = 0x80 * kOnes;

u64 eight_bytes(const char* at) {
  u64 word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Characters up to the first NUL.
i64 count_characters(std::string_view text) {
  i64 count = 0;
  size_t at = 0;
  // Words of eight ASCII characters, none of them NUL.
  for (; at + 8 <= text.size(); at += 8, count += 8) {
    const u64 word = eight_bytes(text.data() + at);
    if (((word | (word - kOnes)) & kTops) != 0) break;
  }
  for (; at < text.size() && text[at] != 0; ++count) skip_utf8(text, at);
  return count;
}

// Moves past `count` characters, not past a NUL.
void skip_characters(std::string_view text, i64 count, size_t& at) {
  for (; count > 0 && at < text.size() && text[at] != 0; --count) skip_utf8(text, at);
}

std::string_view until_nul(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

void length_call(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  TextOf text(args[0]);
  i64 length = args[0].is_text() ? count_characters(text) : static_cast<i64>(text.view().size());
  context.result.set_integer(length);
}

void octet_length_call(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  context.result.set_integer(static_cast<i64>(TextOf(args[0]).view().size()));
}

// upper() and lower(): ASCII only; user_data is not null for upper.
void case_call(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  bool upper = context.user_data() != nullptr;
  TextOf text(args[0]);
  std::string_view from = text;
  char* to = context.make_text(from.size());
  const u8 first = upper ? 'a' : 'A';
  size_t at = 0;
  // Eight bytes at a time: the sums carry into a byte's top bit from the first letter on, and from
  // the one behind the last.
  for (; at + 8 <= from.size(); at += 8) {
    u64 word = eight_bytes(from.data() + at);
    const u64 low = word & ~kTops;
    const u64 letters = (low + (0x80u - first) * kOnes) ^ (low + (0x80u - first - 26u) * kOnes);
    word ^= (letters & ~word & kTops) >> 2;
    std::memcpy(to + at, &word, sizeof word);
  }
  for (; at < from.size(); ++at) {
    const u8 c = static_cast<u8>(from[at]);
    to[at] = static_cast<char>(static_cast<u8>(c - first) < 26 ? c ^ 0x20 : c);
  }
}

void substr_call(FunctionContext& context, Args args) {
  if (args[0].is_null() || args[1].is_null() || (args.size() == 3 && args[2].is_null())) return;
  bool blob = args[0].is_blob();
  if (blob && args[0].bytes().empty()) return;
  TextOf text(args[0]);
  std::string_view from = text;
  i64 start = args[1].to_integer();
  i64 count = args.size() == 3 ? args[2].to_integer() : static_cast<i64>(kValueBytesMax);
  bool backward = count < 0;
  if (backward) count = count == INT64_MIN ? INT64_MAX : -count;
  if (start < 0) {
    start += blob ? static_cast<i64>(from.size()) : count_characters(from);
    if (start < 0) {
      count = start < -count ? 0 : count + start;
      start = 0;
    }
  } else if (start > 0) {
    --start;
  } else if (count > 0) {
    --count;
  }
  if (backward) {
    if (count < start) {
      start -= count;
    } else {
      count = start;
      start = 0;
    }
  }
  if (blob) {
    auto begin = std::min<size_t>(static_cast<size_t>(start), from.size());
    auto size = std::min<size_t>(static_cast<size_t>(count), from.size() - begin);
    context.result = Value::blob(from.substr(begin, size));
    return;
  }
  size_t begin = 0;
  skip_characters(from, start, begin);
  size_t end = begin;
  skip_characters(from, count, end);
  const std::string_view part = from.substr(begin, end - begin);
  // Of a text it is part of that text; whoever calls keeps it.
  if (args[0].is_text())
    context.result.set_borrowed(Type::kText, part.data(), part.size());
  else
    context.set_text(part);
}

void instr_call(FunctionContext& context, Args args) {
  if (args[0].is_null() || args[1].is_null()) return;
  bool bytes = args[0].is_blob() && args[1].is_blob();
  TextOf haystack(args[0]);
  TextOf needle(args[1]);
  if (needle.view().empty()) return context.result.set_integer(1);
  size_t at = 0;
  i64 position = 1;
  std::string_view text = haystack;
  while (text.size() - at >= needle.view().size()) {
    if (text.compare(at, needle.view().size(), needle.view()) == 0) {
      return context.result.set_integer(position);
    }
    if (bytes) {
      ++at;
    } else {
      ++at;
      while (at < text.size() && (static_cast<u8>(text[at]) & 0xc0) == 0x80) ++at;
    }
    ++position;
  }
  context.result.set_integer(0);
}

void replace_call(FunctionContext& context, Args args) {
  if (args[0].is_null() || args[1].is_null()) return;
  TextOf source(args[0]);
  TextOf pattern(args[1]);
  TextOf replacement(args[2]);
  if (until_nul(pattern).empty()) {
    context.result = Value::text(source);
    return;
  }
  if (args[2].is_null()) return;
  std::string out;
  std::string_view text = source;
  size_t at = 0;
  for (;;) {
    size_t hit = text.find(pattern.view(), at);
    if (hit == std::string_view::npos) break;
    out.append(text, at, hit - at);
    out += replacement.view();
    if (out.size() > kValueBytesMax) return too_big(context);
    at = hit + pattern.view().size();
  }
  out.append(text, at);
  set_text(context, out);
}

// user_data: 1 left, 2 right, 3 both.
void trim_call(FunctionContext& context, Args args) {
  for (const Value& arg : args) {
    if (arg.is_null()) return;
  }
  auto sides = reinterpret_cast<uintptr_t>(context.user_data());
  TextOf source(args[0]);
  std::string_view text = source;
  TextOf set_text_holder(args.back());
  std::vector<std::string_view> set;
  if (args.size() == 1) {
    set.emplace_back(" ");
  } else {
    std::string_view characters = until_nul(set_text_holder);
    for (size_t at = 0; at < characters.size();) {
      size_t begin = at;
      skip_utf8(characters, at);
      set.push_back(characters.substr(begin, at - begin));
    }
  }
  auto cut = [&](bool left) {
    for (std::string_view one : set) {
      if (left ? text.starts_with(one) : text.ends_with(one)) {
        left ? text.remove_prefix(one.size()) : text.remove_suffix(one.size());
        return true;
      }
    }
    return false;
  };
  if ((sides & 1) != 0) {
    while (!text.empty() && cut(true)) {
    }
  }
  if ((sides & 2) != 0) {
    while (!text.empty() && cut(false)) {
    }
  }
  context.result = Value::text(text);
}

void hex_call(FunctionContext& context, Args args) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  TextOf text(args[0]);
  std::string_view from = text;
  if (from.size() * 2 > kValueBytesMax) return too_big(context);
  context.result = Value::buffer(Type::kText, from.size() * 2);
  char* to = context.result.mutable_data();
  for (char c : from) {
    *to++ = kDigits[static_cast<u8>(c) >> 4];
    *to++ = kDigits[static_cast<u8>(c) & 15];
  }
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// unhex(text[, characters to skip between bytes])
void unhex_call(FunctionContext& context, Args args) {
  if (args[0].is_null() || (args.size() == 2 && args[1].is_null())) return;
  TextOf source(args[0]);
  TextOf skip_holder(args.back());
  std::string_view text = until_nul(source);
  std::string_view skip = args.size() == 2 ? until_nul(skip_holder) : std::string_view();
  auto skippable = [&](size_t at, size_t& next) {
    next = at;
    u32 c = decode_utf8(text, next);
    for (size_t i = 0; i < skip.size();) {
      if (decode_utf8(skip, i) == c) return true;
    }
    return false;
  };
  std::string out;
  for (size_t at = 0; at < text.size();) {
    int high = hex_digit(text[at]);
    size_t next = 0;
    if (high < 0) {
      if (!skippable(at, next)) return;
      at = next;
      continue;
    }
    if (at + 1 >= text.size()) return;
    int low = hex_digit(text[at + 1]);
    if (low < 0) return;
    out += static_cast<char>(high * 16 + low);
    at += 2;
  }
  context.result = Value::blob(out);
}

void quote_call(FunctionContext& context, Args args) {
  set_text(context, quote_value(args[0]));
}

void unicode_call(FunctionContext& context, Args args) {
  TextOf text(args[0]);
  size_t at = 0;
  if (args[0].is_null() || until_nul(text).empty()) return;
  context.result.set_integer(decode_utf8(text, at));
}

void char_call(FunctionContext& context, Args args) {
  std::string out;
  for (const Value& arg : args) {
    i64 code = arg.to_integer();
    append_utf8(out, code < 0 || code > 0x10ffff ? 0xfffd : static_cast<u32>(code));
  }
  set_text(context, out);
}

// concat() skips NULLs; concat_ws() puts its first argument between what is left.
void concat_call(FunctionContext& context, Args args) {
  std::string out;
  for (const Value& arg : args) out += TextOf(arg).view();
  set_text(context, out);
}

void concat_ws_call(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  TextOf separator(args[0]);
  std::string out;
  bool first = true;
  for (const Value& arg : args.subspan(1)) {
    if (arg.is_null()) continue;
    if (!first) out += separator.view();
    out += TextOf(arg).view();
    first = false;
  }
  set_text(context, out);
}

void soundex_call(FunctionContext& context, Args args) {
  static constexpr char kCodes[] = "01230120022455012623010202";
  TextOf text(args[0]);
  std::string_view from = until_nul(text);
  auto letter = [](char c) {
    c = static_cast<char>(c & 0x5f);  // past the first letter SQLite looks at seven bits
    return c >= 'A' && c <= 'Z' ? c : '\0';
  };
  size_t at = 0;
  while (at < from.size() && (static_cast<u8>(from[at]) >= 0x80 || letter(from[at]) == 0)) ++at;
  if (at == from.size()) return set_text(context, "?000");
  std::string out(1, letter(from[at]));
  char previous = kCodes[letter(from[at]) - 'A'];
  for (; out.size() < 4 && at < from.size(); ++at) {
    char code = letter(from[at]) != 0 ? kCodes[letter(from[at]) - 'A'] : '0';
    if (code == '0') {
      previous = '0';
    } else if (code != previous) {
      previous = code;
      out += code;
    }
  }
  out.resize(4, '0');
  set_text(context, out);
}

// unistr('\u20ac'): \XXXX, \uXXXX, \+XXXXXX, \UXXXXXXXX and \\.
void unistr_call(FunctionContext& context, Args args) {
  if (args[0].is_null()) return;
  TextOf source(args[0]);
  std::string_view text = source;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      out += text[at++];
      continue;
    }
    ++at;
    char kind = at < text.size() ? text[at] : '\0';
    if (kind == '\\') {
      out += '\\';
      ++at;
      continue;
    }
    size_t digits = kind == 'u' ? 4 : kind == 'U' ? 8 : kind == '+' ? 6 : 4;
    if (kind == 'u' || kind == 'U' || kind == '+') ++at;
    u32 code = 0;
    bool valid = at + digits <= text.size();
    for (size_t i = 0; valid && i < digits; ++i) {
      int digit = hex_digit(text[at + i]);
      valid = digit >= 0;
      code = code * 16 + static_cast<u32>(digit);
    }
    if (!valid) return context.fail("invalid Unicode escape");
    append_utf8(out, code);
    at += digits;
  }
  set_text(context, out);
}

// quote() that writes control characters as unistr() escapes.
void unistr_quote_call(FunctionContext& context, Args args) {
  std::string plain = quote_value(args[0]);
  bool control = args[0].is_text() && std::any_of(plain.begin(), plain.end(),
                                                  [](char c) { return static_cast<u8>(c) < 0x20; });
  if (!control) return set_text(context, plain);
  std::string out = "unistr(";
  for (char c : plain) {
    if (static_cast<u8>(c) < 0x20) {
      static constexpr char kDigits[] = "0123456789abcdef";
      out += "\\u00";
      out += kDigits[static_cast<u8>(c) >> 4];
      out += kDigits[static_cast<u8>(c) & 15];
    } else {
      out += c;
      if (c == '\\') out += c;
    }
  }
  set_text(context, out + ")");
}

class ValueArgs : public FormatArgs {
 public:
  explicit ValueArgs(Args args) : args_(args) {}
  i64 next_integer(int, bool) override {
    return at_ < args_.size() ? args_[at_++].to_integer() : 0;
  }
  f64 next_real() override { return at_ < args_.size() ? args_[at_++].to_real() : 0; }
  bool next_text(std::string_view& text, i64, bool) override {
    if (at_ >= args_.size() || args_[at_].is_null()) {
      ++at_;
      return false;
    }
    const Value& value = args_[at_++];
    holder_ = value.has_bytes() ? std::string() : std::string(TextOf(value).view());
    text = value.has_bytes() ? until_nul(value.bytes()) : std::string_view(holder_);
    return true;
  }
  std::string next_char() override {
    std::string_view text;
    if (!next_text(text, -1, false) || text.empty()) return std::string(1, '\0');
    size_t end = 0;
    skip_utf8(text, end);
    return std::string(text.substr(0, end));
  }
  u64 next_pointer() override { return static_cast<u64>(next_integer(2, false)); }
  void next_count(int) override {}
  bool is_sql() const override { return true; }

 private:
  Args args_;
  size_t at_ = 0;
  std::string holder_;
};

void printf_call(FunctionContext& context, Args args) {
  if (args.empty() || args[0].is_null()) return;
  std::string pattern(until_nul(TextOf(args[0])));
  ValueArgs values(args.subspan(1));
  std::string out;
  format(out, pattern.c_str(), values, kValueBytesMax);
  if (out.size() > kValueBytesMax) return too_big(context);
  if (!out.empty()) context.result = Value::text(out);
}

}  // namespace

void add_text_functions(FunctionRegistry& registry) {
  static const char kUpper = 1;
  auto side = [](uintptr_t bits) { return reinterpret_cast<const void*>(bits); };
  add_scalar(registry, "length", 1, length_call);
  add_scalar(registry, "octet_length", 1, octet_length_call);
  add_scalar(registry, "upper", 1, case_call, kPure, &kUpper);
  add_scalar(registry, "lower", 1, case_call);
  for (const char* name : {"substr", "substring"}) {
    add_scalar(registry, name, 2, substr_call);
    add_scalar(registry, name, 3, substr_call);
  }
  add_scalar(registry, "instr", 2, instr_call);
  add_scalar(registry, "replace", 3, replace_call);
  for (int count : {1, 2}) {
    add_scalar(registry, "ltrim", count, trim_call, kPure, side(1));
    add_scalar(registry, "rtrim", count, trim_call, kPure, side(2));
    add_scalar(registry, "trim", count, trim_call, kPure, side(3));
    add_scalar(registry, "unhex", count, unhex_call);
  }
  add_scalar(registry, "hex", 1, hex_call);
  add_scalar(registry, "quote", 1, quote_call);
  add_scalar(registry, "unicode", 1, unicode_call);
  add_scalar(registry, "char", -1, char_call);
  add_scalar(registry, "concat", -3, concat_call);
  add_scalar(registry, "concat_ws", -4, concat_ws_call);
  add_scalar(registry, "soundex", 1, soundex_call);
  add_scalar(registry, "unistr", 1, unistr_call);
  add_scalar(registry, "unistr_quote", 1, unistr_quote_call);
  add_scalar(registry, "printf", -1, printf_call);
  add_scalar(registry, "format", -1, printf_call);
}

}  // namespace db
