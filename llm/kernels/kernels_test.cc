// Every table against the portable one, bit for bit, and the portable one against plain arithmetic
// in double precision.
#include "llm/kernels/kernels.h"

#include "base/random.h"
#include "llm/formats/quant.h"
#include "llm/kernels/crew.h"
#include "llm/kernels/matrix.h"
#include "llm/kernels/tables.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace llm {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ80, DType::kQ40,
                            DType::kQ41, DType::kQ4K, DType::kQ5K,  DType::kQ6K};

std::vector<f32> random_floats(base::Rng* rng, size_t count, f32 scale = 1) {
  std::vector<f32> values(count);
  for (f32& v : values) v = static_cast<f32>(rng->unit() * 2 - 1) * scale;
  return values;
}

std::vector<const Kernels*> other_tables() {
  std::vector<const Kernels*> tables;
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (const Kernels* table = kernels_for(isa)) tables.push_back(table);
  }
  return tables;
}

ActRows random_rows(base::Rng* rng, i32 tokens, i32 cols) {
  ActRows rows(tokens, cols);
  for (i32 t = 0; t < tokens; ++t) {
    const auto values = random_floats(rng, static_cast<size_t>(cols), 3);
    std::copy(values.begin(), values.end(), rows.row(t));
  }
  rows.quantize(kPortableKernels, 0, tokens);
  return rows;
}

TEST(Kernels, ReferenceProductMatchesDoublePrecisionForEveryType) {
  base::Rng rng(1);
  for (DType type : kTypes) {
    const i32 rows = 21;
    const i32 cols = 512;
    const auto weights = random_floats(&rng, static_cast<size_t>(rows) * cols);
    const PackedMatrix matrix = PackedMatrix::from_floats(weights.data(), rows, cols, type);
    const ActRows x = random_rows(&rng, 2, cols);
    std::vector<f32> out(2 * rows);
    kPortableKernels.gemm(matrix.view(), 0, matrix.groups(), x.view(), 2, out.data(), rows);
    const DTypeInfo& info = info_of(type);
    std::vector<u8> blocks(static_cast<size_t>(cols) / info.block_values * info.block_bytes);
    std::vector<f32> row(cols);
    for (i32 r = 0; r < rows; ++r) {
      quantize(type, {weights.data() + r * cols, static_cast<size_t>(cols)}, blocks.data());
      dequantize(type, blocks.data(), row);
      for (i32 t = 0; t < 2; ++t) {
        f64 expected = 0;
        for (i32 k = 0; k < cols; ++k) {
          const f64 value = matrix.quantised() ? static_cast<f64>(x.view().q[t * x.stride() + k]) *
                                                     x.view().d[t * x.view().block_stride + k / 32]
                                               : static_cast<f64>(x.row(t)[k]);
          expected += row[k] * value;
        }
        EXPECT_NEAR(out[t * rows + r], expected, 2e-4) << info.name << " row " << r;
      }
    }
  }
}

TEST(Kernels, EveryTableGivesTheReferenceBitsOnRaggedShapes) {
  base::Rng rng(2);
  for (const Kernels* table : other_tables()) {
    for (DType type : kTypes) {
      for (int round = 0; round < 12; ++round) {
        const i32 rows = static_cast<i32>(rng.between(1, 50));
        const u32 unit = info_of(type).block_values;
        const i32 cols = unit == 1 ? static_cast<i32>(rng.between(1, 100))
                                   : static_cast<i32>(rng.between(1, unit == 32 ? 20 : 3) * unit);
        const i32 tokens = static_cast<i32>(rng.between(1, 9));
        const auto weights =
            random_floats(&rng, static_cast<size_t>(rows) * static_cast<size_t>(cols));
        const PackedMatrix matrix = PackedMatrix::from_floats(
            weights.data(), static_cast<u64>(rows), static_cast<u64>(cols), type);
        const ActRows x = random_rows(&rng, tokens, cols);
        std::vector<f32> expected(static_cast<size_t>(tokens * rows));
        std::vector<f32> actual(expected.size(), -1);
        kPortableKernels.gemm(matrix.view(), 0, matrix.groups(), x.view(), tokens, expected.data(),
                              rows);
        table->gemm(matrix.view(), 0, matrix.groups(), x.view(), tokens, actual.data(), rows);
        ASSERT_EQ(expected, actual) << table->name << " " << info_of(type).name << " " << rows
                                    << "x" << cols << " tokens " << tokens;
      }
    }
  }
}

TEST(Kernels, TheLargestMagnitudesDoNotOverflowTheIntegerSums) {
  for (const Kernels* table : other_tables()) {
    for (DType type : {DType::kQ80, DType::kQ41, DType::kQ4K, DType::kQ5K, DType::kQ6K}) {
      const i32 cols = 256;
      std::vector<f32> weights(16 * cols);
      for (size_t i = 0; i < weights.size(); ++i) weights[i] = i % 37 == 0 ? -1.0f : 1.0f;
      const PackedMatrix matrix = PackedMatrix::from_floats(weights.data(), 16, cols, type);
      ActRows x(1, cols);
      std::fill(x.row(0), x.row(0) + cols, -5.0f);
      x.quantize(kPortableKernels, 0, 1);
      std::vector<f32> expected(16);
      std::vector<f32> actual(16);
      kPortableKernels.gemm(matrix.view(), 0, 1, x.view(), 1, expected.data(), 16);
      table->gemm(matrix.view(), 0, 1, x.view(), 1, actual.data(), 16);
      EXPECT_EQ(expected, actual) << table->name << " " << info_of(type).name;
      EXPECT_LT(actual[0], -1000);
    }
  }
}

TEST(Kernels, ARowDoesNotDependOnHowManyRowsAreComputedWithIt) {
  base::Rng rng(3);
  const Kernels& table = best_kernels();
  for (DType type : kTypes) {
    const auto weights = random_floats(&rng, 64 * 256);
    const PackedMatrix matrix = PackedMatrix::from_floats(weights.data(), 64, 256, type);
    const ActRows x = random_rows(&rng, 8, 256);
    std::vector<f32> together(8 * 64);
    table.gemm(matrix.view(), 0, 4, x.view(), 8, together.data(), 64);
    for (i32 t = 0; t < 8; ++t) {
      std::vector<f32> alone(64);
      table.gemm(matrix.view(), 0, 4, x.view_from(t), 1, alone.data(), 64);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + t * 64));
    }
  }
}

TEST(Kernels, ElementwiseFunctionsGiveTheReferenceBits) {
  base::Rng rng(4);
  const Kernels& ref = kPortableKernels;
  for (const Kernels* table : other_tables()) {
    for (i32 n : {1, 7, 8, 19, 64, 100}) {
      const auto size = static_cast<size_t>(n);
      const auto a = random_floats(&rng, size, 8);
      const auto b = random_floats(&rng, size, 8);
      std::vector<f32> x(size);
      std::vector<f32> y(size);
      EXPECT_EQ(ref.dot(a.data(), b.data(), n), table->dot(a.data(), b.data(), n));
      ref.rms_norm(a.data(), b.data(), 1e-5f, n, x.data());
      table->rms_norm(a.data(), b.data(), 1e-5f, n, y.data());
      EXPECT_EQ(x, y);
      ref.silu_mul(a.data(), b.data(), n, x.data());
      table->silu_mul(a.data(), b.data(), n, y.data());
      EXPECT_EQ(x, y);
      x = y = a;
      ref.softmax(x.data(), n);
      table->softmax(y.data(), n);
      EXPECT_EQ(x, y);
      ref.add_scaled(b.data(), 0.3f, n, x.data());
      table->add_scaled(b.data(), 0.3f, n, y.data());
      EXPECT_EQ(x, y);
      std::vector<u16> h(size);
      std::vector<u16> g(size);
      ref.to_half(a.data(), n, h.data());
      table->to_half(a.data(), n, g.data());
      EXPECT_EQ(h, g);
    }
    const ActRows rows = random_rows(&rng, 1, 96);
    std::vector<i8> q(96);
    std::vector<f32> d(3), s(3);
    std::vector<i32> sums(3);
    table->quantize(rows.row(0), 96, q.data(), d.data(), s.data(), sums.data());
    EXPECT_TRUE(std::equal(q.begin(), q.end(), rows.view().q));
    EXPECT_TRUE(std::equal(d.begin(), d.end(), rows.view().d));
    EXPECT_TRUE(std::equal(s.begin(), s.end(), rows.view().s));
    EXPECT_TRUE(std::equal(sums.begin(), sums.end(), rows.view().sums));
  }
}

TEST(Kernels, ExponentialsAreAccurateAndVanishBelowTheRange) {
  for (f32 x = -80; x < 0; x += 0.37f) {
    f32 pair[2] = {0, x};
    kPortableKernels.softmax(pair, 2);
    const f64 expected = std::exp(static_cast<f64>(x)) / (1 + std::exp(static_cast<f64>(x)));
    EXPECT_NEAR(pair[1] / expected, 1, 3e-7) << x;
  }
  f32 far[2] = {0, -1000};
  kPortableKernels.softmax(far, 2);
  EXPECT_EQ(far[1], 0);
}

struct Cache {
  std::vector<u8> keys, values;
  std::vector<i32> pages;
};

Cache random_cache(base::Rng* rng, i32 tokens, i32 head_dim, i32 v_stride, bool half) {
  Cache cache;
  const size_t element = half ? 2 : 4;
  const size_t page_count = static_cast<size_t>(tokens + 15) / 16;
  for (size_t p = 0; p < page_count; ++p)
    cache.pages.push_back(static_cast<i32>(page_count - 1 - p));
  auto fill = [&](std::vector<u8>* out, size_t count) {
    out->resize(count * element);
    for (size_t i = 0; i < count; ++i) {
      const f32 value = static_cast<f32>(rng->unit() * 2 - 1);
      if (half) {
        base::store_le<u16>(out->data() + i * 2, f32_to_f16(value));
      } else {
        base::store_le<f32>(out->data() + i * 4, value);
      }
    }
  };
  fill(&cache.keys, page_count * 16 * static_cast<size_t>(head_dim));
  fill(&cache.values, page_count * 16 * static_cast<size_t>(v_stride));
  return cache;
}

TEST(Kernels, MatchesAndMixesOfCachedRowsGiveTheReferenceBits) {
  base::Rng rng(6);
  constexpr i32 kCount = 21;
  for (const Kernels* table : other_tables()) {
    for (bool half : {true, false}) {
      for (i32 n : {8, 40, 80, 648}) {
        for (i32 heads : {1, 2, 3, 4, 6, 9, 16}) {
          const auto values = random_floats(&rng, static_cast<size_t>(kCount * n), 2);
          std::vector<u16> halves(values.size());
          kPortableKernels.to_half(values.data(), kCount * n, halves.data());
          std::vector<const u8*> rows;
          for (i32 u = kCount - 1; u >= 0; --u) {
            rows.push_back(half ? reinterpret_cast<const u8*>(halves.data() + u * n)
                                : reinterpret_cast<const u8*>(values.data() + u * n));
          }
          const CachedRows cached{rows.data(), kCount, n, half};
          const auto q = random_floats(&rng, static_cast<size_t>(heads * n), 2);
          std::vector<f32> x(static_cast<size_t>(heads) * kCount);
          std::vector<f32> y(x.size());
          kPortableKernels.match(q.data(), n, heads, cached, 0.3f, x.data(), kCount);
          table->match(q.data(), n, heads, cached, 0.3f, y.data(), kCount);
          ASSERT_EQ(x, y) << "half " << half << " n " << n << " heads " << heads;
          std::vector<f32> a(q.size());
          std::vector<f32> b(q.size());
          kPortableKernels.mix(x.data(), kCount, heads, cached, a.data(), n);
          table->mix(x.data(), kCount, heads, cached, b.data(), n);
          ASSERT_EQ(a, b) << "half " << half << " n " << n << " heads " << heads;
        }
      }
    }
  }
}

TEST(Kernels, LargestIsTheFirstOfTheBest) {
  base::Rng rng(9);
  for (const Kernels* table : other_tables()) {
    for (i32 n : {1, 7, 8, 15, 16, 17, 100, 2048}) {
      auto x = random_floats(&rng, static_cast<size_t>(n), 1);
      for (i32 round = 0; round < 20; ++round) {
        const auto at = static_cast<size_t>(rng.below(static_cast<u64>(n)));
        x[at] = 2;  // ties from the second round on
        ASSERT_EQ(table->largest(x.data(), n), kPortableKernels.largest(x.data(), n)) << n;
      }
    }
    const f32 never = -std::numeric_limits<f32>::infinity();
    const std::vector<f32> none(40, never);
    EXPECT_EQ(table->largest(none.data(), 40), 0);
  }
}

TEST(Kernels, AttentionGivesTheReferenceBitsForAnyTileOfRows) {
  base::Rng rng(5);
  for (const Kernels* table : other_tables()) {
    for (bool half : {false, true}) {
      for (int round = 0; round < 12; ++round) {
        const i32 head_dim = static_cast<i32>(rng.between(1, 40));
        const i32 v_dim = static_cast<i32>(rng.between(1, 40));
        const i32 v_stride = (v_dim + 7) / 8 * 8;
        const i32 rows = static_cast<i32>(rng.between(1, 4));
        const i32 length = static_cast<i32>(rng.between(1, 70));
        const i32 tokens = length + rows - 1;
        const Cache cache = random_cache(&rng, tokens, head_dim, v_stride, half);
        const auto q = random_floats(&rng, static_cast<size_t>(rows * head_dim), 2);
        std::vector<f32> scores(4 * 96);
        std::vector<f32> expected(static_cast<size_t>(rows * v_dim));
        std::vector<f32> actual(expected.size());
        const i64 element = half ? 2 : 4;
        AttendArgs args{q.data(),
                        head_dim,
                        rows,
                        head_dim,
                        v_dim,
                        v_stride,
                        half,
                        cache.keys.data(),
                        cache.values.data(),
                        16 * head_dim * element,
                        16 * v_stride * element,
                        cache.pages.data(),
                        length,
                        0.3f,
                        scores.data(),
                        96,
                        expected.data(),
                        v_dim};
        args.growth = round % 2;
        kPortableKernels.attend(args);
        args.out = actual.data();
        table->attend(args);
        ASSERT_EQ(expected, actual) << table->name << " length " << length << " rows " << rows;
      }
    }
  }
}

}  // namespace
}  // namespace llm
