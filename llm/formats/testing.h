// Safetensors files made in memory, for tests and fuzz seeds.
#pragma once

#include "base/bytes.h"
#include "base/json.h"
#include "llm/formats/tensor.h"

#include <string>
#include <vector>

namespace llm {

class SafetensorsBuilder {
 public:
  void add(const std::string& name, const char* type, const std::vector<u64>& shape,
           std::string_view bytes) {
    base::Json extents = base::Json::array();
    for (u64 extent : shape) extents.push(extent);
    header_.set(name,
                base::Json::object(
                    {{"dtype", type},
                     {"shape", extents},
                     {"data_offsets",
                      base::Json::array({u64{data_.size()}, u64{data_.size() + bytes.size()}})}}));
    data_ += bytes;
  }
  void add_f32(const std::string& name, const std::vector<u64>& shape,
               const std::vector<f32>& values) {
    std::string bytes(values.size() * 4, '\0');
    for (size_t i = 0; i < values.size(); ++i) base::store_le<f32>(bytes.data() + i * 4, values[i]);
    add(name, "F32", shape, bytes);
  }
  std::string file() const { return with_header(header_.dump(), data_); }
  static std::string with_header(const std::string& header, const std::string& data) {
    std::string out(8, '\0');
    base::store_le<u64>(out.data(), header.size());
    return out + header + data;
  }

 private:
  base::Json header_ = base::Json::object();
  std::string data_;
};

}  // namespace llm
