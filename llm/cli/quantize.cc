// fleetlm quantize and fleetlm convert: write a model, a GGUF file or a Hugging Face folder, as one
// GGUF file.
#include "llm/cli/commands.h"
#include "llm/formats/gguf_writer.h"
#include "llm/formats/hf_folder.h"
#include "llm/formats/quant.h"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <cinttypes>
#include <optional>

namespace llm {
namespace {

// Vectors, and matrices whose rounding would change which tokens or experts are chosen or how sure
// a draft is, are not quantised; they are small and GGUF has them in 32 bits.
bool keeps_precision(const TensorView& tensor) {
  return tensor.shape.size() < 2 || tensor.name.find("ffn_gate_inp") != std::string::npos ||
         tensor.name.find("indexer.proj") != std::string::npos ||
         tensor.name.starts_with("conf_proj");
}

// Tables that every token goes through lose quality first: never below 8 bits. `wanted` nullopt:
// as it is stored.
DType type_for(const TensorView& tensor, std::optional<DType> wanted) {
  const bool plain = info_of(tensor.type).block_values == 1 && tensor.type != DType::kI64 &&
                     tensor.type != DType::kI32 && tensor.type != DType::kI8;
  if (keeps_precision(tensor)) return plain ? DType::kF32 : tensor.type;
  if (!wanted) return tensor.type;
  const bool table = tensor.name == "token_embd.weight" || tensor.name == "output.weight";
  const bool small = info_of(*wanted).block_values > 1 && *wanted != DType::kQ80;
  const DType chosen = table && small ? DType::kQ80 : *wanted;
  if (tensor.columns() % info_of(chosen).block_values == 0) return chosen;
  return tensor.columns() % info_of(DType::kQ80).block_values == 0 ? DType::kQ80 : DType::kF16;
}

// What belongs to the way a model was stored, not to the model.
bool is_storage_key(std::string_view key) {
  return key == "general.file_type" || key == "general.quantization_version" ||
         key.starts_with("split.") || key.starts_with("fleetlm.");
}

base::Status rewrite(const std::string& from, const std::string& to, std::optional<DType> wanted) {
  const auto model = TRY(open_model_file(from));
  GgufWriter writer;
  for (const Gguf::Pair& pair : model->pairs()) {
    if (!is_storage_key(pair.key)) writer.copy(pair);
  }
  writer.set_u32("general.quantization_version", 2);
  for (const TensorView& tensor : model->tensors()) {
    writer.add_tensor(tensor.name, type_for(tensor, wanted), tensor.shape, {});
  }
  std::vector<u8> made;
  std::vector<u8> bytes;
  std::vector<f32> row;
  size_t done = 0;
  const bool terminal = ::isatty(2) != 0;
  const auto produce = [&](const TensorView& out) -> base::Result<base::ByteView> {
    const TensorView& in = *model->find(out.name);
    if (terminal) std::fprintf(stderr, "\r%zu of %zu tensors", ++done, model->tensors().size());
    const base::ByteView stored = TRY(model->rows(in, 0, in.rows(), &made));
    if (in.type == out.type) return stored;
    bytes.resize(out.rows() * out.row_bytes());
    row.resize(out.columns());
    for (u64 r = 0; r < out.rows(); ++r) {
      dequantize(in.type, stored.data() + r * in.row_bytes(), row);
      quantize(out.type, row, bytes.data() + r * out.row_bytes());
    }
    return base::ByteView(bytes);
  };
  const auto written = writer.write(to, produce);
  if (terminal) std::fputc('\n', stderr);
  return written;
}

constexpr const char* kTypes = "f32, f16, bf16, q8_0, q4_0, q4_1, q4_k, q5_k or q6_k";

int run_rewrite(int argc, char** argv, CLI::App* app, std::string type_name) {
  std::string from;
  std::string to;
  app->add_option("from", from, "a GGUF file or a Hugging Face folder")->required();
  app->add_option("to", to, "the GGUF file to write")->required();
  app->add_option("--type", type_name,
                  std::string(kTypes) + (type_name.empty() ? "; else as they are" : ""));
  CLI11_PARSE(*app, argc, argv);
  std::optional<DType> wanted;
  if (!type_name.empty()) {
    const auto type = parse_dtype(type_name);
    if (!type.ok()) return fail(type.error());
    if (!can_quantize(*type)) {
      return fail(base::Error(base::ErrorCode::kUnsupported,
                              "cannot write weights of type " + type_name + "; choose " + kTypes));
    }
    wanted = *type;
  }
  const auto done = rewrite(from, to, wanted);
  return done.ok() ? 0 : fail(done.error());
}

}  // namespace

int run_quantize(int argc, char** argv) {
  CLI::App app("Rewrites a model with smaller weights.", "fleetlm quantize");
  return run_rewrite(argc, argv, &app, "q8_0");
}

int run_convert(int argc, char** argv) {
  CLI::App app("Writes a Hugging Face folder, or a split model, as one GGUF file.",
               "fleetlm convert");
  return run_rewrite(argc, argv, &app, "");
}

}  // namespace llm
