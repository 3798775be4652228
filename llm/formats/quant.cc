#include "llm/formats/quant.h"

#include <algorithm>
#include <cmath>

namespace llm {
namespace {

using base::load_le;
using base::store_le;

constexpr size_t kBlock = 32;

void decode_q40(const u8* block, f32* out) {
  const f32 d = f16_to_f32(load_le<u16>(block));
  for (size_t i = 0; i < 16; ++i) {
    const u8 pair = block[2 + i];
    out[i] = static_cast<f32>((pair & 15) - 8) * d;
    out[i + 16] = static_cast<f32>((pair >> 4) - 8) * d;
  }
}

void decode_q41(const u8* block, f32* out) {
  const f32 d = f16_to_f32(load_le<u16>(block));
  const f32 m = f16_to_f32(load_le<u16>(block + 2));
  for (size_t i = 0; i < 16; ++i) {
    const u8 pair = block[4 + i];
    out[i] = static_cast<f32>(pair & 15) * d + m;
    out[i + 16] = static_cast<f32>(pair >> 4) * d + m;
  }
}

void decode_q80(const u8* block, f32* out) {
  const f32 d = f16_to_f32(load_le<u16>(block));
  for (size_t i = 0; i < kBlock; ++i) out[i] = static_cast<f32>(static_cast<i8>(block[2 + i])) * d;
}

// Q4_K and Q5_K: the fifth bits, when there are any, sit between the scales and the nibbles.
void decode_q45k(const u8* block, bool five_bits, f32* out) {
  const f32 d = f16_to_f32(load_le<u16>(block));
  const f32 dmin = f16_to_f32(load_le<u16>(block + 2));
  u8 scales[8];
  u8 mins[8];
  unpack_k_scales(block + 4, scales, mins);
  const u8* high = block + 16;
  const u8* nibbles = five_bits ? block + 48 : block + 16;
  for (size_t sub = 0; sub < 8; ++sub) {
    const f32 scale = d * static_cast<f32>(scales[sub]);
    const f32 min = dmin * static_cast<f32>(mins[sub]);
    const u8* from = nibbles + sub / 2 * 32;
    for (size_t i = 0; i < kBlock; ++i) {
      u32 q = sub % 2 == 0 ? from[i] & 15u : from[i] >> 4;
      if (five_bits) q += (high[i] >> sub & 1u) << 4;
      out[sub * kBlock + i] = scale * static_cast<f32>(q) - min;
    }
  }
}

void decode_q6k(const u8* block, f32* out) {
  const f32 d = f16_to_f32(load_le<u16>(block + 208));
  for (size_t half = 0; half < 2; ++half) {
    const u8* low = block + 64 * half;
    const u8* high = block + 128 + 32 * half;
    const u8* scales = block + 192 + 8 * half;
    for (size_t i = 0; i < 128; ++i) {
      const size_t lane = i % 32;
      const size_t quarter = i / 32;
      const u8 byte = low[lane + 32 * (quarter % 2)];
      const u32 nibble = quarter < 2 ? byte & 15u : byte >> 4;
      const u32 upper = high[lane] >> (2 * quarter) & 3u;
      const i32 q = static_cast<i32>(nibble | upper << 4) - 32;
      const f32 scale = d * static_cast<f32>(static_cast<i8>(scales[i / 16]));
      out[half * 128 + i] = scale * static_cast<f32>(q);
    }
  }
}

void encode_q80(const f32* x, u8* block) {
  f32 peak = 0;
  for (size_t i = 0; i < kBlock; ++i) peak = std::max(peak, std::fabs(x[i]));
  const f32 d = peak / 127.0f;
  const f32 inverse = d == 0 ? 0 : 1.0f / d;
  store_le<u16>(block, f32_to_f16(d));
  for (size_t i = 0; i < kBlock; ++i) {
    block[2 + i] = static_cast<u8>(static_cast<i8>(std::lround(x[i] * inverse)));
  }
}

void encode_q40(const f32* x, u8* block) {
  f32 extreme = 0;  // signed, so that the larger side gets the extra level -8
  for (size_t i = 0; i < kBlock; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  const f32 d = extreme / -8.0f;
  const f32 inverse = d == 0 ? 0 : 1.0f / d;
  store_le<u16>(block, f32_to_f16(d));
  auto level = [&](f32 value) {
    return static_cast<u8>(std::clamp(static_cast<int>(value * inverse + 8.5f), 0, 15));
  };
  for (size_t i = 0; i < 16; ++i) {
    block[2 + i] = static_cast<u8>(level(x[i]) | level(x[i + 16]) << 4);
  }
}

void encode_q41(const f32* x, u8* block) {
  const auto [low, high] = std::minmax_element(x, x + kBlock);
  const f32 d = (*high - *low) / 15.0f;
  const f32 inverse = d == 0 ? 0 : 1.0f / d;
  store_le<u16>(block, f32_to_f16(d));
  store_le<u16>(block + 2, f32_to_f16(*low));
  auto level = [&, low = *low](f32 value) {
    return static_cast<u8>(std::clamp(static_cast<int>((value - low) * inverse + 0.5f), 0, 15));
  };
  for (size_t i = 0; i < 16; ++i) {
    block[4 + i] = static_cast<u8>(level(x[i]) | level(x[i + 16]) << 4);
  }
}

// x is about scale * q - min, with q from 0 to a number of levels.
struct Range {
  f32 scale, min;
};

// The squared error of a range with its best q, and the range that fits those q best.
f32 refit(const f32* x, int levels, const Range& range, Range* better) {
  const f32 inverse = range.scale == 0 ? 0 : 1.0f / range.scale;
  f32 error = 0, sum_q = 0, sum_qq = 0, sum_x = 0, sum_qx = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const f32 q =
        std::clamp(std::nearbyint((x[i] + range.min) * inverse), 0.0f, static_cast<f32>(levels));
    const f32 off = range.scale * q - range.min - x[i];
    error += off * off;
    sum_q += q;
    sum_qq += q * q;
    sum_x += x[i];
    sum_qx += q * x[i];
  }
  constexpr f32 kCount = kBlock;
  const f32 spread = kCount * sum_qq - sum_q * sum_q;
  *better = range;
  if (spread <= 0) return error;
  better->scale = (kCount * sum_qx - sum_q * sum_x) / spread;
  better->min = (better->scale * sum_q - sum_x) / kCount;
  if (better->min < 0) *better = {sum_qx / sum_qq, 0};  // a min cannot be below zero in the file
  if (!(better->scale > 0)) *better = range;
  return error;
}

// Scale and min of one sub-block. From the full range and some narrower ones, which clip outliers
// to be finer elsewhere, alternates between the best q and the best range.
Range fit_range(const f32* x, int levels) {
  const auto [low, high] = std::minmax_element(x, x + kBlock);
  const f32 floor = std::min(*low, 0.0f);
  const Range whole{(*high - floor) / static_cast<f32>(levels), -floor};
  constexpr int kNarrower = 9;
  constexpr int kTurns = 3;
  Range best = whole;
  Range next = whole;
  f32 least = refit(x, levels, whole, &next);
  for (int step = 0; step < kNarrower; ++step) {
    const f32 part = 1.0f - 0.05f * static_cast<f32>(step);
    Range range = step == 0 ? next : Range{whole.scale * part, whole.min * part};
    for (int turn = 0; turn < kTurns; ++turn) {
      const f32 error = refit(x, levels, range, &next);
      if (error < least) {
        least = error;
        best = range;
      }
      range = next;
    }
  }
  return best;
}

void pack_k_scales(const u8 scales[8], const u8 mins[8], u8* packed) {
  for (size_t j = 0; j < 4; ++j) {
    packed[j] = static_cast<u8>(scales[j] | (scales[j + 4] >> 4) << 6);
    packed[j + 4] = static_cast<u8>(mins[j] | (mins[j + 4] >> 4) << 6);
    packed[j + 8] = static_cast<u8>((scales[j + 4] & 15) | (mins[j + 4] & 15) << 4);
  }
}

void encode_q45k(const f32* x, bool five_bits, u8* block) {
  const int levels = five_bits ? 31 : 15;
  f32 scale[8];
  f32 min[8];
  for (size_t sub = 0; sub < 8; ++sub) {
    const Range range = fit_range(x + sub * kBlock, levels);
    scale[sub] = range.scale;
    min[sub] = range.min;
  }
  const u16 d_half = f32_to_f16(*std::max_element(scale, scale + 8) / 63.0f);
  const u16 dmin_half = f32_to_f16(*std::max_element(min, min + 8) / 63.0f);
  const f32 d = f16_to_f32(d_half);
  const f32 dmin = f16_to_f32(dmin_half);
  u8 scales[8];
  u8 mins[8];
  auto six_bits = [](f32 value, f32 unit) {
    return unit == 0 ? u8{0} : static_cast<u8>(std::clamp<long>(std::lround(value / unit), 0, 63));
  };
  for (size_t sub = 0; sub < 8; ++sub) {
    scales[sub] = six_bits(scale[sub], d);
    mins[sub] = six_bits(min[sub], dmin);
  }
  store_le<u16>(block, d_half);
  store_le<u16>(block + 2, dmin_half);
  pack_k_scales(scales, mins, block + 4);
  u8* high = block + 16;
  u8* nibbles = five_bits ? block + 48 : block + 16;
  std::fill(block + 16, block + (five_bits ? 176 : 144), u8{0});
  for (size_t sub = 0; sub < 8; ++sub) {
    const f32 unit = d * static_cast<f32>(scales[sub]);
    const f32 floor = dmin * static_cast<f32>(mins[sub]);
    for (size_t i = 0; i < kBlock; ++i) {
      const f32 above = x[sub * kBlock + i] + floor;
      const long raw = unit == 0 ? 0 : std::lround(above / unit);
      const u32 q = static_cast<u32>(std::clamp<long>(raw, 0, levels));
      nibbles[sub / 2 * 32 + i] |= static_cast<u8>((q & 15) << (sub % 2 * 4));
      if (five_bits) high[i] |= static_cast<u8>((q >> 4) << sub);
    }
  }
}

void encode_q6k(const f32* x, u8* block) {
  f32 scale[16];
  f32 widest = 0;
  for (size_t sub = 0; sub < 16; ++sub) {
    f32 extreme = 0;
    for (size_t i = 0; i < 16; ++i) {
      const f32 value = x[sub * 16 + i];
      if (std::fabs(value) > std::fabs(extreme)) extreme = value;
    }
    scale[sub] = extreme / -32.0f;
    if (std::fabs(scale[sub]) > std::fabs(widest)) widest = scale[sub];
  }
  const u16 d_half = f32_to_f16(widest / -128.0f);
  const f32 d = f16_to_f32(d_half);
  std::fill(block, block + 210, u8{0});
  store_le<u16>(block + 208, d_half);
  for (size_t sub = 0; sub < 16; ++sub) {
    const long rounded = d == 0 ? 0 : std::lround(scale[sub] / d);
    const i32 step = static_cast<i32>(std::clamp<long>(rounded, -128, 127));
    block[192 + sub] = static_cast<u8>(static_cast<i8>(step));
    const f32 unit = d * static_cast<f32>(step);
    for (size_t i = 0; i < 16; ++i) {
      const size_t at = sub * 16 + i;
      const long raw = unit == 0 ? 0 : std::lround(x[at] / unit);
      const u32 q = static_cast<u32>(std::clamp<long>(raw, -32, 31) + 32);
      const size_t half = at / 128;
      const size_t quarter = at % 128 / 32;
      const size_t lane = at % 32;
      const size_t low_at = 64 * half + lane + 32 * (quarter % 2);
      block[low_at] |= static_cast<u8>((q & 15) << (quarter < 2 ? 0 : 4));
      block[128 + 32 * half + lane] |= static_cast<u8>((q >> 4) << (2 * quarter));
    }
  }
}

}  // namespace

f32 f16_to_f32(u16 half) {
  const u32 sign = static_cast<u32>(half & 0x8000) << 16;
  const u32 exponent = half >> 10 & 31;
  const u32 mantissa = half & 0x3ff;
  if (exponent == 0) {
    const f32 magnitude = static_cast<f32>(mantissa) * 0x1.0p-24f;
    return std::bit_cast<f32>(std::bit_cast<u32>(magnitude) | sign);
  }
  const u32 widened = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<f32>(sign | widened << 23 | mantissa << 13);
}

u16 f32_to_f16(f32 value) {
  const u32 bits = std::bit_cast<u32>(value);
  const u16 sign = static_cast<u16>(bits >> 16 & 0x8000);
  const u32 magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;   // not a number
  if (magnitude >= 0x47800000) return sign | 0x7c00;  // beyond the largest half
  if (magnitude < 0x38800000) {                       // a subnormal half: count units of 2^-24
    const f32 units = std::bit_cast<f32>(magnitude) * 0x1.0p24f;
    return static_cast<u16>(sign | static_cast<u16>(std::nearbyint(units)));
  }
  const u32 rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<u16>(sign | ((rounded - 0x38000000) >> 13));
}

u16 f32_to_bf16(f32 value) {
  const u32 bits = std::bit_cast<u32>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<u16>(bits >> 16 | 64);
  return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

f32 f8e4m3_to_f32(u8 value) {
  const f32 sign = (value & 0x80) != 0 ? -1.0f : 1.0f;
  const int exponent = value >> 3 & 15;
  const int mantissa = value & 7;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<f32>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<f32>(mantissa), -9);
  return sign * std::ldexp(static_cast<f32>(8 + mantissa), exponent - 10);
}

void unpack_k_scales(const u8* packed, u8 scales[8], u8 mins[8]) {
  for (size_t j = 0; j < 4; ++j) {
    scales[j] = packed[j] & 63;
    mins[j] = packed[j + 4] & 63;
    scales[j + 4] = static_cast<u8>((packed[j + 8] & 15) | (packed[j] >> 6) << 4);
    mins[j + 4] = static_cast<u8>((packed[j + 8] >> 4) | (packed[j + 4] >> 6) << 4);
  }
}

void dequantize(DType type, const u8* blocks, std::span<f32> out) {
  const DTypeInfo& info = info_of(type);
  CHECK(out.size() % info.block_values == 0);
  const size_t count = out.size() / info.block_values;
  for (size_t b = 0; b < count; ++b) {
    const u8* block = blocks + b * info.block_bytes;
    f32* to = out.data() + b * info.block_values;
    switch (type) {
      case DType::kF32:
        *to = load_le<f32>(block);
        break;
      case DType::kF16:
        *to = f16_to_f32(load_le<u16>(block));
        break;
      case DType::kBF16:
        *to = bf16_to_f32(load_le<u16>(block));
        break;
      case DType::kF8E4M3:
        *to = f8e4m3_to_f32(*block);
        break;
      case DType::kQ40:
        decode_q40(block, to);
        break;
      case DType::kQ41:
        decode_q41(block, to);
        break;
      case DType::kQ80:
        decode_q80(block, to);
        break;
      case DType::kQ4K:
        decode_q45k(block, false, to);
        break;
      case DType::kQ5K:
        decode_q45k(block, true, to);
        break;
      case DType::kQ6K:
        decode_q6k(block, to);
        break;
      case DType::kI8:
        *to = static_cast<f32>(static_cast<i8>(*block));
        break;
      case DType::kI32:
        *to = static_cast<f32>(load_le<i32>(block));
        break;
      case DType::kI64:
        *to = static_cast<f32>(load_le<i64>(block));
        break;
    }
  }
}

bool can_quantize(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16 ||
         type == DType::kQ40 || type == DType::kQ41 || type == DType::kQ80 || type == DType::kQ4K ||
         type == DType::kQ5K || type == DType::kQ6K;
}

void quantize(DType type, std::span<const f32> values, u8* blocks) {
  CHECK(can_quantize(type));
  const DTypeInfo& info = info_of(type);
  CHECK(values.size() % info.block_values == 0);
  for (size_t b = 0; b < values.size() / info.block_values; ++b) {
    const f32* from = values.data() + b * info.block_values;
    u8* block = blocks + b * info.block_bytes;
    switch (type) {
      case DType::kF32:
        store_le<f32>(block, *from);
        break;
      case DType::kF16:
        store_le<u16>(block, f32_to_f16(*from));
        break;
      case DType::kBF16:
        store_le<u16>(block, f32_to_bf16(*from));
        break;
      case DType::kQ40:
        encode_q40(from, block);
        break;
      case DType::kQ41:
        encode_q41(from, block);
        break;
      case DType::kQ80:
        encode_q80(from, block);
        break;
      case DType::kQ4K:
        encode_q45k(from, false, block);
        break;
      case DType::kQ5K:
        encode_q45k(from, true, block);
        break;
      case DType::kQ6K:
        encode_q6k(from, block);
        break;
      default:
        CHECK(false);
    }
  }
}

}  // namespace llm
