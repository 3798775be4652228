#include "llm/speculation/mtp.h"

#include "llm/model/testing.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

// A random GLM with its layer for multi-token prediction, driven step by step in slot 0.
struct Driven {
  std::string file;
  std::unique_ptr<Gguf> gguf;
  Crew crew{2};
  std::unique_ptr<GlmModel> model;
  std::unique_ptr<MtpDrafter> drafter;
  std::vector<i32> table{5, 3, 0, 4, 1, 2};
  SamplingParams greedy;

  Driven() {
    TinyGlm shape;
    shape.mtp = true;
    file = random_glm_file(shape, DType::kF32, 5);
    gguf = Gguf::parse(base::as_bytes(file)).value();
    const auto config = glm_config(*gguf, EpsilonProfile::kGguf).value();
    model = GlmModel::load(*gguf, config, Precision::kFast, &crew).value();
    drafter = MtpDrafter::load(*gguf, model.get()).value();
    const Capacity capacity{.pages = 6, .rows = 64, .logit_rows = 8, .context = 96};
    model->reserve(capacity);
    drafter->reserve(capacity, 1);
    greedy.temperature = 0;
  }
  void step(const std::vector<i32>& tokens, i32 position, bool logits) {
    std::vector<BatchRow> rows;
    for (i32 token : tokens) rows.push_back({token, position++, 0, logits});
    const Step step{rows.data(), static_cast<i32>(rows.size()), table.data(), 6};
    model->forward(step);
    drafter->observe(step);
  }
  std::vector<i32> guesses(const std::vector<i32>& history, i32 limit = 5) {
    std::vector<i32> out(16);
    DraftTask task{0, history, &greedy, limit, out.data(), 0};
    drafter->propose({&task, 1}, table.data(), 6);
    out.resize(static_cast<size_t>(task.count));
    return out;
  }
};

std::vector<i32> random_tokens(size_t count) {
  base::Rng rng(11);
  std::vector<i32> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(static_cast<i32>(rng.below(320)));
  return tokens;
}

std::vector<i32> part(const std::vector<i32>& tokens, size_t from, size_t to) {
  return {tokens.begin() + static_cast<i64>(from), tokens.begin() + static_cast<i64>(to)};
}

TEST(MtpDrafter, GuessesAsManyAsAskedUpToItsLongest) {
  Driven d;
  const auto text = random_tokens(31);
  d.step(part(text, 0, 30), 0, false);
  EXPECT_EQ(d.guesses(text, 5).size(), 5u);
  EXPECT_EQ(d.guesses(text, 2), part(d.guesses(text, 5), 0, 2));
  EXPECT_EQ(d.guesses(text, 9).size(), 5u);
  EXPECT_EQ(d.guesses(part(text, 0, 3), 5).size(), 0u) << "states that far back are gone";
}

TEST(MtpDrafter, ChunksAndRejectedGuessesLeaveNoTrace) {
  // At every length, also around the edges of pages.
  const auto text = random_tokens(40);
  Driven rounds;
  rounds.step(part(text, 0, 7), 0, false);
  rounds.step(part(text, 7, 12), 7, false);
  for (size_t size = 13; size < 36; ++size) {
    const auto history = part(text, 0, size);
    const auto guesses = rounds.guesses(history);
    Driven fresh;
    fresh.step(part(text, 0, size - 1), 0, false);
    ASSERT_EQ(guesses, fresh.guesses(history)) << size;
    // A round whose guesses are all wrong, or whose first is right.
    std::vector<i32> rows = {text[size - 1], (text[size] + (size % 3 == 0 ? 0 : 1)) % 320, 7, 9};
    rounds.step(rows, static_cast<i32>(size) - 1, true);
    if (size % 3 == 0) ++size;
  }
}

}  // namespace
}  // namespace llm
