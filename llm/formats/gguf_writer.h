// Writes GGUF version 3 files: what `fleetlm quantize` and `fleetlm convert` produce and what tests
// read back. The header is built in memory; tensor data is streamed. Single-threaded.
#pragma once

#include "llm/formats/gguf.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace llm {

class GgufWriter {
 public:
  void set_text(std::string_view key, std::string_view value);
  void set_u32(std::string_view key, u32 value);
  void set_f32(std::string_view key, f32 value);
  void set_bool(std::string_view key, bool value);
  void set_texts(std::string_view key, const std::vector<std::string_view>& values);
  void set_i32s(std::string_view key, const std::vector<i32>& values);
  void set_f32s(std::string_view key, const std::vector<f32>& values);
  void set_bools(std::string_view key, const std::vector<bool>& values);
  // Any pair of another file, unchanged in type.
  void copy(const Gguf::Pair& pair);

  // `shape` is outermost first. `bytes` must stay until write(); pass an empty view and give
  // write() a producer to make them one tensor at a time.
  void add_tensor(std::string_view name, DType type, std::vector<u64> shape, base::ByteView bytes);

  using Producer = std::function<base::Result<base::ByteView>(const TensorView& tensor)>;
  // Writes beside `path` and renames over it. Errors: kIo, kFull; kInvalidArgument when a producer
  // returns another size than the type and shape call for.
  base::Status write(const std::string& path, const Producer& producer = {}) const;
  // The whole file in memory; tensors must have their bytes.
  std::string to_string() const;

 private:
  void key(std::string_view name, GgufType type);
  std::string header() const;
  std::string pairs_;
  u64 pair_count_ = 0;
  std::vector<TensorView> tensors_;
};

}  // namespace llm
