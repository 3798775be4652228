// A Hugging Face model folder, seen as if it were a GGUF file: config.json, tokenizer.json and
// their kin become metadata pairs, the safetensors' weights appear under GGUF's names. So all that
// reads a GGUF file reads a folder as well, and writing the one as the other is a conversion.
//
//   config.json              model_type llama, mistral, qwen2, qwen3, glm_moe_dsa; or a DSpark
//   draft
//   *.safetensors            safetensors.h
//   tokenizer.json           optional; byte-level BPE
//   tokenizer_config.json, chat_template.jinja, generation_config.json      optional
//
// Weights that lie in the files as GGUF has them are not copied. The others are made row by row
// when they are asked for (TensorSource::rows):
//   q and k of llama     rows of each head reordered, so that neighbours turn together
//   kv_b of MLA          split for each head into k_b (transposed) and v_b
//   experts              stacked from one matrix each, or cut out of the fused gate_up
//   FP8 with block scales (weight_scale_inv)   widened to BF16, as transformers does
//   rope scaling of type llama3                becomes rope_freqs.weight
//   d2t of a draft       from distances to token ids
// Thread-compatible once open.
#pragma once

#include "base/json.h"
#include "llm/formats/gguf.h"
#include "llm/formats/gguf_writer.h"
#include "llm/formats/safetensors.h"

namespace llm {

class HfFolder : public Gguf {
 public:
  // Errors: kNotFound, kCorruption, kUnsupported; each names the file or tensor.
  static base::Result<std::unique_ptr<HfFolder>> open(const std::string& path);
  // `weights` and a parsed config.json; for tests and fuzzing.
  static base::Result<std::unique_ptr<HfFolder>> create(const base::Json& config,
                                                        std::unique_ptr<Safetensors> weights,
                                                        GgufWriter metadata);

  base::Result<base::ByteView> rows(const TensorView& tensor, u64 begin, u64 end,
                                    std::vector<u8>* scratch) const override;

 private:
  // A run of rows of one stored matrix, with its block scales when it is FP8.
  struct Part {
    const TensorView* weight = nullptr;
    const TensorView* scale = nullptr;
    u64 first = 0;
    u64 count = 0;
  };
  enum class Shape { kRows, kRotary, kTransposed };
  // How one tensor is made: parts one after the other, or reordered within each head.
  struct Recipe {
    Shape shape = Shape::kRows;
    std::vector<Part> parts;
    u64 head_rows = 0;  // kRotary: rows of a head; kTransposed: columns of the result
  };
  struct Mapper;

  base::Status map_tensors(const base::Json& config);
  base::Status add_divisors(const base::Json& config);
  base::Status add_draft_ids();
  base::Status add(std::string name, std::vector<u64> shape, Recipe recipe);
  base::Status copy_rows(const Part& part, u64 begin, u64 end, u8* out) const;
  base::Status copy_run(const Recipe& recipe, u64 begin, u64 end, u64 row_bytes, u8* out) const;
  base::Status copy_rotary(const Recipe& recipe, u64 begin, u64 end, u64 row_bytes, u8* out) const;
  base::Status copy_transposed(const Recipe& recipe, u64 latent, u64 begin, u64 end, u64 width,
                               u8* out) const;

  std::unique_ptr<Safetensors> weights_;
  std::string header_;           // the metadata's bytes, which the pairs point into
  std::vector<u8> divisors_;     // of rotations, a tensor that no file holds
  std::vector<u8> draft_ids_;    // of a draft with a vocabulary of its own, as GGUF has them
  std::vector<Recipe> recipes_;  // one for each tensor
  u64 scale_rows_ = 128;         // FP8: the block that one scale is for
  u64 scale_cols_ = 128;
};

// config.json as GGUF pairs. Errors: kUnsupported for what this program cannot run, kCorruption
// for what is missing.
base::Status put_hf_config(const base::Json& config, bool has_mtp, GgufWriter* out);
// Its rotations: the base, and how they are stretched; put_hf_config() calls these. Errors as
// there.
base::Status put_rope(const base::Json& config, const std::string& arch, GgufWriter* out);
base::Status check_no_rope_scaling(const base::Json& config);
// What each of the pairs of a head is slowed down by, as GGUF's rope_freqs; mostly nothing.
base::Result<std::vector<f32>> rope_divisors(const base::Json& config, i64 pairs);
// tokenizer.json (with tokenizer_config.json and the ids in config.json) as GGUF pairs.
base::Status put_hf_tokenizer(const base::Json& tokenizer, const base::Json& tokenizer_config,
                              const base::Json& config, GgufWriter* out);

// A GGUF file, one part of a split one, or a Hugging Face folder.
base::Result<std::unique_ptr<Gguf>> open_model_file(const std::string& path);

}  // namespace llm
