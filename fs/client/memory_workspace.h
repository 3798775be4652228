// A workspace that lives in memory alone: `agentfs mount --memory`. It is the floor that benchmarks
// compare with (what FUSE and the serialiser cost by themselves) and what mount tests run on
// quickly. Nothing survives the process. Bytes that were overwritten or deleted go when as much
// again has been written as is in use, and at least 64 MiB.
#pragma once

#include "fs/store/store.h"

#include <mutex>
#include <unordered_map>
#include <vector>

namespace fs {

class MemoryWorkspace : public Workspace {
 public:
  explicit MemoryWorkspace(Serialiser::Options options, i64 now_ns);

  void perform(const Request& request, base::ByteView data, Effects& effects) override;
  base::Status commit() override { return {}; }
  base::Status sync() override { return {}; }
  base::Status read(const Piece& piece, base::Bytes out) override;
  base::Status checkpoint() override { return {}; }
  bool wants_checkpoint() const override { return false; }
  base::Status fork(const std::string& new_name) override;
  base::Status snapshot(const std::string& snapshot_name) override;
  Seq last_seq() const override { return serialiser_.last_seq(); }
  Seq synced_seq() const override { return ~Seq{0}; }
  WorkspaceInfo info() const override;
  base::Status close() override { return {}; }
  u64 bytes_held() const { return bytes_held_; }

 private:
  void sweep();

  Serialiser serialiser_;
  u64 bytes_held_ = 0, sweep_at_bytes_ = 64 << 20;
  std::unordered_map<DataId, std::vector<u8>> data_;
};

}  // namespace fs
