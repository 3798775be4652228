#include "llm/model/glm.h"

#include "llm/model/testing.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

std::vector<i32> some_tokens(size_t count) {
  base::Rng rng(77);
  std::vector<i32> tokens(count);
  for (i32& t : tokens) t = static_cast<i32>(rng.below(320));
  return tokens;
}

struct Opened {
  std::string file;
  std::unique_ptr<Gguf> gguf;
  GlmConfig config;
};

Opened open_tiny(const TinyGlm& shape, DType type) {
  Opened o;
  o.file = random_glm_file(shape, type, 9);
  o.gguf = Gguf::parse(base::as_bytes(o.file)).value();
  o.config = glm_config(*o.gguf, EpsilonProfile::kGguf).value();
  return o;
}

std::unique_ptr<GlmModel> model_of(const Opened& o, Precision precision, Crew* crew) {
  auto model = GlmModel::load(*o.gguf, o.config, precision, crew).value();
  model->reserve({.pages = 8, .rows = 64, .logit_rows = 64, .context = 64});
  return model;
}

TEST(Glm, ChunksAndThreadsDoNotChangeOneBitPastTheTopK) {
  const auto tokens = some_tokens(30);
  for (DType type : {DType::kF32, DType::kQ80}) {
    const Opened o = open_tiny({}, type);
    std::vector<f32> expected;
    for (i32 threads : {1, 2}) {
      for (i32 chunk : {1, 7, 30}) {
        Crew crew(threads);
        const auto logits = logits_of(model_of(o, Precision::kFast, &crew).get(), tokens, chunk);
        if (expected.empty()) expected = logits;
        ASSERT_EQ(logits, expected) << "threads " << threads << " chunk " << chunk;
      }
    }
  }
}

TEST(Glm, RejectedGuessesLeaveNoTraceInLatentsOrIndexerKeys) {
  const auto tokens = some_tokens(30);
  for (DType type : {DType::kF32, DType::kQ80}) {
    const Opened o = open_tiny({}, type);
    Crew crew(2);
    const auto fresh = logits_of(model_of(o, Precision::kFast, &crew).get(), tokens, 30);
    for (i32 right : {1, 3}) {
      const auto model = model_of(o, Precision::kFast, &crew);
      EXPECT_EQ(logits_with_rejections(model.get(), tokens, right, 5), fresh) << right;
    }
  }
}

TEST(Glm, TheChoiceHoldsTopKDistinctPastPositionsInOrder) {
  const Opened o = open_tiny({}, DType::kF32);
  Crew crew(1);
  const auto model = model_of(o, Precision::kExact, &crew);
  logits_of(model.get(), some_tokens(30), 30);
  bool sparse = false;
  for (i32 row = 0; row < 30; ++row) {
    const auto chosen = model->selected(row);
    EXPECT_EQ(chosen.size(), static_cast<size_t>(std::min(row + 1, 8)));
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    EXPECT_LE(chosen.back(), row);
    sparse = sparse || chosen.front() != row - static_cast<i32>(chosen.size()) + 1;
  }
  EXPECT_TRUE(sparse);  // not merely the latest
}

TEST(Glm, SelectionMattersOnceTheTextIsLongerThanTopK) {
  TinyGlm wide;
  wide.index_top_k = 64;
  const Opened sparse = open_tiny({}, DType::kF32);
  const Opened dense = open_tiny(wide, DType::kF32);
  Crew crew(1);
  const auto tokens = some_tokens(20);
  const auto a = logits_of(model_of(sparse, Precision::kExact, &crew).get(), tokens, 20);
  const auto b = logits_of(model_of(dense, Precision::kExact, &crew).get(), tokens, 20);
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 8 * 320, b.begin()));
  EXPECT_FALSE(std::equal(a.begin() + 12 * 320, a.end(), b.begin() + 12 * 320));
}

TEST(Glm, AFirstLayerWithoutAnIndexerIsRefused) {
  TinyGlm shape;
  shape.full_indexer[0] = false;
  const std::string file = random_glm_file(shape, DType::kF32, 1);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  EXPECT_FALSE(glm_config(*gguf, EpsilonProfile::kGguf).ok());
}

TEST(Glm, ThePublishedIndexerPatternIsUsedForTheFullContext) {
  GgufWriter writer;
  const std::string file = random_glm_file({}, DType::kF32, 1);
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  for (const Gguf::Pair& pair : gguf->pairs()) {
    if (pair.key == "glm-dsa.context_length") {
      writer.set_u32(pair.key, 1 << 20);
    } else if (pair.key == "glm-dsa.block_count") {
      writer.set_u32(pair.key, 78);
    } else if (!pair.key.ends_with("indexer.types")) {
      writer.copy(pair);
    }
  }
  for (const TensorView& tensor : gguf->tensors())
    writer.add_tensor(tensor.name, tensor.type, tensor.shape, tensor.bytes);
  const std::string full_file = writer.to_string();
  const auto config =
      glm_config(*Gguf::parse(base::as_bytes(full_file)).value(), EpsilonProfile::kGguf).value();
  std::vector<i32> full;
  for (i32 i = 0; i < 78; ++i) {
    if (config.full_indexer[static_cast<size_t>(i)]) full.push_back(i);
  }
  ASSERT_EQ(full.size(), 21u);
  EXPECT_EQ(full[2], 2);
  EXPECT_EQ(full[3], 6);
  EXPECT_EQ(full[20], 74);
}

}  // namespace
}  // namespace llm
