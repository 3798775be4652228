#include "db/functions/json.h"

#include "db/functions/builtins.h"
#include "db/functions/json_walk.h"
#include "db/functions/oracle.h"

#include <gtest/gtest.h>

#include <random>

namespace db {
namespace {

const std::vector<const char*>& documents() {
  static const std::vector<const char*> kDocuments = {
      "{}",
      "[]",
      "5",
      "-0",
      "1.5e3",
      "\"text\"",
      "null",
      "true",
      "false",
      " [1 , 2,3 ] ",
      "[1,[2,[3,{\"a\":4}]]]",
      "{\"a\":1,\"b\":[1,2,{\"c\":\"x\"}],\"d\":{\"e\":null,\"f\":true}}",
      "{\"a\":{\"b\":{\"c\":[10,20,30]}}}",
      "{\"a b\":1,\"c.d\":2,\"e\\\"f\":3,\"g\\u0041\":4}",
      "[\"x\\ny\",\"\\u00e9\",\"\\ud83d\\ude00\",\"\\/\"]",
      "{\"a\":1,\"a\":2}",
      "[99999999999999999999,1e400,-1e400]",
      "",
      "[1",
      "{\"a\"}",
      "[1,2,]",
      "{a:1}",
      "01",
      "1.",
      "tru",
      "[1 2]",
      "\"open",
      "{\"a\":1,,}",
      "nul",
      "[[[[[]]]]]",
      "{\"\":1}",
      "\"\\x\"",
      "[1e]",
      "-",
      "+5"};
  return kDocuments;
}

// Only since 3.42 does SQLite read these.
const std::vector<const char*>& json5_documents() {
  static const std::vector<const char*> kDocuments = {
      "{a:1,$b:'x',_c:\"y\"}",
      "[+5,.5,5.,-.5,0x1F,-0x1f,0xFFFFFFFFFFFFFFFFFF]",
      "[Infinity,-Infinity,NaN,inf]",
      "/* c */ [1 // x\n,2]",
      "{\"a\":1,}",
      "'it\\'s \"q\"'",
      "\"\\x41\\v\\0\"",
      "\"line\\\nnext\"",
      "[1,]",
      "\"tab\tin\""};
  return kDocuments;
}

std::string show(const Value& value) {
  return std::to_string(static_cast<int>(value.type())) + " " +
         (value.is_text() ? std::string(value.bytes()) : quote_value(value));
}

class JsonAgainstSqlite : public testing::Test {
 protected:
  void SetUp() override {
    if (!oracle_.loaded()) GTEST_SKIP() << "no SQLite library to compare with";
    modern_ = oracle_.version() >= 3053000;
  }

  void expect_same(const std::string& name, std::vector<Value> args,
                   const std::string& operator_sql = "") {
    std::string sql = "SELECT " + name + "(";
    for (size_t i = 0; i < args.size(); ++i) sql += i == 0 ? "?" : ",?";
    sql = operator_sql.empty() ? sql + ")" : operator_sql;
    Value value;
    std::string error;
    bool ok = oracle_.evaluate(sql, args, value, error);
    if (!ok && error.starts_with("no such function")) return;
    const Function* function = builtin_functions().find(name, static_cast<int>(args.size()));
    ASSERT_NE(function, nullptr) << name;
    FunctionContext context(*function, nullptr);
    function->scalar(context, args);
    std::string expected = ok ? show(value) : "error " + error;
    std::string got =
        context.error_code() == 0 ? show(context.result) : "error " + context.error_message();
    ++compared_;
    if (got == expected) return;
    bool refused = !ok || context.error_code() != 0;
    if (!modern_ && (refused || !args[0].is_text() || changed(args))) return;
    std::string call = name;
    for (const Value& arg : args) call += " | " + show(arg);
    ADD_FAILURE() << call << "\n  ours:   " << got << "\n  theirs: " << expected;
  }

  // Before 3.43 an escaped key did not match its plain spelling, indexes could not be negative, and
  // a path into nothing could be malformed.
  static bool changed(const std::vector<Value>& args) {
    bool escape = args[0].bytes().find("\\u") != std::string_view::npos;
    return escape || (args.size() == 2 && args[1].is_integer() && args[1].raw_integer() < 0);
  }

  std::vector<Value> inputs() const {
    std::vector<Value> all;
    for (const char* text : documents()) all.push_back(Value::text(text));
    if (modern_) {
      for (const char* text : json5_documents()) all.push_back(Value::text(text));
    }
    all.push_back(Value());
    all.push_back(Value::integer(7));
    return all;
  }

  SqliteOracle oracle_;
  bool modern_ = false;
  int compared_ = 0;
};

const char* const kPaths[] = {
    "$",      "$.a",    "$.b[0]",  "$.b[2].c",     "$.d.e",     "$[0]",      "$[1]",
    "$[#-1]", "$[#]",   "$[#-9]",  "$.a.b.c[1]",   "$.\"a b\"", "$.\"c.d\"", "$.x",
    "$.x.y",  "$.x[0]", "$[1][0]", "$[1][1][1].a", "$.gA",      "$[7]",      "$.b[#-1].c"};

TEST_F(JsonAgainstSqlite, ReadsAndPrintsTheSame) {
  for (const Value& input : inputs()) {
    for (const char* name : {"json", "json_valid", "json_type", "json_array_length", "json_quote",
                             "jsonb", "json_pretty", "json_array", "json_error_position"}) {
      expect_same(name, {input});
    }
  }
  EXPECT_GT(compared_, 100);
}

TEST_F(JsonAgainstSqlite, FollowsPathsAlike) {
  for (const Value& input : inputs()) {
    for (const char* path : kPaths) {
      expect_same("json_extract", {input, Value::text(path)});
      expect_same("json_type", {input, Value::text(path)});
      expect_same("json_array_length", {input, Value::text(path)});
      expect_same("->", {input, Value::text(path)}, "SELECT ?->?");
      expect_same("->>", {input, Value::text(path)}, "SELECT ?->>?");
      if (modern_) expect_same("jsonb_extract", {input, Value::text(path)});
    }
    for (const char* bad :
         {"", "a", "$a", "$.", "$[", "$[x]", "$[1", "$[#-]", "$.\"a", "$..a", "$.a["}) {
      expect_same("json_extract", {input, Value::text(bad)});
    }
    expect_same("json_extract", {input, Value::text("$.a"), Value::text("$[0]")});
    for (const Value& key : {Value::text("a"), Value::text("a b"), Value::integer(0),
                             Value::integer(-1), Value::text("[1]")}) {
      expect_same("->", {input, key}, "SELECT ?->?");
      expect_same("->>", {input, key}, "SELECT ?->>?");
    }
  }
}

TEST_F(JsonAgainstSqlite, EditsAlike) {
  if (!modern_) GTEST_SKIP() << "the oracle's edits of whole documents differ";
  const std::vector<Value> values = {Value::integer(9), Value::text("t"), Value::text("[1]"),
                                     Value(),           Value::real(1.5), Value::text("q\"u\\o\n")};
  for (const Value& input : inputs()) {
    for (const char* path : kPaths) {
      for (const char* name : {"json_set", "json_insert", "json_replace", "json_array_insert"}) {
        expect_same(name, {input, Value::text(path),
                           values[static_cast<size_t>(compared_) % values.size()]});
      }
      expect_same("json_remove", {input, Value::text(path)});
      expect_same("json_remove", {input, Value::text(path), Value::text("$.a")});
      expect_same("json_set", {input, Value::text(path), Value::integer(1), Value::text("$.zz"),
                               Value::text("z")});
    }
    for (const Value& patch : inputs()) expect_same("json_patch", {input, patch});
  }
  EXPECT_GT(compared_, 3000);
}

TEST_F(JsonAgainstSqlite, AgreesOnMutatedText) {
  std::mt19937 random(3);
  std::vector<std::string> seeds;
  for (const char* text : documents()) seeds.emplace_back(text);
  if (modern_) {
    for (const char* text : json5_documents()) seeds.emplace_back(text);
  }
  static constexpr std::string_view kBytes = "[]{},:\"'\\0123456789.eE+-xXnulltrue \t\n/*#$ab";
  for (int round = 0; round < 20000; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (unsigned edits = 1 + random() % 3; edits > 0 && !text.empty(); --edits) {
      size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text.erase(at, 1);
          break;
        case 1:
          text.insert(at, 1, kBytes[random() % kBytes.size()]);
          break;
        default:
          text[at] = kBytes[random() % kBytes.size()];
      }
    }
    if (!modern_) {
      // Old SQLite refuses JSON5; only what both call valid is compared.
      json::Document document;
      if (!document.parse_text(text) || !document.strict()) continue;
    }
    expect_same("json", {Value::text(text)});
    if (modern_) expect_same("json_valid", {Value::text(text), Value::integer(1 + random() % 3)});
    if (HasFailure()) return;
  }
}

TEST_F(JsonAgainstSqlite, WalksAlike) {
  if (!modern_) GTEST_SKIP() << "the oracle numbers elements in the old way";
  int rows = 0;
  for (bool tree : {false, true}) {
    for (const Value& input : inputs()) {
      for (const char* path : {"$", "$.a", "$.b", "$[1]", "$[#-1]", "$.d.e", "$.nothing"}) {
        if (input.is_text() &&
            input.bytes().find("0xFFFFFFFFFFFFFFFFFF") != std::string_view::npos) {
          continue;  // an integer beyond 64 bits is an error there, infinity here
        }
        JsonWalk walk(tree);
        std::string error;
        std::vector<Value> args = {input, Value::text(path)};
        std::string ours = walk.open(args[0], args[1], error) ? "" : "error " + error;
        for (; ours.empty() ? !walk.at_end() : ours[0] != 'e' && !walk.at_end(); walk.next()) {
          ++rows;
          Value element, atom;
          walk.value(element);
          walk.atom(atom);
          ours += "(" + quote_value(walk.key()) + " " + quote_value(element) + " " + walk.type() +
                  " " + quote_value(atom) + " " + std::to_string(walk.id()) + " " +
                  quote_value(walk.parent()) + " " + walk.full_key() + " " + walk.path() + ")";
        }
        Value value;
        std::string sql =
            "SELECT coalesce(group_concat('('||quote(key)||' '||quote(value)||' '||type||' "
            "'||quote(atom)||' '||id||' '"
            "||quote(parent)||' '||fullkey||' '||path||')', ''), '') FROM json_" +
            std::string(tree ? "tree" : "each") + "(?,?)";
        std::string theirs =
            oracle_.evaluate(sql, args, value, error) ? value.to_text() : "error " + error;
        EXPECT_EQ(ours, theirs) << show(input) << " " << path << " tree " << tree;
      }
    }
  }
  EXPECT_GT(rows, 100);
}

TEST(Json, RefusesHostileNesting) {
  json::Document document;
  EXPECT_FALSE(document.parse_text(std::string(100000, '[')));
  EXPECT_FALSE(json::looks_like_jsonb(std::string("\x2b\x1b", 2), true));
}

}  // namespace
}  // namespace db
