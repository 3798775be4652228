// Tensors as files hold them: a type, a shape and bytes that stay in the mapped file.
//
// Shapes are written outermost first: a weight is [out, in] and its rows are contiguous. Quantised
// types store each row as whole blocks (see quant.h). Thread-compatible; views do not own.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "base/types.h"

#include <string>
#include <string_view>
#include <vector>

namespace llm {

// Numbers of GGUF (ggml) where it has one; the last has none and comes from safetensors.
enum class DType : u32 {
  kF32 = 0,
  kF16 = 1,
  kQ40 = 2,
  kQ41 = 3,
  kQ80 = 8,
  kQ4K = 12,
  kQ5K = 13,
  kQ6K = 14,
  kI8 = 24,
  kI32 = 26,
  kI64 = 27,
  kBF16 = 30,
  kF8E4M3 = 1000,
};

struct DTypeInfo {
  const char* name;  // as GGUF tools print it: "Q4_K"
  u32 block_values;  // values in one block; 1 for plain types
  u32 block_bytes;
};

// Null for a type this program does not know.
const DTypeInfo* find_dtype(DType type);
// REQUIRES: a known type.
const DTypeInfo& info_of(DType type);
// "q8_0", "Q4_K", "bf16" ...; kInvalidArgument names the ones that exist.
base::Result<DType> parse_dtype(std::string_view name);

struct TensorView {
  std::string name;
  DType type = DType::kF32;
  std::vector<u64> shape;
  base::ByteView bytes;

  u64 values() const;
  u64 columns() const { return shape.empty() ? 1 : shape.back(); }
  u64 rows() const { return columns() == 0 ? 0 : values() / columns(); }
  u64 row_bytes() const;
  // "[49152, 576]"
  std::string shape_text() const;
};

// Where a model finds its weights; a GGUF file, or the files of a safetensors folder.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // Null when there is none of that name.
  virtual const TensorView* find(std::string_view name) const = 0;
  virtual const std::vector<TensorView>& tensors() const = 0;
  // The bytes of rows [begin, end) of one of its tensors: in the file where they lie there as they
  // are, else made in `scratch`. A source that makes some gives those tensors no `bytes`.
  virtual base::Result<base::ByteView> rows(const TensorView& tensor, u64 begin, u64 end,
                                            std::vector<u8>* scratch) const;
};

}  // namespace llm
