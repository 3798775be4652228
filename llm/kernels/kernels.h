// The arithmetic of inference as a table of functions, one table per instruction set.
//
// Every table computes the same bits: integer dot products are exact, and each float result is a
// fixed sequence of multiply-adds that does not depend on the instruction set, on how many tokens
// are computed together, or on how rows are split among threads. That is what makes speculation
// lossless and lets tests compare with `==`.
//
// Weights are stored in groups of 16 rows so that one broadcast activation meets 16 rows without
// horizontal sums. R = row in the group, k = input index, b = k / 32 (blocks of 32 inputs):
//   kF32 kF16 kBF16   value[k][R]
//   kQ8               i8  q[b][8][R][4], value i of the block at [i / 4][R][i % 4]; f16 d[b][R]
//   kQ4  kQ4K         u8  q[b][4][R][4], low nibble = value i < 16 at [i / 4][R][i % 4], high = i +
//   16
//                     kQ4: f16 d[b][R], m[b][R] together per block; kQ4K the same in f32
//   kQ5K              u8  q as kQ8, 0..31; f32 d, m
//   kQ6K              i8  q as kQ8, -32..31; f32 d[b][2][R], one for each 16 inputs
// and a weight is d q + m. Activations are quantised once per row: q = round(x / d), d = max|x| /
// 127 over 32 values. This header is included by files compiled for newer processors, so it holds
// plain types only: an inline function here could leak their instructions into the whole program.
#pragma once

#include "base/types.h"

namespace llm {

enum class MatrixKind : u8 { kF32, kF16, kBF16, kQ8, kQ4, kQ4K, kQ5K, kQ6K };

struct MatrixView {
  MatrixKind kind;
  i32 rows;
  i32 cols;  // a multiple of 32 unless the kind is a float one
  const u8* data;
  u64 group_bytes;  // of data, per 16 rows
  const u8* scales;
  u64 group_scale_bytes;
};

// Rows of activations. Float kinds read x; quantised kinds read q, d and the sums.
struct ActView {
  const f32* x;
  i64 x_stride;  // floats from row to row
  const i8* q;
  i64 q_stride;
  const f32* d;     // per block
  const f32* s;     // per block, d * sum(q)
  const i32* sums;  // per block, sum(q)
  i64 block_stride;
  const i32* order = nullptr;  // row t is row order[t]; null: row t itself
};

// One head of attention for up to 4 query rows at consecutive positions of one sequence.
//   keys    page p: [head_dim][16 tokens]        values  page p: [16 tokens][v_stride]
// Row r sees the first `length + growth * r` keys. f16 or f32 elements.
struct AttendArgs {
  const f32* q;
  i64 q_stride;
  i32 rows;  // 1..4
  i32 head_dim;
  i32 v_dim;
  i32 v_stride;  // a multiple of 8
  bool half;     // elements are f16
  const u8* keys;
  const u8* values;
  i64 key_page_bytes;
  i64 value_page_bytes;
  const i32* pages;
  i32 length;
  f32 scale;
  f32* scores;        // scratch, 4 * scores_stride
  i64 scores_stride;  // a multiple of 16, at least the number of keys rounded up
  f32* out;
  i64 out_stride;
  i32 growth = 1;  // 0: all rows see the same
};

// Cached rows of n values, f16 or f32; n is a multiple of 8.
struct CachedRows {
  const u8* const* rows;
  i32 count;
  i32 n;
  bool half;
};

struct Kernels {
  const char* name;
  // out[t * out_stride + row] for rows of groups [group_begin, group_end) and rows [0, tokens) of
  // a.
  void (*gemm)(const MatrixView& m, i32 group_begin, i32 group_end, const ActView& a, i32 tokens,
               f32* out, i64 out_stride);
  // REQUIRES: n % 32 == 0.
  void (*quantize)(const f32* x, i32 n, i8* q, f32* d, f32* s, i32* sums);
  // out = x / sqrt(mean(x^2) + eps) * weight; in place is fine.
  void (*rms_norm)(const f32* x, const f32* weight, f32 eps, i32 n, f32* out);
  // out = gate / (1 + exp(-gate)) * up
  void (*silu_mul)(const f32* gate, const f32* up, i32 n, f32* out);
  void (*add)(const f32* x, i32 n, f32* into);
  // into += weight * x
  void (*add_scaled)(const f32* x, f32 weight, i32 n, f32* into);
  f32 (*dot)(const f32* a, const f32* b, i32 n);
  // The first index of the largest of n > 0 values.
  i32 (*largest)(const f32* x, i32 n);
  // In place; returns nothing: the values sum to 1. REQUIRES: n > 0.
  void (*softmax)(f32* x, i32 n);
  void (*to_half)(const f32* x, i32 n, u16* out);
  void (*from_half)(const u16* x, i32 n, f32* out);
  void (*attend)(const AttendArgs& args);
  // out[h * out_stride + u] = (q[h] . rows[u]) * scale
  void (*match)(const f32* q, i64 q_stride, i32 heads, const CachedRows& r, f32 scale, f32* out,
                i64 out_stride);
  // out[h * out_stride + i] = sum over u of weight[h * weight_stride + u] * rows[u][i]
  void (*mix)(const f32* weight, i64 weight_stride, i32 heads, const CachedRows& r, f32* out,
              i64 out_stride);
};

enum class Isa : u8 { kPortable, kAvx2, kAvx512 };

// The best table this processor runs, after a self-check against the portable one; the name of an
// instruction set in FLEETLM_ISA ("portable", "avx2", "avx512") lowers the choice.
const Kernels& best_kernels();
// Null when the processor lacks it.
const Kernels* kernels_for(Isa isa);

}  // namespace llm
