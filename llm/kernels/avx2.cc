// AVX2, FMA and F16C. Compiled with those switched on, so it includes nothing that has inline
// functions of its own (see kernels.h). Reproduces portable.cc bit for bit.
#include "llm/kernels/tables.h"

#include <immintrin.h>

#if defined(__x86_64__)

namespace llm {
namespace {

constexpr i32 kRows = 16;
constexpr i32 kBlock = 32;
constexpr i32 kTile = 4;  // tokens that share one pass over a group of weights

inline __m256i load_bytes(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}
// A load that spreads four bytes: no shuffle, unlike what compilers make of set1.
inline __m256i broadcast4(const i8* at) {
  return _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const f32*>(at)));
}
inline __m256 load_halves(const void* at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(at)));
}
inline f32 fold(__m256 v) {
  const __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}

// Keeps a running sum in its register: some compilers regroup integer sums into trees that do not
// fit the registers.
inline void pin(__m256i& v) {
  __asm__("" : "+x"(v));
}

// Eight of the 16 rows (`half` 0 or 1) of one block: exact integer dot products of T tokens.
// Nibbles: eight products of at most 15 * 127 * 2 fit 16 bits.
template <int T>
inline void dot_nibbles(const u8* block, int half, const i8* const* q, __m256i* sums) {
  const __m256i mask = _mm256_set1_epi8(15);
  for (int t = 0; t < T; ++t) sums[t] = _mm256_setzero_si256();
  for (int j = 0; j < 4; ++j) {
    const __m256i pairs = load_bytes(block + j * 64 + half * 32);
    const __m256i low = _mm256_and_si256(pairs, mask);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(pairs, 4), mask);
    for (int t = 0; t < T; ++t) {
      sums[t] = _mm256_add_epi16(sums[t], _mm256_maddubs_epi16(low, broadcast4(q[t] + 4 * j)));
      sums[t] =
          _mm256_add_epi16(sums[t], _mm256_maddubs_epi16(high, broadcast4(q[t] + 16 + 4 * j)));
      pin(sums[t]);
    }
  }
  const __m256i ones = _mm256_set1_epi16(1);
  for (int t = 0; t < T; ++t) sums[t] = _mm256_madd_epi16(sums[t], ones);
}

// Signed bytes over steps [from, to) of 4 inputs. |w| a needs its sign moved to a; two products of
// 128 * 127 fit 16 bits, more do not.
template <int T>
inline void dot_bytes(const u8* block, int half, int from, int to, const i8* const* q,
                      __m256i* sums) {
  const __m256i ones = _mm256_set1_epi16(1);
  for (int t = 0; t < T; ++t) sums[t] = _mm256_setzero_si256();
  for (int j = from; j < to; ++j) {
    const __m256i w = load_bytes(block + j * 64 + half * 32);
    const __m256i magnitude = _mm256_abs_epi8(w);
    for (int t = 0; t < T; ++t) {
      const __m256i a = _mm256_sign_epi8(broadcast4(q[t] + 4 * j), w);
      const __m256i products = _mm256_maddubs_epi16(magnitude, a);
      sums[t] = _mm256_add_epi32(sums[t], _mm256_madd_epi16(products, ones));
      pin(sums[t]);
    }
  }
}

inline i64 row_of(const ActView& a, i32 t) {
  return a.order == nullptr ? t : a.order[t];
}

template <MatrixKind K>
inline __m256 load_scale(const u8* scales, i32 block, int which, int half) {
  if constexpr (K == MatrixKind::kQ8) {
    return load_halves(scales + block * 32 + half * 16);
  } else if constexpr (K == MatrixKind::kQ4) {
    return load_halves(scales + block * 64 + which * 32 + half * 16);
  } else {
    return _mm256_loadu_ps(
        reinterpret_cast<const f32*>(scales + block * 128 + which * 64 + half * 32));
  }
}

template <int T>
inline void accumulate(const __m256i* sums, __m256 scale, const f32* const* d, i32 b, __m256* acc) {
  for (int t = 0; t < T; ++t) {
    const __m256 factor = _mm256_mul_ps(scale, _mm256_broadcast_ss(d[t] + b));
    acc[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[t]), factor, acc[t]);
  }
}

template <int T>
inline void store_half(const __m256* acc, i32 rows, f32* out, i64 stride) {
  for (int t = 0; t < T; ++t) {
    if (rows >= 8) {
      _mm256_storeu_ps(out + t * stride, acc[t]);
      continue;
    }
    f32 lanes[8];
    _mm256_storeu_ps(lanes, acc[t]);
    for (i32 r = 0; r < rows; ++r) out[t * stride + r] = lanes[r];
  }
}

template <int T>
inline void store_tile(const __m256 (*acc)[T], i32 rows, f32* out, i64 stride) {
  store_half<T>(acc[0], rows, out, stride);
  if (rows > 8) store_half<T>(acc[1], rows - 8, out + 8, stride);
}

// Adds one block's products to eight rows of T tokens.
template <MatrixKind K, int T>
inline void add_block(const u8* data, const u8* scales, i32 b, int half, const i8* const* q,
                      const f32* const* d, const f32* const* s, __m256* acc) {
  __m256i sums[T];
  if constexpr (K == MatrixKind::kQ4 || K == MatrixKind::kQ4K) {
    dot_nibbles<T>(data, half, q, sums);
  } else if constexpr (K == MatrixKind::kQ6K) {
    dot_bytes<T>(data, half, 0, 4, q, sums);
    accumulate<T>(sums, load_scale<K>(scales, b, 0, half), d, b, acc);
    dot_bytes<T>(data, half, 4, 8, q, sums);
    accumulate<T>(sums, load_scale<K>(scales, b, 1, half), d, b, acc);
    return;
  } else {
    dot_bytes<T>(data, half, 0, 8, q, sums);
  }
  accumulate<T>(sums, load_scale<K>(scales, b, 0, half), d, b, acc);
  if constexpr (K != MatrixKind::kQ8) {
    const __m256 min = load_scale<K>(scales, b, 1, half);
    for (int t = 0; t < T; ++t) {
      acc[t] = _mm256_fmadd_ps(min, _mm256_broadcast_ss(s[t] + b), acc[t]);
    }
  }
}

// One token reads both halves of a block as they lie in memory. Several keep one half's sums in
// registers and come back for the other half, which is in the first-level cache by then.
// Asks memory for what will be read soon. Several tokens keep the processor so long on a block that
// it does not look far enough ahead by itself, and memory would wait for arithmetic.
template <i32 kBytes>
inline void fetch(const u8* at) {
  for (i32 i = 0; i < kBytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(at + i), _MM_HINT_T0);
  }
}

template <MatrixKind K, int T>
void quantised_tile(const MatrixView& m, i32 group, const ActView& a, i32 t0, f32* out,
                    i64 stride) {
  constexpr bool kNibbles = K == MatrixKind::kQ4 || K == MatrixKind::kQ4K;
  constexpr i32 kBlockBytes = kNibbles ? 256 : 512;
  constexpr i32 kChunk = 8;  // blocks between the halves
  constexpr i32 kChunkBytes = kChunk * kBlockBytes;
  const u8* data = m.data + static_cast<u64>(group) * m.group_bytes;
  const u8* scales = m.scales + static_cast<u64>(group) * m.group_scale_bytes;
  const i8* q[T];
  const f32* d[T];
  const f32* s[T];
  for (int t = 0; t < T; ++t) {
    const i64 row = row_of(a, t0 + t);
    q[t] = a.q + row * a.q_stride;
    d[t] = a.d + row * a.block_stride;
    s[t] = a.s + row * a.block_stride;
  }
  __m256 acc[2][T];
  for (int t = 0; t < T; ++t) acc[0][t] = acc[1][t] = _mm256_setzero_ps();
  const i32 blocks = m.cols / kBlock;
  // Some of the columns go on in the next group, all of them in the next line.
  const bool all_columns = static_cast<u64>(blocks) * kBlockBytes == m.group_bytes;
  const i64 ahead = all_columns ? kChunkBytes : static_cast<i64>(m.group_bytes);
  if constexpr (T == 1) {
    for (i32 b = 0; b < blocks; ++b) {
      fetch<kBlockBytes>(data + ahead);
      add_block<K, 1>(data, scales, b, 0, q, d, s, acc[0]);
      add_block<K, 1>(data, scales, b, 1, q, d, s, acc[1]);
      data += kBlockBytes;
      q[0] += kBlock;
    }
  }
  for (i32 from = 0; T > 1 && from < blocks; from += kChunk) {
    const i32 to = from + kChunk < blocks ? from + kChunk : blocks;
    for (int half = 0; half < 2; ++half) {
      __m256 sum[T];
      const i8* at[T];
      for (int t = 0; t < T; ++t) {
        sum[t] = acc[half][t];
        at[t] = q[t] + from * kBlock;
      }
      // In a burst: between the products it would cost them registers.
      if (t0 == 0) {
        fetch<kChunkBytes / 2>(data + static_cast<i64>(from) * kBlockBytes + ahead +
                               half * (kChunkBytes / 2));
      }
      for (i32 b = from; b < to; ++b) {
        add_block<K, T>(data + static_cast<i64>(b) * kBlockBytes, scales, b, half, at, d, s, sum);
        for (int t = 0; t < T; ++t) at[t] += kBlock;
      }
      for (int t = 0; t < T; ++t) acc[half][t] = sum[t];
    }
  }
  store_tile<T>(acc, m.rows - group * kRows, out + group * kRows, stride);
}

template <MatrixKind K>
inline __m256 load_weights(const u8* data, i64 index) {
  if constexpr (K == MatrixKind::kF32) {
    return _mm256_loadu_ps(reinterpret_cast<const f32*>(data) + index);
  } else if constexpr (K == MatrixKind::kF16) {
    return load_halves(data + index * 2);
  } else {
    const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + index * 2));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
  }
}

template <MatrixKind K, int T>
void float_tile(const MatrixView& m, i32 group, const ActView& a, i32 t0, f32* out, i64 stride) {
  const u8* data = m.data + static_cast<u64>(group) * m.group_bytes;
  const f32* x[T];
  for (int t = 0; t < T; ++t) x[t] = a.x + row_of(a, t0 + t) * a.x_stride;
  __m256 acc[2][T];
  for (int t = 0; t < T; ++t) acc[0][t] = acc[1][t] = _mm256_setzero_ps();
  for (i32 from = 0; from < m.cols; from += kBlock) {
    const i32 to = from + kBlock < m.cols ? from + kBlock : m.cols;
    __m256 part[2][T];
    for (int t = 0; t < T; ++t) part[0][t] = part[1][t] = _mm256_setzero_ps();
    for (i32 k = from; k < to; ++k) {
      const __m256 low = load_weights<K>(data, static_cast<i64>(k) * kRows);
      const __m256 high = load_weights<K>(data, static_cast<i64>(k) * kRows + 8);
      for (int t = 0; t < T; ++t) {
        const __m256 value = _mm256_set1_ps(x[t][k]);
        part[0][t] = _mm256_fmadd_ps(low, value, part[0][t]);
        part[1][t] = _mm256_fmadd_ps(high, value, part[1][t]);
      }
    }
    for (int t = 0; t < T; ++t) {
      acc[0][t] = _mm256_add_ps(acc[0][t], part[0][t]);
      acc[1][t] = _mm256_add_ps(acc[1][t], part[1][t]);
    }
  }
  store_tile<T>(acc, m.rows - group * kRows, out + group * kRows, stride);
}

template <MatrixKind K, int T>
inline void tile(const MatrixView& m, i32 group, const ActView& a, i32 t0, f32* out, i64 stride) {
  if constexpr (K <= MatrixKind::kBF16) {
    float_tile<K, T>(m, group, a, t0, out + t0 * stride, stride);
  } else {
    quantised_tile<K, T>(m, group, a, t0, out + t0 * stride, stride);
  }
}

// The last rows, fewer than a tile has: 0 to N.
template <MatrixKind K, i32 N>
void rest(const MatrixView& m, i32 group, const ActView& a, i32 t, i32 rows, f32* out, i64 stride) {
  if (rows == N) return tile<K, N>(m, group, a, t, out, stride);
  if constexpr (N > 1) rest<K, N - 1>(m, group, a, t, rows, out, stride);
}

template <MatrixKind K>
void gemm_kind(const MatrixView& m, i32 group_begin, i32 group_end, const ActView& a, i32 tokens,
               f32* out, i64 stride) {
  for (i32 group = group_begin; group < group_end; ++group) {
    i32 t = 0;
    for (; t + kTile <= tokens; t += kTile) tile<K, kTile>(m, group, a, t, out, stride);
    rest<K, kTile - 1>(m, group, a, t, tokens - t, out, stride);
  }
}

void gemm(const MatrixView& m, i32 group_begin, i32 group_end, const ActView& a, i32 tokens,
          f32* out, i64 stride) {
  switch (m.kind) {
#define LLM_CASE(K)                                                              \
  case MatrixKind::K:                                                            \
    gemm_kind<MatrixKind::K>(m, group_begin, group_end, a, tokens, out, stride); \
    break;
    LLM_CASE(kF32)
    LLM_CASE(kF16)
    LLM_CASE(kBF16)
    LLM_CASE(kQ8)
    LLM_CASE(kQ4)
    LLM_CASE(kQ4K)
    LLM_CASE(kQ5K)
    LLM_CASE(kQ6K)
#undef LLM_CASE
  }
}

void quantize(const f32* x, i32 n, i8* q, f32* d, f32* s, i32* sums) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (i32 b = 0; b < n / kBlock; ++b) {
    __m256 v[4];
    __m256 peaks = _mm256_setzero_ps();
    for (int i = 0; i < 4; ++i) {
      v[i] = _mm256_loadu_ps(x + b * kBlock + i * 8);
      peaks = _mm256_max_ps(peaks, _mm256_and_ps(v[i], magnitude));
    }
    __m128 top = _mm_max_ps(_mm256_castps256_ps128(peaks), _mm256_extractf128_ps(peaks, 1));
    top = _mm_max_ps(top, _mm_movehl_ps(top, top));
    top = _mm_max_ss(top, _mm_shuffle_ps(top, top, 1));
    const f32 peak = _mm_cvtss_f32(top);
    const f32 scale = peak / 127.0f;
    const __m256 inverse = _mm256_set1_ps(peak == 0 ? 0 : 127.0f / peak);
    __m256i whole[4];
    for (int i = 0; i < 4; ++i) whole[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
    const __m256i pairs = _mm256_add_epi32(_mm256_add_epi32(whole[0], whole[1]),
                                           _mm256_add_epi32(whole[2], whole[3]));
    __m128i total =
        _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    total = _mm_add_epi32(total, _mm_shuffle_epi32(total, 0x4e));
    total = _mm_add_epi32(total, _mm_shuffle_epi32(total, 0xb1));
    const i32 sum = _mm_cvtsi128_si32(total);
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(whole[0], whole[1]),
                                              _mm256_packs_epi32(whole[2], whole[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + b * kBlock),
                        _mm256_permutevar8x32_epi32(packed, order));
    d[b] = scale;
    sums[b] = sum;
    s[b] = scale * static_cast<f32>(sum);
  }
}

// Adds the up to 7 last products to their lanes.
inline __m256 dot_tail(const f32* a, const f32* b, i32 from, i32 n, __m256 acc) {
  if (from == n) return acc;
  alignas(32) f32 x[8] = {};
  alignas(32) f32 y[8] = {};
  for (i32 i = from; i < n; ++i) {
    x[i - from] = a[i];
    y[i - from] = b[i];
  }
  return _mm256_fmadd_ps(_mm256_load_ps(x), _mm256_load_ps(y), acc);
}

f32 dot(const f32* a, const f32* b, i32 n) {
  __m256 acc = _mm256_setzero_ps();
  i32 i = 0;
  for (; i + 8 <= n; i += 8) {
    acc = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), acc);
  }
  return fold(dot_tail(a, b, i, n, acc));
}

void rms_norm(const f32* x, const f32* weight, f32 eps, i32 n, f32* out) {
  const f32 mean = dot(x, x, n) / static_cast<f32>(n);
  const f32 scale = 1.0f / __builtin_sqrtf(mean + eps);
  const __m256 scales = _mm256_set1_ps(scale);
  i32 i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 normed = _mm256_mul_ps(_mm256_loadu_ps(x + i), scales);
    _mm256_storeu_ps(out + i, _mm256_mul_ps(normed, _mm256_loadu_ps(weight + i)));
  }
  for (; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

inline __m256 exp_lanes(__m256 x) {
  const __m256 dead = _mm256_cmp_ps(x, _mm256_set1_ps(kExpLowest), _CMP_LT_OQ);
  x = _mm256_min_ps(x, _mm256_set1_ps(kExpHighest));
  x = _mm256_max_ps(x, _mm256_set1_ps(kExpLowest));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(kLog2E)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2High), x);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Low), r);
  __m256 p = _mm256_set1_ps(kExpTerms[0]);
  for (int i = 1; i < 6; ++i) p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpTerms[i]));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
  p = _mm256_add_ps(p, _mm256_set1_ps(1.0f));
  const __m256i power =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_andnot_ps(dead, _mm256_mul_ps(p, _mm256_castsi256_ps(power)));
}

inline f32 exp_one(f32 x) {
  return _mm256_cvtss_f32(exp_lanes(_mm256_set1_ps(x)));
}

void silu_mul(const f32* gate, const f32* up, i32 n, f32* out) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 sign = _mm256_set1_ps(-0.0f);
  i32 i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 g = _mm256_loadu_ps(gate + i);
    const __m256 below = _mm256_add_ps(one, exp_lanes(_mm256_xor_ps(g, sign)));
    _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_div_ps(g, below), _mm256_loadu_ps(up + i)));
  }
  for (; i < n; ++i) out[i] = gate[i] / (1.0f + exp_one(-gate[i])) * up[i];
}

void add(const f32* x, i32 n, f32* into) {
  i32 i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(into + i, _mm256_add_ps(_mm256_loadu_ps(into + i), _mm256_loadu_ps(x + i)));
  }
  for (; i < n; ++i) into[i] += x[i];
}

void add_scaled(const f32* x, f32 weight, i32 n, f32* into) {
  const __m256 w = _mm256_set1_ps(weight);
  i32 i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(into + i,
                     _mm256_fmadd_ps(_mm256_loadu_ps(x + i), w, _mm256_loadu_ps(into + i)));
  }
  for (; i < n; ++i) into[i] = __builtin_fmaf(x[i], weight, into[i]);
}

f32 peak_of(const f32* x, i32 n) {
  f32 peak = x[0];
  i32 i = 0;
  if (n >= 16) {
    __m256 tops[2] = {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)};
    for (i = 16; i + 16 <= n; i += 16) {
      tops[0] = _mm256_max_ps(_mm256_loadu_ps(x + i), tops[0]);
      tops[1] = _mm256_max_ps(_mm256_loadu_ps(x + i + 8), tops[1]);
    }
    alignas(32) f32 lanes[8];
    _mm256_store_ps(lanes, _mm256_max_ps(tops[0], tops[1]));
    for (f32 lane : lanes) peak = lane > peak ? lane : peak;
  }
  for (; i < n; ++i) peak = x[i] > peak ? x[i] : peak;
  return peak;
}

i32 largest(const f32* x, i32 n) {
  const f32 peak = peak_of(x, n);
  const __m256 peaks = _mm256_set1_ps(peak);
  i32 i = 0;
  for (; i + 8 <= n; i += 8) {
    const int equal = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + i), peaks, _CMP_EQ_OQ));
    if (equal != 0) return i + __builtin_ctz(static_cast<unsigned>(equal));
  }
  while (i < n && x[i] != peak) ++i;
  return i < n ? i : 0;
}

f32 exponentiate(f32* x, i32 n) {
  const f32 peak = peak_of(x, n);
  const __m256 peaks = _mm256_set1_ps(peak);
  __m256 total = _mm256_setzero_ps();
  i32 i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 e = exp_lanes(_mm256_sub_ps(_mm256_loadu_ps(x + i), peaks));
    _mm256_storeu_ps(x + i, e);
    total = _mm256_add_ps(total, e);
  }
  if (i < n) {
    alignas(32) f32 rest[8] = {};
    for (i32 j = i; j < n; ++j) rest[j - i] = x[j] = exp_one(x[j] - peak);
    total = _mm256_add_ps(total, _mm256_load_ps(rest));
  }
  return 1.0f / fold(total);
}

void softmax(f32* x, i32 n) {
  const f32 inverse = exponentiate(x, n);
  const __m256 factor = _mm256_set1_ps(inverse);
  i32 i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), factor));
  }
  for (; i < n; ++i) x[i] *= inverse;
}

void to_half(const f32* x, i32 n, u16* out) {
  i32 i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) out[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
}

void from_half(const u16* x, i32 n, f32* out) {
  i32 i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(out + i, load_halves(x + i));
  for (; i < n; ++i) out[i] = _cvtsh_ss(x[i]);
}

template <bool Half>
inline __m256 load_cached(const u8* page, i64 index) {
  return Half ? load_halves(page + index * 2)
              : _mm256_loadu_ps(reinterpret_cast<const f32*>(page) + index);
}

template <bool Half, int R>
void score_pages(const AttendArgs& args) {
  const i32 pages = (args.length + args.growth * (R - 1) + 15) / 16;
  const __m256 scale = _mm256_set1_ps(args.scale);
  for (i32 p = 0; p < pages; ++p) {
    const u8* page = args.keys + args.pages[p] * args.key_page_bytes;
    __m256 low[R];
    __m256 high[R];
    for (int r = 0; r < R; ++r) low[r] = high[r] = _mm256_setzero_ps();
    for (i32 i = 0; i < args.head_dim; ++i) {
      const __m256 k0 = load_cached<Half>(page, static_cast<i64>(i) * 16);
      const __m256 k1 = load_cached<Half>(page, static_cast<i64>(i) * 16 + 8);
      for (int r = 0; r < R; ++r) {
        const __m256 q = _mm256_set1_ps(args.q[r * args.q_stride + i]);
        low[r] = _mm256_fmadd_ps(q, k0, low[r]);
        high[r] = _mm256_fmadd_ps(q, k1, high[r]);
      }
    }
    for (int r = 0; r < R; ++r) {
      f32* to = args.scores + r * args.scores_stride + p * 16;
      _mm256_storeu_ps(to, _mm256_mul_ps(low[r], scale));
      _mm256_storeu_ps(to + 8, _mm256_mul_ps(high[r], scale));
    }
  }
}

// V vectors of eight outputs at once.
template <bool Half, int R, int V>
void mix_columns(const AttendArgs& args, i32 column, const f32* inverse) {
  const i32 tokens = args.length + args.growth * (R - 1);
  __m256 acc[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) acc[r][v] = _mm256_setzero_ps();
  }
  for (i32 u = 0; u < tokens; ++u) {
    const u8* page = args.values + args.pages[u / 16] * args.value_page_bytes;
    const i64 at = static_cast<i64>(u % 16) * args.v_stride + column;
    for (int v = 0; v < V; ++v) {
      const __m256 value = load_cached<Half>(page, at + v * 8);
      for (int r = 0; r < R; ++r) {
        const __m256 weight = _mm256_set1_ps(args.scores[r * args.scores_stride + u]);
        acc[r][v] = _mm256_fmadd_ps(weight, value, acc[r][v]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      const __m256 value = _mm256_mul_ps(acc[r][v], _mm256_set1_ps(inverse[r]));
      const i32 at = column + v * 8;
      f32* out = args.out + r * args.out_stride + at;
      if (at + 8 <= args.v_dim) {
        _mm256_storeu_ps(out, value);
      } else {
        alignas(32) f32 lanes[8];
        _mm256_store_ps(lanes, value);
        for (i32 i = 0; at + i < args.v_dim; ++i) out[i] = lanes[i];
      }
    }
  }
}

template <bool Half, int R>
void attend_rows(const AttendArgs& args) {
  score_pages<Half, R>(args);
  f32 inverse[R];
  const i32 tokens = args.length + args.growth * (R - 1);
  for (int r = 0; r < R; ++r) {
    f32* scores = args.scores + r * args.scores_stride;
    const i32 length = args.length + args.growth * r;
    inverse[r] = exponentiate(scores, length);
    for (i32 u = length; u < tokens; ++u) scores[u] = 0;
  }
  i32 column = 0;
  for (; column + 16 <= args.v_stride; column += 16) mix_columns<Half, R, 2>(args, column, inverse);
  for (; column < args.v_stride; column += 8) mix_columns<Half, R, 1>(args, column, inverse);
}

template <bool Half>
void attend_half(const AttendArgs& args) {
  switch (args.rows) {
    case 1:
      attend_rows<Half, 1>(args);
      break;
    case 2:
      attend_rows<Half, 2>(args);
      break;
    case 3:
      attend_rows<Half, 3>(args);
      break;
    default:
      attend_rows<Half, 4>(args);
      break;
  }
}

void attend(const AttendArgs& args) {
  if (args.half) {
    attend_half<true>(args);
  } else {
    attend_half<false>(args);
  }
}

// Four folds at once, each in the order of fold().
inline __m128 fold_four(const __m256* v) {
  __m128 half[4];
  for (int i = 0; i < 4; ++i) {
    half[i] = _mm_add_ps(_mm256_castps256_ps128(v[i]), _mm256_extractf128_ps(v[i], 1));
  }
  const __m128 first =
      _mm_add_ps(_mm_unpacklo_ps(half[0], half[1]), _mm_unpackhi_ps(half[0], half[1]));
  const __m128 second =
      _mm_add_ps(_mm_unpacklo_ps(half[2], half[3]), _mm_unpackhi_ps(half[2], half[3]));
  return _mm_add_ps(_mm_movelh_ps(first, second), _mm_movehl_ps(second, first));
}

// H heads, up to four.
template <bool Half, int H>
void match_heads(const f32* q, i64 q_stride, const CachedRows& r, f32 scale, f32* out,
                 i64 out_stride) {
  for (i32 u = 0; u < r.count; ++u) {
    __m256 acc[4];
    for (int j = 0; j < 4; ++j) acc[j] = _mm256_setzero_ps();
    for (i32 i = 0; i < r.n; i += 8) {
      const __m256 key = load_cached<Half>(r.rows[u], i);
      for (int j = 0; j < H; ++j) {
        acc[j] = _mm256_fmadd_ps(_mm256_loadu_ps(q + j * q_stride + i), key, acc[j]);
      }
    }
    alignas(16) f32 four[4];
    _mm_store_ps(four, _mm_mul_ps(fold_four(acc), _mm_set1_ps(scale)));
    for (int j = 0; j < H; ++j) out[j * out_stride + u] = four[j];
  }
}

template <bool Half, int H = 4>
void match_rows(const f32* q, i64 q_stride, i32 heads, const CachedRows& r, f32 scale, f32* out,
                i64 out_stride) {
  i32 h = 0;
  for (; h + H <= heads; h += H) {
    match_heads<Half, H>(q + h * q_stride, q_stride, r, scale, out + h * out_stride, out_stride);
  }
  if constexpr (H > 1) {
    if (h < heads)
      match_rows<Half, H - 1>(q + h * q_stride, q_stride, heads - h, r, scale, out + h * out_stride,
                              out_stride);
  }
}

void match(const f32* q, i64 q_stride, i32 heads, const CachedRows& r, f32 scale, f32* out,
           i64 out_stride) {
  if (r.half) {
    match_rows<true>(q, q_stride, heads, r, scale, out, out_stride);
  } else {
    match_rows<false>(q, q_stride, heads, r, scale, out, out_stride);
  }
}

// H heads, V vectors of eight columns.
template <bool Half, int H, int V>
inline void mix_block(const f32* weight, i64 weight_stride, const CachedRows& r, i32 column,
                      f32* out, i64 out_stride) {
  __m256 acc[H][V];
  for (int h = 0; h < H; ++h) {
    for (int v = 0; v < V; ++v) acc[h][v] = _mm256_setzero_ps();
  }
  for (i32 u = 0; u < r.count; ++u) {
    __m256 value[V];
    for (int v = 0; v < V; ++v) value[v] = load_cached<Half>(r.rows[u], column + v * 8);
    for (int h = 0; h < H; ++h) {
      const __m256 w = _mm256_set1_ps(weight[h * weight_stride + u]);
      for (int v = 0; v < V; ++v) acc[h][v] = _mm256_fmadd_ps(w, value[v], acc[h][v]);
    }
  }
  for (int h = 0; h < H; ++h) {
    for (int v = 0; v < V; ++v) {
      _mm256_storeu_ps(out + h * out_stride + column + v * 8, acc[h][v]);
    }
  }
}

template <bool Half, int H = 4>
void mix_rows(const f32* weight, i64 weight_stride, i32 heads, const CachedRows& r, f32* out,
              i64 out_stride) {
  i32 h = 0;
  for (; h + H <= heads; h += H) {
    const f32* w = weight + h * weight_stride;
    f32* to = out + h * out_stride;
    i32 column = 0;
    for (; column + 16 <= r.n; column += 16) {
      mix_block<Half, H, 2>(w, weight_stride, r, column, to, out_stride);
    }
    if (column < r.n) mix_block<Half, H, 1>(w, weight_stride, r, column, to, out_stride);
  }
  if constexpr (H > 1) {
    if (h < heads)
      mix_rows<Half, H - 1>(weight + h * weight_stride, weight_stride, heads - h, r,
                            out + h * out_stride, out_stride);
  }
}

void mix(const f32* weight, i64 weight_stride, i32 heads, const CachedRows& r, f32* out,
         i64 out_stride) {
  if (r.half) {
    mix_rows<true>(weight, weight_stride, heads, r, out, out_stride);
  } else {
    mix_rows<false>(weight, weight_stride, heads, r, out, out_stride);
  }
}

}  // namespace

const Kernels kAvx2Kernels = {
    "avx2",  gemm,    quantize, rms_norm,  silu_mul, add,   add_scaled, dot,
    largest, softmax, to_half,  from_half, attend,   match, mix,
};

}  // namespace llm

#endif
