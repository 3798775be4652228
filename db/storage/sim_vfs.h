// A disk in memory that remembers every call, so that tests can ask: what might be on the platter
// if the power had gone after call number k?
//
// Legal answers, as real disks give them: what was synced is there; every sector of every later
// write is there or not, on its own; later truncations happened or not; a name created or removed
// since the last sync of its directory is there or not. crash_image() draws one answer.
//
// It also fails calls on demand. One connection at a time: locks are always granted.
// Single-threaded.
#pragma once

#include "base/random.h"
#include "db/storage/vfs.h"

#include <map>
#include <optional>

namespace db {

// Files by name.
using DiskImage = std::map<std::string, std::vector<u8>>;

class SimVfs final : public Vfs {
 public:
  explicit SimVfs(DiskImage image = {});
  ~SimVfs() override;

  base::Result<std::unique_ptr<VfsFile>> open(const std::string& path, VfsOpen mode) override;
  base::Status remove(const std::string& path, bool sync_directory) override;
  base::Result<bool> exists(const std::string& path) override;
  base::Status sync_directory_of(const std::string& path) override;
  std::string absolute(const std::string& path) override { return path; }
  VfsCounts counts() const override { return counts_; }

  // Calls so far that change something.
  size_t operations() const { return log_.size(); }
  // What a running system sees now.
  DiskImage image() const;

  struct CrashOptions {
    size_t after;            // calls that were made
    u32 sector_bytes = 512;  // the unit that is written or not
    f64 keep = 0.5;          // chance that an unsynced sector is there
    bool garbage = false;    // a lost sector at the grown end of a file holds noise, not zeros
  };
  DiskImage crash_image(const CrashOptions& options, base::Rng& rng) const;

  // Call number `at` fails with `code`, once or from then on. A failing write is half done.
  void fail_at(size_t at, base::ErrorCode code, bool forever);
  void heal() { fail_at_.reset(); }

 private:
  friend class SimFile;
  enum class Kind : u8 { kWrite, kTruncate, kSync, kCreate, kRemove, kSyncDirectory };
  struct Inode {
    std::vector<u8> bytes;
  };
  struct Operation {
    Kind kind;
    std::string path;
    size_t inode;
    u64 offset;
    std::vector<u8> data;
  };
  base::Status record(Operation operation);
  base::Status apply_write(size_t inode, const std::string& path, u64 offset, ByteView data);

  DiskImage start_;
  std::vector<Inode> inodes_;
  std::map<std::string, size_t> names_;
  std::vector<Operation> log_;
  VfsCounts counts_;
  std::optional<size_t> fail_at_;
  base::ErrorCode fail_code_ = base::ErrorCode::kIo;
  bool fail_forever_ = false;
};

}  // namespace db
