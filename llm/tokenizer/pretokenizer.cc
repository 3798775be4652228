#include "llm/tokenizer/pretokenizer.h"

#include "llm/tokenizer/unicode.h"

namespace llm {
namespace {

// A cursor over classified code points. All matchers return how many code points they take at
// `at`, 0 for no match.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text), points_(decode_utf8(text)) {
    classes_.reserve(points_.size());
    for (const CodePoint& point : points_) classes_.push_back(classify(point.value));
  }

  size_t size() const { return points_.size(); }
  bool letter(size_t i) const { return i < size() && classes_[i] == Class::kLetter; }
  bool number(size_t i) const { return i < size() && classes_[i] == Class::kNumber; }
  bool space(size_t i) const { return i < size() && classes_[i] == Class::kSpace; }
  bool other(size_t i) const { return i < size() && classes_[i] == Class::kOther; }
  bool newline(size_t i) const { return i < size() && (value(i) == '\n' || value(i) == '\r'); }
  u32 value(size_t i) const { return i < size() ? points_[i].value : 0; }

  std::string_view slice(size_t begin, size_t end) const {
    const size_t from = points_[begin].offset;
    const size_t to = end < size() ? points_[end].offset : text_.size();
    return text_.substr(from, to - from);
  }

  // 's 't 're 've 'm 'll 'd
  size_t contraction(size_t at, bool any_case) const {
    if (value(at) != '\'') return 0;
    const auto lower = [&](size_t i) {
      const u32 c = value(i);
      return any_case && c >= 'A' && c <= 'Z' ? c + 32 : c;
    };
    const u32 a = lower(at + 1);
    const u32 b = lower(at + 2);
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    // U+017F folds to s: the case-insensitive expression takes it too.
    return any_case && a == 0x17f ? 2 : 0;
  }

  template <class Member>
  size_t run(size_t at, Member member) const {
    size_t n = 0;
    while ((this->*member)(at + n)) ++n;
    return n;
  }

  // \s+(?!\S)|\s+ : a run before a word leaves its last space to the word.
  size_t space_run(size_t at) const {
    const size_t n = run(at, &Splitter::space);
    return n > 1 && at + n < size() ? n - 1 : n;
  }

 private:
  enum class Class : u8 { kLetter, kNumber, kSpace, kOther };
  static Class classify(u32 code_point) {
    if (is_letter(code_point)) return Class::kLetter;
    if (is_number(code_point)) return Class::kNumber;
    if (is_whitespace(code_point)) return Class::kSpace;
    return Class::kOther;
  }
  std::string_view text_;
  std::vector<CodePoint> points_;
  std::vector<Class> classes_;
};

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t match_gpt2(const Splitter& s, size_t at) {
  if (const size_t n = s.contraction(at, false)) return n;
  const size_t lead = s.value(at) == ' ' ? 1 : 0;
  if (const size_t n = s.run(at + lead, &Splitter::letter)) return lead + n;
  if (const size_t n = s.run(at + lead, &Splitter::number)) return lead + n;
  if (const size_t n = s.run(at + lead, &Splitter::other)) return lead + n;
  return s.space_run(at);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,DIGITS}| ?[^\s\p{L}\p{N}]+[\r\n]*
// |\s*[\r\n]+|\s+(?!\S)|\s+
size_t match_llama3(const Splitter& s, size_t at, size_t digits_max) {
  if (const size_t n = s.contraction(at, true)) return n;
  const bool lead_fits = !s.newline(at) && !s.letter(at) && !s.number(at);
  const size_t lead = lead_fits ? 1 : 0;
  if (const size_t n = s.run(at + lead, &Splitter::letter)) return lead + n;
  if (s.number(at)) return std::min(s.run(at, &Splitter::number), digits_max);
  const size_t blank = s.value(at) == ' ' ? 1 : 0;
  if (const size_t n = s.run(at + blank, &Splitter::other)) {
    return blank + n + s.run(at + blank + n, &Splitter::newline);
  }
  const size_t spaces = s.run(at, &Splitter::space);
  for (size_t n = spaces; n > 0; --n) {
    if (s.newline(at + n - 1)) return n;  // up to the last newline of the run
  }
  return s.space_run(at);
}

size_t match(PreTokenizer kind, const Splitter& s, size_t at) {
  switch (kind) {
    case PreTokenizer::kGpt2:
    case PreTokenizer::kSmolLm:
      return match_gpt2(s, at);
    case PreTokenizer::kLlamaBpe:
    case PreTokenizer::kGlm4:
      return match_llama3(s, at, 3);
    case PreTokenizer::kQwen2:
      return match_llama3(s, at, 1);
  }
  return 1;
}

void split_range(PreTokenizer kind, std::string_view text, std::vector<std::string_view>* out) {
  const Splitter splitter(text);
  for (size_t at = 0; at < splitter.size();) {
    const size_t n = std::max<size_t>(match(kind, splitter, at), 1);
    out->push_back(splitter.slice(at, at + n));
    at += n;
  }
}

}  // namespace

base::Result<PreTokenizer> parse_pretokenizer(std::string_view name) {
  if (name == "smollm") return PreTokenizer::kSmolLm;
  if (name == "gpt2" || name == "gpt-2") return PreTokenizer::kGpt2;
  if (name == "llama-bpe" || name == "llama3" || name == "llama-v3") return PreTokenizer::kLlamaBpe;
  if (name == "glm4" || name == "chatglm-bpe") return PreTokenizer::kGlm4;
  if (name == "qwen2") return PreTokenizer::kQwen2;
  return base::Error(base::ErrorCode::kUnsupported,
                     "pre-tokenizer '" + std::string(name) +
                         "' is not supported; known are smollm, gpt2, llama-bpe, glm4 and qwen2");
}

const char* name_of(PreTokenizer kind) {
  switch (kind) {
    case PreTokenizer::kGpt2:
      return "gpt2";
    case PreTokenizer::kSmolLm:
      return "smollm";
    case PreTokenizer::kLlamaBpe:
      return "llama-bpe";
    case PreTokenizer::kGlm4:
      return "glm4";
    case PreTokenizer::kQwen2:
      return "qwen2";
  }
  return "?";
}

std::vector<std::string_view> split_pieces(PreTokenizer kind, std::string_view text) {
  std::vector<std::string_view> pieces;
  if (kind != PreTokenizer::kSmolLm) {
    split_range(kind, text, &pieces);
    return pieces;
  }
  // A first pass takes every digit out as a piece of its own.
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (is_number(point.value)) {
      if (at > from) split_range(kind, text.substr(from, at - from), &pieces);
      pieces.push_back(text.substr(at, point.length));
      from = at + point.length;
    }
    at += point.length;
  }
  if (from < text.size()) split_range(kind, text.substr(from), &pieces);
  return pieces;
}

}  // namespace llm
