#include "fs/client/memory_workspace.h"

#include <algorithm>
#include <cstring>

namespace fs {

using base::Error;
using base::ErrorCode;

MemoryWorkspace::MemoryWorkspace(Serialiser::Options options, i64 now_ns)
    : serialiser_(options, nullptr, 0) {
  Request request;
  request.now_ns = now_ns;
  Effects effects;
  serialiser_.create_root(request, 0755, effects);
}

void MemoryWorkspace::perform(const Request& request, base::ByteView data, Effects& effects) {
  serialiser_.step(request, effects);
  if (effects.data == 0) return;
  data_[effects.data].assign(data.begin(), data.end());
  bytes_held_ += data.size();
  if (bytes_held_ > sweep_at_bytes_) sweep();
}

void MemoryWorkspace::sweep() {
  auto used = serialiser_.data_in_use();
  std::erase_if(data_, [&](const auto& piece) { return !used.contains(piece.first); });
  bytes_held_ = 0;
  for (const auto& [id, bytes] : data_) bytes_held_ += bytes.size();
  sweep_at_bytes_ = std::max<u64>(64 << 20, 2 * bytes_held_);
}

base::Status MemoryWorkspace::read(const Piece& piece, base::Bytes out) {
  auto found = data_.find(piece.data);
  if (found == data_.end() || found->second.size() < u64{piece.data_offset} + piece.length) {
    return Error(ErrorCode::kCorruption, "a file refers to bytes that are not there");
  }
  std::memcpy(out.data(), found->second.data() + piece.data_offset, piece.length);
  return {};
}

base::Status MemoryWorkspace::fork(const std::string&) {
  return Error(ErrorCode::kUnsupported,
               "a mount in memory cannot be forked; use a store (agentfs format DIR)");
}

base::Status MemoryWorkspace::snapshot(const std::string& name) {
  return fork(name);
}

WorkspaceInfo MemoryWorkspace::info() const {
  WorkspaceInfo info;
  info.name = "memory";
  info.head_seq = serialiser_.last_seq();
  info.epoch = serialiser_.epoch();
  return info;
}

}  // namespace fs
