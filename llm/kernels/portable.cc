// The reference: plain C++, the exact sequence of operations that every other table must reproduce.
#include "base/bytes.h"
#include "llm/formats/quant.h"
#include "llm/kernels/tables.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace llm {
namespace {

constexpr i32 kRows = 16;
constexpr i32 kBlock = 32;

f32 exp_f32(f32 x) {
  if (x < kExpLowest) return 0;
  x = std::min(x, kExpHighest);
  const f32 n = std::nearbyint(x * kLog2E);
  f32 r = std::fma(n, -kLn2High, x);
  r = std::fma(n, -kLn2Low, r);
  f32 p = kExpTerms[0];
  for (int i = 1; i < 6; ++i) p = std::fma(p, r, kExpTerms[i]);
  p = std::fma(p, r * r, r);
  p += 1.0f;
  const u32 bits = static_cast<u32>(static_cast<i32>(n) + 127) << 23;
  return p * std::bit_cast<f32>(bits);
}

// Eight running sums, folded the way the vector code folds a register.
struct Lanes {
  f32 lane[8] = {};
  f32 total() const {
    f32 half[4];
    for (int i = 0; i < 4; ++i) half[i] = lane[i] + lane[i + 4];
    return (half[0] + half[2]) + (half[1] + half[3]);
  }
};

i32 weight_at(const MatrixView& m, i32 group, i32 row, i32 k) {
  const u8* data = m.data + static_cast<u64>(group) * m.group_bytes;
  const i32 block = k / kBlock;
  const i32 i = k % kBlock;
  if (m.kind == MatrixKind::kQ4 || m.kind == MatrixKind::kQ4K) {
    const i32 j = i % 16;
    const u8 pair = data[block * 256 + j / 4 * 64 + row * 4 + j % 4];
    return i < 16 ? pair & 15 : pair >> 4;
  }
  return static_cast<i8>(data[block * 512 + i / 4 * 64 + row * 4 + i % 4]);
}

// Scale number `which` of a block: d, or m, or the second d of kQ6K.
f32 scale_at(const MatrixView& m, i32 group, i32 row, i32 block, i32 which) {
  const u8* scales = m.scales + static_cast<u64>(group) * m.group_scale_bytes;
  switch (m.kind) {
    case MatrixKind::kQ8:
      return f16_to_f32(base::load_le<u16>(scales + (block * kRows + row) * 2));
    case MatrixKind::kQ4:
      return f16_to_f32(base::load_le<u16>(scales + ((block * 2 + which) * kRows + row) * 2));
    default:
      return base::load_le<f32>(scales + ((block * 2 + which) * kRows + row) * 4);
  }
}

i32 dot_range(const MatrixView& m, i32 group, i32 row, const i8* q, i32 from, i32 to) {
  i32 sum = 0;
  for (i32 k = from; k < to; ++k) sum += weight_at(m, group, row, k) * q[k];
  return sum;
}

f32 quantised_row(const MatrixView& m, i32 group, i32 row, const ActView& a, i32 t) {
  const i8* q = a.q + t * a.q_stride;
  const f32* d = a.d + t * a.block_stride;
  const f32* s = a.s + t * a.block_stride;
  f32 acc = 0;
  for (i32 b = 0; b < m.cols / kBlock; ++b) {
    const i32 from = b * kBlock;
    const f32 first = scale_at(m, group, row, b, 0);
    if (m.kind == MatrixKind::kQ6K) {
      const i32 low = dot_range(m, group, row, q, from, from + 16);
      const i32 high = dot_range(m, group, row, q, from + 16, from + 32);
      acc = std::fma(static_cast<f32>(low), first * d[b], acc);
      acc = std::fma(static_cast<f32>(high), scale_at(m, group, row, b, 1) * d[b], acc);
      continue;
    }
    const i32 sum = dot_range(m, group, row, q, from, from + kBlock);
    acc = std::fma(static_cast<f32>(sum), first * d[b], acc);
    if (m.kind != MatrixKind::kQ8) acc = std::fma(scale_at(m, group, row, b, 1), s[b], acc);
  }
  return acc;
}

f32 float_row(const MatrixView& m, i32 group, i32 row, const f32* x) {
  const u8* data = m.data + static_cast<u64>(group) * m.group_bytes;
  f32 acc = 0;
  for (i32 from = 0; from < m.cols; from += kBlock) {
    f32 part = 0;
    for (i32 k = from; k < std::min(from + kBlock, m.cols); ++k) {
      const i64 at = static_cast<i64>(k) * kRows + row;
      f32 w;
      if (m.kind == MatrixKind::kF32) {
        w = base::load_le<f32>(data + at * 4);
      } else if (m.kind == MatrixKind::kF16) {
        w = f16_to_f32(base::load_le<u16>(data + at * 2));
      } else {
        w = bf16_to_f32(base::load_le<u16>(data + at * 2));
      }
      part = std::fma(w, x[k], part);
    }
    acc += part;
  }
  return acc;
}

void gemm(const MatrixView& m, i32 group_begin, i32 group_end, const ActView& a, i32 tokens,
          f32* out, i64 out_stride) {
  const bool floats = m.kind <= MatrixKind::kBF16;
  for (i32 group = group_begin; group < group_end; ++group) {
    for (i32 row = 0; row < std::min(kRows, m.rows - group * kRows); ++row) {
      for (i32 t = 0; t < tokens; ++t) {
        const i32 from = a.order == nullptr ? t : a.order[t];
        out[t * out_stride + group * kRows + row] =
            floats ? float_row(m, group, row, a.x + from * a.x_stride)
                   : quantised_row(m, group, row, a, from);
      }
    }
  }
}

void quantize(const f32* x, i32 n, i8* q, f32* d, f32* s, i32* sums) {
  for (i32 b = 0; b < n / kBlock; ++b) {
    const f32* from = x + b * kBlock;
    f32 peak = 0;
    for (i32 i = 0; i < kBlock; ++i) peak = std::max(peak, std::fabs(from[i]));
    const f32 scale = peak / 127.0f;
    const f32 inverse = peak == 0 ? 0 : 127.0f / peak;
    i32 sum = 0;
    for (i32 i = 0; i < kBlock; ++i) {
      const i32 value = static_cast<i32>(std::nearbyint(from[i] * inverse));
      q[b * kBlock + i] = static_cast<i8>(value);
      sum += value;
    }
    d[b] = scale;
    sums[b] = sum;
    s[b] = scale * static_cast<f32>(sum);
  }
}

f32 dot(const f32* a, const f32* b, i32 n) {
  Lanes lanes;
  for (i32 i = 0; i < n; ++i) lanes.lane[i % 8] = std::fma(a[i], b[i], lanes.lane[i % 8]);
  return lanes.total();
}

void rms_norm(const f32* x, const f32* weight, f32 eps, i32 n, f32* out) {
  const f32 mean = dot(x, x, n) / static_cast<f32>(n);
  const f32 scale = 1.0f / std::sqrt(mean + eps);
  for (i32 i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

void silu_mul(const f32* gate, const f32* up, i32 n, f32* out) {
  for (i32 i = 0; i < n; ++i) out[i] = gate[i] / (1.0f + exp_f32(-gate[i])) * up[i];
}

void add(const f32* x, i32 n, f32* into) {
  for (i32 i = 0; i < n; ++i) into[i] += x[i];
}

void add_scaled(const f32* x, f32 weight, i32 n, f32* into) {
  for (i32 i = 0; i < n; ++i) into[i] = std::fma(x[i], weight, into[i]);
}

// Exponentials in place and 1 / their sum.
f32 exponentiate(f32* x, i32 n) {
  f32 peak = x[0];
  for (i32 i = 1; i < n; ++i) peak = std::max(peak, x[i]);
  Lanes lanes;
  for (i32 i = 0; i < n; ++i) {
    x[i] = exp_f32(x[i] - peak);
    lanes.lane[i % 8] += x[i];
  }
  return 1.0f / lanes.total();
}

void softmax(f32* x, i32 n) {
  const f32 inverse = exponentiate(x, n);
  for (i32 i = 0; i < n; ++i) x[i] *= inverse;
}

void to_half(const f32* x, i32 n, u16* out) {
  for (i32 i = 0; i < n; ++i) out[i] = f32_to_f16(x[i]);
}

void from_half(const u16* x, i32 n, f32* out) {
  for (i32 i = 0; i < n; ++i) out[i] = f16_to_f32(x[i]);
}

f32 element(const u8* page, i64 index, bool half) {
  return half ? f16_to_f32(base::load_le<u16>(page + index * 2))
              : base::load_le<f32>(page + index * 4);
}

i32 largest(const f32* x, i32 n) {
  i32 best = 0;
  for (i32 i = 1; i < n; ++i) best = x[i] > x[best] ? i : best;
  return best;
}

void attend_row(const AttendArgs& args, i32 row) {
  const i32 length = args.length + args.growth * row;
  const f32* q = args.q + row * args.q_stride;
  f32* scores = args.scores + row * args.scores_stride;
  for (i32 u = 0; u < length; ++u) {
    const u8* page = args.keys + args.pages[u / 16] * args.key_page_bytes;
    f32 acc = 0;
    for (i32 i = 0; i < args.head_dim; ++i) {
      acc = std::fma(q[i], element(page, static_cast<i64>(i) * 16 + u % 16, args.half), acc);
    }
    scores[u] = acc * args.scale;
  }
  const f32 inverse = exponentiate(scores, length);
  f32* out = args.out + row * args.out_stride;
  for (i32 i = 0; i < args.v_dim; ++i) {
    f32 acc = 0;
    for (i32 u = 0; u < length; ++u) {
      const u8* page = args.values + args.pages[u / 16] * args.value_page_bytes;
      const i64 at = static_cast<i64>(u % 16) * args.v_stride + i;
      acc = std::fma(scores[u], element(page, at, args.half), acc);
    }
    out[i] = acc * inverse;
  }
}

void attend(const AttendArgs& args) {
  for (i32 row = 0; row < args.rows; ++row) attend_row(args, row);
}

void match(const f32* q, i64 q_stride, i32 heads, const CachedRows& r, f32 scale, f32* out,
           i64 out_stride) {
  for (i32 h = 0; h < heads; ++h) {
    for (i32 u = 0; u < r.count; ++u) {
      Lanes lanes;
      for (i32 i = 0; i < r.n; ++i) {
        lanes.lane[i % 8] =
            std::fma(q[h * q_stride + i], element(r.rows[u], i, r.half), lanes.lane[i % 8]);
      }
      out[h * out_stride + u] = lanes.total() * scale;
    }
  }
}

void mix(const f32* weight, i64 weight_stride, i32 heads, const CachedRows& r, f32* out,
         i64 out_stride) {
  for (i32 h = 0; h < heads; ++h) {
    for (i32 i = 0; i < r.n; ++i) {
      f32 acc = 0;
      for (i32 u = 0; u < r.count; ++u) {
        acc = std::fma(weight[h * weight_stride + u], element(r.rows[u], i, r.half), acc);
      }
      out[h * out_stride + i] = acc;
    }
  }
}

}  // namespace

const Kernels kPortableKernels = {
    "portable", gemm,    quantize, rms_norm,  silu_mul, add,   add_scaled, dot,
    largest,    softmax, to_half,  from_half, attend,   match, mix,
};

}  // namespace llm
