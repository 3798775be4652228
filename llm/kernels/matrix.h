// Weights repacked for the kernels, and the rows of activations they meet.
#pragma once

#include "base/result.h"
#include "llm/formats/tensor.h"
#include "llm/kernels/aligned.h"
#include "llm/kernels/kernels.h"

#include <vector>

namespace llm {

// Fast: quantised weights stay so and meet 8-bit activations. Exact: every weight is widened to f32
// and all arithmetic is f32; for parity tests and small models.
enum class Precision : u8 { kFast, kExact };

// A weight matrix [rows, cols] in the kernels' layout (kernels.h). Immutable once made.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  // Part of a tensor. Errors: kUnsupported for a type without a kernel.
  // REQUIRES: column bounds that are multiples of 32, or the tensor's end, unless
  // splits_anywhere(tensor).
  struct Part {
    u64 row_begin, row_end, col_begin, col_end;
  };
  static base::Result<PackedMatrix> from_tensor(const TensorView& tensor, Precision precision,
                                                const Part& part);
  static base::Result<PackedMatrix> from_tensor(const TensorView& tensor, Precision precision) {
    return from_tensor(tensor, precision, {0, tensor.rows(), 0, tensor.columns()});
  }
  // Whether columns are kept one by one; otherwise in blocks of 32.
  static bool splits_anywhere(const TensorView& tensor, Precision precision);
  // Values [rows][cols], encoded as `type` first unless that is kF32.
  static PackedMatrix from_floats(const f32* values, u64 rows, u64 cols, DType type);

  MatrixView view() const {
    return {kind_, rows_, cols_, data_.data(), group_bytes_, scales_.data(), group_scale_bytes_};
  }
  // Columns [begin, end) alone, without a copy. Same rule for the bounds.
  MatrixView columns(i32 begin, i32 end) const;
  i32 rows() const { return rows_; }
  i32 cols() const { return cols_; }
  i32 groups() const { return (rows_ + 15) / 16; }
  bool empty() const { return rows_ == 0; }
  MatrixKind kind() const { return kind_; }
  bool quantised() const { return kind_ > MatrixKind::kBF16; }
  // What one pass over it reads.
  u64 bytes() const { return data_.size() + scales_.size(); }

 private:
  PackedMatrix(MatrixKind kind, u64 rows, u64 cols);
  void pack_row(u64 row, DType type, const u8* blocks);
  void pack_floats(u64 row, const f32* values);
  void clear();
  void take_columns(const PackedMatrix& wide, u64 at, u64 col_begin);
  void set_scale(u64 row, u64 block, u64 which, f32 value);
  void set_byte(u64 row, u64 k, i32 value);
  void set_nibble(u64 row, u64 k, u32 value);

  MatrixKind kind_ = MatrixKind::kF32;
  i32 rows_ = 0;
  i32 cols_ = 0;
  u64 group_bytes_ = 0;
  u64 group_scale_bytes_ = 0;
  AlignedBytes data_;
  AlignedBytes scales_;
};

// Up to `capacity` rows of `cols` activations, as floats and quantised. Columns are padded with
// zeros to a multiple of 32. Thread-compatible: threads may fill different rows at once.
class ActRows {
 public:
  ActRows() = default;
  ActRows(i32 capacity, i32 cols);

  f32* x() const { return x_.data(); }
  f32* row(i32 t) const { return x_.data() + t * stride_; }
  i64 stride() const { return stride_; }
  i32 cols() const { return cols_; }
  // Quantises whole rows.
  void quantize(const Kernels& kernels, i32 begin, i32 end) const;
  // Quantises columns [from, to) of one row. REQUIRES: multiples of 32.
  void quantize_part(const Kernels& kernels, i32 t, i32 from, i32 to) const;
  ActView view() const { return view_from(0); }
  // Columns from `col` on. REQUIRES: a multiple of 32, unless only floats are read.
  ActView view_columns(i32 col) const {
    return {x_.data() + col,         stride_,
            q_.data() + col,         stride_,
            d_.data() + col / 32,    s_.data() + col / 32,
            sums_.data() + col / 32, blocks_};
  }
  ActView view_from(i32 t) const {
    return {x_.data() + t * stride_,    stride_,
            q_.data() + t * stride_,    stride_,
            d_.data() + t * blocks_,    s_.data() + t * blocks_,
            sums_.data() + t * blocks_, blocks_};
  }

 private:
  i32 cols_ = 0;
  i64 stride_ = 0;
  i64 blocks_ = 0;
  AlignedArray<f32> x_;
  AlignedArray<i8> q_;
  AlignedArray<f32> d_;
  AlignedArray<f32> s_;
  AlignedArray<i32> sums_;
};

}  // namespace llm
