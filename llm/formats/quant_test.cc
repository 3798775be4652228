#include "llm/formats/quant.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace llm {
namespace {

TEST(Halves, RoundTripForEveryBitPattern) {
  for (u32 bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<u16>(bits);
    const f32 value = f16_to_f32(half);
    if (std::isnan(value)) continue;
    EXPECT_EQ(f32_to_f16(value), half) << bits;
  }
}

TEST(Halves, RoundToNearestEvenAndSaturateToInfinity) {
  EXPECT_EQ(f32_to_f16(1.0f + 0x1.0p-11f), f32_to_f16(1.0f));
  EXPECT_EQ(f32_to_f16(1.0f + 0x1.8p-10f), f32_to_f16(1.0f + 0x1.0p-9f));
  EXPECT_EQ(f16_to_f32(f32_to_f16(1e6f)), INFINITY);
  EXPECT_EQ(f32_to_f16(0x1.0p-25f), 0);
  EXPECT_EQ(f32_to_f16(0x1.8p-25f), 1);
}

TEST(E4M3, HasTheDocumentedExtremesAndNoInfinity) {
  EXPECT_EQ(f8e4m3_to_f32(0x7e), 448.0f);
  EXPECT_EQ(f8e4m3_to_f32(0xfe), -448.0f);
  EXPECT_EQ(f8e4m3_to_f32(0x01), 0x1.0p-9f);
  EXPECT_EQ(f8e4m3_to_f32(0x38), 1.0f);
  EXPECT_TRUE(std::isnan(f8e4m3_to_f32(0x7f)));
}

TEST(Blocks, EncodingErrsByAtMostOneStep) {
  base::Rng rng(7);
  struct Case {
    DType type;
    f32 tolerance;
  };
  for (const Case c :
       {Case{DType::kF16, 5e-4f}, Case{DType::kBF16, 4e-3f}, Case{DType::kQ80, 5e-3f},
        Case{DType::kQ40, 0.13f}, Case{DType::kQ41, 0.07f}, Case{DType::kQ4K, 0.13f},
        Case{DType::kQ5K, 0.065f}, Case{DType::kQ6K, 0.04f}}) {
    std::vector<f32> values(1024);
    for (f32& v : values) v = static_cast<f32>(rng.unit() * 2 - 1);
    const DTypeInfo& info = info_of(c.type);
    std::vector<u8> blocks(values.size() / info.block_values * info.block_bytes);
    quantize(c.type, values, blocks.data());
    std::vector<f32> back(values.size());
    dequantize(c.type, blocks.data(), back);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], back[i], c.tolerance) << info.name << " at " << i;
    }
  }
}

TEST(Blocks, ZerosAndConstantsSurvive) {
  for (DType type :
       {DType::kQ80, DType::kQ40, DType::kQ41, DType::kQ4K, DType::kQ5K, DType::kQ6K}) {
    std::vector<f32> zeros(256, 0.0f);
    const DTypeInfo& info = info_of(type);
    std::vector<u8> blocks(256 / info.block_values * info.block_bytes);
    quantize(type, zeros, blocks.data());
    std::vector<f32> back(256, 1.0f);
    dequantize(type, blocks.data(), back);
    EXPECT_EQ(back, zeros) << info.name;
  }
}

}  // namespace
}  // namespace llm
