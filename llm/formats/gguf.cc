#include "llm/formats/gguf.h"

#include <algorithm>
#include <cstdio>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

constexpr u64 kNameBytesMax = 64 * 1024;
constexpr u32 kDimensionsMax = 4;
constexpr i64 kPartsMax = 4096;

Error bad(const std::string& what) {
  return Error(ErrorCode::kCorruption, "not a usable GGUF file: " + what);
}

// Bytes of one scalar, 0 for strings and arrays, which have no fixed size.
u64 scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

bool is_float(GgufType type) {
  return type == GgufType::kF32 || type == GgufType::kF64;
}

i64 load_integer(GgufType type, const u8* at) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kBool:
      return *at;
    case GgufType::kI8:
      return static_cast<i8>(*at);
    case GgufType::kU16:
      return base::load_le<u16>(at);
    case GgufType::kI16:
      return base::load_le<i16>(at);
    case GgufType::kU32:
      return base::load_le<u32>(at);
    case GgufType::kI32:
      return base::load_le<i32>(at);
    default:
      return base::load_le<i64>(at);
  }
}

f64 load_float(GgufType type, const u8* at) {
  return type == GgufType::kF32 ? static_cast<f64>(base::load_le<f32>(at)) : base::load_le<f64>(at);
}

}  // namespace

// Walks the header once, front to back; every read is checked against the end.
class GgufParser {
 public:
  explicit GgufParser(Gguf* out) : out_(*out), bytes_(out->bytes_) {}

  Status run() {
    if (bytes_.size() < 24 || base::as_text(bytes_.first(4)) != "GGUF") {
      return bad("it does not start with GGUF");
    }
    at_ = 4;
    const u32 version = TRY(read<u32>());
    if (version != 2 && version != 3) {
      return Error(ErrorCode::kUnsupported, "GGUF version " + std::to_string(version) +
                                                " is not supported; convert the file to version 3");
    }
    const u64 tensor_count = TRY(read<u64>());
    const u64 pair_count = TRY(read<u64>());
    // The smallest info and the smallest pair bound what the file can hold.
    if (tensor_count > bytes_.size() / 24 || pair_count > bytes_.size() / 13) {
      return bad("it claims more entries than its size can hold");
    }
    for (u64 i = 0; i < pair_count; ++i) TRY(read_pair());
    for (u64 i = 0; i < tensor_count; ++i) TRY(read_info());
    return place_tensors();
  }

 private:
  template <class T>
  Result<T> read() {
    if (bytes_.size() - at_ < sizeof(T)) return bad("it ends inside its header");
    const T value = base::load_le<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return value;
  }

  Result<std::string_view> read_string() {
    const u64 length = TRY(read<u64>());
    if (length > bytes_.size() - at_) return bad("a string runs past the end");
    const std::string_view text = base::as_text(bytes_.subspan(at_, length));
    at_ += length;
    return text;
  }

  Status read_pair() {
    Gguf::Pair pair;
    pair.key = TRY(read_string());
    if (pair.key.empty() || pair.key.size() > kNameBytesMax) return bad("a key has no usable name");
    const u32 type = TRY(read<u32>());
    pair.value = TRY(read_value(type));
    if (!out_.pair_index_.emplace(pair.key, out_.pairs_.size()).second) {
      return bad("the key " + std::string(pair.key) + " appears twice");
    }
    out_.pairs_.push_back(std::move(pair));
    return {};
  }

  Result<GgufValue> read_value(u32 raw_type) {
    if (raw_type > static_cast<u32>(GgufType::kF64)) return bad("a value has an unknown type");
    GgufValue result;
    result.type = static_cast<GgufType>(raw_type);
    if (result.type == GgufType::kString) {
      result.value = TRY(read_string());
    } else if (result.type == GgufType::kArray) {
      TRY(read_array(&result));
    } else {
      const u64 size = scalar_bytes(result.type);
      if (bytes_.size() - at_ < size) return bad("it ends inside its header");
      const u8* at = bytes_.data() + at_;
      at_ += size;
      if (is_float(result.type)) {
        result.value = load_float(result.type, at);
      } else if (result.type == GgufType::kBool) {
        result.value = *at != 0;
      } else {
        result.value = load_integer(result.type, at);
      }
    }
    return result;
  }

  Status read_array(GgufValue* result) {
    const u32 raw_type = TRY(read<u32>());
    const u64 count = TRY(read<u64>());
    if (raw_type > static_cast<u32>(GgufType::kF64)) return bad("an array has an unknown type");
    const auto type = static_cast<GgufType>(raw_type);
    result->item = type;
    if (type == GgufType::kArray) return bad("an array holds arrays");
    const u64 item_bytes = type == GgufType::kString ? 8 : scalar_bytes(type);
    if (count > (bytes_.size() - at_) / item_bytes) return bad("an array runs past the end");
    if (type == GgufType::kString) {
      std::vector<std::string_view> items;
      items.reserve(count);
      for (u64 i = 0; i < count; ++i) items.push_back(TRY(read_string()));
      result->value = std::move(items);
      return {};
    }
    const u8* from = bytes_.data() + at_;
    at_ += count * item_bytes;
    if (is_float(type)) {
      std::vector<f64> items(count);
      for (u64 i = 0; i < count; ++i) items[i] = load_float(type, from + i * item_bytes);
      result->value = std::move(items);
    } else {
      std::vector<i64> items(count);
      for (u64 i = 0; i < count; ++i) items[i] = load_integer(type, from + i * item_bytes);
      result->value = std::move(items);
    }
    return {};
  }

  Status read_info() {
    TensorView tensor;
    tensor.name = std::string(TRY(read_string()));
    if (tensor.name.empty() || tensor.name.size() > kNameBytesMax) {
      return bad("a tensor has no usable name");
    }
    const u32 dimensions = TRY(read<u32>());
    if (dimensions == 0 || dimensions > kDimensionsMax) {
      return bad("tensor " + tensor.name + " has " + std::to_string(dimensions) + " dimensions");
    }
    u64 values = 1;
    for (u32 i = 0; i < dimensions; ++i) {
      const u64 extent = TRY(read<u64>());
      if (extent == 0 || __builtin_mul_overflow(values, extent, &values) || values >> 62 != 0) {
        return bad("tensor " + tensor.name + " has an impossible shape");
      }
      tensor.shape.push_back(extent);
    }
    std::reverse(tensor.shape.begin(), tensor.shape.end());
    const u32 raw_type = TRY(read<u32>());
    tensor.type = static_cast<DType>(raw_type);
    const DTypeInfo* info = raw_type < 1000 ? find_dtype(tensor.type) : nullptr;
    if (info == nullptr) {
      return Error(
          ErrorCode::kUnsupported,
          "tensor " + tensor.name + " has GGUF type " + std::to_string(raw_type) +
              ", which is not supported; use F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q5_K or Q6_K");
    }
    if (tensor.columns() % info->block_values != 0) {
      return bad("rows of tensor " + tensor.name + " are not whole blocks");
    }
    offsets_.push_back(TRY(read<u64>()));
    sizes_.push_back(values / info->block_values * info->block_bytes);
    out_.tensors_.push_back(std::move(tensor));
    return {};
  }

  Status place_tensors() {
    const i64 alignment = out_.integer("general.alignment").value_or(32);
    if (alignment <= 0 || alignment > (1 << 20) || (alignment & (alignment - 1)) != 0) {
      return bad("its alignment is not a power of two");
    }
    const u64 unit = static_cast<u64>(alignment);
    const u64 start = (at_ + unit - 1) / unit * unit;
    std::vector<std::pair<u64, u64>> extents;
    for (size_t i = 0; i < out_.tensors_.size(); ++i) {
      TensorView& tensor = out_.tensors_[i];
      if (offsets_[i] % unit != 0) return bad("tensor " + tensor.name + " is not aligned");
      if (start > bytes_.size() || offsets_[i] > bytes_.size() - start ||
          sizes_[i] > bytes_.size() - start - offsets_[i]) {
        return bad("tensor " + tensor.name + " lies past the end; the file may be cut short");
      }
      tensor.bytes = bytes_.subspan(start + offsets_[i], sizes_[i]);
      extents.emplace_back(offsets_[i], offsets_[i] + sizes_[i]);
    }
    std::sort(extents.begin(), extents.end());
    for (size_t i = 1; i < extents.size(); ++i) {
      if (extents[i].first < extents[i - 1].second) return bad("two tensors overlap");
    }
    for (size_t i = 0; i < out_.tensors_.size(); ++i) {
      if (!out_.tensor_index_.emplace(out_.tensors_[i].name, i).second) {
        return bad("tensor " + out_.tensors_[i].name + " appears twice");
      }
    }
    return {};
  }

  Gguf& out_;
  base::ByteView bytes_;
  u64 at_ = 0;
  std::vector<u64> offsets_;
  std::vector<u64> sizes_;
};

namespace {

// Of path "x-00002-of-00005.gguf", part `number` is "x-0000N-of-00005.gguf"; "" for other names.
std::string part_path(const std::string& path, i64 number, i64 count) {
  char tail[64];
  std::snprintf(tail, sizeof tail, "-of-%05lld.gguf", static_cast<long long>(count));
  constexpr size_t kDigits = 6;  // "-00002"
  if (!path.ends_with(tail) || path.size() < std::string_view(tail).size() + kDigits) return "";
  const size_t stem = path.size() - std::string_view(tail).size() - kDigits;
  char digits[32];
  std::snprintf(digits, sizeof digits, "-%05lld", static_cast<long long>(number));
  return path.substr(0, stem) + digits + tail;
}

}  // namespace

Result<std::unique_ptr<Gguf>> Gguf::open(const std::string& path) {
  auto file = TRY(MappedFile::open(path));
  auto parsed = parse(file->bytes());
  if (!parsed.ok()) return std::move(parsed).error().with(path);
  auto gguf = std::move(parsed).value();
  gguf->files_.push_back(std::move(file));
  const i64 count = gguf->integer("split.count").value_or(1);
  if (count <= 1) return gguf;
  const i64 number = gguf->integer("split.no").value_or(-1);
  if (count > kPartsMax || number < 0 || number >= count ||
      part_path(path, number + 1, count) != path) {
    return Error(ErrorCode::kInvalidArgument,
                 path + " is part of a split model, but is not named ...-00001-of-0000N.gguf");
  }
  if (number > 0) return open(part_path(path, 1, count));
  TRY(gguf->add_parts(path, count));
  return gguf;
}

Status Gguf::add_parts(const std::string& path, i64 count) {
  for (i64 number = 2; number <= count; ++number) {
    const std::string name = part_path(path, number, count);
    auto file = TRY(MappedFile::open(name));
    auto parsed = parse(file->bytes());
    if (!parsed.ok()) return std::move(parsed).error().with(name);
    Gguf& part = **parsed;
    if (part.integer("split.count") != count || part.integer("split.no") != number - 1) {
      return bad(name + " does not belong to " + path);
    }
    for (const TensorView& tensor : part.tensors_) TRY(add_tensor(tensor));
    file_bytes_ += part.file_bytes_;
    files_.push_back(std::move(file));
  }
  const auto total = integer("split.tensors.count");
  if (total && *total != static_cast<i64>(tensors_.size())) {
    return bad("the parts of " + path + " do not hold all its tensors");
  }
  return {};
}

Status Gguf::parse_header(base::ByteView header) {
  bytes_ = header;
  file_bytes_ = header.size();
  return GgufParser(this).run();
}

Status Gguf::add_tensor(TensorView tensor) {
  if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
    return bad("tensor " + tensor.name + " appears twice");
  }
  tensors_.push_back(std::move(tensor));
  return {};
}

Result<std::unique_ptr<Gguf>> Gguf::parse(base::ByteView bytes) {
  auto gguf = std::make_unique<Gguf>();
  TRY(gguf->parse_header(bytes));
  return gguf;
}

const TensorView* Gguf::find(std::string_view name) const {
  const auto it = tensor_index_.find(std::string(name));
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

const GgufValue* Gguf::value(std::string_view key) const {
  const auto it = pair_index_.find(key);
  return it == pair_index_.end() ? nullptr : &pairs_[it->second].value;
}

namespace {
template <class T>
const T* get_if(const GgufValue* value) {
  return value == nullptr ? nullptr : std::get_if<T>(&value->value);
}
}  // namespace

std::optional<i64> Gguf::integer(std::string_view key) const {
  const auto* found = get_if<i64>(value(key));
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<f64> Gguf::number(std::string_view key) const {
  if (const auto* found = get_if<f64>(value(key))) return *found;
  const auto whole = integer(key);
  return whole ? std::optional(static_cast<f64>(*whole)) : std::nullopt;
}

std::optional<bool> Gguf::boolean(std::string_view key) const {
  const auto* found = get_if<bool>(value(key));
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<std::string_view> Gguf::text(std::string_view key) const {
  const auto* found = get_if<std::string_view>(value(key));
  return found == nullptr ? std::nullopt : std::optional(*found);
}

const std::vector<std::string_view>* Gguf::texts(std::string_view key) const {
  return get_if<std::vector<std::string_view>>(value(key));
}
const std::vector<i64>* Gguf::integers(std::string_view key) const {
  return get_if<std::vector<i64>>(value(key));
}
const std::vector<f64>* Gguf::numbers(std::string_view key) const {
  return get_if<std::vector<f64>>(value(key));
}

}  // namespace llm
