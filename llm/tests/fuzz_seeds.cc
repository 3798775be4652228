// Writes good inputs for the fuzz targets of FleetLM into FOLDER/TARGET/: llm_fuzz_seeds FOLDER.
// Fuzzing starts from what the writers make, and no binary file has to be kept.
#include "base/files.h"
#include "llm/formats/testing.h"
#include "llm/model/testing.h"

#include <cstdio>

namespace llm {
namespace {

class Seeds {
 public:
  explicit Seeds(std::string folder) : folder_(std::move(folder)) {}
  void add(const std::string& target, std::string_view bytes) {
    const std::string folder = folder_ + "/" + target;
    good_ = good_ && base::make_directories(folder).ok() &&
            base::write_file(folder + "/seed" + std::to_string(count_++), bytes).ok();
  }
  bool good() const { return good_; }
  int count() const { return count_; }

 private:
  std::string folder_;
  int count_ = 0;
  bool good_ = true;
};

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ80, DType::kQ40,
                            DType::kQ41, DType::kQ4K, DType::kQ5K,  DType::kQ6K};

void gguf_seeds(Seeds& seeds) {
  TinyLlama llama{
      .vocab = 8, .hidden = 32, .layers = 1, .heads = 1, .kv_heads = 1, .head_dim = 32, .ffn = 32};
  llama.rope_scaling = "yarn";
  seeds.add("gguf_fuzz", random_llama_file(llama, DType::kQ80, 1));
  for (DType type : kTypes) {
    GgufWriter writer;
    writer.set_text("general.architecture", "llama");
    writer.set_bools("flags", {true, false});
    RandomTensors tensors(&writer, 1);
    tensors.add("a.weight", type, {2, 256}, 1);
    seeds.add("gguf_fuzz", writer.to_string());
  }
}

std::string safetensors_file() {
  SafetensorsBuilder file;
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    file.add_f32("model.layers.0.self_attn." + std::string(name) + ".weight", {4, 4},
                 std::vector<f32>(16, 0.5f));
  }
  for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
    file.add("model.layers.0.mlp." + std::string(name) + ".weight", "BF16", {4, 4},
             std::string(32, '\x3f'));
  }
  file.add_f32("model.embed_tokens.weight", {3, 4}, std::vector<f32>(12, 1));
  return file.file();
}

void folder_seeds(Seeds& seeds) {
  const std::string weights = safetensors_file();
  seeds.add("safetensors_fuzz", weights);
  const std::string sizes =
      R"("hidden_size":4,"num_attention_heads":2,"num_key_value_heads":2,"num_hidden_layers":1,)"
      R"("intermediate_size":4,"max_position_embeddings":64,"vocab_size":3)";
  for (const char* scaling :
       {"null", R"({"rope_type":"linear","factor":2})",
        R"({"rope_type":"yarn","factor":4,"original_max_position_embeddings":16})",
        R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,)"
        R"("original_max_position_embeddings":16})"}) {
    const std::string config =
        R"({"model_type":"llama","rope_scaling":)" + std::string(scaling) + "," + sizes + "}";
    seeds.add("hf_folder_fuzz", config + std::string(1, '\0') + weights);
  }
}

constexpr const char* kBodies[] = {
    R"({"messages":[{"role":"user","content":"x"}],"max_tokens":3,"stream":true})",
    R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"max_tokens":3,"n":2})",
    R"({"messages":[{"role":"user","content":"x"}],"max_tokens":9,"seed":1,"temperature":2,)"
    R"("logit_bias":{"1":-100},"response_format":{"type":"json_object"},"logprobs":true})",
    R"({"messages":[{"role":"user","content":"x"}],"max_tokens":9,"tool_choice":"required",)"
    R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]})",
    R"({"messages":[{"role":"user","content":"x"}],"max_tokens":9,"response_format":)"
    R"({"type":"json_schema","json_schema":{"name":"s","schema":{"const":"\u00fc"}}}})",
    R"({"prompt":["a",[1,2]],"max_tokens":2,"echo":true,"stop":["b"]})",
    R"({"prompt":"ab","max_tokens":5,"logprobs":3,"top_p":0.5,"top_k":4,"frequency_penalty":1})"};

void server_seeds(Seeds& seeds) {
  for (const std::string body : kBodies) {
    const bool completion = body.find("prompt") != std::string::npos;
    seeds.add("server_fuzz", (completion ? "\x01" : std::string(1, '\0')) + body);
    const std::string head = std::string("POST /v1/") +
                             (completion ? "completions" : "chat/completions") +
                             " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n";
    const std::string length = "Content-Length: " + std::to_string(body.size());
    seeds.add("connection_fuzz", head + length + "\r\n\r\n" + body);
    // Two requests at once, the second cut off.
    const std::string health = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    seeds.add("connection_fuzz", health + head + length + "\r\n\r\n" + body.substr(1));
  }
  for (const char* path : {"/", "/v1/models", "/metrics", "/v1/nothing?a=%00&b"}) {
    seeds.add("connection_fuzz", "GET " + std::string(path) +
                                     " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer y\r\n\r\n");
  }
  seeds.add("connection_fuzz",
            "POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\nExpect: 100-continue\r\n"
            "Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n--b--\r\n\r\n");
}

void schema_seeds(Seeds& seeds) {
  for (std::string schema :
       {R"({"type":"object","properties":{"a":{"type":"string","maxLength":3},)"
        R"("b":{"type":["integer","null"]}},"required":["a"]})",
        R"({"type":"array","items":{"enum":[1,"x",null]},"minItems":1,"maxItems":3})",
        R"({"anyOf":[{"$ref":"#/$defs/t"},{"const":{"k":[true]}}],"$defs":{"t":{"type":"object",)"
        R"("additionalProperties":{"$ref":"#/$defs/t"}}}})",
        R"({"oneOf":[{"type":"number"},{"type":"boolean"},{"allOf":[{"type":"string"}]}]})"}) {
    seeds.add("json_schema_fuzz", schema + std::string(1, '\0') + "\x01\x7f\x30 any bytes at all");
  }
}

}  // namespace
}  // namespace llm

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: llm_fuzz_seeds FOLDER\n");
    return 2;
  }
  llm::Seeds seeds(argv[1]);
  llm::gguf_seeds(seeds);
  llm::folder_seeds(seeds);
  llm::server_seeds(seeds);
  llm::schema_seeds(seeds);
  std::printf("%d seeds\n", seeds.count());
  return seeds.good() ? 0 : 1;
}
