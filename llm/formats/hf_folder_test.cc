#include "llm/formats/hf_folder.h"

#include "llm/formats/quant.h"
#include "llm/formats/testing.h"

#include <gtest/gtest.h>

#include <numeric>

namespace llm {
namespace {

using base::Json;

Json llama_config() {
  return Json::object({{"model_type", "llama"},
                       {"hidden_size", 4},
                       {"num_attention_heads", 2},
                       {"head_dim", 4},
                       {"num_key_value_heads", 1},
                       {"num_hidden_layers", 1},
                       {"intermediate_size", 8},
                       {"max_position_embeddings", 64},
                       {"vocab_size", 3}});
}

std::vector<f32> counted(size_t count) {
  std::vector<f32> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

// The folder over a file in memory, and the values of one of its tensors.
struct Opened {
  std::string file;
  std::unique_ptr<HfFolder> folder;
  std::string error;
  Opened(const Json& config, const SafetensorsBuilder& builder) : file(builder.file()) {
    auto made =
        HfFolder::create(config, Safetensors::parse(base::as_bytes(file)).value(), GgufWriter());
    if (made.ok()) {
      folder = std::move(made).value();
    } else {
      error = made.error().message();
    }
  }
  std::vector<f32> values(const char* name) const {
    const TensorView* tensor = folder->find(name);
    if (tensor == nullptr) return {};
    return values(*tensor, 0, tensor->rows());
  }
  std::vector<f32> values(const TensorView& tensor, u64 begin, u64 end) const {
    std::vector<u8> scratch;
    const auto bytes = folder->rows(tensor, begin, end, &scratch).value();
    std::vector<f32> out((end - begin) * tensor.columns());
    dequantize(tensor.type, bytes.data(), out);
    return out;
  }
};

TEST(HfFolder, ReordersTheRowsOfLlamasQueriesSoThatNeighboursTurnTogether) {
  SafetensorsBuilder builder;
  builder.add_f32("model.layers.0.self_attn.q_proj.weight", {8, 1}, counted(8));
  builder.add_f32("model.layers.0.self_attn.v_proj.weight", {4, 1}, counted(4));
  const Opened opened(llama_config(), builder);
  ASSERT_EQ(opened.error, "");
  EXPECT_EQ(opened.values("blk.0.attn_q.weight"), (std::vector<f32>{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(opened.values("blk.0.attn_v.weight"), counted(4));
  EXPECT_EQ(opened.folder->integer("llama.attention.head_count_kv"), 1);
  const TensorView& q = *opened.folder->find("blk.0.attn_q.weight");
  EXPECT_EQ(opened.values(q, 5, 7), (std::vector<f32>{6, 5})) << "any run of rows";
}

Json glm_config() {
  return Json::object({{"model_type", "glm_moe_dsa"},
                       {"hidden_size", 2},
                       {"num_attention_heads", 2},
                       {"num_hidden_layers", 3},
                       {"intermediate_size", 8},
                       {"moe_intermediate_size", 2},
                       {"n_routed_experts", 2},
                       {"num_experts_per_tok", 1},
                       {"max_position_embeddings", 64},
                       {"vocab_size", 3},
                       {"kv_lora_rank", 2},
                       {"q_lora_rank", 2},
                       {"qk_rope_head_dim", 2},
                       {"qk_nope_head_dim", 3},
                       {"v_head_dim", 1},
                       {"index_n_heads", 1},
                       {"index_head_dim", 2},
                       {"index_topk", 4}});
}

TEST(HfFolder, SplitsTheKeyValueMatrixForEachHead) {
  SafetensorsBuilder builder;
  // Two heads of three key rows and one value row, each of two columns.
  builder.add_f32("model.layers.1.self_attn.kv_b_proj.weight", {8, 2}, counted(16));
  const Opened opened(glm_config(), builder);
  ASSERT_EQ(opened.error, "");
  EXPECT_EQ(opened.values("blk.1.attn_k_b.weight"),
            (std::vector<f32>{0, 2, 4, 1, 3, 5, 8, 10, 12, 9, 11, 13}));
  EXPECT_EQ(opened.values("blk.1.attn_v_b.weight"), (std::vector<f32>{6, 7, 14, 15}));
}

TEST(HfFolder, StacksExpertsStoredOneByOneOrFused) {
  SafetensorsBuilder apart;
  apart.add_f32("model.layers.1.mlp.experts.1.up_proj.weight", {2, 2}, {4, 5, 6, 7});
  apart.add_f32("model.layers.1.mlp.experts.0.up_proj.weight", {2, 2}, {0, 1, 2, 3});
  const Opened one(glm_config(), apart);
  EXPECT_EQ(one.values("blk.1.ffn_up_exps.weight"), counted(8));
  SafetensorsBuilder fused;
  fused.add_f32("model.layers.1.mlp.experts.gate_up_proj", {2, 4, 2}, counted(16));
  const Opened two(glm_config(), fused);
  EXPECT_EQ(two.values("blk.1.ffn_gate_exps.weight"), (std::vector<f32>{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(two.values("blk.1.ffn_up_exps.weight"), (std::vector<f32>{4, 5, 6, 7, 12, 13, 14, 15}));
  SafetensorsBuilder lacking;
  lacking.add_f32("model.layers.1.mlp.experts.1.up_proj.weight", {2, 2}, {4, 5, 6, 7});
  EXPECT_NE(Opened(glm_config(), lacking).error.find("expert is missing"), std::string::npos);
}

TEST(HfFolder, WidensFp8WithARaggedLastBlock) {
  Json config = llama_config();
  config.set("quantization_config",
             Json::object({{"quant_method", "fp8"}, {"weight_block_size", Json::array({2, 2})}}));
  SafetensorsBuilder builder;
  const std::string ones(9, '\x38');  // 1.0 in e4m3
  builder.add("model.layers.0.mlp.up_proj.weight", "F8_E4M3", {3, 3}, ones);
  builder.add_f32("model.layers.0.mlp.up_proj.weight_scale_inv", {2, 2}, {1, 2, 3, 4});
  const Opened opened(config, builder);
  ASSERT_EQ(opened.error, "");
  EXPECT_EQ(opened.values("blk.0.ffn_up.weight"), (std::vector<f32>{1, 1, 2, 1, 1, 2, 3, 3, 4}));
  SafetensorsBuilder unscaled;
  unscaled.add("model.layers.0.mlp.up_proj.weight", "F8_E4M3", {3, 3}, ones);
  const Opened broken(config, unscaled);
  std::vector<u8> scratch;
  const TensorView* up = broken.folder->find("blk.0.ffn_up.weight");
  EXPECT_FALSE(broken.folder->rows(*up, 0, 1, &scratch).ok());
}

TEST(HfFolder, RopeScalingBecomesGgufsPairsOrItsTableOfDivisors) {
  const SafetensorsBuilder none;
  Json config = llama_config();
  config.set("rope_theta", 100.0);
  config.set("rope_scaling", Json::object({{"type", "linear"}, {"factor", 2.0}}));
  const Opened linear(config, none);
  EXPECT_EQ(linear.folder->text("llama.rope.scaling.type"), "linear");
  EXPECT_EQ(linear.folder->number("llama.rope.scaling.factor"), 2);
  EXPECT_EQ(linear.folder->number("llama.rope.freq_base"), 100);
  config.set("rope_scaling", Json::object({{"rope_type", "yarn"},
                                           {"factor", 4.0},
                                           {"attention_factor", 1.0},
                                           {"original_max_position_embeddings", 16}}));
  const Opened yarn(config, none);
  EXPECT_EQ(yarn.folder->integer("llama.rope.scaling.original_context_length"), 16);
  // Times what the factor alone would give, so 1 in the end.
  EXPECT_NEAR(*yarn.folder->number("llama.rope.scaling.attn_factor"), 1 / 1.1386294, 1e-6);
  // The first of two pairs turns 10 times in the original context, the second once.
  config.set("rope_scaling", Json::object({{"rope_type", "llama3"},
                                           {"factor", 8.0},
                                           {"low_freq_factor", 0.5},
                                           {"high_freq_factor", 1.5},
                                           {"original_max_position_embeddings", 62.831853}}));
  const std::vector<f32> divisors = Opened(config, none).values("rope_freqs.weight");
  ASSERT_EQ(divisors.size(), 2u);
  EXPECT_EQ(divisors[0], 1);
  EXPECT_NEAR(divisors[1], 1 / (0.5 + 0.5 / 8), 1e-5);
}

TEST(HfFolder, DistancesToADraftsTokensBecomeTheirIds) {
  SafetensorsBuilder builder;
  std::string distances(3 * sizeof(i64), '\0');
  for (size_t i = 0; i < 3; ++i) base::store_le<u64>(distances.data() + i * 8, i * 10);
  builder.add("d2t", "I64", {3}, distances);
  EXPECT_EQ(Opened(llama_config(), builder).values("d2t"), (std::vector<f32>{0, 11, 22}));
  SafetensorsBuilder odd;
  odd.add_f32("d2t", {2}, {1, 2});
  EXPECT_NE(Opened(llama_config(), odd).error.find("d2t"), std::string::npos);
}

TEST(HfFolder, SaysWhatItCannotRun) {
  const SafetensorsBuilder none;
  Json config = llama_config();
  config.set("model_type", "mamba");
  EXPECT_NE(Opened(config, none).error.find("'mamba'"), std::string::npos);
  config = llama_config();
  config.set("rope_scaling", Json::object({{"rope_type", "longrope"}}));
  EXPECT_NE(Opened(config, none).error.find("'longrope'"), std::string::npos);
  config.set("rope_scaling", Json::object({{"rope_type", "yarn"}}));
  EXPECT_NE(Opened(config, none).error.find("factor"), std::string::npos);
  config = llama_config();
  config.remove("intermediate_size");
  EXPECT_NE(Opened(config, none).error.find("intermediate_size"), std::string::npos);
  SafetensorsBuilder odd;
  odd.add_f32("model.layers.0.self_attn.sinks", {2}, {1, 2});
  EXPECT_NE(Opened(llama_config(), odd).error.find("sinks"), std::string::npos);
}

TEST(HfTokenizer, BecomesGgufsPairsWithAddedTokensByKind) {
  const Json tokenizer = Json::parse(R"({
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true}, {"type": "ByteLevel"}]},
    "added_tokens": [{"id": 4, "content": "<end>", "special": true},
                     {"id": 2, "content": "<tool>", "special": false}],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b", ["b", "a"]]}})")
                             .value();
  GgufWriter writer;
  ASSERT_TRUE(
      put_hf_tokenizer(tokenizer, Json::object({{"eos_token", "<end>"}}), Json(), &writer).ok());
  const std::string bytes = writer.to_string();
  const auto gguf = Gguf::parse(base::as_bytes(bytes)).value();
  EXPECT_EQ(gguf->text("tokenizer.ggml.pre"), "smollm");
  EXPECT_EQ(*gguf->integers("tokenizer.ggml.token_type"), (std::vector<i64>{1, 1, 4, 5, 3}));
  EXPECT_EQ(gguf->texts("tokenizer.ggml.merges")->at(1), "b a");
  EXPECT_EQ(gguf->integer("tokenizer.ggml.eos_token_id"), 4);
}

}  // namespace
}  // namespace llm
