// A small random llama from a file we write: what must not change its results.
#include "llm/model/llama.h"

#include "base/random.h"
#include "llm/formats/gguf_writer.h"
#include "llm/formats/quant.h"
#include "llm/model/testing.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

std::vector<i32> random_tokens(u64 seed, size_t count) {
  base::Rng rng(seed);
  std::vector<i32> tokens(count);
  for (i32& t : tokens) t = static_cast<i32>(rng.below(96));
  return tokens;
}

class LlamaTest : public testing::TestWithParam<DType> {};

TEST_P(LlamaTest, ChunksThreadsAndFusionDoNotChangeOneBit) {
  const std::string file = random_llama_file({}, GetParam(), 5);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  const LlamaConfig config = llama_config(*gguf).value();
  const auto tokens = random_tokens(3, 45);
  std::vector<f32> expected;
  for (i32 threads : {1, 2, 3}) {
    for (bool fusion : {true, false}) {
      for (i32 chunk : {1, 3, 8, 45}) {
        Crew crew(threads);
        auto model = LlamaModel::load(*gguf, config, Precision::kFast, &crew).value();
        model->reserve({.pages = 8, .rows = 64, .logit_rows = 64, .context = 64});
        model->set_tuning({.fusion = fusion});
        const auto logits = logits_of(model.get(), tokens, chunk);
        if (expected.empty()) expected = logits;
        ASSERT_EQ(logits, expected)
            << "threads " << threads << " fusion " << fusion << " chunk " << chunk;
      }
    }
  }
}

TEST_P(LlamaTest, RejectedGuessesLeaveNoTraceInTheCache) {
  const std::string file = random_llama_file({}, GetParam(), 7);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  Crew crew(2);
  auto model =
      LlamaModel::load(*gguf, llama_config(*gguf).value(), Precision::kFast, &crew).value();
  model->reserve({.pages = 8, .rows = 64, .logit_rows = 64, .context = 64});
  const auto tokens = random_tokens(4, 30);
  const auto fresh = logits_of(model.get(), tokens, 30);
  EXPECT_EQ(logits_with_rejections(model.get(), tokens, 1, 7), fresh);
  EXPECT_EQ(logits_with_rejections(model.get(), tokens, 3, 5), fresh);
}

TEST_P(LlamaTest, SequencesOfOneStepDoNotSeeEachOther) {
  const std::string file = random_llama_file({}, GetParam(), 6);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  Crew crew(2);
  auto model =
      LlamaModel::load(*gguf, llama_config(*gguf).value(), Precision::kFast, &crew).value();
  model->reserve({.pages = 8, .rows = 64, .logit_rows = 64, .context = 32});
  const auto a = random_tokens(1, 20);
  const auto b = random_tokens(2, 20);
  const auto alone = logits_of(model.get(), a, 20);
  // Interleaved: one token of each sequence a step, b in slot 1 on pages 2 and 3.
  const i32 table[4] = {0, 1, 2, 3};
  for (i32 t = 0; t < 20; ++t) {
    const BatchRow rows[2] = {{b[static_cast<size_t>(t)], t, 1, false},
                              {a[static_cast<size_t>(t)], t, 0, true}};
    model->forward({rows, 2, table, 2});
    const i32 vocab = model->info().vocab;
    EXPECT_TRUE(std::equal(model->logits(0), model->logits(0) + vocab, alone.begin() + t * vocab))
        << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LlamaTest,
                         testing::Values(DType::kF32, DType::kBF16, DType::kQ80, DType::kQ41,
                                         DType::kQ40));

TEST(Llama, MissingOrMisshapenTensorsAreNamed) {
  TinyLlama shape;
  shape.drop = "blk.1.ffn_up.weight";
  const std::string file = random_llama_file(shape, DType::kF32, 1);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  Crew crew(1);
  const auto model = LlamaModel::load(*gguf, llama_config(*gguf).value(), Precision::kFast, &crew);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message().find("blk.1.ffn_up.weight"), std::string::npos);
}

TEST(Llama, ArgmaxIsTheLowestIdAmongTheLargestLogits) {
  const std::string file = random_llama_file({}, DType::kQ80, 8);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  for (i32 threads : {1, 3}) {
    Crew crew(threads);
    auto model =
        LlamaModel::load(*gguf, llama_config(*gguf).value(), Precision::kFast, &crew).value();
    model->reserve({.pages = 4, .rows = 8, .logit_rows = 8, .context = 32});
    const i32 table[1] = {0};
    const BatchRow row{5, 0, 0, true};
    model->forward({&row, 1, table, 1});
    const f32* logits = model->logits(0);
    EXPECT_EQ(model->argmax(0), std::max_element(logits, logits + model->info().vocab) - logits);
  }
}

}  // namespace
}  // namespace llm
