// Any config.json over any safetensors file: an error, or tensors whose every row can be asked for.
// Input: the config, a zero byte, the file.
#include "llm/formats/hf_folder.h"

#include <algorithm>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint8_t* zero = std::find(data, data + size, 0);
  if (zero == data + size) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data),
                              static_cast<std::size_t>(zero - data));
  const auto config = base::Json::parse(text, {.depth_max = 8});
  if (!config.ok()) return 0;
  auto weights =
      llm::Safetensors::parse({zero + 1, static_cast<std::size_t>(data + size - zero - 1)});
  if (!weights.ok()) return 0;
  const auto folder = llm::HfFolder::create(*config, std::move(weights).value(), llm::GgufWriter());
  if (!folder.ok()) return 0;
  std::vector<u8> scratch;
  for (const llm::TensorView& tensor : (*folder)->tensors()) {
    const u64 rows = tensor.rows();
    const auto all = (*folder)->rows(tensor, 0, rows, &scratch);
    if (all.ok()) CHECK(all->size() == rows * tensor.row_bytes());
    if (rows > 1) (void)(*folder)->rows(tensor, rows / 2, rows / 2 + 1, &scratch);
  }
  return 0;
}
