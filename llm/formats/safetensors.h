// Safetensors: the directory of one file, or of the files that an index names.
//
//   u64 length of the header, header, data
//   header: a JSON object, name -> {"dtype", "shape", "data_offsets": [begin, end)} into the data;
//           "__metadata__" is skipped
//   index:  a JSON object with "weight_map": name -> file beside the index
// Everything is checked against the file's size before it is used, as for GGUF: types and shapes
// must call for the very bytes that the offsets give, and no two tensors may share bytes. Tensors
// of types that no weight has (F64, BOOL, unsigned ...) are checked and left out of the directory.
// Thread-compatible once open.
#pragma once

#include "llm/formats/mapped_file.h"
#include "llm/formats/tensor.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace llm {

class Safetensors : public TensorSource {
 public:
  // `path`: a .safetensors file, a .safetensors.index.json file, or a folder that holds
  // model.safetensors or model.safetensors.index.json.
  static base::Result<std::unique_ptr<Safetensors>> open(const std::string& path);
  // Reads from memory that outlives the object; for tests and fuzzing.
  static base::Result<std::unique_ptr<Safetensors>> parse(base::ByteView bytes);

  const TensorView* find(std::string_view name) const override;
  const std::vector<TensorView>& tensors() const override { return tensors_; }
  u64 file_bytes() const { return file_bytes_; }

 private:
  base::Status add_file(const std::string& path);
  base::Status add(base::ByteView bytes);
  base::Status add_index(const std::string& path);
  base::Status index_names();

  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;
  u64 file_bytes_ = 0;
};

}  // namespace llm
