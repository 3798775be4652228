#include "llm/formats/safetensors.h"

#include "base/files.h"
#include "llm/formats/testing.h"

#include <gtest/gtest.h>

namespace llm {
namespace {

TEST(Safetensors, ReadsNamesShapesAndBytes) {
  SafetensorsBuilder builder;
  builder.add_f32("a", {2, 3}, {1, 2, 3, 4, 5, 6});
  builder.add("b", "BF16", {4}, std::string("\x80\x3f\x00\x40\x40\x40\x80\x40", 8));
  builder.add("mask", "BOOL", {2}, std::string(2, '\1'));
  const std::string file = builder.file();
  const auto source = Safetensors::parse(base::as_bytes(file)).value();
  const TensorView* a = source->find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->shape_text(), "[2, 3]");
  EXPECT_EQ(base::load_le<f32>(a->bytes.data() + 20), 6.0f);
  EXPECT_EQ(source->find("b")->type, DType::kBF16);
  EXPECT_EQ(source->find("mask"), nullptr) << "no weight is a BOOL";
  EXPECT_EQ(source->tensors().size(), 2u);
}

std::string error_of(const std::string& header, const std::string& data = std::string(8, 'x')) {
  const std::string file = SafetensorsBuilder::with_header(header, data);
  const auto parsed = Safetensors::parse(base::as_bytes(file));
  return parsed.ok() ? "" : parsed.error().message();
}

TEST(Safetensors, AHostileHeaderGetsASentence) {
  const auto says = [](const std::string& message, const char* part) {
    return message.find(part) != std::string::npos;
  };
  EXPECT_TRUE(says(error_of("[]"), "not a JSON object"));
  EXPECT_TRUE(says(error_of("{\"a\":{}}"), "type ''"));
  EXPECT_TRUE(
      says(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})"), "past the end"));
  EXPECT_TRUE(
      says(error_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})"), "another size"));
  EXPECT_TRUE(says(error_of(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}})"),
                   "impossible shape"));
  EXPECT_TRUE(says(error_of(R"({"a":{"dtype":"F32","shape":[4611686018427387905,4],)"
                            R"("data_offsets":[0,8]}})"),
                   "impossible shape"))
      << "a product that wraps round";
  EXPECT_TRUE(says(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                            R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
                   "overlap"));
  EXPECT_TRUE(
      says(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})"), "past the end"));
  EXPECT_TRUE(says(error_of(R"({"a":{"dtype":"Q9","shape":[2],"data_offsets":[0,8]}})"), "'Q9'"));
  std::string huge(8, '\xff');
  EXPECT_FALSE(Safetensors::parse(base::as_bytes(huge)).ok()) << "a header longer than the file";
}

TEST(Safetensors, AnIndexJoinsItsFilesAndCannotLeaveTheFolder) {
  base::TempDir folder;
  SafetensorsBuilder one;
  one.add_f32("a", {2}, {1, 2});
  SafetensorsBuilder two;
  two.add_f32("b", {1}, {3});
  ASSERT_TRUE(base::write_file(folder / "one.safetensors", one.file()).ok());
  ASSERT_TRUE(base::write_file(folder / "two.safetensors", two.file()).ok());
  const std::string index = folder / "model.safetensors.index.json";
  const auto open = [&](const char* map) {
    EXPECT_TRUE(base::write_file(index, std::string("{\"weight_map\":") + map + "}").ok());
    return Safetensors::open(folder.path());
  };
  const auto both = open(R"({"a":"one.safetensors","b":"two.safetensors"})");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(base::load_le<f32>((*both)->find("b")->bytes.data()), 3.0f);
  EXPECT_FALSE(open(R"({"a":"../one.safetensors"})").ok());
  EXPECT_FALSE(open(R"({"a":"/etc/passwd"})").ok());
  EXPECT_FALSE(open(R"({"a":"one.safetensors","c":"two.safetensors"})").ok()) << "c is not there";
  EXPECT_FALSE(open(R"({"a":"three.safetensors"})").ok());
}

}  // namespace
}  // namespace llm
