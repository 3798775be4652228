// GGUF version 3: metadata and tensor directory, read from a mapped file.
//
//   "GGUF", u32 version, u64 tensors, u64 pairs, pairs, tensor infos, padding, data
//   pair:  string key, u32 type, value          string: u64 length, bytes
//   info:  string name, u32 dimensions, u64 extents (innermost first), u32 type, u64 offset
// Everything is checked against the file's size before it is used: a hostile file gets an error,
// never a wild read or a huge allocation. Thread-compatible once open.
#pragma once

#include "llm/formats/mapped_file.h"
#include "llm/formats/tensor.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace llm {

enum class GgufType : u32 {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

// One metadata value. Numbers of every width share a variant arm; arrays hold one type of item.
struct GgufValue {
  GgufType type = GgufType::kU32;
  GgufType item = GgufType::kU32;  // of an array
  std::variant<i64, f64, bool, std::string_view, std::vector<i64>, std::vector<f64>,
               std::vector<std::string_view>>
      value;
};

class Gguf : public TensorSource {
 public:
  // A file named ...-00001-of-0000N.gguf is opened with its N - 1 brothers: the metadata of the
  // first, the tensors of all.
  static base::Result<std::unique_ptr<Gguf>> open(const std::string& path);
  // Reads from memory that outlives the object; for tests and fuzzing.
  static base::Result<std::unique_ptr<Gguf>> parse(base::ByteView bytes);

  const TensorView* find(std::string_view name) const override;
  const std::vector<TensorView>& tensors() const override { return tensors_; }

  struct Pair {
    std::string_view key;
    GgufValue value;
  };
  const std::vector<Pair>& pairs() const { return pairs_; }
  const GgufValue* value(std::string_view key) const;

  // Null or the alternative when the key is not there or has another type.
  std::optional<i64> integer(std::string_view key) const;
  std::optional<f64> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  const std::vector<std::string_view>* texts(std::string_view key) const;
  const std::vector<i64>* integers(std::string_view key) const;
  const std::vector<f64>* numbers(std::string_view key) const;

  u64 file_bytes() const { return file_bytes_; }

 protected:
  // For sources that only look like a GGUF file: metadata from a header, tensors one by one.
  base::Status parse_header(base::ByteView header);
  base::Status add_tensor(TensorView tensor);
  void set_file_bytes(u64 bytes) { file_bytes_ = bytes; }

 private:
  friend class GgufParser;
  base::Status add_parts(const std::string& path, i64 count);
  std::vector<std::shared_ptr<const MappedFile>> files_;  // several for a split model
  base::ByteView bytes_;
  u64 file_bytes_ = 0;
  std::vector<Pair> pairs_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, size_t> pair_index_;
  std::unordered_map<std::string, size_t> tensor_index_;
};

}  // namespace llm
