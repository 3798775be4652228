#include "llm/tokenizer/tokenizer.h"

#include "llm/tokenizer/unicode.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

std::vector<std::string> pieces(PreTokenizer kind, std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view piece : split_pieces(kind, text)) out.emplace_back(piece);
  return out;
}
using Pieces = std::vector<std::string>;

TEST(PreTokenizer, SmolLmIsolatesDigitsAndSplitsBlankLines) {
  EXPECT_EQ(pieces(PreTokenizer::kSmolLm, "1234"), (Pieces{"1", "2", "3", "4"}));
  EXPECT_EQ(pieces(PreTokenizer::kSmolLm, " 12"), (Pieces{" ", "1", "2"}));
  EXPECT_EQ(pieces(PreTokenizer::kSmolLm, "a\n\nb"), (Pieces{"a", "\n", "\n", "b"}));
  EXPECT_EQ(pieces(PreTokenizer::kSmolLm, "it's  ok"), (Pieces{"it", "'s", " ", " ok"}));
}

TEST(PreTokenizer, Glm4TakesThreeDigitsAndGluesPunctuation) {
  EXPECT_EQ(pieces(PreTokenizer::kGlm4, "1234"), (Pieces{"123", "4"}));
  EXPECT_EQ(pieces(PreTokenizer::kGlm4, " 12"), (Pieces{" ", "12"}));
  EXPECT_EQ(pieces(PreTokenizer::kGlm4, "(a"), (Pieces{"(a"}));
  EXPECT_EQ(pieces(PreTokenizer::kGlm4, "x.\n"), (Pieces{"x", ".\n"}));
  EXPECT_EQ(pieces(PreTokenizer::kGlm4, "a\n\nb"), (Pieces{"a", "\n\n", "b"}));
  EXPECT_EQ(pieces(PreTokenizer::kGlm4, "A'S"), (Pieces{"A", "'S"}));
}

TEST(PreTokenizer, Qwen2TakesOneDigit) {
  EXPECT_EQ(pieces(PreTokenizer::kQwen2, "a12"), (Pieces{"a", "1", "2"}));
}

TEST(PreTokenizer, PiecesAlwaysCoverTheText) {
  const std::string text =
      "a \xff\xfe  \n\t\r\n\xe4\xbd\xa0\xe5\xa5\xbd 12\xc2\xbd '\xc5\xbf x\xf0\x9f\x98\x80!";
  for (auto kind : {PreTokenizer::kGpt2, PreTokenizer::kSmolLm, PreTokenizer::kLlamaBpe,
                    PreTokenizer::kGlm4, PreTokenizer::kQwen2}) {
    std::string joined;
    for (const std::string& piece : pieces(kind, text)) joined += piece;
    EXPECT_EQ(joined, text) << name_of(kind);
  }
}

// All 256 bytes, a few merges and two specials.
std::unique_ptr<Tokenizer> tiny() {
  Tokenizer::Spec spec;
  for (u32 b = 0, next = 0x100; b < 256; ++b) {
    const bool itself = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    std::string text;
    append_utf8(itself ? b : next++, &text);
    spec.tokens.push_back(text);
  }
  for (const char* word : {"he", "ll", "hell", "hello", "\xc4\xa0hello"})
    spec.tokens.push_back(word);
  spec.special.assign(spec.tokens.size(), false);
  spec.tokens.push_back("<|im_end|>");
  spec.tokens.push_back("<|im_end|>!");
  spec.special.insert(spec.special.end(), 2, true);
  spec.merges = {"h e", "l l", "he ll", "hell o", "\xc4\xa0 hello"};
  return Tokenizer::create(std::move(spec)).value();
}

TEST(Tokenizer, MergesByRankAndDecodesToTheSameBytes) {
  const auto t = tiny();
  EXPECT_EQ(t->encode("hello hello", false), (std::vector<TokenId>{259, 260}));
  EXPECT_EQ(t->encode("hell", false), (std::vector<TokenId>{258}));
  const std::string any = "\xff\x01 hello \xe4\xbd\xa0";
  EXPECT_EQ(t->decode(t->encode(any, false)), any);
}

TEST(Tokenizer, SpecialsAreFoundOnlyWhereAllowedAndTheLongestWins) {
  const auto t = tiny();
  EXPECT_EQ(t->encode("<|im_end|>", true), (std::vector<TokenId>{261}));
  EXPECT_EQ(t->encode("<|im_end|>!", true), (std::vector<TokenId>{262}));
  EXPECT_GT(t->encode("<|im_end|>", false).size(), 1u);
  const auto mixed = t->encode({{"<|im_end|>", true}, {"<|im_end|>", false}});
  EXPECT_EQ(mixed.front(), 261);
  EXPECT_EQ(std::count(mixed.begin(), mixed.end(), 261), 1);
  EXPECT_TRUE(t->is_stop(261));
}

TEST(Tokenizer, ALongHostilePieceIsCheap) {
  const auto t = tiny();
  const std::string text(200000, 'l');
  EXPECT_EQ(t->encode(text, false).size(), 100000u);
}

TEST(Unicode, InvalidBytesAreOneReplacementEach) {
  EXPECT_EQ(sanitize_utf8("a\xff\xc0z"), "a\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(incomplete_utf8_tail("ab\xe4\xbd"), 2u);
  EXPECT_EQ(incomplete_utf8_tail("ab\xe4\xbd\xa0"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("\xf0"), 1u);
}

}  // namespace
}  // namespace llm
