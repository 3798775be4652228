#include "llm/model/parts.h"

#include "llm/formats/quant.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Result;

Result<const TensorView*> WeightReader::tensor(const std::string& name, u64 rows, u64 cols) const {
  const TensorView* found = source_.find(name);
  if (found == nullptr) {
    return Error(ErrorCode::kCorruption, "the model has no tensor " + name);
  }
  if (found->columns() != cols || found->rows() != rows) {
    return Error(ErrorCode::kCorruption, "tensor " + name + " is " + found->shape_text() +
                                             " where [" + std::to_string(rows) + ", " +
                                             std::to_string(cols) + "] was expected");
  }
  return found;
}

Result<const TensorView*> WeightReader::table(const std::string& name, u64 rows, u64 cols) const {
  const TensorView* found = TRY(tensor(name, rows, cols));
  if (found->bytes.empty()) {
    return Error(ErrorCode::kUnsupported, "tensor " + name + " must be stored unscaled");
  }
  return found;
}

Result<PackedMatrix> WeightReader::matrix(const std::string& name, i32 rows, i32 cols) {
  return part(name, rows, {0, rows}, cols, {0, cols});
}

Result<PackedMatrix> WeightReader::slice(const std::string& name, i32 index, i32 count, i32 rows,
                                         i32 cols) {
  return part(name, rows * count, {index * rows, (index + 1) * rows}, cols, {0, cols});
}

Result<PackedMatrix> WeightReader::part(const std::string& name, i32 rows, Share mine, i32 cols,
                                        Share my_cols) {
  const TensorView* found = TRY(tensor(name, static_cast<u64>(rows), static_cast<u64>(cols)));
  PackedMatrix::Part wanted{static_cast<u64>(mine.begin), static_cast<u64>(mine.end),
                            static_cast<u64>(my_cols.begin), static_cast<u64>(my_cols.end)};
  TensorView made;
  std::vector<u8> scratch;
  if (found->bytes.empty()) {  // not in the file as it is: these rows alone
    made = *found;
    made.bytes = TRY(source_.rows(*found, wanted.row_begin, wanted.row_end, &scratch));
    made.shape = {wanted.row_end - wanted.row_begin, static_cast<u64>(cols)};
    wanted.row_end -= wanted.row_begin;
    wanted.row_begin = 0;
    found = &made;
  }
  PackedMatrix packed = TRY(PackedMatrix::from_tensor(*found, precision_, wanted));
  bytes_ += packed.bytes();
  parameters_ +=
      static_cast<u64>(mine.end - mine.begin) * static_cast<u64>(my_cols.end - my_cols.begin);
  return packed;
}

Result<std::vector<f32>> WeightReader::vector(const std::string& name, i32 size) {
  const TensorView* found = source_.find(name);
  if (found == nullptr || found->values() != static_cast<u64>(size) ||
      info_of(found->type).block_values != 1) {
    return Error(ErrorCode::kCorruption,
                 "the model has no vector " + name + " of " + std::to_string(size) + " values");
  }
  std::vector<f32> values(static_cast<size_t>(size));
  std::vector<u8> scratch;
  const base::ByteView bytes = TRY(source_.rows(*found, 0, found->rows(), &scratch));
  dequantize(found->type, bytes.data(), values);
  bytes_ += values.size() * sizeof(f32);
  parameters_ += values.size();
  return values;
}

Result<std::vector<f32>> WeightReader::optional_vector(const std::string& name, i32 size) {
  if (!has(name)) return std::vector<f32>();
  return vector(name, size);
}

RopeAngles::RopeAngles(i32 rows, std::vector<f64> frequencies, f64 magnitude)
    : half_(static_cast<i32>(frequencies.size())),
      magnitude_(magnitude),
      frequencies_(std::move(frequencies)) {
  cos_ = AlignedArray<f32>(static_cast<u64>(rows) * static_cast<u64>(half_));
  sin_ = AlignedArray<f32>(static_cast<u64>(rows) * static_cast<u64>(half_));
}

void RopeAngles::set(i32 row, i32 position) const {
  for (i32 i = 0; i < half_; ++i) {
    const f64 angle = position * frequencies_[static_cast<size_t>(i)];
    cos_[static_cast<u64>(row * half_ + i)] = static_cast<f32>(std::cos(angle) * magnitude_);
    sin_[static_cast<u64>(row * half_ + i)] = static_cast<f32>(std::sin(angle) * magnitude_);
  }
}

void RopeAngles::apply(i32 row, f32* x, bool interleaved) const {
  const f32* cosines = cos_.data() + row * half_;
  const f32* sines = sin_.data() + row * half_;
  const i32 step = interleaved ? 2 : 1;
  const i32 apart = interleaved ? 1 : half_;
  for (i32 i = 0; i < half_; ++i) {
    f32* a = x + i * step;
    f32* b = a + apart;
    const f32 turned = *a * cosines[i] - *b * sines[i];
    *b = *a * sines[i] + *b * cosines[i];
    *a = turned;
  }
}

Share multiply_share(const Kernels& kernels, const PackedMatrix& m, const ActView& x, i32 tokens,
                     f32* out, i64 out_stride, i32 rank, i32 ranks) {
  const Share groups = share_of(m.groups(), rank, ranks);
  if (groups.begin < groups.end) {
    kernels.gemm(m.view(), groups.begin, groups.end, x, tokens, out, out_stride);
  }
  return {std::min(groups.begin * 16, m.rows()), std::min(groups.end * 16, m.rows())};
}

Best best_of(const Kernels& kernels, const f32* values, i32 begin, i32 end) {
  if (begin >= end) return {-std::numeric_limits<f32>::infinity(), begin};
  const i32 index = begin + kernels.largest(values + begin, end - begin);
  return {values[index], index};
}

}  // namespace llm
