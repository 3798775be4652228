// Any JSON schema: an error, or a grammar that is followed without end of time or memory, and
// whatever text it derives is JSON. Input: the schema, a zero byte, which of the allowed bytes to
// take, one after the other.
#include "base/check.h"
#include "llm/engine/json_schema.h"

#include <algorithm>

namespace {

std::string allowed_bytes(llm::GrammarMachine* machine, const llm::GrammarMachine::State& state) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    if (!machine->advance(state, static_cast<u8>(byte)).empty()) bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint8_t* zero = std::find(data, data + size, 0);
  const std::string_view schema(reinterpret_cast<const char*>(data),
                                static_cast<std::size_t>(zero - data));
  const auto json = base::Json::parse(schema, {.depth_max = 64});
  if (!json.ok()) return 0;
  auto grammar = llm::grammar_for_schema(*json);
  if (!grammar.ok()) return 0;
  llm::GrammarMachine machine(std::move(*grammar));
  auto state = machine.start();
  std::string text;
  for (const std::uint8_t* choice = zero; choice < data + size && text.size() < 200; ++choice) {
    const bool done = std::binary_search(state.begin(), state.end(), llm::GrammarMachine::kDone);
    if (done) CHECK(base::Json::parse(text, {.depth_max = 256}).ok());
    const std::string allowed = allowed_bytes(&machine, state);
    CHECK(done || !allowed.empty());  // no dead end
    if (allowed.empty()) break;
    text += allowed[*choice % allowed.size()];
    state = machine.advance(state, static_cast<u8>(text.back()));
  }
  return 0;
}
