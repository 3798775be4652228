#include "db/functions/builtins.h"
#include "db/functions/oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace db {
namespace {

struct Outcome {
  bool ok = true;
  std::string text;  // the value with its type, or the error
};

std::string show(const Value& value) {
  static constexpr const char* kTypes[] = {"null ", "integer ", "real ", "text ", "blob "};
  return kTypes[static_cast<size_t>(value.type())] +
         (value.is_text() ? std::string(value.bytes()) : quote_value(value));
}

Outcome ours(const std::string& name, std::vector<Value> args) {
  const Function* function = builtin_functions().find(name, static_cast<int>(args.size()));
  if (function == nullptr) return {false, "no such function"};
  FunctionContext context(*function, nullptr);
  if (function->is_aggregate()) {
    function->step(context, args);
    function->final(context);
  } else {
    function->scalar(context, args);
  }
  if (context.error_code() != 0) return {false, context.error_message()};
  return {true, show(context.result)};
}

Outcome theirs(SqliteOracle& oracle, const std::string& name, const std::vector<Value>& args) {
  std::string sql = "SELECT " + name + "(";
  for (size_t i = 0; i < args.size(); ++i) sql += i == 0 ? "?" : ",?";
  Value value;
  std::string error;
  if (!oracle.evaluate(sql + ")", args, value, error)) return {false, error};
  return {true, show(value)};
}

using Pool = std::vector<Value>;

Pool numbers() {
  Pool pool;
  for (i64 i : {0L, 1L, -1L, 2L, 3L, 7L, -5L, 30L, 100L, 1000000L, 2440587L, 1700000000L, INT64_MAX,
                INT64_MIN}) {
    pool.push_back(Value::integer(i));
  }
  for (f64 r : {0.0, 0.5, -0.5, 1.5, 2.5, 2.345, 1e10, -1e10, 1e300, 1e-10, 123456789.123456789,
                0.1, 1e15, 1.0 / 3, 9223372036854775808.0, 2451545.25, HUGE_VAL, -HUGE_VAL}) {
    pool.push_back(Value::real(r));
  }
  return pool;
}

Pool texts() {
  Pool pool;
  for (const char* s : {"",
                        "a",
                        "abc",
                        "ABC",
                        "aBcabc",
                        " x ",
                        "12",
                        "-3.5",
                        "1e3",
                        "12abc",
                        "it's",
                        "%",
                        "_",
                        "a%",
                        "%b_",
                        "[a-c]*",
                        "[^a]?",
                        "*",
                        "h\xc3\xa9llo",
                        "\xc3\xa9",
                        "\xff\xfe",
                        "\xe2\x82\xac",
                        "b",
                        "414243",
                        "4142zz",
                        "x\\u0041",
                        "\"q\"",
                        "  ",
                        "bc",
                        "-",
                        "9223372036854775808",
                        "0x10"}) {
    pool.push_back(Value::text(s));
  }
  pool.push_back(Value::text(std::string_view("a\0b", 3)));
  return pool;
}

Pool everything() {
  Pool pool = numbers();
  for (Value& value : texts()) pool.push_back(value);
  pool.push_back(Value());
  pool.push_back(Value::blob("abc"));
  pool.push_back(Value::blob(std::string_view("\x00\xff\x01", 3)));
  pool.push_back(Value::blob(""));
  return pool;
}

// SQLite before 3.53 writes reals with 15 digits and differs in some corners of these functions.
bool changed_since(int version, const std::string& name, const std::vector<Value>& args) {
  if (version >= 3053000) return false;
  for (const char* changed :
       {"replace", "log", "log2", "log10", "iif", "strftime", "zeroblob", "unixepoch"}) {
    if (name == changed) return true;
  }
  for (const Value& arg : args) {
    char old_text[40];
    if (name.find("date") != std::string::npos && arg.is_text() && arg.bytes() == "2024-02-30") {
      return true;
    }
    // Debian's build: LIKE and GLOB do not match blobs. Old substr() cut positions to 32 bits.
    if (arg.is_blob() && (name == "like" || name == "glob")) return true;
    if (name == "substr" && arg.is_number() && std::fabs(arg.to_real()) > 1e9) return true;
    if (!arg.is_real()) continue;
    if (TextOf(arg).view() !=
        std::string_view(old_text, format_real(arg.raw_real(), old_text, 15))) {
      return true;
    }
  }
  return false;
}

// Compares every combination when there are few, else `rounds` random ones.
void compare(SqliteOracle& oracle, const std::string& name, const std::vector<Pool>& pools,
             int rounds) {
  static std::mt19937 random(7);
  size_t combinations = 1;
  for (const Pool& pool : pools) combinations *= pool.size();
  bool all = combinations <= static_cast<size_t>(rounds);
  int failures = 0;
  for (size_t round = 0; round < (all ? combinations : static_cast<size_t>(rounds)); ++round) {
    std::vector<Value> args;
    size_t rest = round;
    for (const Pool& pool : pools) {
      args.push_back(pool[all ? rest % pool.size() : random() % pool.size()]);
      rest /= pool.size();
    }
    if (changed_since(oracle.version(), name, args)) continue;
    Outcome expected = theirs(oracle, name, args);
    if (!expected.ok && expected.text.starts_with("no such function")) return;
    Outcome got = ours(name, args);
    if (got.ok == expected.ok && got.text == expected.text) continue;
    std::string call = name;
    for (const Value& arg : args) call += " | " + show(arg);
    ADD_FAILURE() << call << "\n  ours:   " << got.text << "\n  theirs: " << expected.text;
    if (++failures > 5) return;
  }
}

class Functions : public testing::Test {
 protected:
  void SetUp() override {
    if (!oracle.loaded()) GTEST_SKIP() << "no SQLite library to compare with";
  }
  // Since 3.43 SQLite formats and sums reals in other ways, and our target is the newest.
  bool modern() { return oracle.version() >= 3053000; }
  SqliteOracle oracle;
};

TEST_F(Functions, OfOneArgumentAgreeWithSqlite) {
  for (const char* name :
       {"abs",    "sign",    "typeof",   "length", "octet_length", "upper", "lower",
        "hex",    "unhex",   "unicode",  "char",   "trim",         "ltrim", "rtrim",
        "likely", "soundex", "zeroblob", "ceil",   "floor",        "trunc", "count",
        "min",    "max",     "concat",   "unistr", "unistr_quote"}) {
    if (std::string_view(name) == "zeroblob") {
      compare(oracle, name, {{Value::integer(3), Value::integer(-1), Value::text("2"), Value()}},
              100);
    } else {
      compare(oracle, name, {everything()}, 1000);
    }
  }
}

TEST_F(Functions, WithRealsAsTextAgreeWithNewSqlite) {
  if (!modern()) GTEST_SKIP() << "the oracle prints reals in the old way";
  for (const char* name : {"quote", "round", "sum", "total", "avg", "group_concat"})
    compare(oracle, name, {everything()}, 1000);
  compare(oracle, "round", {everything(), numbers()}, 3000);
  compare(oracle, "concat_ws", {texts(), everything(), everything()}, 3000);
}

TEST_F(Functions, OfTwoArgumentsAgreeWithSqlite) {
  Pool text = texts();
  text.push_back(Value());
  text.push_back(Value::blob("abc"));
  for (const char* name : {"instr", "trim", "ltrim", "rtrim", "like", "glob", "unhex", "nullif",
                           "ifnull", "coalesce"}) {
    compare(oracle, name, {text, text}, 3000);
  }
  compare(oracle, "substr", {text, numbers()}, 3000);
  compare(oracle, "min", {text, text}, 3000);
  for (const char* name : {"min", "max"}) compare(oracle, name, {everything(), everything()}, 6000);
}

TEST_F(Functions, OfThreeArgumentsAgreeWithSqlite) {
  Pool text = texts();
  text.push_back(Value());
  text.push_back(Value::blob("abc"));
  compare(oracle, "substr", {text, numbers(), numbers()}, 10000);
  compare(oracle, "replace", {text, text, text}, 10000);
  compare(oracle, "like",
          {text,
           text,
           {Value::text("a"), Value::text("%"), Value::text("ab"), Value(), Value::text("_")}},
          6000);
  compare(oracle, "iif", {everything(), text, text}, 3000);
}

TEST_F(Functions, OfMathAgreeWithSqlite) {
  for (const char* name :
       {"acos", "acosh", "asin",  "asinh", "atan",    "atanh", "cos",  "cosh", "degrees", "exp",
        "ln",   "log",   "log10", "log2",  "radians", "sin",   "sinh", "sqrt", "tan",     "tanh"}) {
    compare(oracle, name, {numbers()}, 100);
  }
  for (const char* name : {"atan2", "mod", "pow", "log"})
    compare(oracle, name, {numbers(), numbers()}, 2000);
}

TEST_F(Functions, PrintfAgreesWithNewSqlite) {
  if (!modern()) GTEST_SKIP() << "the oracle prints reals in the old way";
  std::mt19937 random(11);
  Pool pool = everything();
  int failures = 0;
  for (int round = 0; round < 30000 && failures < 8; ++round) {
    std::string pattern = "<%";
    static constexpr std::string_view kFlags = "-+ #!0,";
    for (unsigned i = random() % 3; i > 0; --i) pattern += kFlags[random() % kFlags.size()];
    if (random() % 2 == 0) pattern += std::to_string(random() % 15);
    if (random() % 2 == 0) pattern += "." + std::to_string(random() % 22);
    static constexpr std::string_view kTypes = "diuxXofeEgGscqQw%rpz";
    pattern += kTypes[random() % kTypes.size()];
    pattern += ">";
    std::vector<Value> args = {Value::text(pattern), pool[random() % pool.size()]};
    // Digits past the 17th of huge numbers are not exact in SQLite.
    if (args[1].is_real() && std::fabs(args[1].raw_real()) > 1e100) continue;
    Outcome expected = theirs(oracle, "printf", args);
    Outcome got = ours("printf", args);
    if (got.text == expected.text) continue;
    ++failures;
    ADD_FAILURE() << pattern << " | " << show(args[1]) << "\n  ours:   " << got.text
                  << "\n  theirs: " << expected.text;
  }
}

// SQLite 3.53's answers.
TEST_F(Functions, PrintfShortensSeventeenDigitsAndSignsNoZeroWithHash) {
  auto printed = [](const char* pattern, f64 value) {
    return ours("printf", {Value::text(pattern), Value::real(value)}).text;
  };
  EXPECT_EQ(printed("%!#9.17f", 0.1), "text       0.1");
  EXPECT_EQ(printed("%!.20f", -0.000123), "text -0.000123");
  EXPECT_EQ(printed("%#.3f", -0.0001), "text 0.000");
  EXPECT_EQ(printed("%.3f", -0.0001), "text -0.000");
  EXPECT_EQ(printed("%#.4f", -0.0001), "text -0.0001");
}

TEST_F(Functions, OfDatesAgreeWithSqlite) {
  Pool times;
  for (const char* s : {"2024-02-29", "2023-12-31 23:59:59.999", "2000-01-01T00:00", "12:30:15.5",
                        "2024-01-31 10:20:30+02:30", "-0044-03-15", "9999-12-31", "0000-01-01",
                        "2024-02-30", "2024-13-01", "2460000.5", "junk", "", "2024-06-15 12:00Z",
                        "2024-06-15 24:00:00", "-4713-11-24 12:00:00", "1969-12-31 23:59:59"}) {
    times.push_back(Value::text(s));
  }
  for (f64 r : {2460000.5, 0.0, 1700000000.0, 5373484.4, -1.0, 1700000000.25})
    times.push_back(Value::real(r));
  times.push_back(Value::integer(1092941466));
  times.push_back(Value());
  Pool modifiers;
  for (const char* s :
       {"+1 day",        "-1 month",  "+1 year",     "start of month",    "start of year",
        "start of day",  "weekday 0", "weekday 6",   "unixepoch",         "julianday",
        "auto",          "+5 hours",  "-90 minutes", "+1.5 seconds",      "+1.5 months",
        "+11:30",        "-01:02:03", "1 days",      "+13 months",        "subsec",
        "floor",         "ceiling",   "+0001-02-03", "-0001-02-03 04:05", "bogus",
        "start of week", "weekday 7", "+10 y",       "localtime",         "utc"}) {
    modifiers.push_back(Value::text(s));
  }
  if (!modern()) {
    std::erase_if(modifiers, [](const Value& v) {
      return v.bytes() == "floor" || v.bytes() == "ceiling" || v.bytes() == "subsec" ||
             v.bytes()[0] == '-' || v.bytes().starts_with("+0") || v.bytes() == "utc" ||
             v.bytes() == "localtime";
    });
  }
  for (const char* name : {"date", "time", "datetime", "julianday", "unixepoch"}) {
    compare(oracle, name, {times}, 1000);
    compare(oracle, name, {times, modifiers}, 2000);
    compare(oracle, name, {times, modifiers, modifiers}, 6000);
  }
  Pool formats;
  for (const char* s : {"%d %e %f %H %I %j %J", "%m %M %p %s %S %w %Y %%", "%W %k %l",
                        "%U %V %G %g %u %P %R %T %F", "%", "%q", ""}) {
    formats.push_back(Value::text(s));
  }
  if (!modern()) formats.erase(formats.begin() + 2, formats.begin() + 4);
  compare(oracle, "strftime", {formats, times, modifiers}, 6000);
  compare(oracle, "timediff", {times, times}, 2000);
}

// Texts longer than the eight bytes that are looked at together.
TEST_F(Functions, OfLongTextsAgreeWithSqlite) {
  Pool text;
  for (const char* s :
       {"@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\x7f",
        "\xc3\x84hnliches \xc3\xbc"
        "ber \xe2\x82\xac vierzehn, so lang",
        "1234567", "12345678", "qqqqqqqQQQ", "abcdefghabcdefgh\xff\x80\x80 abcdefgh"}) {
    text.push_back(Value::text(s));
  }
  for (size_t at : {3u, 8u, 11u, 15u}) {
    std::string nul = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    nul[at] = '\0';
    text.push_back(Value::text(nul));
  }
  for (const char* name : {"length", "upper", "lower", "octet_length", "unicode"})
    compare(oracle, name, {text}, 1000);
  Pool places;
  for (i64 at : {-70, -20, -9, -1, 0, 1, 5, 8, 9, 12, 30}) places.push_back(Value::integer(at));
  compare(oracle, "substr", {text, places}, 1000);
  compare(oracle, "substr", {text, places, places}, 2000);
  Pool patterns = text;
  for (const char* s : {"%z{|%", "%r S%", "%MNOp%", "%vier%", "%\xe2\x82\xac%", "%q", "%7%", "%8%",
                        "%X%Z", "%_z%", "*Q", "*[x-z]*", "%h\xff%", "%l%m%n%"}) {
    patterns.push_back(Value::text(s));
  }
  for (const char* name : {"like", "glob", "instr"}) compare(oracle, name, {patterns, text}, 1000);
}

// Patterns of the form %literal%, which are looked for in another way.
TEST_F(Functions, LiteralsBetweenWildcardsAgreeWithSqlite) {
  std::mt19937 random(5);
  const std::string letters = "abAB@`!1\xc3";
  auto text = [&](size_t most) {
    std::string out(random() % (most + 1), ' ');
    for (char& c : out) c = random() % 40 == 0 ? '\0' : letters[random() % letters.size()];
    return out;
  };
  Pool patterns, glob_patterns, texts;
  for (int i = 0; i < 120; ++i) {
    const std::string literal = text(4);
    patterns.push_back(Value::text("%" + literal + "%"));
    glob_patterns.push_back(Value::text("*" + literal + "*"));
    texts.push_back(Value::text(text(40)));
  }
  compare(oracle, "like", {patterns, texts}, 20000);
  compare(oracle, "glob", {glob_patterns, texts}, 20000);
}

}  // namespace
}  // namespace db
