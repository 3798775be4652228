// Any bytes: an error or a directory whose tensors lie inside the bytes.
#include "base/check.h"
#include "llm/formats/gguf.h"
#include "llm/formats/quant.h"

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = llm::Gguf::parse({data, size});
  if (!parsed.ok()) return 0;
  for (const llm::TensorView& tensor : (*parsed)->tensors()) {
    CHECK(tensor.bytes.data() >= data && tensor.bytes.data() + tensor.bytes.size() <= data + size);
    std::vector<float> row(tensor.columns());
    if (tensor.rows() > 0) llm::dequantize(tensor.type, tensor.bytes.data(), row);
  }
  return 0;
}
