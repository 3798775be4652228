#include "llm/formats/safetensors.h"

#include "base/files.h"
#include "base/json.h"

#include <algorithm>
#include <optional>
#include <set>

namespace llm {

using base::Error;
using base::ErrorCode;
using base::Json;
using base::Result;
using base::Status;

namespace {

constexpr u64 kHeaderBytesMax = 256 << 20;
constexpr size_t kDimensionsMax = 8;
constexpr std::string_view kIndexSuffix = ".index.json";

Error bad(const std::string& what) {
  return Error(ErrorCode::kCorruption, "not a usable safetensors file: " + what);
}

struct FileType {
  std::string_view name;
  u64 bytes;
  std::optional<DType> type;  // nullopt: no weight has it
};

constexpr FileType kTypes[] = {
    {"F32", 4, DType::kF32},        {"F16", 2, DType::kF16},  {"BF16", 2, DType::kBF16},
    {"F8_E4M3", 1, DType::kF8E4M3}, {"I8", 1, DType::kI8},    {"I32", 4, DType::kI32},
    {"I64", 8, DType::kI64},        {"F64", 8, std::nullopt}, {"F8_E5M2", 1, std::nullopt},
    {"I16", 2, std::nullopt},       {"U8", 1, std::nullopt},  {"U16", 2, std::nullopt},
    {"U32", 4, std::nullopt},       {"U64", 8, std::nullopt}, {"BOOL", 1, std::nullopt},
    {"F8_E8M0", 1, std::nullopt},
};

const FileType* find_type(std::string_view name) {
  for (const FileType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

// A size that JSON gave: an integer from 0 to 2^62.
std::optional<u64> size_of(const Json& value) {
  const i64 number = value.is_integer() ? value.as_int() : -1;
  if (number < 0 || number >> 62 != 0) return std::nullopt;
  return static_cast<u64>(number);
}

struct Extent {
  u64 begin, end;
  bool operator<(const Extent& other) const { return begin < other.begin; }
};

// One entry of the header, checked against the data's size. `skip`: a type that no weight has.
Result<TensorView> read_entry(const std::string& name, const Json& entry, base::ByteView data,
                              Extent* extent, bool* skip) {
  const FileType* type = find_type(entry["dtype"].as_string());
  if (type == nullptr) {
    return Error(ErrorCode::kUnsupported, "tensor " + name + " has the safetensors type '" +
                                              entry["dtype"].as_string() +
                                              "', which is not known here");
  }
  const Json& shape = entry["shape"];
  const Json& offsets = entry["data_offsets"];
  if (!shape.is_array() || shape.size() > kDimensionsMax || offsets.size() != 2) {
    return bad("tensor " + name + " has no usable shape or offsets");
  }
  TensorView tensor;
  tensor.name = name;
  u64 bytes = type->bytes;
  for (const Json& item : shape.items()) {
    const auto size = size_of(item);
    if (!size || __builtin_mul_overflow(bytes, *size, &bytes)) {
      return bad("tensor " + name + " has an impossible shape");
    }
    tensor.shape.push_back(*size);
  }
  const auto begin = size_of(offsets[0]);
  const auto end = size_of(offsets[1]);
  if (!begin || !end || *begin > *end || *end > data.size()) {
    return bad("tensor " + name + " lies past the end; the file may be cut short");
  }
  if (*end - *begin != bytes) {
    return bad("tensor " + name + " has another size than its type and shape call for");
  }
  *extent = {*begin, *end};
  *skip = !type->type.has_value() || bytes == 0;
  tensor.type = type->type.value_or(DType::kF32);
  tensor.bytes = data.subspan(*begin, bytes);
  return tensor;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

Status Safetensors::add(base::ByteView bytes) {
  if (bytes.size() < 8) return bad("it is too short");
  const u64 length = base::load_le<u64>(bytes.data());
  if (length > bytes.size() - 8 || length > kHeaderBytesMax) {
    return bad("its header is longer than the file; it may be cut short");
  }
  const auto header = Json::parse(base::as_text(bytes.subspan(8, length)), {.depth_max = 8});
  if (!header.ok() || !header->is_object()) return bad("its header is not a JSON object");
  const base::ByteView data = bytes.subspan(8 + length);
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header->members()) {
    if (name == "__metadata__") continue;
    Extent extent{};
    bool skip = false;
    TensorView tensor = TRY(read_entry(name, entry, data, &extent, &skip));
    if (extent.begin < extent.end) extents.push_back(extent);
    if (!skip) tensors_.push_back(std::move(tensor));
  }
  std::sort(extents.begin(), extents.end());
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) return bad("two tensors overlap");
  }
  file_bytes_ += bytes.size();
  return {};
}

Status Safetensors::index_names() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!by_name_.emplace(tensors_[i].name, i).second) {
      return bad("tensor " + tensors_[i].name + " appears twice");
    }
  }
  return {};
}

Status Safetensors::add_file(const std::string& path) {
  auto file = TRY(MappedFile::open(path));
  auto added = add(file->bytes());
  if (!added.ok()) return std::move(added).error().with(path);
  files_.push_back(std::move(file));
  return {};
}

Status Safetensors::add_index(const std::string& path) {
  const std::string text = TRY(base::read_file(path));
  const auto index = Json::parse(text, {.depth_max = 8});
  if (!index.ok() || !(*index)["weight_map"].is_object()) {
    return bad(path + " has no \"weight_map\"");
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : (*index)["weight_map"].members()) {
    const std::string& name = file.as_string();
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) {
      return bad(path + " names a file outside its folder");
    }
    names.insert(name);
  }
  for (const std::string& name : names) TRY(add_file(folder_of(path) + "/" + name));
  TRY(index_names());
  for (const auto& [tensor, file] : (*index)["weight_map"].members()) {
    if (find(tensor) == nullptr && tensor.find("inv_freq") == std::string::npos) {
      return bad(file.as_string() + " does not hold " + tensor + ", though the index says so");
    }
  }
  return {};
}

Result<std::unique_ptr<Safetensors>> Safetensors::open(const std::string& path) {
  auto source = std::make_unique<Safetensors>();
  std::string file = path;
  if (base::is_directory(path)) {
    file = path + "/model.safetensors";
    if (!base::file_exists(file)) file += kIndexSuffix;
    if (!base::file_exists(file)) {
      return Error(ErrorCode::kNotFound,
                   path + " holds no model.safetensors and no model.safetensors.index.json");
    }
  }
  if (file.ends_with(kIndexSuffix)) {
    TRY(source->add_index(file));
  } else {
    TRY(source->add_file(file));
    TRY(source->index_names());
  }
  return source;
}

Result<std::unique_ptr<Safetensors>> Safetensors::parse(base::ByteView bytes) {
  auto source = std::make_unique<Safetensors>();
  TRY(source->add(bytes));
  TRY(source->index_names());
  return source;
}

const TensorView* Safetensors::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

}  // namespace llm
