// Block formats of GGUF: exact decoding, and encoding for those that `fleetlm quantize` writes.
//
//   F16, BF16   one half or the upper half of a float
//   Q4_0  18 B / 32   f16 d, 16 bytes: low nibble = value i, high = value i + 16; d (n - 8)
//   Q4_1  20 B / 32   f16 d, f16 m, nibbles as above; d n + m
//   Q8_0  34 B / 32   f16 d, 32 x i8; d q
//   Q4_K 144 B / 256  f16 d, f16 dmin, 12 bytes of 6-bit scales, 128 bytes of nibbles
//   Q5_K 176 B / 256  as Q4_K with 32 bytes of fifth bits before the nibbles
//   Q6_K 210 B / 256  128 low nibbles, 64 bytes of upper bit pairs, 16 x i8 scales, f16 d
// Decoding multiplies and adds in float in the order ggml does, so results are equal bit for bit.
// Thread-safe: pure functions.
#pragma once

#include "llm/formats/tensor.h"

#include <span>

namespace llm {

f32 f16_to_f32(u16 half);
u16 f32_to_f16(f32 value);  // to nearest, ties to even
inline f32 bf16_to_f32(u16 value) {
  return std::bit_cast<f32>(static_cast<u32>(value) << 16);
}
u16 f32_to_bf16(f32 value);  // to nearest, ties to even
f32 f8e4m3_to_f32(u8 value);

// The eight 6-bit (scale, min) pairs of a K block.
void unpack_k_scales(const u8* packed, u8 scales[8], u8 mins[8]);

// Decodes out.size() values from whole blocks. REQUIRES: out.size() is a multiple of the block.
void dequantize(DType type, const u8* blocks, std::span<f32> out);
// Encodes whole blocks. REQUIRES: can_quantize(type), values.size() a multiple of the block.
void quantize(DType type, std::span<const f32> values, u8* blocks);
bool can_quantize(DType type);

}  // namespace llm
