#include "llm/formats/tensor.h"

#include <cctype>

namespace llm {
namespace {

struct Entry {
  DType type;
  DTypeInfo info;
};

constexpr Entry kTypes[] = {
    {DType::kF32, {"F32", 1, 4}},        {DType::kF16, {"F16", 1, 2}},
    {DType::kBF16, {"BF16", 1, 2}},      {DType::kQ40, {"Q4_0", 32, 18}},
    {DType::kQ41, {"Q4_1", 32, 20}},     {DType::kQ80, {"Q8_0", 32, 34}},
    {DType::kQ4K, {"Q4_K", 256, 144}},   {DType::kQ5K, {"Q5_K", 256, 176}},
    {DType::kQ6K, {"Q6_K", 256, 210}},   {DType::kI8, {"I8", 1, 1}},
    {DType::kI32, {"I32", 1, 4}},        {DType::kI64, {"I64", 1, 8}},
    {DType::kF8E4M3, {"F8_E4M3", 1, 1}},
};

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::toupper(static_cast<unsigned char>(a[i])) != b[i]) return false;
  }
  return true;
}

}  // namespace

const DTypeInfo* find_dtype(DType type) {
  for (const Entry& entry : kTypes) {
    if (entry.type == type) return &entry.info;
  }
  return nullptr;
}

const DTypeInfo& info_of(DType type) {
  const DTypeInfo* info = find_dtype(type);
  CHECK(info != nullptr);
  return *info;
}

base::Result<DType> parse_dtype(std::string_view name) {
  for (const Entry& entry : kTypes) {
    if (same_name(name, entry.info.name)) return entry.type;
  }
  return base::Error(base::ErrorCode::kInvalidArgument,
                     "no tensor type is called '" + std::string(name) +
                         "'; choose one of f32, f16, bf16, q8_0, q4_0, q4_1, q4_k, q5_k, q6_k");
}

u64 TensorView::values() const {
  u64 product = 1;
  for (u64 extent : shape) product *= extent;
  return product;
}

u64 TensorView::row_bytes() const {
  const DTypeInfo& info = info_of(type);
  return columns() / info.block_values * info.block_bytes;
}

std::string TensorView::shape_text() const {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

base::Result<base::ByteView> TensorSource::rows(const TensorView& tensor, u64 begin, u64 end,
                                                std::vector<u8>*) const {
  return tensor.bytes.subspan(begin * tensor.row_bytes(), (end - begin) * tensor.row_bytes());
}

}  // namespace llm
