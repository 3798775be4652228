#include "db/functions/like.h"

#include "db/functions/builtins.h"

#include <bit>
#include <cstring>

namespace db {
namespace {

struct Wildcards {
  u32 many;
  u32 one;
  u32 set;     // '[' for GLOB, 0 for LIKE
  u32 escape;  // 0: none
  bool fold;
};

// Moves behind the next `low` or `high`; false when a NUL or the end comes first.
bool next_of(std::string_view text, char low, char high, size_t& at) {
  constexpr u64 kOnes = 0x0101010101010101;
  constexpr u64 kTops = 0x80 * kOnes;
  const u64 lows = static_cast<u8>(low) * kOnes;
  const u64 highs = static_cast<u8>(high) * kOnes;
  // The lowest top bit set is that of the first byte that is zero.
  auto zeros = [](u64 word) { return (word - kOnes) & ~word & kTops; };
  for (; at + 8 <= text.size(); at += 8) {
    u64 word;
    std::memcpy(&word, text.data() + at, sizeof word);
    const u64 hits = zeros(word ^ lows) | zeros(word ^ highs) | zeros(word);
    if (hits == 0) continue;
    at += static_cast<size_t>(std::countr_zero(hits)) / 8;
    return text[at++] != 0;
  }
  while (at < text.size()) {
    const char found = text[at++];
    if (found == 0) return false;
    if (found == low || found == high) return true;
  }
  return false;
}

// What a pattern of the form %literal% looks for: two characters or more, all of them plain ASCII.
std::string_view literal_between(std::string_view pattern, const Wildcards& w) {
  if (pattern.size() < 4 || w.escape != 0 || static_cast<u8>(pattern.front()) != w.many ||
      static_cast<u8>(pattern.back()) != w.many)
    return {};
  const std::string_view literal = pattern.substr(1, pattern.size() - 2);
  for (char one : literal) {
    const u8 c = static_cast<u8>(one);
    if (c == 0 || c >= 0x80 || c == w.many || c == w.one || c == w.set) return {};
  }
  return literal;
}

// Is the literal somewhere in the text? Looks for its first two characters, eight places at a time;
// a letter's case is one bit, which is set on both sides.
class LiteralSearch {
 public:
  LiteralSearch(std::string_view literal, bool fold) : literal_(literal), fold_(fold) {
    for (size_t i = 0; i < 2; ++i) {
      const u8 c = static_cast<u8>(literal[i]);
      const bool letter = fold && (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
      cases_[i] = letter ? 0x20 * kOnes : 0;
      wanted_[i] = (letter ? c | 0x20u : c) * kOnes;
    }
  }

  bool in(std::string_view text) const {
    size_t at = 0;
    for (; at + 9 <= text.size(); at += 8) {
      if (in_block(text, at, text.data() + at)) return true;
    }
    char rest[9] = {};  // zeros are in no literal
    std::memcpy(rest, text.data() + at, text.size() - at);
    return in_block(text, at, rest);
  }

 private:
  static constexpr u64 kOnes = 0x0101010101010101;

  // `block`: nine bytes, the text's from `at` on.
  bool in_block(std::string_view text, size_t at, const char* block) const {
    u64 first;
    u64 second;
    std::memcpy(&first, block, sizeof first);
    std::memcpy(&second, block + 1, sizeof second);
    const u64 misses = ((first | cases_[0]) ^ wanted_[0]) | ((second | cases_[1]) ^ wanted_[1]);
    // The top bit of each byte that is zero; of some above such a byte, too.
    u64 hits = (misses - kOnes) & ~misses & 0x80 * kOnes;
    for (; hits != 0; hits &= hits - 1) {
      if (is_at(text, at + static_cast<size_t>(std::countr_zero(hits)) / 8)) return true;
    }
    return false;
  }
  bool is_at(std::string_view text, size_t at) const {
    if (at + literal_.size() > text.size()) return false;
    const std::string_view found = text.substr(at, literal_.size());
    return fold_ ? equal_nocase(found, literal_) : found == literal_;
  }

  std::string_view literal_;
  bool fold_;
  u64 cases_[2];
  u64 wanted_[2];
};

enum class Match { kYes, kNo, kNever };  // kNever: no later start can match either

u32 fold(u32 c) {
  return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

u32 read(std::string_view text, size_t& at) {
  if (at >= text.size()) return 0;
  u8 c = static_cast<u8>(text[at]);
  if (c >= 0x80) return decode_utf8(text, at);
  ++at;
  return c;
}

// [abc], [^a-z], []x]; `at` is past the '['. False also for an unterminated set.
bool set_contains(std::string_view pattern, size_t& at, u32 c) {
  bool invert = false;
  bool seen = false;
  u32 previous = 0;
  u32 p = read(pattern, at);
  if (p == '^') {
    invert = true;
    p = read(pattern, at);
  }
  if (p == ']') {
    if (c == ']') seen = true;
    p = read(pattern, at);
  }
  while (p != 0 && p != ']') {
    if (p == '-' && at < pattern.size() && pattern[at] != ']' && pattern[at] != 0 && previous > 0) {
      u32 high = read(pattern, at);
      if (c >= previous && c <= high) seen = true;
      previous = 0;
    } else {
      if (c == p) seen = true;
      previous = p;
    }
    p = read(pattern, at);
  }
  return p != 0 && seen != invert;
}

Match match(std::string_view pattern, size_t p, std::string_view text, size_t t,
            const Wildcards& w);

// After a "many" wildcard: tries the rest of the pattern at every later character.
Match match_tail(std::string_view pattern, size_t p, std::string_view text, size_t t,
                 const Wildcards& w) {
  u32 c = 0;
  size_t before = p;
  while ((c = read(pattern, p)) == w.many || (c == w.one && w.one != 0)) {
    if (c == w.one && read(text, t) == 0) return Match::kNever;
    before = p;
  }
  if (c == 0) return Match::kYes;
  if (c == w.escape && w.escape != 0) {
    c = read(pattern, p);
    if (c == 0) return Match::kNever;
  } else if (c == w.set && w.set != 0) {
    for (; t < text.size(); skip_utf8(text, t)) {
      Match result = match(pattern, before, text, t, w);
      if (result != Match::kNo) return result;
    }
    return Match::kNever;
  }
  if (c < 0x80) {
    // A byte below 0x80 is a character, and never part of one: no need to decode the others.
    const char low = static_cast<char>(w.fold ? fold(c) : c);
    const bool letter = w.fold && low >= 'a' && low <= 'z';
    const char high = letter ? static_cast<char>(low - 32) : static_cast<char>(c);
    while (next_of(text, low, high, t)) {
      Match result = match(pattern, p, text, t, w);
      if (result != Match::kNo) return result;
    }
    return Match::kNever;
  }
  while (t < text.size()) {
    u32 found = read(text, t);
    if (found == 0) break;
    if (found != c) continue;
    Match result = match(pattern, p, text, t, w);
    if (result != Match::kNo) return result;
  }
  return Match::kNever;
}

Match match(std::string_view pattern, size_t p, std::string_view text, size_t t,
            const Wildcards& w) {
  u32 c = 0;
  while ((c = read(pattern, p)) != 0) {
    if (c == w.many) return match_tail(pattern, p, text, t, w);
    bool literal = false;
    if (c == w.escape && w.escape != 0) {
      c = read(pattern, p);
      if (c == 0) return Match::kNo;
      literal = true;
    } else if (c == w.set && w.set != 0) {
      u32 found = read(text, t);
      if (found == 0 || !set_contains(pattern, p, found)) return Match::kNo;
      continue;
    }
    u32 found = read(text, t);
    if (c == found) continue;
    if (w.fold && c < 0x80 && found < 0x80 && fold(c) == fold(found)) continue;
    if (c == w.one && !literal && found != 0) continue;
    return Match::kNo;
  }
  return read(text, t) == 0 ? Match::kYes : Match::kNo;
}

bool matches(std::string_view pattern, std::string_view text, const Wildcards& w) {
  const std::string_view literal = literal_between(pattern, w);
  if (literal.empty()) return match(pattern, 0, text, 0, w) == Match::kYes;
  return LiteralSearch(literal, w.fold).in(text.substr(0, text.find('\0')));
}

constexpr size_t kPatternBytesMax = 50000;

// like(pattern, text[, escape]); user_data not null: case sensitive.
void like_call(FunctionContext& context, std::span<Value> args) {
  TextOf pattern(args[0]);
  TextOf text(args[1]);
  if (pattern.view().size() > kPatternBytesMax) {
    return context.fail("LIKE or GLOB pattern too complex");
  }
  u32 escape = 0;
  if (args.size() == 3) {
    if (args[2].is_null()) return;
    TextOf character(args[2]);
    std::string_view one = character;
    size_t end = 0;
    if (!one.empty()) escape = decode_utf8(one, end);
    if (one.empty() || end != one.size()) {
      return context.fail("ESCAPE expression must be a single character");
    }
  }
  if (args[0].is_null() || args[1].is_null()) return;
  bool sensitive = context.user_data() != nullptr;
  context.result.set_integer(like_match(pattern, text, escape, sensitive) ? 1 : 0);
}

void glob_call(FunctionContext& context, std::span<Value> args) {
  TextOf pattern(args[0]);
  TextOf text(args[1]);
  if (pattern.view().size() > kPatternBytesMax) {
    return context.fail("LIKE or GLOB pattern too complex");
  }
  if (args[0].is_null() || args[1].is_null()) return;
  context.result.set_integer(glob_match(pattern, text) ? 1 : 0);
}

}  // namespace

bool like_match(std::string_view pattern, std::string_view text, u32 escape, bool case_sensitive) {
  Wildcards w{'%', '_', 0, escape, !case_sensitive};
  if (escape == '%') w.many = 0xffffffff;
  if (escape == '_') w.one = 0;
  return matches(pattern, text, w);
}

bool glob_match(std::string_view pattern, std::string_view text) {
  return matches(pattern, text, {'*', '?', '[', 0, false});
}

void add_like_functions(FunctionRegistry& registry) {
  u32 flags = kPure | function_flag::kLike;
  add_scalar(registry, "like", 2, like_call, flags);
  add_scalar(registry, "like", 3, like_call, flags);
  add_scalar(registry, "glob", 2, glob_call, flags);
}

}  // namespace db
