#include "llm/speculation/dspark.h"

#include "llm/model/llama.h"
#include "llm/model/testing.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace llm {
namespace {

constexpr i32 kPages = 8;

// A random llama with a random draft, driven step by step in slot 0.
class Driven {
 public:
  explicit Driven(const TinyDraft& draft = {}) : draft_file_(random_draft_file(draft, 8)) {
    gguf_ = Gguf::parse(base::as_bytes(file_)).value();
    draft_ = Gguf::parse(base::as_bytes(draft_file_)).value();
    model_ =
        LlamaModel::load(*gguf_, llama_config(*gguf_).value(), Precision::kFast, &crew_).value();
    drafter_ =
        DSparkDrafter::load(*draft_, dspark_config(*draft_, std::nullopt).value(), model_.get(), {})
            .value();
    const Capacity capacity{.pages = kPages, .rows = 24, .logit_rows = 8, .context = 112};
    model_->reserve(capacity);
    drafter_->reserve(capacity, 1);
    greedy_.temperature = 0;
  }
  void step(const std::vector<i32>& tokens, i32 from, i32 to) {
    std::vector<BatchRow> rows;
    for (i32 at = from; at < to; ++at) {
      rows.push_back({tokens[static_cast<size_t>(at)], at, 0, false});
    }
    const Step step{rows.data(), static_cast<i32>(rows.size()), table_.data(), kPages};
    model_->forward(step);
    drafter_->observe(step);
  }
  std::vector<i32> guesses(const std::vector<i32>& tokens, i32 size) {
    std::vector<i32> out(16);
    DraftTask task{0, {tokens.data(), static_cast<size_t>(size)}, &greedy_, 6, out.data(), 0};
    drafter_->propose({&task, 1}, table_.data(), kPages);
    out.resize(static_cast<size_t>(task.count));
    return out;
  }

 private:
  std::string file_ = random_llama_file({}, DType::kQ80, 21);
  std::string draft_file_;
  std::unique_ptr<Gguf> gguf_, draft_;
  Crew crew_{2};
  std::unique_ptr<LlamaModel> model_;
  std::unique_ptr<DSparkDrafter> drafter_;
  std::vector<i32> table_{5, 3, 0, 4, 1, 2, 7, 6};
  SamplingParams greedy_;
};

std::vector<i32> random_tokens(u64 seed) {
  base::Rng rng(seed);
  std::vector<i32> tokens(100);
  for (i32& token : tokens) token = static_cast<i32>(rng.below(90));
  return tokens;
}

TEST(DSparkDrafter, HiddenStatesMayWaitForTheNextDraft) {
  const std::vector<i32> tokens = random_tokens(3);
  const std::vector<i32> wrong = random_tokens(4);
  Driven asked;
  Driven waiting;  // for longer than it has room for
  std::vector<i32> last;
  for (i32 at = 0; at < 90; at += 5) {
    for (Driven* driven : {&asked, &waiting}) {
      driven->step(wrong, at, at + 5);  // guesses that come to nothing
      driven->step(tokens, at, at + 5);
    }
    last = asked.guesses(tokens, at + 6);
  }
  EXPECT_EQ(last.size(), 6u);
  EXPECT_EQ(waiting.guesses(tokens, 91), last);
  Driven other;
  for (i32 at = 0; at < 90; at += 5) other.step(wrong, at, at + 5);
  EXPECT_NE(other.guesses(tokens, 91), last);  // the context counts
}

TEST(DSparkDrafter, WithPartOfTheVocabularyGuessesOnlyThat) {
  const std::vector<i32> tokens = random_tokens(5);
  TinyDraft part;
  for (i64 id = 1; id < part.vocab; id += 3) part.ids.push_back(id);
  Driven driven(part);
  std::vector<bool> seen(part.vocab);
  for (i32 at = 0; at < 90; at += 5) {
    driven.step(tokens, at, at + 5);
    for (i32 guess : driven.guesses(tokens, at + 6)) {
      EXPECT_EQ(guess % 3, 1);
      seen[static_cast<size_t>(guess)] = true;
    }
  }
  EXPECT_GT(std::count(seen.begin(), seen.end(), true), 5);  // and more than one of them
}

TEST(DSparkDrafter, RefusesAVocabularyThatTheModelDoesNotHave) {
  const std::string file = random_llama_file({}, DType::kQ80, 21);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  Crew crew(1);
  const auto model =
      LlamaModel::load(*gguf, llama_config(*gguf).value(), Precision::kFast, &crew).value();
  for (i64 wrong : {i64{-1}, i64{96}}) {
    TinyDraft part;
    part.ids = {3, wrong};
    const std::string draft_file = random_draft_file(part, 8);
    const auto draft = Gguf::parse(base::as_bytes(draft_file)).value();
    const auto config = dspark_config(*draft, std::nullopt).value();
    EXPECT_FALSE(DSparkDrafter::load(*draft, config, model.get(), {}).ok()) << wrong;
  }
}

}  // namespace
}  // namespace llm
