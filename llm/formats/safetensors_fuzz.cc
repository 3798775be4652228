// Any bytes: an error or a directory whose tensors lie inside the bytes.
#include "base/check.h"
#include "llm/formats/quant.h"
#include "llm/formats/safetensors.h"

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = llm::Safetensors::parse({data, size});
  if (!parsed.ok()) return 0;
  for (const llm::TensorView& tensor : (*parsed)->tensors()) {
    CHECK(tensor.bytes.data() >= data && tensor.bytes.data() + tensor.bytes.size() <= data + size);
    CHECK(tensor.rows() * tensor.row_bytes() == tensor.bytes.size());
    if (tensor.rows() == 0) continue;
    std::vector<float> row(tensor.columns());
    llm::dequantize(tensor.type, tensor.bytes.data(), row);
  }
  return 0;
}
