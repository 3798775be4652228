// fleetlm quantize: rewrites a GGUF file with smaller weights.
#include "llm/cli/commands.h"
#include "llm/formats/gguf_writer.h"
#include "llm/formats/quant.h"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <cinttypes>

namespace llm {
namespace {

// Matrices that are only looked at, or whose rounding would change which tokens or experts are
// chosen, keep their type.
bool keeps_type(const TensorView& tensor) {
  return tensor.shape.size() < 2 || tensor.name.find("ffn_gate_inp") != std::string::npos ||
         tensor.name.find("indexer.proj") != std::string::npos;
}

// Tables that every token goes through lose quality first: never below 8 bits.
DType type_for(const TensorView& tensor, DType wanted) {
  if (keeps_type(tensor)) return tensor.type;
  const bool table = tensor.name == "token_embd.weight" || tensor.name == "output.weight";
  const bool small = info_of(wanted).block_values > 1 && wanted != DType::kQ80;
  const DType chosen = table && small ? DType::kQ80 : wanted;
  if (tensor.columns() % info_of(chosen).block_values == 0) return chosen;
  return tensor.columns() % info_of(DType::kQ80).block_values == 0 ? DType::kQ80 : DType::kF16;
}

base::Status quantize_file(const std::string& from, const std::string& to, DType wanted) {
  const auto gguf = TRY(Gguf::open(from));
  GgufWriter writer;
  for (const Gguf::Pair& pair : gguf->pairs()) {
    if (pair.key != "general.file_type") writer.copy(pair);
  }
  for (const TensorView& tensor : gguf->tensors()) {
    writer.add_tensor(tensor.name, type_for(tensor, wanted), tensor.shape, {});
  }
  std::vector<u8> bytes;
  std::vector<f32> row;
  size_t done = 0;
  const bool terminal = ::isatty(2) != 0;
  const auto produce = [&](const TensorView& out) -> base::Result<base::ByteView> {
    const TensorView& in = *gguf->find(out.name);
    if (terminal) std::fprintf(stderr, "\r%zu of %zu tensors", ++done, gguf->tensors().size());
    if (in.type == out.type) return in.bytes;
    bytes.resize(out.rows() * out.row_bytes());
    row.resize(out.columns());
    for (u64 r = 0; r < out.rows(); ++r) {
      dequantize(in.type, in.bytes.data() + r * in.row_bytes(), row);
      quantize(out.type, row, bytes.data() + r * out.row_bytes());
    }
    return base::ByteView(bytes);
  };
  const auto written = writer.write(to, produce);
  if (terminal) std::fputc('\n', stderr);
  return written;
}

}  // namespace

int run_quantize(int argc, char** argv) {
  CLI::App app("Rewrites a GGUF file with smaller weights.", "fleetlm quantize");
  std::string from;
  std::string to;
  std::string type_name = "q8_0";
  app.add_option("from", from, "a GGUF file")->required();
  app.add_option("to", to, "the file to write")->required();
  app.add_option("--type", type_name, "f32, f16, bf16, q8_0, q4_0, q4_1, q4_k, q5_k or q6_k");
  CLI11_PARSE(app, argc, argv);
  const auto type = parse_dtype(type_name);
  if (!type.ok()) return fail(type.error());
  if (!can_quantize(*type)) {
    return fail(
        base::Error(base::ErrorCode::kUnsupported, "cannot write weights of type " + type_name));
  }
  const auto done = quantize_file(from, to, *type);
  return done.ok() ? 0 : fail(done.error());
}

}  // namespace llm
