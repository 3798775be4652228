#include "llm/formats/gguf_writer.h"

#include <cerrno>
#include <cstdio>
#include <memory>

namespace llm {
namespace {

using base::Error;
using base::ErrorCode;

constexpr u64 kAlignment = 32;

template <class T>
void put(std::string* out, T value) {
  char bytes[sizeof(T)];
  base::store_le<T>(bytes, value);
  out->append(bytes, sizeof(T));
}

void put_text(std::string* out, std::string_view text) {
  put<u64>(out, text.size());
  out->append(text);
}

u64 padded(u64 size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

u64 bytes_of(const TensorView& tensor) {
  return tensor.rows() * tensor.row_bytes();
}

void put_integer(std::string* out, GgufType type, i64 value) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      put<u8>(out, static_cast<u8>(value));
      break;
    case GgufType::kU16:
    case GgufType::kI16:
      put<u16>(out, static_cast<u16>(value));
      break;
    case GgufType::kU32:
    case GgufType::kI32:
      put<u32>(out, static_cast<u32>(value));
      break;
    default:
      put<u64>(out, static_cast<u64>(value));
  }
}

}  // namespace

void GgufWriter::key(std::string_view name, GgufType type) {
  put_text(&pairs_, name);
  put<u32>(&pairs_, static_cast<u32>(type));
  ++pair_count_;
}

void GgufWriter::set_text(std::string_view name, std::string_view value) {
  key(name, GgufType::kString);
  put_text(&pairs_, value);
}
void GgufWriter::set_u32(std::string_view name, u32 value) {
  key(name, GgufType::kU32);
  put(&pairs_, value);
}
void GgufWriter::set_f32(std::string_view name, f32 value) {
  key(name, GgufType::kF32);
  put(&pairs_, value);
}
void GgufWriter::set_bool(std::string_view name, bool value) {
  key(name, GgufType::kBool);
  put<u8>(&pairs_, value ? 1 : 0);
}

void GgufWriter::set_texts(std::string_view name, const std::vector<std::string_view>& values) {
  key(name, GgufType::kArray);
  put<u32>(&pairs_, static_cast<u32>(GgufType::kString));
  put<u64>(&pairs_, values.size());
  for (std::string_view value : values) put_text(&pairs_, value);
}
void GgufWriter::set_i32s(std::string_view name, const std::vector<i32>& values) {
  key(name, GgufType::kArray);
  put<u32>(&pairs_, static_cast<u32>(GgufType::kI32));
  put<u64>(&pairs_, values.size());
  for (i32 value : values) put(&pairs_, value);
}
void GgufWriter::set_f32s(std::string_view name, const std::vector<f32>& values) {
  key(name, GgufType::kArray);
  put<u32>(&pairs_, static_cast<u32>(GgufType::kF32));
  put<u64>(&pairs_, values.size());
  for (f32 value : values) put(&pairs_, value);
}
void GgufWriter::set_bools(std::string_view name, const std::vector<bool>& values) {
  key(name, GgufType::kArray);
  put<u32>(&pairs_, static_cast<u32>(GgufType::kBool));
  put<u64>(&pairs_, values.size());
  for (bool value : values) put<u8>(&pairs_, value ? 1 : 0);
}

void GgufWriter::copy(const Gguf::Pair& pair) {
  const GgufValue& value = pair.value;
  key(pair.key, value.type);
  if (const auto* whole = std::get_if<i64>(&value.value)) {
    put_integer(&pairs_, value.type, *whole);
  } else if (const auto* real = std::get_if<f64>(&value.value)) {
    if (value.type == GgufType::kF32) {
      put(&pairs_, static_cast<f32>(*real));
    } else {
      put(&pairs_, *real);
    }
  } else if (const auto* flag = std::get_if<bool>(&value.value)) {
    put<u8>(&pairs_, *flag ? 1 : 0);
  } else if (const auto* text = std::get_if<std::string_view>(&value.value)) {
    put_text(&pairs_, *text);
  } else if (const auto* texts = std::get_if<std::vector<std::string_view>>(&value.value)) {
    put<u32>(&pairs_, static_cast<u32>(GgufType::kString));
    put<u64>(&pairs_, texts->size());
    for (std::string_view item : *texts) put_text(&pairs_, item);
  } else if (const auto* reals = std::get_if<std::vector<f64>>(&value.value)) {
    put<u32>(&pairs_, static_cast<u32>(value.item));
    put<u64>(&pairs_, reals->size());
    for (f64 item : *reals) {
      if (value.item == GgufType::kF32) {
        put(&pairs_, static_cast<f32>(item));
      } else {
        put(&pairs_, item);
      }
    }
  } else if (const auto* wholes = std::get_if<std::vector<i64>>(&value.value)) {
    put<u32>(&pairs_, static_cast<u32>(value.item));
    put<u64>(&pairs_, wholes->size());
    for (i64 item : *wholes) put_integer(&pairs_, value.item, item);
  }
}

void GgufWriter::add_tensor(std::string_view name, DType type, std::vector<u64> shape,
                            base::ByteView bytes) {
  TensorView tensor;
  tensor.name = std::string(name);
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.bytes = bytes;
  tensors_.push_back(std::move(tensor));
}

std::string GgufWriter::header() const {
  std::string out = "GGUF";
  put<u32>(&out, 3);
  put<u64>(&out, tensors_.size());
  put<u64>(&out, pair_count_);
  out += pairs_;
  u64 offset = 0;
  for (const TensorView& tensor : tensors_) {
    put_text(&out, tensor.name);
    put<u32>(&out, static_cast<u32>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i > 0; --i) put<u64>(&out, tensor.shape[i - 1]);
    put<u32>(&out, static_cast<u32>(tensor.type));
    put<u64>(&out, offset);
    offset = padded(offset + bytes_of(tensor));
  }
  out.resize(padded(out.size()), '\0');
  return out;
}

std::string GgufWriter::to_string() const {
  std::string out = header();
  for (const TensorView& tensor : tensors_) {
    CHECK(tensor.bytes.size() == bytes_of(tensor));
    out.append(base::as_text(tensor.bytes));
    out.resize(padded(out.size()), '\0');
  }
  return out;
}

base::Status GgufWriter::write(const std::string& path, const Producer& producer) const {
  const std::string partial = path + ".partial";
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(partial.c_str(), "wb"), &std::fclose);
  if (!file) return base::errno_error(errno, "creating " + partial);
  auto append = [&](std::string_view piece) -> base::Status {
    if (std::fwrite(piece.data(), 1, piece.size(), file.get()) != piece.size()) {
      return base::errno_error(errno, "writing " + partial);
    }
    return {};
  };
  TRY(append(header()));
  for (const TensorView& tensor : tensors_) {
    base::ByteView bytes = tensor.bytes;
    if (producer) bytes = TRY(producer(tensor));
    if (bytes.size() != bytes_of(tensor)) {
      return Error(ErrorCode::kInvalidArgument,
                   "tensor " + tensor.name + " has another size than its shape calls for");
    }
    TRY(append(base::as_text(bytes)));
    TRY(append(std::string(padded(bytes.size()) - bytes.size(), '\0')));
  }
  if (std::fflush(file.get()) != 0) return base::errno_error(errno, "writing " + partial);
  file.reset();
  if (std::rename(partial.c_str(), path.c_str()) != 0) {
    return base::errno_error(errno, "renaming " + partial);
  }
  return {};
}

}  // namespace llm
