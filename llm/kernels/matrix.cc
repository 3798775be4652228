#include "llm/kernels/matrix.h"

#include "llm/formats/quant.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace llm {
namespace {

using base::Error;
using base::ErrorCode;
using base::load_le;
using base::store_le;

constexpr u64 kRows = 16;
constexpr u64 kBlock = 32;
constexpr f32 kLargestHalf = 65504.0f;

MatrixKind kind_of(DType type) {
  switch (type) {
    case DType::kF16:
      return MatrixKind::kF16;
    case DType::kBF16:
      return MatrixKind::kBF16;
    case DType::kQ80:
      return MatrixKind::kQ8;
    case DType::kQ40:
    case DType::kQ41:
      return MatrixKind::kQ4;
    case DType::kQ4K:
      return MatrixKind::kQ4K;
    case DType::kQ5K:
      return MatrixKind::kQ5K;
    case DType::kQ6K:
      return MatrixKind::kQ6K;
    default:
      return MatrixKind::kF32;
  }
}

bool nibbles(MatrixKind kind) {
  return kind == MatrixKind::kQ4 || kind == MatrixKind::kQ4K;
}

u64 data_bytes(MatrixKind kind, u64 cols) {
  switch (kind) {
    case MatrixKind::kF32:
      return cols * kRows * 4;
    case MatrixKind::kF16:
    case MatrixKind::kBF16:
      return cols * kRows * 2;
    default:
      return cols / kBlock * (nibbles(kind) ? 256 : 512);
  }
}

u64 scale_bytes(MatrixKind kind, u64 cols) {
  switch (kind) {
    case MatrixKind::kF32:
    case MatrixKind::kF16:
    case MatrixKind::kBF16:
      return 0;
    case MatrixKind::kQ8:
      return cols / kBlock * kRows * 2;
    case MatrixKind::kQ4:
      return cols / kBlock * kRows * 4;
    default:
      return cols / kBlock * kRows * 8;
  }
}

// d (n - 8) needs -8 d as a half; a scale beyond that is widened instead.
bool scales_fit(const TensorView& tensor) {
  if (tensor.type != DType::kQ40) return true;
  for (u64 at = 0; at + 18 <= tensor.bytes.size(); at += 18) {
    if (!(std::fabs(f16_to_f32(load_le<u16>(tensor.bytes.data() + at))) * 8 <= kLargestHalf))
      return false;
  }
  return true;
}

}  // namespace

PackedMatrix::PackedMatrix(MatrixKind kind, u64 rows, u64 cols)
    : kind_(kind),
      rows_(static_cast<i32>(rows)),
      cols_(static_cast<i32>(cols)),
      group_bytes_(data_bytes(kind, cols)),
      group_scale_bytes_(scale_bytes(kind, cols)) {
  const u64 group_count = (rows + kRows - 1) / kRows;
  data_ = AlignedBytes(group_bytes_ * group_count);
  scales_ = AlignedBytes(group_scale_bytes_ * group_count);
}

void PackedMatrix::set_scale(u64 row, u64 block, u64 which, f32 value) {
  u8* scales = scales_.data() + row / kRows * group_scale_bytes_;
  const u64 lane = row % kRows;
  if (kind_ == MatrixKind::kQ8) {
    store_le<u16>(scales + (block * kRows + lane) * 2, f32_to_f16(value));
  } else if (kind_ == MatrixKind::kQ4) {
    store_le<u16>(scales + ((block * 2 + which) * kRows + lane) * 2, f32_to_f16(value));
  } else {
    store_le<f32>(scales + ((block * 2 + which) * kRows + lane) * 4, value);
  }
}

void PackedMatrix::set_byte(u64 row, u64 k, i32 value) {
  u8* data = data_.data() + row / kRows * group_bytes_;
  data[k / kBlock * 512 + k % kBlock / 4 * 64 + row % kRows * 4 + k % 4] =
      static_cast<u8>(static_cast<i8>(value));
}

void PackedMatrix::set_nibble(u64 row, u64 k, u32 value) {
  u8* data = data_.data() + row / kRows * group_bytes_;
  const u64 j = k % 16;
  data[k / kBlock * 256 + j / 4 * 64 + row % kRows * 4 + j % 4] |=
      static_cast<u8>(value << (k % kBlock < 16 ? 0 : 4));
}

void PackedMatrix::pack_floats(u64 row, const f32* values) {
  u8* data = data_.data() + row / kRows * group_bytes_;
  for (u64 k = 0; k < static_cast<u64>(cols_); ++k) {
    const u64 at = k * kRows + row % kRows;
    if (kind_ == MatrixKind::kF32) {
      store_le<f32>(data + at * 4, values[k]);
    } else {
      store_le<u16>(data + at * 2,
                    kind_ == MatrixKind::kF16 ? f32_to_f16(values[k]) : f32_to_bf16(values[k]));
    }
  }
}

void PackedMatrix::pack_row(u64 row, DType type, const u8* blocks) {
  const DTypeInfo& info = info_of(type);
  for (u64 from = 0; from < static_cast<u64>(cols_); from += info.block_values) {
    const u8* block = blocks + from / info.block_values * info.block_bytes;
    const u64 b = from / kBlock;
    if (type == DType::kQ80) {
      set_scale(row, b, 0, f16_to_f32(load_le<u16>(block)));
      for (u64 i = 0; i < kBlock; ++i) set_byte(row, from + i, static_cast<i8>(block[2 + i]));
    } else if (type == DType::kQ40 || type == DType::kQ41) {
      const f32 d = f16_to_f32(load_le<u16>(block));
      const bool has_min = type == DType::kQ41;
      set_scale(row, b, 0, d);
      set_scale(row, b, 1, has_min ? f16_to_f32(load_le<u16>(block + 2)) : -8 * d);
      const u8* pairs = block + (has_min ? 4 : 2);
      for (u64 i = 0; i < 16; ++i) {
        set_nibble(row, from + i, pairs[i] & 15u);
        set_nibble(row, from + i + 16, pairs[i] >> 4);
      }
    } else if (type == DType::kQ4K || type == DType::kQ5K) {
      const f32 d = f16_to_f32(load_le<u16>(block));
      const f32 dmin = f16_to_f32(load_le<u16>(block + 2));
      u8 scales[8];
      u8 mins[8];
      unpack_k_scales(block + 4, scales, mins);
      const bool five_bits = type == DType::kQ5K;
      const u8* high = block + 16;
      const u8* pairs = block + (five_bits ? 48 : 16);
      for (u64 sub = 0; sub < 8; ++sub) {
        set_scale(row, b + sub, 0, d * static_cast<f32>(scales[sub]));
        set_scale(row, b + sub, 1, -(dmin * static_cast<f32>(mins[sub])));
        for (u64 i = 0; i < kBlock; ++i) {
          const u8 byte = pairs[sub / 2 * 32 + i];
          const u32 q = sub % 2 == 0 ? byte & 15u : byte >> 4;
          if (five_bits) {
            set_byte(row, from + sub * kBlock + i,
                     static_cast<i32>(q | (high[i] >> sub & 1u) << 4));
          } else {
            set_nibble(row, from + sub * kBlock + i, q);
          }
        }
      }
    } else {  // Q6_K: decode with d = 1 to get the levels
      const f32 d = f16_to_f32(load_le<u16>(block + 208));
      for (u64 i = 0; i < 256; ++i) {
        const u64 half = i / 128;
        const u64 quarter = i % 128 / 32;
        const u8 byte = block[64 * half + i % 32 + 32 * (quarter % 2)];
        const u32 low = quarter < 2 ? byte & 15u : byte >> 4;
        const u32 upper = block[128 + 32 * half + i % 32] >> (2 * quarter) & 3u;
        set_byte(row, from + i, static_cast<i32>(low | upper << 4) - 32);
      }
      for (u64 sub = 0; sub < 16; ++sub) {
        const auto step = static_cast<f32>(static_cast<i8>(block[192 + sub]));
        set_scale(row, b + sub / 2, sub % 2, d * step);
      }
    }
  }
}

bool PackedMatrix::splits_anywhere(const TensorView& tensor, Precision precision) {
  const MatrixKind native = scales_fit(tensor) ? kind_of(tensor.type) : MatrixKind::kF32;
  return precision == Precision::kExact || native <= MatrixKind::kBF16;
}

MatrixView PackedMatrix::columns(i32 begin, i32 end) const {
  MatrixView v = view();
  v.cols = end - begin;
  v.data += data_bytes(kind_, static_cast<u64>(begin));
  v.scales += scale_bytes(kind_, static_cast<u64>(begin));
  return v;
}

base::Result<PackedMatrix> PackedMatrix::from_tensor(const TensorView& tensor, Precision precision,
                                                     const Part& part) {
  CHECK(part.row_begin <= part.row_end && part.row_end <= tensor.rows());
  CHECK(part.col_begin <= part.col_end && part.col_end <= tensor.columns());
  if (tensor.type == DType::kI8 || tensor.type == DType::kI32 || tensor.type == DType::kI64) {
    return Error(ErrorCode::kUnsupported,
                 "tensor " + tensor.name + " holds integers where weights were expected");
  }
  const u64 cols = tensor.columns();
  if (cols > (1u << 30) || part.row_end - part.row_begin > (1u << 30)) {
    return Error(ErrorCode::kUnsupported,
                 "tensor " + tensor.name + " is too large to multiply with");
  }
  const MatrixKind native = scales_fit(tensor) ? kind_of(tensor.type) : MatrixKind::kF32;
  const MatrixKind kind = precision == Precision::kExact ? MatrixKind::kF32 : native;
  const u64 width = part.col_end - part.col_begin;
  PackedMatrix matrix(kind, part.row_end - part.row_begin, width);
  // A group at a time; a block's bytes do not depend on where in its row it lies.
  PackedMatrix group(kind, width == cols ? 0 : kRows, cols);
  std::vector<f32> values(cols);
  for (u64 from = part.row_begin; from < part.row_end; from += kRows) {
    const u64 at = (from - part.row_begin) / kRows;
    const u64 count = std::min(kRows, part.row_end - from);
    PackedMatrix& target = width == cols ? matrix : group;
    if (width != cols) group.clear();
    for (u64 row = 0; row < count; ++row) {
      const u8* blocks = tensor.bytes.data() + (from + row) * tensor.row_bytes();
      const u64 place = width == cols ? at * kRows + row : row;
      if (matrix.quantised()) {
        target.pack_row(place, tensor.type, blocks);
      } else {
        dequantize(tensor.type, blocks, values);
        target.pack_floats(place, values.data());
      }
    }
    if (width != cols) matrix.take_columns(group, at, part.col_begin);
  }
  return matrix;
}

void PackedMatrix::clear() {
  // Float kinds have no scales, and memset wants an address even for nothing.
  if (data_.size() > 0) std::memset(data_.data(), 0, data_.size());
  if (scales_.size() > 0) std::memset(scales_.data(), 0, scales_.size());
}

// Group `at` from the single group of a wider matrix.
void PackedMatrix::take_columns(const PackedMatrix& wide, u64 at, u64 col_begin) {
  if (group_bytes_ == 0) return;
  std::memcpy(data_.data() + at * group_bytes_, wide.data_.data() + data_bytes(kind_, col_begin),
              group_bytes_);
  if (group_scale_bytes_ == 0) return;
  std::memcpy(scales_.data() + at * group_scale_bytes_,
              wide.scales_.data() + scale_bytes(kind_, col_begin), group_scale_bytes_);
}

PackedMatrix PackedMatrix::from_floats(const f32* values, u64 rows, u64 cols, DType type) {
  PackedMatrix matrix(kind_of(type), rows, cols);
  const DTypeInfo& info = info_of(type);
  std::vector<u8> blocks(cols / info.block_values * info.block_bytes);
  for (u64 row = 0; row < rows; ++row) {
    if (matrix.quantised()) {
      quantize(type, {values + row * cols, cols}, blocks.data());
      matrix.pack_row(row, type, blocks.data());
    } else {
      matrix.pack_floats(row, values + row * cols);
    }
  }
  return matrix;
}

ActRows::ActRows(i32 capacity, i32 cols)
    : cols_(cols), stride_((cols + 31) / 32 * 32), blocks_(stride_ / 32) {
  const auto rows = static_cast<u64>(capacity);
  x_ = AlignedArray<f32>(rows * static_cast<u64>(stride_));
  q_ = AlignedArray<i8>(rows * static_cast<u64>(stride_));
  d_ = AlignedArray<f32>(rows * static_cast<u64>(blocks_));
  s_ = AlignedArray<f32>(rows * static_cast<u64>(blocks_));
  sums_ = AlignedArray<i32>(rows * static_cast<u64>(blocks_));
}

void ActRows::quantize(const Kernels& kernels, i32 begin, i32 end) const {
  for (i32 t = begin; t < end; ++t) quantize_part(kernels, t, 0, static_cast<i32>(stride_));
}

void ActRows::quantize_part(const Kernels& kernels, i32 t, i32 from, i32 to) const {
  const i64 at = t * stride_ + from;
  const i64 block = t * blocks_ + from / 32;
  kernels.quantize(x_.data() + at, to - from, q_.data() + at, d_.data() + block, s_.data() + block,
                   sums_.data() + block);
}

}  // namespace llm
