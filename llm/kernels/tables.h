// The tables of each instruction set and the constants they share. Private to llm/kernels.
#pragma once

#include "llm/kernels/kernels.h"

namespace llm {

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

// exp(x) = 2^n exp(r), r in [-ln2/2, ln2/2], exp(r) = 1 + r + r^2 P(r); below kExpLowest it is 0.
inline constexpr f32 kExpLowest = -87.33654f;
inline constexpr f32 kExpHighest = 88.0f;
inline constexpr f32 kLog2E = 1.44269504f;
inline constexpr f32 kLn2High = 0.693359375f;
inline constexpr f32 kLn2Low = -2.12194440e-4f;
inline constexpr f32 kExpTerms[6] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                     4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};

}  // namespace llm
