// fleetlm info: what a model file holds, for people or as JSON.
#include "base/json.h"
#include "llm/cli/commands.h"
#include "llm/formats/hf_folder.h"

#include <CLI/CLI.hpp>

#include <cinttypes>
#include <map>

namespace llm {
namespace {

std::string shown(const GgufValue& value) {
  if (const auto* whole = std::get_if<i64>(&value.value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<f64>(&value.value)) return base::Json(*real).dump();
  if (const auto* flag = std::get_if<bool>(&value.value)) return *flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string_view>(&value.value)) {
    return base::json_quote(text->substr(0, 60)) + (text->size() > 60 ? "..." : "");
  }
  const auto count = std::visit(
      [](const auto& v) -> size_t {
        if constexpr (requires { v.size(); }) return v.size();
        return 0;
      },
      value.value);
  return "[" + std::to_string(count) + " items]";
}

base::Json summary(const Gguf& gguf) {
  u64 parameters = 0;
  std::map<std::string, i64> types;
  for (const TensorView& tensor : gguf.tensors()) {
    parameters += tensor.values();
    ++types[info_of(tensor.type).name];
  }
  base::Json by_type = base::Json::object();
  for (const auto& [name, count] : types) by_type.set(name, count);
  return base::Json::object(
      {{"architecture", std::string(gguf.text("general.architecture").value_or(""))},
       {"name", std::string(gguf.text("general.name").value_or(""))},
       {"file_bytes", gguf.file_bytes()},
       {"parameters", parameters},
       {"tensors", by_type}});
}

}  // namespace

int run_info(int argc, char** argv) {
  CLI::App app("Shows what a model file holds.", "fleetlm info");
  std::string path;
  bool json = false;
  bool tensors = false;
  app.add_option("model", path, "a GGUF file or a Hugging Face folder")->required();
  app.add_flag("--json", json, "a JSON object instead of lines");
  app.add_flag("--tensors", tensors, "list every tensor");
  CLI11_PARSE(app, argc, argv);
  const auto opened = open_model_file(path);
  if (!opened.ok()) return fail(opened.error());
  const Gguf& gguf = **opened;
  const base::Json info = summary(gguf);
  if (json) {
    std::puts(info.dump().c_str());
    return 0;
  }
  std::printf("%s, %s\n", info["name"].as_string().c_str(),
              info["architecture"].as_string().c_str());
  std::printf("%.1f M parameters in %.1f MB\n", info["parameters"].as_double() / 1e6,
              info["file_bytes"].as_double() / 1e6);
  for (const auto& [name, count] : info["tensors"].members()) {
    std::printf("  %4" PRId64 " tensors of %s\n", count.as_int(), name.c_str());
  }
  for (const Gguf::Pair& pair : gguf.pairs()) {
    std::printf("  %s = %s\n", std::string(pair.key).c_str(), shown(pair.value).c_str());
  }
  for (size_t i = 0; tensors && i < gguf.tensors().size(); ++i) {
    const TensorView& tensor = gguf.tensors()[i];
    std::printf("  %-32s %-5s %s\n", tensor.name.c_str(), info_of(tensor.type).name,
                tensor.shape_text().c_str());
  }
  return 0;
}

}  // namespace llm
