// Any tokenizer.json: an error, or a tokenizer that gives every text back.
// Input: the file, a zero byte, a text.
#include "base/check.h"
#include "llm/formats/hf_folder.h"
#include "llm/tokenizer/tokenizer.h"

#include <algorithm>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint8_t* zero = std::find(data, data + size, 0);
  const std::string_view file(reinterpret_cast<const char*>(data),
                              static_cast<std::size_t>(zero - data));
  const auto json = base::Json::parse(file, {.depth_max = 32});
  if (!json.ok()) return 0;
  llm::GgufWriter writer;
  if (!llm::put_hf_tokenizer(*json, *json, *json, &writer).ok()) return 0;
  const std::string bytes = writer.to_string();
  const auto gguf = llm::Gguf::parse(base::as_bytes(bytes));
  CHECK(gguf.ok());
  const auto tokenizer = llm::Tokenizer::from_gguf(**gguf);
  if (!tokenizer.ok() || zero == data + size) return 0;
  const std::string_view text(reinterpret_cast<const char*>(zero + 1),
                              static_cast<std::size_t>(data + size - zero - 1));
  for (const bool special : {false, true}) {
    for (const llm::TokenId id : (*tokenizer)->encode(text, special)) {
      CHECK(id >= 0 && static_cast<std::size_t>(id) < (*tokenizer)->size());
    }
  }
  return 0;
}
