// Which table runs here: the processor's features, a self-check, and a variable to lower the
// choice.
#include "base/log.h"
#include "llm/kernels/matrix.h"
#include "llm/kernels/tables.h"

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace llm {
namespace {

// Every kind of matrix on a ragged shape against the reference; a table that differs in one bit on
// this very processor is not used.
bool agrees_with_reference(const Kernels& kernels) {
  constexpr i32 kRowCount = 19;
  constexpr i32 kCols = 256;
  constexpr i32 kTokens = 5;
  std::vector<f32> weights(static_cast<size_t>(kRowCount) * kCols);
  std::vector<f32> x(static_cast<size_t>(kTokens) * kCols);
  u32 state = 12345;
  auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<f32>(static_cast<i32>(state >> 8) - (1 << 23)) * 0x1.0p-23f;
  };
  for (f32& w : weights) w = next();
  for (f32& v : x) v = next();
  ActRows rows(kTokens, kCols);
  std::copy(x.begin(), x.end(), rows.x());
  rows.quantize(kPortableKernels, 0, kTokens);
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ80, DType::kQ41, DType::kQ4K,
                     DType::kQ5K, DType::kQ6K}) {
    const PackedMatrix matrix = PackedMatrix::from_floats(weights.data(), kRowCount, kCols, type);
    std::vector<f32> expected(static_cast<size_t>(kTokens) * kRowCount);
    std::vector<f32> actual(expected.size());
    const i32 groups = matrix.groups();
    kPortableKernels.gemm(matrix.view(), 0, groups, rows.view(), kTokens, expected.data(),
                          kRowCount);
    kernels.gemm(matrix.view(), 0, groups, rows.view(), kTokens, actual.data(), kRowCount);
    if (std::memcmp(expected.data(), actual.data(), expected.size() * sizeof(f32)) != 0)
      return false;
  }
  return true;
}

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#endif

const Kernels& choose() {
  const char* wish_text = std::getenv("FLEETLM_ISA");
  const std::string_view wish = wish_text == nullptr ? "" : wish_text;
  if (wish == "portable") return kPortableKernels;
  for (Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
    const Kernels* kernels = kernels_for(isa);
    if (kernels == nullptr || (wish == "avx2" && isa == Isa::kAvx512)) continue;
    if (agrees_with_reference(*kernels)) return *kernels;
    base::log_warn("kernels", "a kernel table failed its self-check and is not used",
                   {{"isa", kernels->name}});
  }
  return kPortableKernels;
}

}  // namespace

const Kernels* kernels_for(Isa isa) {
  if (isa == Isa::kPortable) return &kPortableKernels;
#if defined(__x86_64__)
  if (isa == Isa::kAvx2 && has_avx2()) return &kAvx2Kernels;
  if (isa == Isa::kAvx512 && has_avx512()) return &kAvx512Kernels;
#endif
  return nullptr;
}

const Kernels& best_kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace llm
