// A disk in memory that behaves as badly as real ones may: at a crash every write since the last
// sync is kept, lost or torn at sector boundaries, independently and in any order; names not synced
// to their folder may or may not be there. It can also be full, slow to fail, or fail the n-th
// call. All choices come from one seed. Single-threaded.
#pragma once

#include "base/disk.h"
#include "base/random.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace base {

class SimDisk : public Disk {
 public:
  struct Options {
    u64 seed = 1;
    u32 sector_bytes = 512;        // the unit in which a write is torn
    f64 keep_unsynced = 0.5;       // probability that an unsynced sector survives a crash
    u64 capacity_bytes = ~u64{0};  // kFull beyond it
  };
  explicit SimDisk(Options options);
  ~SimDisk() override;

  Result<std::unique_ptr<DiskFile>> open(const std::string& path, OpenMode mode) override;
  Status remove(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Status make_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;

  // Mutating calls (write, truncate, sync, create, remove, rename, sync_directory) so far.
  u64 operations() const { return operations_; }
  // From operation `at` on, every call fails with kIo until crash(): the machine is going down. The
  // failing write may have happened in part.
  void power_off_at(u64 at) { power_off_at_ = at; }
  bool powered_off() const { return powered_off_; }
  // Fails operation number `at` once, with `code`.
  void fail_at(u64 at, ErrorCode code) { fail_at_ = at, fail_code_ = code; }
  // Power comes back: open files are dead, unsynced state is rolled as the options say.
  void crash();

  // Flips bits of a stored byte, behind everybody's back.
  void corrupt(const std::string& path, u64 offset, u8 mask);
  // Everything that is durable or not, as a reader sees it now.
  Result<std::vector<u8>> contents(const std::string& path);

 private:
  friend class SimFile;
  struct Inode;
  Status begin_operation();
  Status check_power();
  u64 bytes_used() const;

  Options options_;
  Rng rng_;
  u64 operations_ = 0;
  u64 generation_ = 0;  // counts crashes: files opened before one are dead
  std::optional<u64> power_off_at_;
  bool powered_off_ = false;
  std::optional<u64> fail_at_;
  ErrorCode fail_code_ = ErrorCode::kIo;
  std::map<std::string, std::shared_ptr<Inode>> names_;          // as seen now
  std::map<std::string, std::shared_ptr<Inode>> durable_names_;  // as synced
};

}  // namespace base
