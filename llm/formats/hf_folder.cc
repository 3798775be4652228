#include "llm/formats/hf_folder.h"

#include "base/files.h"
#include "llm/formats/quant.h"

#include <algorithm>
#include <cstring>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {

// A missing file is null; a broken one is an error.
Result<Json> read_json(const std::string& path, bool needed) {
  if (!needed && !base::file_exists(path)) return Json();
  const std::string text = TRY(base::read_file(path));
  auto parsed = Json::parse(text, {.depth_max = 32});
  if (!parsed.ok()) return std::move(parsed).error().with(path);
  return std::move(parsed).value();
}

// The template is text, or the default one of several.
std::string template_of(const std::string& folder, const Json& tokenizer_config) {
  if (auto text = base::read_file(folder + "/chat_template.jinja"); text.ok()) return *text;
  const Json& held = tokenizer_config["chat_template"];
  if (!held.is_array()) return held.as_string();
  for (const Json& one : held.items()) {
    if (one["name"].as_string() == "default") return one["template"].as_string();
  }
  return "";
}

// Layers past those that the config counts are for multi-token prediction.
bool has_mtp_layer(const Json& config, const Safetensors& weights) {
  const std::string name =
      "model.layers." + std::to_string(config["num_hidden_layers"].as_int()) + ".eh_proj.weight";
  return weights.find(name) != nullptr;
}

}  // namespace

Result<std::unique_ptr<HfFolder>> HfFolder::open(const std::string& path) {
  const Json config = TRY(read_json(path + "/config.json", true));
  const Json tokenizer = TRY(read_json(path + "/tokenizer.json", false));
  const Json tokenizer_config = TRY(read_json(path + "/tokenizer_config.json", false));
  GgufWriter pairs;
  if (tokenizer.is_object()) {
    TRY(put_hf_tokenizer(tokenizer, tokenizer_config, config, &pairs));
  } else {
    pairs.set_text("tokenizer.ggml.model", "none");
  }
  const std::string chat = template_of(path, tokenizer_config);
  if (!chat.empty()) pairs.set_text("tokenizer.chat_template", chat);
  auto weights = TRY(Safetensors::open(path));
  auto folder = create(config, std::move(weights), std::move(pairs));
  if (!folder.ok()) return std::move(folder).error().with(path);
  return folder;
}

Result<std::unique_ptr<HfFolder>> HfFolder::create(const Json& config,
                                                   std::unique_ptr<Safetensors> weights,
                                                   GgufWriter metadata) {
  auto folder = std::make_unique<HfFolder>();
  TRY(put_hf_config(config, has_mtp_layer(config, *weights), &metadata));
  // Tells the loader whose small constants to use; not written to GGUF files.
  metadata.set_text("fleetlm.epsilons", "hf");
  folder->header_ = metadata.to_string();
  TRY(folder->parse_header(base::as_bytes(folder->header_)));
  const Json& quantised = config["quantization_config"];
  if (quantised.is_object()) {
    if (quantised["quant_method"].as_string() != "fp8") {
      return Error(ErrorCode::kUnsupported, "weights quantised by '" +
                                                quantised["quant_method"].as_string() +
                                                "' are not supported; fp8 with block scales is");
    }
    folder->scale_rows_ = static_cast<u64>(
        std::clamp<i64>(quantised["weight_block_size"][0].as_int(128), 1, 1 << 20));
    folder->scale_cols_ = static_cast<u64>(
        std::clamp<i64>(quantised["weight_block_size"][1].as_int(128), 1, 1 << 20));
  }
  folder->weights_ = std::move(weights);
  folder->set_file_bytes(folder->weights_->file_bytes());
  TRY(folder->map_tensors(config));
  TRY(folder->add_divisors(config));
  TRY(folder->add_draft_ids());
  return folder;
}

// Stored is how far the target's id of each of the draft's tokens is from the draft's.
Status HfFolder::add_draft_ids() {
  const TensorView* stored = weights_->find("d2t");
  if (stored == nullptr) return {};
  const u64 width = info_of(stored->type).block_bytes;
  if (stored->type != DType::kI64 && stored->type != DType::kI32) {
    return Error(ErrorCode::kCorruption, "the draft's d2t must hold 32- or 64-bit integers");
  }
  const u64 count = stored->values();
  draft_ids_.resize(count * sizeof(i64));
  for (u64 i = 0; i < count; ++i) {
    const u8* at = stored->bytes.data() + i * width;
    const i64 distance = width == 8 ? base::load_le<i64>(at) : base::load_le<i32>(at);
    base::store_le<u64>(draft_ids_.data() + i * sizeof(i64), static_cast<u64>(distance) + i);
  }
  TensorView tensor;
  tensor.name = "d2t";
  tensor.type = DType::kI64;
  tensor.shape = {count};
  tensor.bytes = draft_ids_;
  recipes_.emplace_back();  // for its place; the bytes are there
  return add_tensor(std::move(tensor));
}

Status HfFolder::add_divisors(const Json& config) {
  const std::string arch(text("general.architecture").value_or(""));
  const i64 pairs = integer(arch + ".rope.dimension_count").value_or(0) / 2;
  const std::vector<f32> divisors = TRY(rope_divisors(config, std::min<i64>(pairs, 1 << 16)));
  if (divisors.empty()) return {};
  divisors_.resize(divisors.size() * sizeof(f32));
  for (size_t i = 0; i < divisors.size(); ++i) {
    base::store_le<f32>(divisors_.data() + i * sizeof(f32), divisors[i]);
  }
  TensorView tensor;
  tensor.name = "rope_freqs.weight";
  tensor.type = DType::kF32;
  tensor.shape = {divisors.size()};
  tensor.bytes = divisors_;
  recipes_.emplace_back();  // for its place; the bytes are there
  return add_tensor(std::move(tensor));
}

Status HfFolder::add(std::string name, std::vector<u64> shape, Recipe recipe) {
  TensorView tensor;
  tensor.name = std::move(name);
  tensor.shape = std::move(shape);
  const TensorView& first = *recipe.parts[0].weight;
  tensor.type = first.type == DType::kF8E4M3 ? DType::kBF16 : first.type;
  u64 rows = 0;
  for (const Part& part : recipe.parts) {
    if (part.weight->type != first.type || part.weight->columns() != first.columns()) {
      return Error(ErrorCode::kCorruption,
                   "the parts of " + tensor.name + " differ in type or width");
    }
    if (part.first + part.count > part.weight->rows()) {
      return Error(ErrorCode::kCorruption, "tensor " + part.weight->name + " is " +
                                               part.weight->shape_text() +
                                               ", fewer rows than config.json calls for");
    }
    rows += part.count;
  }
  if (rows * first.columns() != tensor.values()) {
    return Error(ErrorCode::kCorruption, "tensor " + first.name + " is " + first.shape_text() +
                                             ", which does not fit config.json");
  }
  const bool whole = recipe.shape == Shape::kRows && recipe.parts.size() == 1 &&
                     recipe.parts[0].count == first.rows() && first.type == tensor.type;
  if (whole) tensor.bytes = first.bytes;
  recipes_.push_back(std::move(recipe));
  return add_tensor(std::move(tensor));
}

// Rows of one stored matrix, widened when it is FP8.
Status HfFolder::copy_rows(const Part& part, u64 begin, u64 end, u8* out) const {
  const TensorView& from = *part.weight;
  const u64 first = part.first + begin;
  if (from.type != DType::kF8E4M3) {
    std::memcpy(out, from.bytes.data() + first * from.row_bytes(),
                (end - begin) * from.row_bytes());
    return {};
  }
  const u64 cols = from.columns();
  const u64 across = (cols + scale_cols_ - 1) / scale_cols_;
  const u64 down = (from.rows() + scale_rows_ - 1) / scale_rows_;
  if (part.scale == nullptr || part.scale->type != DType::kF32 ||
      part.scale->values() != across * down) {
    return Error(ErrorCode::kCorruption,
                 "tensor " + from.name + " is FP8 without a usable weight_scale_inv");
  }
  for (u64 row = begin; row < end; ++row) {
    const u8* values = from.bytes.data() + (part.first + row) * cols;
    const u8* scales = part.scale->bytes.data() + (part.first + row) / scale_rows_ * across * 4;
    for (u64 k = 0; k < cols; ++k, out += 2) {
      const f32 scale = base::load_le<f32>(scales + k / scale_cols_ * 4);
      base::store_le<u16>(out, f32_to_bf16(f8e4m3_to_f32(values[k]) * scale));
    }
  }
  return {};
}

Status HfFolder::copy_run(const Recipe& recipe, u64 begin, u64 end, u64 row_bytes, u8* out) const {
  u64 start = 0;  // of the part, in rows of the result
  for (const Part& part : recipe.parts) {
    const u64 from = std::max(begin, start);
    const u64 to = std::min(end, start + part.count);
    if (from < to) {
      TRY(copy_rows(part, from - start, to - start, out + (from - begin) * row_bytes));
    }
    start += part.count;
  }
  return {};
}

// Row 2i of a head comes from its first half, row 2i + 1 from its second.
Status HfFolder::copy_rotary(const Recipe& recipe, u64 begin, u64 end, u64 row_bytes,
                             u8* out) const {
  for (u64 row = begin; row < end; ++row) {
    const u64 in_head = row % recipe.head_rows;
    const u64 source = row - in_head + in_head % 2 * (recipe.head_rows / 2) + in_head / 2;
    TRY(copy_rows(recipe.parts[0], source, source + 1, out + (row - begin) * row_bytes));
  }
  return {};
}

// Result [head][latent][nope] from parts [nope][latent], one for each head.
Status HfFolder::copy_transposed(const Recipe& recipe, u64 latent, u64 begin, u64 end, u64 width,
                                 u8* out) const {
  const u64 nope = recipe.head_rows;
  std::vector<u8> head(nope * latent * width);
  u64 loaded = recipe.parts.size();
  for (u64 row = begin; row < end; ++row) {
    if (row / latent != loaded) {
      loaded = row / latent;
      TRY(copy_rows(recipe.parts[loaded], 0, nope, head.data()));
    }
    for (u64 i = 0; i < nope; ++i, out += width) {
      std::memcpy(out, head.data() + (i * latent + row % latent) * width, width);
    }
  }
  return {};
}

Result<base::ByteView> HfFolder::rows(const TensorView& tensor, u64 begin, u64 end,
                                      std::vector<u8>* scratch) const {
  const TensorView* mine = find(tensor.name);
  CHECK(mine != nullptr && begin <= end && end <= mine->rows());
  if (!mine->bytes.empty()) return TensorSource::rows(*mine, begin, end, scratch);
  const Recipe& recipe = recipes_[static_cast<size_t>(mine - tensors().data())];
  const u64 row_bytes = mine->row_bytes();
  if (recipe.shape == Shape::kRows) {
    // A run that lies in one part as it is needs no copy: an expert of a stack.
    u64 start = 0;
    for (const Part& part : recipe.parts) {
      if (begin >= start && end <= start + part.count && part.weight->type == mine->type) {
        return part.weight->bytes.subspan((part.first + begin - start) * row_bytes,
                                          (end - begin) * row_bytes);
      }
      start += part.count;
    }
  }
  scratch->resize((end - begin) * row_bytes);
  switch (recipe.shape) {
    case Shape::kRows:
      TRY(copy_run(recipe, begin, end, row_bytes, scratch->data()));
      break;
    case Shape::kRotary:
      TRY(copy_rotary(recipe, begin, end, row_bytes, scratch->data()));
      break;
    case Shape::kTransposed:
      TRY(copy_transposed(recipe, mine->shape[1], begin, end, info_of(mine->type).block_bytes,
                          scratch->data()));
      break;
  }
  return base::ByteView(*scratch);
}

Result<std::unique_ptr<Gguf>> open_model_file(const std::string& path) {
  if (base::is_directory(path)) return std::unique_ptr<Gguf>(TRY(HfFolder::open(path)));
  return Gguf::open(path);
}

}  // namespace llm
