#include "llm/formats/gguf.h"

#include "base/files.h"
#include "base/random.h"
#include "llm/formats/gguf_writer.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

std::string sample() {
  static const std::vector<f32> data = {1, 2, 3, 4, 5, 6};
  const base::ByteView bytes(reinterpret_cast<const u8*>(data.data()), data.size() * 4);
  GgufWriter writer;
  writer.set_text("general.architecture", "llama");
  writer.set_u32("llama.block_count", 7);
  writer.set_f32("llama.rope.freq_base", 10000.0f);
  writer.set_bool("flag", true);
  writer.set_texts("tokens", {"a", "bb", ""});
  writer.set_i32s("types", {1, -2, 3});
  writer.set_f32s("factors", {0.5f});
  writer.add_tensor("a", DType::kF32, {2, 3}, bytes);
  writer.add_tensor("b", DType::kF32, {6}, bytes);
  return writer.to_string();
}

TEST(Gguf, ReadsBackWhatTheWriterWrote) {
  const std::string file = sample();
  const auto gguf = Gguf::parse(base::as_bytes(file)).value();
  EXPECT_EQ(gguf->text("general.architecture"), "llama");
  EXPECT_EQ(gguf->integer("llama.block_count"), 7);
  EXPECT_EQ(gguf->number("llama.rope.freq_base"), 10000.0);
  EXPECT_EQ(gguf->boolean("flag"), true);
  EXPECT_EQ(gguf->texts("tokens")->at(1), "bb");
  EXPECT_EQ(gguf->integers("types")->at(1), -2);
  EXPECT_EQ(gguf->numbers("factors")->at(0), 0.5);
  const TensorView* tensor = gguf->find("a");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape_text(), "[2, 3]");
  EXPECT_EQ(base::load_le<f32>(tensor->bytes.data() + 20), 6.0f);
  EXPECT_EQ(gguf->find("c"), nullptr);
  EXPECT_EQ(gguf->integer("general.architecture"), std::nullopt);
}

TEST(Gguf, CopiedPairsKeepTypeAndValue) {
  const std::string file = sample();
  const auto first = Gguf::parse(base::as_bytes(file)).value();
  GgufWriter writer;
  for (const Gguf::Pair& pair : first->pairs()) writer.copy(pair);
  for (const TensorView& tensor : first->tensors()) {
    writer.add_tensor(tensor.name, tensor.type, tensor.shape, tensor.bytes);
  }
  EXPECT_EQ(writer.to_string(), file);
}

TEST(Gguf, EveryTruncationIsAnErrorNotACrash) {
  const std::string file = sample();
  for (size_t size = 0; size + 8 < file.size(); ++size) {
    const auto cut = Gguf::parse(base::as_bytes(std::string_view(file).substr(0, size)));
    EXPECT_FALSE(cut.ok()) << size;
  }
}

TEST(Gguf, RandomDamageNeverReadsOutsideTheFile) {
  base::Rng rng(11);
  const std::string file = sample();
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = file;
    for (int i = 0; i < 3; ++i)
      damaged[rng.below(damaged.size())] = static_cast<char>(rng.below(256));
    const auto parsed = Gguf::parse(base::as_bytes(damaged));
    if (!parsed.ok()) continue;
    for (const TensorView& tensor : (*parsed)->tensors()) {
      ASSERT_GE(tensor.bytes.data(), reinterpret_cast<const u8*>(damaged.data()));
      ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(),
                reinterpret_cast<const u8*>(damaged.data()) + damaged.size());
      ASSERT_EQ(tensor.bytes.size(), tensor.rows() * tensor.row_bytes());
    }
  }
}

TEST(Gguf, RefusesDuplicateNamesAndOverlappingTensors) {
  GgufWriter twice;
  twice.set_u32("k", 1);
  twice.set_u32("k", 2);
  EXPECT_FALSE(Gguf::parse(base::as_bytes(twice.to_string())).ok());
  std::string file = sample();
  const size_t info = file.find(std::string("\1\0\0\0\0\0\0\0b", 9));
  ASSERT_NE(info, std::string::npos);
  base::store_le<u64>(file.data() + info + 9 + 4 + 8 + 4, 0);  // b's offset onto a
  EXPECT_FALSE(Gguf::parse(base::as_bytes(file)).ok());
}

// Part `number` of `count`, with one tensor of its own.
std::string part_of_model(u32 number, u32 count, const char* tensor) {
  static const std::vector<f32> data = {1, 2, 3};
  GgufWriter writer;
  if (number == 0) writer.set_text("general.architecture", "llama");
  writer.set_u32("split.no", number);
  writer.set_u32("split.count", count);
  writer.set_u32("split.tensors.count", count);
  writer.add_tensor(tensor, DType::kF32, {3},
                    {reinterpret_cast<const u8*>(data.data()), data.size() * 4});
  return writer.to_string();
}

TEST(Gguf, ASplitModelIsReadFromAnyOfItsParts) {
  base::TempDir folder;
  const std::string first = folder / "m-00001-of-00002.gguf";
  const std::string second = folder / "m-00002-of-00002.gguf";
  ASSERT_TRUE(base::write_file(first, part_of_model(0, 2, "a")).ok());
  EXPECT_FALSE(Gguf::open(first).ok()) << "its brother is missing";
  ASSERT_TRUE(base::write_file(second, part_of_model(1, 2, "b")).ok());
  for (const std::string& path : {first, second}) {
    const auto gguf = Gguf::open(path).value();
    EXPECT_EQ(gguf->text("general.architecture"), "llama");
    ASSERT_NE(gguf->find("b"), nullptr);
    EXPECT_EQ(base::load_le<f32>(gguf->find("b")->bytes.data() + 8), 3.0f);
    EXPECT_EQ(gguf->tensors().size(), 2u);
  }
  ASSERT_TRUE(base::write_file(second, part_of_model(1, 3, "b")).ok());
  EXPECT_FALSE(Gguf::open(first).ok()) << "a part of another model";
  ASSERT_TRUE(base::write_file(second, part_of_model(1, 2, "a")).ok());
  EXPECT_FALSE(Gguf::open(first).ok()) << "the same tensor twice";
  ASSERT_TRUE(base::write_file(folder / "renamed.gguf", part_of_model(0, 2, "a")).ok());
  EXPECT_FALSE(Gguf::open(folder / "renamed.gguf").ok());
}

}  // namespace
}  // namespace llm
