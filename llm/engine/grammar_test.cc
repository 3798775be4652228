#include "llm/engine/grammar.h"

#include "llm/engine/grammar_rule.h"
#include "llm/engine/json_schema.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

using base::Json;

// "" when the whole text is derivable, else where it broke.
std::string check(const Grammar& grammar, std::string_view text) {
  GrammarMachine machine(grammar);
  auto state = machine.start();
  for (size_t i = 0; i < text.size(); ++i) {
    state = machine.advance(state, static_cast<u8>(text[i]));
    if (state.empty()) return "refused at " + std::to_string(i);
  }
  return std::binary_search(state.begin(), state.end(), GrammarMachine::kDone) ? "" : "incomplete";
}

Grammar schema(std::string_view text) {
  return grammar_for_schema(Json::parse(text).value()).value();
}

TEST(JsonObjectGrammar, TakesWhatJsonAllowsAndNothingElse) {
  const Grammar g = grammar_for_json_object();
  for (std::string_view good :
       {"{}", "{\"a\":1}", "{\"a\": [1,-2.5e3,true,null,\"x\\n\\u00e4\"], \"b\":{}}",
        "{\"k\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"}"}) {
    EXPECT_EQ(check(g, good), "") << good;
  }
  for (std::string_view bad : {"[]", "{\"a\":01}", "{\"a\":1,}", "{a:1}", "{\"a\":\"\n\"}",
                               "{\"a\":\"\xff\"}", "{\"a\":tru}", "{\"a\":1}}", "{  }"}) {
    EXPECT_NE(check(g, bad), "") << bad;
  }
}

TEST(SchemaGrammar, HonoursRequiredOptionalAndOrder) {
  const Grammar g =
      schema(R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},
      "tags":{"type":"array","items":{"enum":["a","b"]},"minItems":1,"maxItems":2}},"required":["name","tags"]})");
  EXPECT_EQ(check(g, R"({"name":"x","tags":["a"]})"), "");
  EXPECT_EQ(check(g, R"({"name": "x", "age": 3, "tags": ["b", "a"]})"), "");
  EXPECT_NE(check(g, R"({"tags":["a"]})"), "");
  EXPECT_NE(check(g, R"({"name":"x"})"), "");
  EXPECT_NE(check(g, R"({"name":"x","tags":[]})"), "");
  EXPECT_NE(check(g, R"({"name":"x","tags":["a","a","a"]})"), "");
  EXPECT_NE(check(g, R"({"name":"x","age":1.5,"tags":["a"]})"), "");
}

TEST(SchemaGrammar, AliasesOfItselfCostNoTimeAndAddNothing) {
  const Grammar g = schema(R"({"anyOf":[{"$ref":"#"},{"$ref":"#"},{"type":"null"}]})");
  EXPECT_EQ(check(g, "null"), "");
  EXPECT_NE(check(g, "1"), "");
}

TEST(SchemaGrammar, HundredsOfOptionalMembersMayAllBeLeftOut) {
  Json members = Json::object();
  for (int i = 0; i < 500; ++i) members.set("m" + std::to_string(i), Json::object());
  const Grammar g =
      grammar_for_schema(Json::object({{"type", "object"}, {"properties", members}})).value();
  EXPECT_EQ(check(g, "{}"), "");
  EXPECT_EQ(check(g, R"({"m499":1})"), "");
}

TEST(SchemaGrammar, RefusesWhatDoublesOrWhatNothingSatisfies) {
  std::string doubling = "{}";
  for (int i = 0; i < 40; ++i) doubling = R"({"type":["array","array"],"items":)" + doubling + "}";
  EXPECT_FALSE(grammar_for_schema(Json::parse(doubling).value()).ok());
  for (std::string_view text :
       {R"({"$ref":"#"})", R"({"enum":[]})",
        R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})"}) {
    EXPECT_FALSE(grammar_for_schema(Json::parse(text).value()).ok()) << text;
  }
  // What cannot be completed is not begun.
  const Grammar g = schema(R"({"type":"object","properties":{"a":{"enum":[]}}})");
  EXPECT_EQ(check(g, "{}"), "");
  EXPECT_EQ(check(g, R"({")"), "refused at 1");
}

TEST(CallGrammar, ReferencesLeadIntoTheirOwnSchema) {
  const auto one = [](std::string_view type) {
    return Json::parse(R"({"$ref":"#/$defs/t","$defs":{"t":{"type":")" + std::string(type) +
                       "\"}}}")
        .value();
  };
  const Grammar g =
      grammar_for_calls({{"a:", one("null"), ""}, {"b:", one("boolean"), ""}}).value();
  EXPECT_EQ(check(g, "a:null"), "");
  EXPECT_EQ(check(g, "b:true"), "");
  EXPECT_NE(check(g, "b:null"), "");
}

TEST(SchemaGrammar, FollowsChoicesTypesListsAndRecursion) {
  EXPECT_EQ(check(schema(R"({"anyOf":[{"type":"null"},{"const":7}]})"), "7"), "");
  EXPECT_EQ(check(schema(R"({"type":["string","null"]})"), "null"), "");
  EXPECT_NE(check(schema(R"({"type":["string","null"]})"), "1"), "");
  const Grammar tree = schema(
      R"({"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"v":{"type":"integer"},
      "kids":{"type":"array","items":{"$ref":"#/$defs/t"}}},"required":["v"]}}})");
  EXPECT_EQ(check(tree, R"({"v":1,"kids":[{"v":2},{"v":3,"kids":[]}]})"), "");
  EXPECT_NE(check(tree, R"({"v":1,"kids":[{}]})"), "");
  EXPECT_EQ(check(schema(R"({"type":"string","maxLength":2})"), "\"ab\""), "");
  EXPECT_NE(check(schema(R"({"type":"string","maxLength":2})"), "\"abc\""), "");
}

TEST(SchemaGrammar, SaysWhatItDoesNotSupport) {
  const auto bad = grammar_for_schema(Json::parse(R"({"$ref":"#/$defs/none"})").value());
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message().find("#/$defs/none"), std::string::npos);
}

TEST(GrammarRule, AllowsExactlyTheTokensThatKeepTheTextDerivable) {
  Tokenizer::Spec spec;
  spec.tokens = {"{", "}", "{\"", "a", "\"", ":", "1", "12", "}x", ",", "\":", "<|im_end|>"};
  spec.special.assign(spec.tokens.size(), false);
  spec.special.back() = true;
  const auto tokenizer = Tokenizer::create(std::move(spec)).value();
  const SortedVocabulary vocabulary(*tokenizer);
  GrammarRule rule(
      schema(R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})"),
      &vocabulary, 12);
  auto allowed = [&] {
    std::string ids;
    for (int i = 0; i < 12; ++i) {
      if (rule.allowed()[0] >> i & 1) ids += std::to_string(i) + " ";
    }
    return ids;
  };
  EXPECT_EQ(allowed(), "0 2 ");
  rule.accept(2);
  EXPECT_EQ(allowed(), "3 ");
  rule.accept(3);
  EXPECT_EQ(allowed(), "4 10 ");
  rule.accept(10);
  rule.accept(7);
  EXPECT_EQ(allowed(), "1 6 7 ");
  EXPECT_FALSE(rule.complete());
  rule.accept(1);
  EXPECT_TRUE(rule.complete());
}

}  // namespace
}  // namespace llm
