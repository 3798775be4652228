#include "db/functions/format.h"

#include "db/value/decimal.h"

#include <algorithm>
#include <charconv>

namespace db {
namespace {

constexpr i64 kWidthMax = 0x7fffffff;

struct Spec {
  bool left = false;
  char sign = 0;  // '+' or ' ' before positive numbers
  bool alternate = false;
  bool alternate2 = false;  // '!'
  bool zero_pad = false;
  bool thousands = false;
  int longs = 0;
  i64 width = 0;
  i64 precision = -1;
  char type = 0;
};

size_t utf8_prefix(std::string_view text, i64 characters) {
  size_t at = 0;
  while (characters-- > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && (static_cast<u8>(text[at]) & 0xc0) == 0x80) ++at;
  }
  return at;
}

i64 continuation_bytes(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<u8>(c) & 0xc0) == 0x80; });
}

class Formatter {
 public:
  Formatter(std::string& out, const char* pattern, FormatArgs& args, size_t size_max)
      : out_(out), p_(pattern), args_(args), size_max_(size_max) {}

  void run() {
    while (*p_ != 0 && out_.size() <= size_max_) {
      if (*p_ != '%') {
        const char* begin = p_;
        while (*p_ != 0 && *p_ != '%') ++p_;
        out_.append(begin, p_);
        continue;
      }
      ++p_;
      if (*p_ == 0) {
        out_ += '%';
        return;
      }
      Spec spec;
      parse(spec);
      if (!convert(spec)) return;
    }
  }

 private:
  void parse(Spec& spec) {
    for (;; ++p_) {
      switch (*p_) {
        case '-':
          spec.left = true;
          continue;
        case '+':
          spec.sign = '+';
          continue;
        case ' ':
          spec.sign = ' ';
          continue;
        case '#':
          spec.alternate = true;
          continue;
        case '!':
          spec.alternate2 = true;
          continue;
        case '0':
          spec.zero_pad = true;
          continue;
        case ',':
          spec.thousands = true;
          continue;
        default:
          break;
      }
      break;
    }
    if (*p_ == '*') {
      ++p_;
      spec.width = args_.next_integer(0, true);
      if (spec.width < 0) {
        spec.left = true;
        spec.width = spec.width >= -kWidthMax ? -spec.width : 0;
      }
    } else {
      spec.width = digits();
    }
    if (*p_ == '.') {
      ++p_;
      if (*p_ == '*') {
        ++p_;
        i64 precision = args_.next_integer(0, true);
        spec.precision = precision >= 0 ? precision : precision >= -kWidthMax ? -precision : -1;
      } else {
        spec.precision = digits();
      }
    }
    while (*p_ == 'l' && spec.longs < 2) {
      ++spec.longs;
      ++p_;
    }
    spec.type = *p_;
    if (*p_ != 0) ++p_;
  }

  i64 digits() {
    u32 value = 0;
    for (; *p_ >= '0' && *p_ <= '9'; ++p_) value = value * 10 + static_cast<u32>(*p_ - '0');
    return value & 0x7fffffff;
  }

  // False ends the output, as SQLite does at a conversion it does not know.
  bool convert(Spec& spec) {
    switch (spec.type) {
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
      case 'r':
      case 'p':
        integer(spec);
        return true;
      case 'f':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
        real(spec);
        return true;
      case 's':
      case 'z':
        text(spec);
        return true;
      case 'q':
      case 'Q':
      case 'w':
        escaped(spec);
        return true;
      case 'c':
        character(spec);
        return true;
      case '%':
        pad("%", spec);
        return true;
      case 'n':
        args_.next_count(static_cast<int>(out_.size()));
        return true;
      default:
        return false;
    }
  }

  void pad(std::string_view body, const Spec& spec) {
    i64 fill = spec.width - static_cast<i64>(body.size());
    if (fill > 0 && static_cast<u64>(fill) + out_.size() > size_max_) {
      out_.append(size_max_ + 1 - std::min(size_max_, out_.size()), ' ');
      return;
    }
    if (fill > 0 && !spec.left) out_.append(static_cast<size_t>(fill), ' ');
    out_ += body;
    if (fill > 0 && spec.left) out_.append(static_cast<size_t>(fill), ' ');
  }

  void integer(Spec& spec) {
    bool is_signed = spec.type == 'd' || spec.type == 'i' || spec.type == 'r';
    std::string prefix;
    u64 magnitude = 0;
    if (spec.type == 'p') {
      magnitude = args_.next_pointer();
    } else {
      i64 value = args_.next_integer(spec.longs, is_signed);
      magnitude = static_cast<u64>(value);
      if (is_signed && value < 0) {
        magnitude = 0 - magnitude;
        prefix = "-";
      } else if (is_signed && spec.sign != 0) {
        prefix = spec.sign;
      }
    }
    int base = spec.type == 'o'                                           ? 8
               : spec.type == 'x' || spec.type == 'X' || spec.type == 'p' ? 16
                                                                          : 10;
    char buffer[32];
    auto end = std::to_chars(buffer, buffer + sizeof buffer, magnitude, base).ptr;
    std::string body(buffer, end);
    if (spec.type == 'X' || spec.type == 'p') {
      for (char& c : body) c = c >= 'a' ? static_cast<char>(c - 32) : c;
    }
    if (spec.zero_pad) {
      spec.precision = std::max(spec.precision, spec.width - static_cast<i64>(prefix.size()));
    }
    if (spec.precision > static_cast<i64>(size_max_)) spec.precision = static_cast<i64>(size_max_);
    std::string suffix;
    if (spec.type == 'r') {
      u64 ones = magnitude % 10;
      bool teen = magnitude / 10 % 10 == 1;
      suffix = teen || ones > 3 || ones == 0 ? "th" : ones == 1 ? "st" : ones == 2 ? "nd" : "rd";
    }
    i64 zeros = spec.precision - static_cast<i64>(body.size() + suffix.size());
    if (zeros > 0) body.insert(0, static_cast<size_t>(zeros), '0');
    body += suffix;
    if (spec.thousands && base == 10 && spec.type != 'r') {
      for (i64 at = static_cast<i64>(body.size()) - 3; at > 0; at -= 3) {
        body.insert(static_cast<size_t>(at), 1, ',');
      }
    }
    if (spec.alternate && magnitude != 0 && base == 16)
      body.insert(0, spec.type == 'X' ? "0X" : "0x");
    if (spec.alternate && magnitude != 0 && base == 8) body.insert(0, 1, '0');
    pad(prefix + body, spec);
  }

  void real(Spec& spec) {
    f64 value = args_.next_real();
    if (spec.precision < 0) spec.precision = 6;
    spec.precision = std::min<i64>(spec.precision, 100000000);
    bool general = spec.type == 'g' || spec.type == 'G';
    if (general && spec.precision == 0) spec.precision = 1;
    auto precision = static_cast<int>(spec.precision);
    int round_to = spec.type == 'f' ? -precision : general ? precision : precision + 1;
    Decimal d = decimal_of(value, round_to, spec.alternate2 ? 26 : 16);
    if (d.nan) return pad(spec.zero_pad ? "null" : "NaN", spec);
    if (d.infinite && !spec.zero_pad) {
      std::string text = d.negative       ? "-Inf"
                         : spec.sign != 0 ? std::string(1, spec.sign) + "Inf"
                                          : "Inf";
      return pad(text, spec);
    }
    if (d.infinite) {
      d.digits[0] = '9';
      d.count = 1;
      d.point = 1000;
    }
    std::string prefix;
    if (d.negative) {
      // With `#`, %f shows no minus sign in front of a zero.
      const bool shows_zero = spec.type == 'f' && d.digits[0] == '0';
      if (!spec.alternate || spec.sign != 0 || !shows_zero) prefix = "-";
    } else if (spec.sign != 0) {
      prefix = spec.sign;
    }
    pad(zero_filled(prefix, digits_of(spec, d, general), spec), spec);
  }

  // The number without its sign.
  static std::string digits_of(const Spec& spec, const Decimal& d, bool general) {
    i64 precision = spec.precision;
    bool scientific = spec.type == 'e' || spec.type == 'E';
    bool cut_zeros = spec.alternate2;
    int exponent = d.point - 1;
    if (general) {
      --precision;
      cut_zeros = !spec.alternate;
      scientific = exponent < -4 || exponent > precision;
      if (!scientific) precision -= exponent;
    }
    std::string out;
    int at = 0;
    auto next = [&] { return at < d.count ? d.digits[at++] : '0'; };
    int whole = scientific ? 0 : exponent;  // digits before the point, minus one
    if (whole < 0) out += '0';
    for (int left = whole; left >= 0; --left) {
      out += next();
      if (spec.thousands && left % 3 == 0 && left > 1) out += ',';
    }
    bool point = precision > 0 || spec.alternate || spec.alternate2;
    if (point) out += '.';
    for (int zeros = whole + 1; zeros < 0 && precision > 0; ++zeros, --precision) out += '0';
    for (; precision > 0; --precision) out += next();
    if (cut_zeros && point) {
      while (out.back() == '0') out.pop_back();
      if (out.back() == '.') {
        if (spec.alternate2) {
          out += '0';
        } else {
          out.pop_back();
        }
      }
    }
    if (scientific) {
      out += spec.type == 'E' || spec.type == 'G' ? 'E' : 'e';
      out += exponent < 0 ? '-' : '+';
      exponent = exponent < 0 ? -exponent : exponent;
      if (exponent >= 100) out += static_cast<char>('0' + exponent / 100);
      out += static_cast<char>('0' + exponent / 10 % 10);
      out += static_cast<char>('0' + exponent % 10);
    }
    return out;
  }

  std::string zero_filled(const std::string& prefix, std::string body, const Spec& spec) const {
    i64 zeros = spec.width - static_cast<i64>(prefix.size() + body.size());
    if (spec.zero_pad && !spec.left && zeros > 0 && static_cast<u64>(zeros) <= size_max_) {
      body.insert(0, static_cast<size_t>(zeros), '0');
    }
    return prefix + body;
  }

  void text(Spec& spec) {
    std::string_view body;
    if (!args_.next_text(body, spec.alternate2 ? -1 : spec.precision, spec.type == 'z')) body = {};
    if (spec.precision >= 0) body = body.substr(0, cut(body, spec));
    padded_text(body, spec);
    args_.next_text_done();
  }

  // Bytes that the precision leaves; with '!' it counts characters.
  static size_t cut(std::string_view body, const Spec& spec) {
    if (spec.alternate2) return utf8_prefix(body, spec.precision);
    return std::min<size_t>(body.size(), static_cast<size_t>(spec.precision));
  }

  void padded_text(std::string_view body, Spec& spec) {
    if (spec.alternate2 && spec.width > 0) spec.width += continuation_bytes(body);
    pad(body, spec);
  }

  void escaped(Spec& spec) {
    std::string_view body;
    bool present = args_.next_text(body, spec.alternate2 ? -1 : spec.precision, false);
    if (!present) body = spec.type == 'Q' ? "NULL" : "(NULL)";
    if (spec.precision >= 0) body = body.substr(0, cut(body, spec));
    std::string quoted;
    if (!present) {
      quoted = body;
    } else {
      quoted = quoted_text(body, spec);
    }
    padded_text(quoted, spec);
    args_.next_text_done();
  }

  // With '#', %q also escapes backslashes and control characters as unistr() reads them, and %Q
  // writes a call of unistr() where there are control characters.
  static std::string quoted_text(std::string_view body, const Spec& spec) {
    auto is_control = [](char c) { return static_cast<u8>(c) < 0x20; };
    bool control = std::any_of(body.begin(), body.end(), is_control);
    bool escape = spec.alternate && (spec.type == 'q' || (spec.type == 'Q' && control));
    std::string out;
    append_quoted(out, body, spec.type == 'w' ? '"' : '\'');
    if (escape) {
      std::string plain = std::move(out);
      out.clear();
      for (char c : plain) {
        static constexpr char kDigits[] = "0123456789abcdef";
        if (is_control(c)) {
          out += "\\u00";
          out += kDigits[static_cast<u8>(c) >> 4];
          out += kDigits[static_cast<u8>(c) & 15];
        } else {
          out += c;
          if (c == '\\') out += c;
        }
      }
    }
    if (spec.type != 'Q') return out;
    return escape ? "unistr('" + out + "')" : "'" + out + "'";
  }

  void character(Spec& spec) {
    std::string one = args_.next_char();
    std::string body = one;
    i64 copies = std::min<i64>(spec.precision, static_cast<i64>(size_max_));
    for (i64 i = 1; i < copies; ++i) body += one;
    spec.alternate2 = true;  // the width counts characters
    padded_text(body, spec);
  }

  std::string& out_;
  const char* p_;
  FormatArgs& args_;
  size_t size_max_;
};

}  // namespace

void append_quoted(std::string& out, std::string_view text, char quote) {
  for (char c : text) {
    out += c;
    if (c == quote) out += quote;
  }
}

void format(std::string& out, const char* pattern, FormatArgs& args, size_t size_max) {
  Formatter(out, pattern, args, size_max).run();
}

}  // namespace db
