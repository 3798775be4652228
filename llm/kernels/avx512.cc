// AVX-512 with VNNI: 16 rows in one register, four 8-bit products summed per lane and instruction.
// Only the matrix products differ from AVX2; the rest is memory-bound or small and is shared.
// Bit for bit as portable.cc. See avx2.cc for what this file may include.
#include "llm/kernels/tables.h"

#include <immintrin.h>

#if defined(__x86_64__)

namespace llm {
namespace {

constexpr i32 kRows = 16;
constexpr i32 kBlock = 32;
constexpr i32 kTile = 8;  // tokens that share one pass over a group of weights
constexpr i64 kBytesAhead = 4096;

inline __m512i broadcast4(const i8* at) {
  i32 value;
  __builtin_memcpy(&value, at, 4);
  return _mm512_set1_epi32(value);
}
inline __m512 load_halves(const void* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(at)));
}

template <int T>
inline void dot_nibbles(const u8* block, const i8* const* q, __m512i* sums) {
  const __m512i mask = _mm512_set1_epi8(15);
  for (int t = 0; t < T; ++t) sums[t] = _mm512_setzero_si512();
  for (int j = 0; j < 4; ++j) {
    const __m512i pairs = _mm512_loadu_si512(block + j * 64);
    const __m512i low = _mm512_and_si512(pairs, mask);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), mask);
    for (int t = 0; t < T; ++t) {
      sums[t] = _mm512_dpbusd_epi32(sums[t], low, broadcast4(q[t] + 4 * j));
      sums[t] = _mm512_dpbusd_epi32(sums[t], high, broadcast4(q[t] + 16 + 4 * j));
    }
  }
}

// The instruction wants one unsigned side: w + 128, corrected by 128 sum(a).
inline __m512i start_sum(i32 sum) {
  return _mm512_set1_epi32(sum * -128);
}

// Signed bytes of one block; `sums` come in with the corrections.
template <int T>
inline void dot_signed(const u8* block, const i8* const* q, __m512i* sums) {
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
  for (int j = 0; j < 8; ++j) {
    const __m512i w = _mm512_xor_si512(_mm512_loadu_si512(block + j * 64), flip);
    for (int t = 0; t < T; ++t) {
      sums[t] = _mm512_dpbusd_epi32(sums[t], w, broadcast4(q[t] + 4 * j));
    }
  }
}

// Bytes without a sign.
template <int T>
inline void dot_unsigned(const u8* block, const i8* const* q, __m512i* sums) {
  for (int t = 0; t < T; ++t) sums[t] = _mm512_setzero_si512();
  for (int j = 0; j < 8; ++j) {
    const __m512i w = _mm512_loadu_si512(block + j * 64);
    for (int t = 0; t < T; ++t) {
      sums[t] = _mm512_dpbusd_epi32(sums[t], w, broadcast4(q[t] + 4 * j));
    }
  }
}

// Half a block of signed bytes: nobody has summed half of its inputs yet.
template <int T>
inline void dot_half(const u8* block, int half, const i8* const* q, __m512i* sums) {
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
  __m512i excess[T];
  for (int t = 0; t < T; ++t) sums[t] = excess[t] = _mm512_setzero_si512();
  for (int j = half * 4; j < half * 4 + 4; ++j) {
    const __m512i w = _mm512_xor_si512(_mm512_loadu_si512(block + j * 64), flip);
    for (int t = 0; t < T; ++t) {
      const __m512i a = broadcast4(q[t] + 4 * j);
      sums[t] = _mm512_dpbusd_epi32(sums[t], w, a);
      excess[t] = _mm512_dpbusd_epi32(excess[t], flip, a);
    }
  }
  for (int t = 0; t < T; ++t) sums[t] = _mm512_sub_epi32(sums[t], excess[t]);
}

inline i64 row_of(const ActView& a, i32 t) {
  return a.order == nullptr ? t : a.order[t];
}

template <MatrixKind K>
inline __m512 load_scale(const u8* scales, i32 block, int which) {
  if constexpr (K == MatrixKind::kQ8) {
    return load_halves(scales + block * 32);
  } else if constexpr (K == MatrixKind::kQ4) {
    return load_halves(scales + block * 64 + which * 32);
  } else {
    return _mm512_loadu_ps(scales + block * 128 + which * 64);
  }
}

// Bytes of scales of one block of 32 inputs and 16 rows.
template <MatrixKind K>
constexpr i32 kScaleBytes = K == MatrixKind::kQ8   ? 32
                            : K == MatrixKind::kQ4 ? 64
                                                   : 128;

// Asks for the weights that come a few blocks later. Wide tiles compute so long on a block that the
// processor does not look far enough ahead by itself, and memory would wait for arithmetic. A part
// of the columns does not go on in the next line but in the next group.
struct Ahead {
  i64 data;
  i64 scales;
  Ahead(const MatrixView& m, u64 view_bytes, i64 block_bytes, i64 scale_bytes) {
    const bool whole = view_bytes == m.group_bytes;
    data = whole ? kBytesAhead : static_cast<i64>(m.group_bytes);
    scales =
        whole ? kBytesAhead / block_bytes * scale_bytes : static_cast<i64>(m.group_scale_bytes);
  }
  template <i32 kBytes, i32 kScales>
  void fetch(const u8* block, const u8* scale) const {
    for (i32 i = 0; i < kBytes; i += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(block + data + i), _MM_HINT_T0);
    }
    for (i32 i = 0; i < kScales; i += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(scale + scales + i), _MM_HINT_T0);
    }
  }
};

template <int T>
inline void accumulate(const __m512i* sums, __m512 scale, const f32* const* d, i32 b, __m512* acc) {
  for (int t = 0; t < T; ++t) {
    const __m512 factor = _mm512_mul_ps(scale, _mm512_set1_ps(d[t][b]));
    acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[t]), factor, acc[t]);
  }
}

template <int T>
inline void store_tile(const __m512* acc, i32 rows, f32* out, i64 stride) {
  const __mmask16 mask = rows >= kRows ? 0xffff : static_cast<__mmask16>((1u << rows) - 1);
  for (int t = 0; t < T; ++t) _mm512_mask_storeu_ps(out + t * stride, mask, acc[t]);
}

template <MatrixKind K, int T>
void quantised_tile(const MatrixView& m, i32 group, const ActView& a, i32 t0, f32* out,
                    i64 stride) {
  constexpr bool kNibbles = K == MatrixKind::kQ4 || K == MatrixKind::kQ4K;
  constexpr i32 kBlockBytes = kNibbles ? 256 : 512;
  const u8* data = m.data + static_cast<u64>(group) * m.group_bytes;
  const u8* scales = m.scales + static_cast<u64>(group) * m.group_scale_bytes;
  const i8* q[T];
  const f32* d[T];
  const f32* s[T];
  const i32* whole[T];
  __m512 acc[T];
  for (int t = 0; t < T; ++t) {
    const i64 row = row_of(a, t0 + t);
    q[t] = a.q + row * a.q_stride;
    d[t] = a.d + row * a.block_stride;
    s[t] = a.s + row * a.block_stride;
    whole[t] = a.sums + row * a.block_stride;
    acc[t] = _mm512_setzero_ps();
  }
  const i32 blocks = m.cols / kBlock;
  const Ahead ahead(m, static_cast<u64>(blocks) * kBlockBytes, kBlockBytes, kScaleBytes<K>);
  for (i32 b = 0; b < blocks; ++b) {
    __m512i sums[T];
    if (t0 == 0)
      ahead.template fetch<kBlockBytes, kScaleBytes<K>>(data, scales + b * kScaleBytes<K>);
    if constexpr (kNibbles) {
      dot_nibbles<T>(data, q, sums);
      accumulate<T>(sums, load_scale<K>(scales, b, 0), d, b, acc);
    } else if constexpr (K == MatrixKind::kQ6K) {
      dot_half<T>(data, 0, q, sums);
      accumulate<T>(sums, load_scale<K>(scales, b, 0), d, b, acc);
      dot_half<T>(data, 1, q, sums);
      accumulate<T>(sums, load_scale<K>(scales, b, 1), d, b, acc);
    } else {
      if constexpr (K == MatrixKind::kQ5K) {
        dot_unsigned<T>(data, q, sums);
      } else {
        for (int t = 0; t < T; ++t) sums[t] = start_sum(whole[t][b]);
        dot_signed<T>(data, q, sums);
      }
      accumulate<T>(sums, load_scale<K>(scales, b, 0), d, b, acc);
    }
    if constexpr (K == MatrixKind::kQ4 || K == MatrixKind::kQ4K || K == MatrixKind::kQ5K) {
      const __m512 min = load_scale<K>(scales, b, 1);
      for (int t = 0; t < T; ++t) acc[t] = _mm512_fmadd_ps(min, _mm512_set1_ps(s[t][b]), acc[t]);
    }
    data += kBlockBytes;
    for (int t = 0; t < T; ++t) q[t] += kBlock;
  }
  store_tile<T>(acc, m.rows - group * kRows, out + group * kRows, stride);
}

template <MatrixKind K>
inline __m512 load_weights(const u8* data, i64 index) {
  if constexpr (K == MatrixKind::kF32) {
    return _mm512_loadu_ps(data + index * 4);
  } else if constexpr (K == MatrixKind::kF16) {
    return load_halves(data + index * 2);
  } else {
    const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + index * 2));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16));
  }
}

template <MatrixKind K, int T>
void float_tile(const MatrixView& m, i32 group, const ActView& a, i32 t0, f32* out, i64 stride) {
  const u8* data = m.data + static_cast<u64>(group) * m.group_bytes;
  const f32* x[T];
  __m512 acc[T];
  for (int t = 0; t < T; ++t) {
    x[t] = a.x + row_of(a, t0 + t) * a.x_stride;
    acc[t] = _mm512_setzero_ps();
  }
  for (i32 from = 0; from < m.cols; from += kBlock) {
    const i32 to = from + kBlock < m.cols ? from + kBlock : m.cols;
    __m512 part[T];
    for (int t = 0; t < T; ++t) part[t] = _mm512_setzero_ps();
    for (i32 k = from; k < to; ++k) {
      const __m512 w = load_weights<K>(data, static_cast<i64>(k) * kRows);
      for (int t = 0; t < T; ++t) part[t] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[t][k]), part[t]);
    }
    for (int t = 0; t < T; ++t) acc[t] = _mm512_add_ps(acc[t], part[t]);
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
  kAvx2Kernels.quantize(x, n, q, d, s, sums);
}
void rms_norm(const f32* x, const f32* weight, f32 eps, i32 n, f32* out) {
  kAvx2Kernels.rms_norm(x, weight, eps, n, out);
}
void silu_mul(const f32* gate, const f32* up, i32 n, f32* out) {
  kAvx2Kernels.silu_mul(gate, up, n, out);
}
void add(const f32* x, i32 n, f32* into) {
  kAvx2Kernels.add(x, n, into);
}
void add_scaled(const f32* x, f32 weight, i32 n, f32* into) {
  kAvx2Kernels.add_scaled(x, weight, n, into);
}
f32 dot(const f32* a, const f32* b, i32 n) {
  return kAvx2Kernels.dot(a, b, n);
}
i32 largest(const f32* x, i32 n) {
  return kAvx2Kernels.largest(x, n);
}
void softmax(f32* x, i32 n) {
  kAvx2Kernels.softmax(x, n);
}
void to_half(const f32* x, i32 n, u16* out) {
  kAvx2Kernels.to_half(x, n, out);
}
void from_half(const u16* x, i32 n, f32* out) {
  kAvx2Kernels.from_half(x, n, out);
}
void attend(const AttendArgs& args) {
  kAvx2Kernels.attend(args);
}

// Eight values of a cached row, twice: for the two heads that share a register.
template <bool Half>
inline __m512 load_twice(const u8* row, i32 index) {
  if constexpr (Half) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + index * 2));
    return _mm512_cvtph_ps(_mm256_broadcastsi128_si256(halves));
  } else {
    const __m512 once =
        _mm512_castps256_ps512(_mm256_loadu_ps(reinterpret_cast<const f32*>(row) + index));
    return _mm512_shuffle_f32x4(once, once, 0x44);
  }
}

constexpr i32 kPairsMost = 4;
constexpr i32 kMatchMost = 640;  // values of a row; longer ones go the narrow way

// The sums of sixteen lanes are two sums of eight in the reference's order: lanes i and i + 4, then
// 0 and 2, 1 and 3, then the two.
inline void fold_two(__m512 v, __m512 scale, f32* low, f32* high) {
  const __m512 half = _mm512_add_ps(v, _mm512_shuffle_f32x4(v, v, 0xb1));
  const __m512 pair = _mm512_add_ps(half, _mm512_permute_ps(half, 0x4e));
  const __m512 one = _mm512_mul_ps(_mm512_add_ps(pair, _mm512_permute_ps(pair, 0xb1)), scale);
  *low = _mm512_cvtss_f32(one);
  *high = _mm_cvtss_f32(_mm512_extractf32x4_ps(one, 2));
}

// P pairs of heads with U rows. `pairs` holds [n / 8][P][two heads][8] values.
template <bool Half, int P, int U>
inline void match_block(const f32* pairs, const u8* const* rows, i32 n, f32 scale, f32 (*out)[U]) {
  __m512 acc[U][P];
  for (int u = 0; u < U; ++u) {
    for (int p = 0; p < P; ++p) acc[u][p] = _mm512_setzero_ps();
  }
  for (i32 i = 0; i < n; i += 8) {
    __m512 key[U];
    for (int u = 0; u < U; ++u) key[u] = load_twice<Half>(rows[u], i);
    for (int p = 0; p < P; ++p) {
      const __m512 q = _mm512_load_ps(pairs + i * 2 * P + p * 16);
      for (int u = 0; u < U; ++u) acc[u][p] = _mm512_fmadd_ps(q, key[u], acc[u][p]);
    }
  }
  for (int u = 0; u < U; ++u) {
    for (int p = 0; p < P; ++p) {
      fold_two(acc[u][p], _mm512_set1_ps(scale), &out[2 * p][u], &out[2 * p + 1][u]);
    }
  }
}

template <bool Half, int P>
void match_pairs(const f32* q, i64 q_stride, i32 heads, const CachedRows& r, f32 scale, f32* out,
                 i64 out_stride) {
  alignas(64) f32 pairs[2 * P * kMatchMost];
  for (i32 i = 0; i < r.n; i += 8) {
    for (i32 h = 0; h < 2 * P; ++h) {
      const f32* from = q + (h < heads ? h : 0) * q_stride + i;
      _mm256_store_ps(pairs + i * 2 * P + h * 8, _mm256_loadu_ps(from));
    }
  }
  constexpr int kTogether = 4;
  i32 u = 0;
  for (; u + kTogether <= r.count; u += kTogether) {
    f32 sums[2 * P][kTogether];
    match_block<Half, P, kTogether>(pairs, r.rows + u, r.n, scale, sums);
    for (i32 h = 0; h < heads; ++h) {
      __builtin_memcpy(out + h * out_stride + u, sums[h], sizeof(sums[h]));
    }
  }
  for (; u < r.count; ++u) {
    f32 sums[2 * P][1];
    match_block<Half, P, 1>(pairs, r.rows + u, r.n, scale, sums);
    for (i32 h = 0; h < heads; ++h) out[h * out_stride + u] = sums[h][0];
  }
}

template <bool Half, int P = kPairsMost>
void match_rows(const f32* q, i64 q_stride, i32 heads, const CachedRows& r, f32 scale, f32* out,
                i64 out_stride) {
  i32 h = 0;
  for (; h + 2 * P - 1 <= heads; h += 2 * P) {
    match_pairs<Half, P>(q + h * q_stride, q_stride, heads - h < 2 * P ? heads - h : 2 * P, r,
                         scale, out + h * out_stride, out_stride);
  }
  if constexpr (P > 1) {
    if (h < heads)
      match_rows<Half, P - 1>(q + h * q_stride, q_stride, heads - h, r, scale, out + h * out_stride,
                              out_stride);
  }
}

void match(const f32* q, i64 q_stride, i32 heads, const CachedRows& r, f32 scale, f32* out,
           i64 out_stride) {
  if (r.n > kMatchMost || heads == 1) {
    kAvx2Kernels.match(q, q_stride, heads, r, scale, out, out_stride);
  } else if (r.half) {
    match_rows<true>(q, q_stride, heads, r, scale, out, out_stride);
  } else {
    match_rows<false>(q, q_stride, heads, r, scale, out, out_stride);
  }
}

// H heads, V vectors of sixteen columns, of which the last has `columns`.
template <bool Half, int H, int V>
inline void mix_block(const f32* weight, i64 weight_stride, const CachedRows& r, i32 column,
                      __mmask16 columns, f32* out, i64 out_stride) {
  __m512 acc[H][V];
  for (int h = 0; h < H; ++h) {
    for (int v = 0; v < V; ++v) acc[h][v] = _mm512_setzero_ps();
  }
  for (i32 u = 0; u < r.count; ++u) {
    __m512 value[V];
    for (int v = 0; v < V; ++v) {
      const i32 at = column + v * 16;
      const __mmask16 mask = v + 1 == V ? columns : static_cast<__mmask16>(0xffff);
      if constexpr (Half) {
        value[v] = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, r.rows[u] + at * 2));
      } else {
        value[v] = _mm512_maskz_loadu_ps(mask, reinterpret_cast<const f32*>(r.rows[u]) + at);
      }
    }
    for (int h = 0; h < H; ++h) {
      const __m512 w = _mm512_set1_ps(weight[h * weight_stride + u]);
      for (int v = 0; v < V; ++v) acc[h][v] = _mm512_fmadd_ps(w, value[v], acc[h][v]);
    }
  }
  for (int h = 0; h < H; ++h) {
    for (int v = 0; v < V; ++v) {
      const __mmask16 mask = v + 1 == V ? columns : static_cast<__mmask16>(0xffff);
      _mm512_mask_storeu_ps(out + h * out_stride + column + v * 16, mask, acc[h][v]);
    }
  }
}

template <bool Half, int H = 6>
void mix_rows(const f32* weight, i64 weight_stride, i32 heads, const CachedRows& r, f32* out,
              i64 out_stride) {
  i32 h = 0;
  for (; h + H <= heads; h += H) {
    const f32* w = weight + h * weight_stride;
    f32* to = out + h * out_stride;
    i32 column = 0;
    for (; column + 64 <= r.n; column += 64) {
      mix_block<Half, H, 4>(w, weight_stride, r, column, 0xffff, to, out_stride);
    }
    for (; column < r.n; column += 16) {
      const __mmask16 mask = column + 16 <= r.n ? 0xffff : 0xff;
      mix_block<Half, H, 1>(w, weight_stride, r, column, mask, to, out_stride);
    }
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

const Kernels kAvx512Kernels = {
    "avx512-vnni", gemm,    quantize, rms_norm,  silu_mul, add,   add_scaled, dot,
    largest,       softmax, to_half,  from_half, attend,   match, mix,
};

}  // namespace llm

#endif
