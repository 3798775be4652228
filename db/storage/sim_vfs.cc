#include "db/storage/sim_vfs.h"

#include <algorithm>
#include <cstring>

namespace db {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

static void write_bytes(std::vector<u8>& to, u64 offset, ByteView data) {
  if (to.size() < offset + data.size()) to.resize(offset + data.size());
  std::memcpy(to.data() + offset, data.data(), data.size());
}

class SimFile final : public VfsFile {
 public:
  SimFile(SimVfs& vfs, std::string path, size_t inode)
      : vfs_(vfs), path_(std::move(path)), inode_(inode) {}

  Result<size_t> read_at(u64 offset, Bytes out) override {
    vfs_.counts_.reads++;
    const std::vector<u8>& bytes = vfs_.inodes_[inode_].bytes;
    if (offset >= bytes.size()) return size_t{0};
    size_t count = std::min<u64>(out.size(), bytes.size() - offset);
    std::memcpy(out.data(), bytes.data() + offset, count);
    return count;
  }
  Status write_at(u64 offset, ByteView data) override {
    return vfs_.apply_write(inode_, path_, offset, data);
  }
  Status write_pieces(std::span<const WritePiece> pieces) override {
    for (const WritePiece& piece : pieces) TRY(write_at(piece.offset, piece.data));
    return {};
  }
  Status truncate(u64 size) override {
    TRY(vfs_.record({SimVfs::Kind::kTruncate, path_, inode_, size, {}}));
    vfs_.inodes_[inode_].bytes.resize(size);
    return {};
  }
  Result<u64> size() override { return u64{vfs_.inodes_[inode_].bytes.size()}; }
  Status sync(bool) override {
    vfs_.counts_.syncs++;
    return vfs_.record({SimVfs::Kind::kSync, path_, inode_, 0, {}});
  }

  Status lock(LockLevel level) override {
    level_ = std::max(level_, level);
    return {};
  }
  Status unlock(LockLevel level) override {
    level_ = std::min(level_, level);
    return {};
  }
  LockLevel lock_level() const override { return level_; }
  Result<bool> reserved_by_anyone() override { return level_ >= LockLevel::kReserved; }

  Result<u8*> shm_region(u32 region, bool extend) override {
    if (region >= shm_.size()) {
      if (!extend) return static_cast<u8*>(nullptr);
      shm_.resize(region + 1);
    }
    // The index is memory: gone at a crash, built anew at the next open.
    if (shm_[region] == nullptr) shm_[region] = std::make_unique<u64[]>(32768 / 8);
    return reinterpret_cast<u8*>(shm_[region].get());
  }
  Status shm_lock(u32, u32, bool) override { return {}; }
  Status shm_unlock(u32, u32, bool) override { return {}; }
  void shm_barrier() override {}
  void shm_unmap(bool) override { shm_.clear(); }

 private:
  SimVfs& vfs_;
  std::string path_;
  size_t inode_;
  LockLevel level_ = LockLevel::kNone;
  std::vector<std::unique_ptr<u64[]>> shm_;
};

SimVfs::SimVfs(DiskImage image) : start_(std::move(image)) {
  for (auto& [name, bytes] : start_) {
    names_[name] = inodes_.size();
    inodes_.push_back({bytes});
  }
}

SimVfs::~SimVfs() = default;

Status SimVfs::record(Operation operation) {
  if (fail_at_ && (log_.size() == *fail_at_ || (fail_forever_ && log_.size() >= *fail_at_))) {
    if (!fail_forever_) fail_at_.reset();
    return Error(fail_code_,
                 fail_code_ == ErrorCode::kFull ? "database or disk is full" : "disk I/O error");
  }
  log_.push_back(std::move(operation));
  return {};
}

Status SimVfs::apply_write(size_t inode, const std::string& path, u64 offset, ByteView data) {
  counts_.writes++;
  Status status = record({Kind::kWrite, path, inode, offset, {data.begin(), data.end()}});
  if (!status.ok()) data = data.first(data.size() / 2);
  write_bytes(inodes_[inode].bytes, offset, data);
  // The half that was written before the failure can reach the disk too.
  if (!status.ok() && !data.empty())
    log_.push_back({Kind::kWrite, path, inode, offset, {data.begin(), data.end()}});
  return status;
}

Result<std::unique_ptr<VfsFile>> SimVfs::open(const std::string& path, VfsOpen mode) {
  counts_.opens++;
  auto found = names_.find(path);
  if (found == names_.end()) {
    if (!mode.create) return Error(ErrorCode::kNotFound, "opening " + path + ": no such file");
    TRY(record({Kind::kCreate, path, inodes_.size(), 0, {}}));
    found = names_.emplace(path, inodes_.size()).first;
    inodes_.push_back({});
  } else if (mode.exclusive) {
    return Error(ErrorCode::kExists, "opening " + path + ": it is there");
  }
  return std::unique_ptr<VfsFile>(std::make_unique<SimFile>(*this, path, found->second));
}

Status SimVfs::remove(const std::string& path, bool sync_directory) {
  counts_.removes++;
  if (names_.count(path) != 0) {
    TRY(record({Kind::kRemove, path, names_[path], 0, {}}));
    names_.erase(path);
  }
  return sync_directory ? sync_directory_of(path) : Status{};
}

Result<bool> SimVfs::exists(const std::string& path) {
  return names_.count(path) != 0;
}

Status SimVfs::sync_directory_of(const std::string& path) {
  counts_.syncs++;
  return record({Kind::kSyncDirectory, path, 0, 0, {}});
}

DiskImage SimVfs::image() const {
  DiskImage image;
  for (const auto& [name, inode] : names_) image[name] = inodes_[inode].bytes;
  return image;
}

void SimVfs::fail_at(size_t at, ErrorCode code, bool forever) {
  fail_at_ = at;
  fail_code_ = code;
  fail_forever_ = forever;
}

// Applies what of one unsynced call reached the disk.
static void settle(std::vector<u8>& bytes, u64 offset, const std::vector<u8>& data,
                   const SimVfs::CrashOptions& options, base::Rng& rng) {
  for (u64 from = 0; from < data.size();) {
    u64 at = offset + from;
    u64 part = std::min<u64>(options.sector_bytes - at % options.sector_bytes, data.size() - from);
    if (rng.chance(options.keep)) {
      write_bytes(bytes, at, {data.data() + from, part});
    } else if (options.garbage && at + part > bytes.size()) {
      std::vector<u8> noise(part);
      for (u8& byte : noise) byte = static_cast<u8>(rng.next());
      write_bytes(bytes, at, noise);
    }
    from += part;
  }
}

DiskImage SimVfs::crash_image(const CrashOptions& options, base::Rng& rng) const {
  std::vector<std::vector<u8>> durable;
  std::map<std::string, size_t> names;
  for (const auto& [name, bytes] : start_) {
    names[name] = durable.size();
    durable.push_back(bytes);
  }
  std::vector<std::vector<const Operation*>> pending(inodes_.size());
  std::vector<const Operation*> pending_names;
  durable.resize(inodes_.size());
  auto apply = [&](const Operation& op) {
    if (op.kind == Kind::kWrite) write_bytes(durable[op.inode], op.offset, op.data);
    if (op.kind == Kind::kTruncate) durable[op.inode].resize(op.offset);
  };
  auto apply_name = [&](const Operation& op) {
    if (op.kind == Kind::kCreate) names[op.path] = op.inode;
    if (op.kind == Kind::kRemove) names.erase(op.path);
  };
  for (size_t i = 0; i < options.after && i < log_.size(); i++) {
    const Operation& op = log_[i];
    switch (op.kind) {
      case Kind::kWrite:
      case Kind::kTruncate:
        pending[op.inode].push_back(&op);
        break;
      case Kind::kSync:
        for (const Operation* earlier : pending[op.inode]) apply(*earlier);
        pending[op.inode].clear();
        break;
      case Kind::kCreate:
      case Kind::kRemove:
        pending_names.push_back(&op);
        break;
      case Kind::kSyncDirectory:
        for (const Operation* earlier : pending_names) apply_name(*earlier);
        pending_names.clear();
        break;
    }
  }
  for (auto& operations : pending) {
    for (const Operation* op : operations) {
      if (op->kind == Kind::kWrite) {
        settle(durable[op->inode], op->offset, op->data, options, rng);
      } else if (rng.chance(options.keep)) {
        apply(*op);
      }
    }
  }
  // Directories keep their order on journalling file systems: a prefix of the changes is there.
  size_t kept = pending_names.empty() ? 0 : rng.below(pending_names.size() + 1);
  for (size_t i = 0; i < kept; i++) apply_name(*pending_names[i]);
  DiskImage image;
  for (const auto& [name, inode] : names) image[name] = durable[inode];
  return image;
}

}  // namespace db
