#include "db/sql/lexer.h"

#include <array>

namespace db::sql {
namespace {

constexpr std::array<std::string_view, kKeywordCount> kKeywords = {"ABORT",
                                                                   "ACTION",
                                                                   "ADD",
                                                                   "AFTER",
                                                                   "ALL",
                                                                   "ALTER",
                                                                   "ALWAYS",
                                                                   "ANALYZE",
                                                                   "AND",
                                                                   "AS",
                                                                   "ASC",
                                                                   "ATTACH",
                                                                   "AUTOINCREMENT",
                                                                   "BEFORE",
                                                                   "BEGIN",
                                                                   "BETWEEN",
                                                                   "BY",
                                                                   "CASCADE",
                                                                   "CASE",
                                                                   "CAST",
                                                                   "CHECK",
                                                                   "COLLATE",
                                                                   "COLUMN",
                                                                   "COMMIT",
                                                                   "CONFLICT",
                                                                   "CONSTRAINT",
                                                                   "CREATE",
                                                                   "CROSS",
                                                                   "CURRENT",
                                                                   "CURRENT_DATE",
                                                                   "CURRENT_TIME",
                                                                   "CURRENT_TIMESTAMP",
                                                                   "DATABASE",
                                                                   "DEFAULT",
                                                                   "DEFERRABLE",
                                                                   "DEFERRED",
                                                                   "DELETE",
                                                                   "DESC",
                                                                   "DETACH",
                                                                   "DISTINCT",
                                                                   "DO",
                                                                   "DROP",
                                                                   "EACH",
                                                                   "ELSE",
                                                                   "END",
                                                                   "ESCAPE",
                                                                   "EXCEPT",
                                                                   "EXCLUDE",
                                                                   "EXCLUSIVE",
                                                                   "EXISTS",
                                                                   "EXPLAIN",
                                                                   "FAIL",
                                                                   "FILTER",
                                                                   "FIRST",
                                                                   "FOLLOWING",
                                                                   "FOR",
                                                                   "FOREIGN",
                                                                   "FROM",
                                                                   "FULL",
                                                                   "GENERATED",
                                                                   "GLOB",
                                                                   "GROUP",
                                                                   "GROUPS",
                                                                   "HAVING",
                                                                   "IF",
                                                                   "IGNORE",
                                                                   "IMMEDIATE",
                                                                   "IN",
                                                                   "INDEX",
                                                                   "INDEXED",
                                                                   "INITIALLY",
                                                                   "INNER",
                                                                   "INSERT",
                                                                   "INSTEAD",
                                                                   "INTERSECT",
                                                                   "INTO",
                                                                   "IS",
                                                                   "ISNULL",
                                                                   "JOIN",
                                                                   "KEY",
                                                                   "LAST",
                                                                   "LEFT",
                                                                   "LIKE",
                                                                   "LIMIT",
                                                                   "MATCH",
                                                                   "MATERIALIZED",
                                                                   "NATURAL",
                                                                   "NO",
                                                                   "NOT",
                                                                   "NOTHING",
                                                                   "NOTNULL",
                                                                   "NULL",
                                                                   "NULLS",
                                                                   "OF",
                                                                   "OFFSET",
                                                                   "ON",
                                                                   "OR",
                                                                   "ORDER",
                                                                   "OTHERS",
                                                                   "OUTER",
                                                                   "OVER",
                                                                   "PARTITION",
                                                                   "PLAN",
                                                                   "PRAGMA",
                                                                   "PRECEDING",
                                                                   "PRIMARY",
                                                                   "QUERY",
                                                                   "RAISE",
                                                                   "RANGE",
                                                                   "RECURSIVE",
                                                                   "REFERENCES",
                                                                   "REGEXP",
                                                                   "REINDEX",
                                                                   "RELEASE",
                                                                   "RENAME",
                                                                   "REPLACE",
                                                                   "RESTRICT",
                                                                   "RETURNING",
                                                                   "RIGHT",
                                                                   "ROLLBACK",
                                                                   "ROW",
                                                                   "ROWS",
                                                                   "SAVEPOINT",
                                                                   "SELECT",
                                                                   "SET",
                                                                   "TABLE",
                                                                   "TEMP",
                                                                   "TEMPORARY",
                                                                   "THEN",
                                                                   "TIES",
                                                                   "TO",
                                                                   "TRANSACTION",
                                                                   "TRIGGER",
                                                                   "UNBOUNDED",
                                                                   "UNION",
                                                                   "UNIQUE",
                                                                   "UPDATE",
                                                                   "USING",
                                                                   "VACUUM",
                                                                   "VALUES",
                                                                   "VIEW",
                                                                   "VIRTUAL",
                                                                   "WHEN",
                                                                   "WHERE",
                                                                   "WINDOW",
                                                                   "WITH",
                                                                   "WITHIN",
                                                                   "WITHOUT"};

constexpr u8 kSpace = 1;
constexpr u8 kDigit = 2;
constexpr u8 kHex = 4;
constexpr u8 kIdChar = 8;

constexpr std::array<u8, 256> kClass = [] {
  std::array<u8, 256> table{};
  for (int c : {' ', '\t', '\n', '\f', '\r'}) table[static_cast<size_t>(c)] = kSpace;
  for (int c = '0'; c <= '9'; ++c) table[static_cast<size_t>(c)] = kDigit | kHex | kIdChar;
  for (int c = 'a'; c <= 'z'; ++c) {
    u8 flags = c <= 'f' ? (kHex | kIdChar) : kIdChar;
    table[static_cast<size_t>(c)] = flags;
    table[static_cast<size_t>(c - 32)] = flags;
  }
  table['_'] = table['$'] = kIdChar;
  for (size_t c = 0x80; c < 256; ++c) table[c] = kIdChar;
  return table;
}();

constexpr bool has(u8 c, u8 flag) {
  return (kClass[c] & flag) != 0;
}
constexpr u32 kBuckets = 1024;
constexpr size_t kKeywordBytesMax = 17;

// Over lower-case letters; length, first two and last decide nearly everything.
constexpr u32 hash_of(u8 first, u8 second, u8 last, size_t length) {
  return ((first & 31u) * 37u + (second & 31u) * 11u + (last & 31u) * 101u +
          static_cast<u32>(length) * 53u) %
         kBuckets;
}

// Open addressing: index + 1 of the keyword, 0 for an empty slot.
constexpr std::array<u8, kBuckets> kSlots = [] {
  std::array<u8, kBuckets> slots{};
  for (size_t i = 0; i < kKeywords.size(); ++i) {
    std::string_view word = kKeywords[i];
    u32 at = hash_of(static_cast<u8>(word[0]), static_cast<u8>(word[1]),
                     static_cast<u8>(word.back()), word.size());
    while (slots[at] != 0) at = (at + 1) % kBuckets;
    slots[at] = static_cast<u8>(i + 1);
  }
  return slots;
}();

class Scanner {
 public:
  Scanner(std::string_view sql, u32 at) : sql_(sql), at_(at) {}

  Token next() {
    skip_blanks();
    start_ = at_;
    u8 c = byte(0);
    if (at_ >= sql_.size() || c == 0) return {T::kEof, false, at_, at_};
    if (c == 'x' || c == 'X') {
      if (byte(1) == '\'') return blob();
    }
    if (has(c, kDigit)) return number();
    if (has(c, kIdChar) && c != '$') return word();
    return punctuation(c);
  }

 private:
  u8 byte(u32 ahead) const {
    return at_ + ahead < sql_.size() ? static_cast<u8>(sql_[at_ + ahead]) : u8{0};
  }
  Token take(T kind, u32 length) { return {kind, false, start_, start_ + length}; }

  // Blanks, comments and a byte order mark.
  void skip_blanks() {
    for (;;) {
      u8 c = byte(0);
      if (has(c, kSpace)) {
        ++at_;
      } else if (c == '-' && byte(1) == '-') {
        while (at_ < sql_.size() && byte(0) != '\n' && byte(0) != 0) ++at_;
      } else if (c == '/' && byte(1) == '*' && byte(2) != 0) {
        at_ += 3;
        while (byte(0) != 0 && !(sql_[at_ - 1] == '*' && byte(0) == '/')) ++at_;
        if (byte(0) != 0) ++at_;
      } else if (c == 0xef && byte(1) == 0xbb && byte(2) == 0xbf) {
        at_ += 3;
      } else {
        return;
      }
    }
  }

  Token word() {
    u32 end = at_ + 1;
    while (end < sql_.size() && has(static_cast<u8>(sql_[end]), kIdChar)) ++end;
    return {keyword_of(sql_.substr(at_, end - at_)), false, at_, end};
  }

  Token blob() {
    u32 n = 2;
    while (has(byte(n), kHex)) ++n;
    if (byte(n) == '\'' && n % 2 == 0) return take(T::kBlob, n + 1);
    while (byte(n) != 0 && byte(n) != '\'') ++n;
    if (byte(n) != 0) ++n;
    return take(T::kIllegal, n);
  }

  u32 digits(u32 n, u8 flag, bool& separators) const {
    for (;; ++n) {
      if (has(byte(n), flag)) continue;
      if (byte(n) != '_') return n;
      separators = true;
    }
  }

  Token number() {
    T kind = T::kInteger;
    bool separators = false;
    u32 n = 0;
    if (byte(0) == '0' && (byte(1) | 0x20) == 'x' && has(byte(2), kHex)) {
      n = digits(3, kHex, separators);
    } else {
      n = byte(0) == '.' ? 0 : digits(0, kDigit, separators);
      if (byte(n) == '.') {
        kind = T::kFloat;
        n = digits(n + 1, kDigit, separators);
      }
      u32 sign = byte(n + 1) == '+' || byte(n + 1) == '-' ? 1 : 0;
      if ((byte(n) | 0x20) == 'e' && has(byte(n + 1 + sign), kDigit)) {
        kind = T::kFloat;
        n = digits(n + 2 + sign, kDigit, separators);
      }
    }
    if (separators && !separators_between_digits(n)) kind = T::kIllegal;
    while (has(byte(n), kIdChar)) {
      kind = T::kIllegal;
      ++n;
    }
    Token token = take(kind, n);
    token.separators = separators;
    return token;
  }

  bool separators_between_digits(u32 n) const {
    for (u32 i = 0; i < n; ++i) {
      if (byte(i) == '_' && (i == 0 || !has(byte(i - 1), kHex) || !has(byte(i + 1), kHex))) {
        return false;
      }
    }
    return true;
  }

  Token quoted(u8 quote, T kind) {
    for (u32 n = 1; byte(n) != 0; ++n) {
      if (byte(n) != quote) continue;
      if (byte(n + 1) != quote) return take(kind, n + 1);
      ++n;
    }
    return rest();
  }

  // Everything to the end of the text, as SQLite quotes an unterminated string.
  Token rest() {
    u32 n = 0;
    while (byte(n) != 0) ++n;
    return take(T::kIllegal, n);
  }

  Token bracketed() {
    for (u32 n = 1; byte(n) != 0; ++n) {
      if (byte(n) == ']') return take(T::kId, n + 1);
    }
    return rest();
  }

  // :a @a $a #1, with Tcl's a::b and a(index).
  Token variable() {
    u32 letters = 0;
    u32 n = 1;
    for (; byte(n) != 0; ++n) {
      if (has(byte(n), kIdChar)) {
        ++letters;
      } else if (byte(n) == '(' && letters > 0) {
        do {
          ++n;
        } while (byte(n) != 0 && !has(byte(n), kSpace) && byte(n) != ')');
        if (byte(n) != ')') return take(T::kIllegal, n);
        ++n;
        break;
      } else if (byte(n) == ':' && byte(n + 1) == ':') {
        ++n;
      } else {
        break;
      }
    }
    return take(letters == 0 ? T::kIllegal : T::kVariable, n);
  }

  Token question_mark() {
    u32 n = 1;
    while (has(byte(n), kDigit)) ++n;
    return take(T::kVariable, n);
  }

  Token punctuation(u8 c) {  // tidy: long-function, one arm a token
    switch (c) {
      case ';':
        return take(T::kSemi, 1);
      case '(':
        return take(T::kLp, 1);
      case ')':
        return take(T::kRp, 1);
      case ',':
        return take(T::kComma, 1);
      case '+':
        return take(T::kPlus, 1);
      case '*':
        return take(T::kStar, 1);
      case '/':
        return take(T::kSlash, 1);
      case '%':
        return take(T::kPercent, 1);
      case '&':
        return take(T::kBitAnd, 1);
      case '~':
        return take(T::kBitNot, 1);
      case '?':
        return question_mark();
      case '\'':
        return quoted('\'', T::kString);
      case '"':
        return quoted('"', T::kId);
      case '`':
        return quoted('`', T::kId);
      case '[':
        return bracketed();
      case '$':
      case '@':
      case ':':
      case '#':
        return variable();
      case '.':
        return has(byte(1), kDigit) ? number() : take(T::kDot, 1);
      case '=':
        return take(T::kEq, byte(1) == '=' ? 2 : 1);
      case '!':
        return byte(1) == '=' ? take(T::kNe, 2) : take(T::kIllegal, 1);
      case '|':
        return byte(1) == '|' ? take(T::kConcat, 2) : take(T::kBitOr, 1);
      case '-':
        if (byte(1) != '>') return take(T::kMinus, 1);
        return byte(2) == '>' ? take(T::kDoubleArrow, 3) : take(T::kArrow, 2);
      case '<':
        if (byte(1) == '=') return take(T::kLe, 2);
        if (byte(1) == '>') return take(T::kNe, 2);
        return byte(1) == '<' ? take(T::kShiftLeft, 2) : take(T::kLt, 1);
      case '>':
        if (byte(1) == '=') return take(T::kGe, 2);
        return byte(1) == '>' ? take(T::kShiftRight, 2) : take(T::kGt, 1);
      default:
        return take(T::kIllegal, 1);
    }
  }

  std::string_view sql_;
  u32 at_;
  u32 start_ = 0;
};

constexpr std::array<bool, static_cast<size_t>(T::kPoison) + 1> kFallback = [] {
  std::array<bool, static_cast<size_t>(T::kPoison) + 1> table{};
  for (T kind : {T::kAbort,       T::kAction,      T::kAfter,
                 T::kAlways,      T::kAnalyze,     T::kAsc,
                 T::kAttach,      T::kBefore,      T::kBegin,
                 T::kBy,          T::kCascade,     T::kCast,
                 T::kColumn,      T::kConflict,    T::kCurrent,
                 T::kCurrentDate, T::kCurrentTime, T::kCurrentTimestamp,
                 T::kDatabase,    T::kDeferred,    T::kDesc,
                 T::kDetach,      T::kDo,          T::kEach,
                 T::kEndKw,       T::kExclude,     T::kExclusive,
                 T::kExplain,     T::kFail,        T::kFirst,
                 T::kFollowing,   T::kFor,         T::kGenerated,
                 T::kGlob,        T::kGroups,      T::kIf,
                 T::kIgnore,      T::kImmediate,   T::kInitially,
                 T::kInstead,     T::kKey,         T::kLast,
                 T::kLike,        T::kMatch,       T::kMaterialized,
                 T::kNo,          T::kNulls,       T::kOf,
                 T::kOffset,      T::kOthers,      T::kPartition,
                 T::kPlan,        T::kPragma,      T::kPreceding,
                 T::kQuery,       T::kRaise,       T::kRange,
                 T::kRecursive,   T::kRegexp,      T::kReindex,
                 T::kRelease,     T::kRename,      T::kReplace,
                 T::kRestrict,    T::kRollback,    T::kRow,
                 T::kRows,        T::kSavepoint,   T::kTemp,
                 T::kTemporary,   T::kTies,        T::kTrigger,
                 T::kUnbounded,   T::kVacuum,      T::kView,
                 T::kVirtual,     T::kWith,        T::kWithin,
                 T::kWithout}) {
    table[static_cast<size_t>(kind)] = true;
  }
  return table;
}();

}  // namespace

Token lex(std::string_view sql, u32 at) {
  return Scanner(sql, at).next();
}

bool is_id_char(u8 c) {
  return has(c, kIdChar);
}

bool falls_back_to_id(T kind) {
  return kFallback[static_cast<size_t>(kind)];
}

std::string_view keyword_name(int index) {
  return kKeywords[static_cast<size_t>(index)];
}

T keyword_of(std::string_view word) {
  if (word.size() < 2 || word.size() > kKeywordBytesMax) return T::kId;
  u32 at = hash_of(static_cast<u8>(word[0]), static_cast<u8>(word[1]), static_cast<u8>(word.back()),
                   word.size());
  for (; kSlots[at] != 0; at = (at + 1) % kBuckets) {
    std::string_view keyword = kKeywords[kSlots[at] - 1u];
    if (keyword.size() != word.size()) continue;
    size_t i = 0;
    while (i < word.size()) {
      u8 c = static_cast<u8>(word[i]);
      if (c >= 'a' && c <= 'z') c = static_cast<u8>(c - 32);
      if (c != static_cast<u8>(keyword[i])) break;
      ++i;
    }
    if (i == word.size()) return static_cast<T>(kSlots[at] - 1);
  }
  return T::kId;
}

}  // namespace db::sql
