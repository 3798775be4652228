// Pieces that every architecture is made of: named weights with checked shapes, the step's running
// residual, rotary angles, and products split among the crew.
#pragma once

#include "base/result.h"
#include "llm/formats/tensor.h"
#include "llm/kernels/aligned.h"
#include "llm/kernels/crew.h"
#include "llm/kernels/matrix.h"

#include <string>
#include <vector>

namespace llm {

// Finds weights by name and checks shapes. Keeps count of bytes and parameters.
class WeightReader {
 public:
  WeightReader(const TensorSource& source, Precision precision)
      : source_(source), precision_(precision) {}
  // kCorruption when it is missing or is not [rows, cols].
  base::Result<PackedMatrix> matrix(const std::string& name, i32 rows, i32 cols);
  base::Result<std::vector<f32>> vector(const std::string& name, i32 size);
  // Empty when there is none.
  base::Result<std::vector<f32>> optional_vector(const std::string& name, i32 size);
  // Rows and columns of a matrix [rows, cols]; the rule of PackedMatrix::from_tensor holds.
  base::Result<PackedMatrix> part(const std::string& name, i32 rows, Share mine, i32 cols,
                                  Share my_cols);
  // One [rows, cols] slice of a tensor [count, rows, cols].
  base::Result<PackedMatrix> slice(const std::string& name, i32 index, i32 count, i32 rows,
                                   i32 cols);
  bool has(const std::string& name) const { return source_.find(name) != nullptr; }
  // A matrix whose rows are looked up one by one in the file's own bytes.
  base::Result<const TensorView*> table(const std::string& name, u64 rows, u64 cols) const;

  u64 bytes() const { return bytes_; }
  u64 parameters() const { return parameters_; }
  Precision precision() const { return precision_; }

 private:
  base::Result<const TensorView*> tensor(const std::string& name, u64 rows, u64 cols) const;

  const TensorSource& source_;
  Precision precision_;
  u64 bytes_ = 0;
  u64 parameters_ = 0;
};

// cos and sin of position * frequencies[i] for each row of a step, [rows][dim / 2], times
// magnitude.
class RopeAngles {
 public:
  RopeAngles() = default;
  RopeAngles(i32 rows, std::vector<f64> frequencies, f64 magnitude = 1);
  void set(i32 row, i32 position) const;
  // Turns the first dim values of x. `interleaved`: pairs (2i, 2i+1), else (i, i + dim / 2).
  void apply(i32 row, f32* x, bool interleaved) const;

 private:
  i32 half_ = 0;
  f64 magnitude_ = 1;
  std::vector<f64> frequencies_;
  AlignedArray<f32> cos_;
  AlignedArray<f32> sin_;
};

// A rank's part of out[t][row] = m x[t]: groups of 16 rows split evenly.
// Returns the rows [begin, end) it has written.
Share multiply_share(const Kernels& kernels, const PackedMatrix& m, const ActView& x, i32 tokens,
                     f32* out, i64 out_stride, i32 rank, i32 ranks);

// The best of a rank's columns, folded after the step.
struct Best {
  f32 value;
  i32 index;
};
Best best_of(const Kernels& kernels, const f32* values, i32 begin, i32 end);

}  // namespace llm
