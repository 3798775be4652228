// Linux files. Locks are open-file-description locks: they belong to the descriptor, not the
// process, so two connections in one process exclude each other like two processes do, closing one
// descriptor never drops another's locks, and stock SQLite's locks (POSIX, per process) conflict
// with them as they should.
#include "db/storage/format.h"
#include "db/storage/vfs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>

namespace db {

using base::errno_error;
using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

struct Counters {
  std::atomic<u64> reads{0}, writes{0}, syncs{0}, locks{0}, stats{0}, opens{0}, removes{0},
      truncates{0};
};

void bump(std::atomic<u64>& counter) {
  counter.fetch_add(1, std::memory_order_relaxed);
}

constexpr u32 kShmRegionBytes = 32768;
// In the -shm file: lock bytes 120 to 127, then the byte whose shared lock says "somebody uses it".
constexpr u64 kShmLockFirst = 120;
constexpr u64 kShmAliveByte = 128;

class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void set(int fd) {
    reset();
    fd_ = fd;
  }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

class PosixFile final : public VfsFile {
 public:
  PosixFile(std::string path, int fd, bool read_only, Counters& counters)
      : path_(std::move(path)), read_only_(read_only), counters_(counters) {
    file_.set(fd);
  }
  ~PosixFile() override { shm_unmap(false); }

  Result<size_t> read_at(u64 offset, Bytes out) override {
    size_t done = 0;
    while (done < out.size()) {
      bump(counters_.reads);
      ssize_t got = ::pread(file_.get(), out.data() + done, out.size() - done,
                            static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error(errno, "reading " + path_);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  Status write_at(u64 offset, ByteView data) override {
    WritePiece piece{offset, data};
    return write_pieces({&piece, 1});
  }

  Status write_pieces(std::span<const WritePiece> pieces) override {
    size_t i = 0;
    while (i < pieces.size()) {
      iovec vectors[256];
      int count = 0;
      u64 offset = pieces[i].offset;
      u64 end = offset;
      while (i < pieces.size() && count < 256 && pieces[i].offset == end) {
        vectors[count++] = {const_cast<u8*>(pieces[i].data.data()), pieces[i].data.size()};
        end += pieces[i++].data.size();
      }
      TRY(write_vectors(vectors, count, offset, end - offset));
    }
    return {};
  }

  Status truncate(u64 size) override {
    bump(counters_.truncates);
    if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0)
      return errno_error(errno, "truncating " + path_);
    return {};
  }

  Result<u64> size() override {
    bump(counters_.stats);
    struct stat info;
    if (::fstat(file_.get(), &info) != 0) return errno_error(errno, "looking at " + path_);
    return static_cast<u64>(info.st_size);
  }

  Status sync(bool data_only) override {
    bump(counters_.syncs);
    int answer = data_only ? ::fdatasync(file_.get()) : ::fsync(file_.get());
    if (answer != 0) return Error(ErrorCode::kIo, "disk I/O error: syncing " + path_);
    return {};
  }

  Status lock(LockLevel level) override;
  Status unlock(LockLevel level) override;
  LockLevel lock_level() const override { return level_; }
  Result<bool> reserved_by_anyone() override {
    if (level_ >= LockLevel::kReserved) return true;
    return locked_by_others(kReservedByte, 1);
  }

  Result<u8*> shm_region(u32 region, bool extend) override;
  Status shm_lock(u32 first, u32 count, bool exclusive) override {
    return set_lock(shm_.get(), exclusive ? F_WRLCK : F_RDLCK, kShmLockFirst + first, count);
  }
  Status shm_unlock(u32 first, u32 count, bool) override {
    return set_lock(shm_.get(), F_UNLCK, kShmLockFirst + first, count);
  }
  void shm_barrier() override { std::atomic_thread_fence(std::memory_order_seq_cst); }
  void shm_unmap(bool remove) override {
    for (u8* at : regions_)
      if (at != nullptr) ::munmap(at, kShmRegionBytes);
    regions_.clear();
    if (shm_.is_open() && remove) ::unlink((path_ + "-shm").c_str());
    shm_.reset();
  }

 private:
  Status write_vectors(iovec* vectors, int count, u64 offset, u64 bytes) {
    while (bytes > 0) {
      bump(counters_.writes);
      ssize_t put = ::pwritev(file_.get(), vectors, count, static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && (errno == ENOSPC || errno == EDQUOT))
        return Error(ErrorCode::kFull, "database or disk is full");
      if (put < 0) return errno_error(errno, "writing " + path_);
      offset += static_cast<u64>(put);
      bytes -= static_cast<u64>(put);
      while (count > 0 && static_cast<size_t>(put) >= vectors->iov_len) {
        put -= static_cast<ssize_t>(vectors->iov_len);
        vectors++;
        count--;
      }
      if (count > 0) {
        vectors->iov_base = static_cast<u8*>(vectors->iov_base) + put;
        vectors->iov_len -= static_cast<size_t>(put);
      }
    }
    return {};
  }

  // kBusy when somebody else holds a conflicting lock.
  Status set_lock(int fd, short type, u64 first, u64 count) {
    bump(counters_.locks);
    struct flock range = {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(first);
    range.l_len = static_cast<off_t>(count);
    if (::fcntl(fd, F_OFD_SETLK, &range) == 0) return {};
    if (errno == EAGAIN || errno == EACCES || errno == EINTR || errno == EDEADLK)
      return Error(ErrorCode::kBusy, "database is locked");
    return errno_error(errno, "locking " + path_);
  }

  Result<bool> locked_by_others(u64 first, u64 count) {
    bump(counters_.locks);
    struct flock range = {};
    range.l_type = F_RDLCK;  // asks for write locks only
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(first);
    range.l_len = static_cast<off_t>(count);
    if (::fcntl(file_.get(), F_OFD_GETLK, &range) != 0)
      return errno_error(errno, "asking for locks on " + path_);
    return range.l_type != F_UNLCK;
  }

  Status open_shm();

  std::string path_;
  bool read_only_;
  Counters& counters_;
  Descriptor file_;
  Descriptor shm_;
  std::vector<u8*> regions_;
  LockLevel level_ = LockLevel::kNone;
};

Status PosixFile::lock(LockLevel level) {
  if (level <= level_) return {};
  if (level == LockLevel::kShared) {
    TRY(set_lock(file_.get(), F_RDLCK, kSharedFirst, kSharedSize));
    // A writer that waits for readers to go takes no new ones.
    Result<bool> pending = locked_by_others(kPendingByte, 1);
    if (!pending.ok() || *pending) {
      (void)set_lock(file_.get(), F_UNLCK, kSharedFirst, kSharedSize);
      if (!pending.ok()) return pending.error();
      return Error(ErrorCode::kBusy, "database is locked");
    }
    level_ = LockLevel::kShared;
    return {};
  }
  if (level == LockLevel::kReserved) {
    TRY(set_lock(file_.get(), F_WRLCK, kReservedByte, 1));
    level_ = LockLevel::kReserved;
    return {};
  }
  if (level_ < LockLevel::kPending) {
    TRY(set_lock(file_.get(), F_WRLCK, kPendingByte, 1));
    // From here on no new readers; the lock stays while the caller waits for the old ones.
    if (level_ >= LockLevel::kReserved) level_ = LockLevel::kPending;
  }
  if (level == LockLevel::kPending) return {};
  Status taken = set_lock(file_.get(), F_WRLCK, kSharedFirst, kSharedSize);
  if (!taken.ok()) {
    // Recovery comes here without the reserved lock; it must not keep others out while it waits.
    if (level_ < LockLevel::kReserved) (void)set_lock(file_.get(), F_UNLCK, kPendingByte, 1);
    return taken;
  }
  level_ = LockLevel::kExclusive;
  return {};
}

Status PosixFile::unlock(LockLevel level) {
  if (level_ <= level) return {};
  if (level == LockLevel::kShared) {
    if (level_ == LockLevel::kExclusive)
      TRY(set_lock(file_.get(), F_RDLCK, kSharedFirst, kSharedSize));
    TRY(set_lock(file_.get(), F_UNLCK, kPendingByte, 2));
    level_ = LockLevel::kShared;
    return {};
  }
  level_ = LockLevel::kNone;
  return set_lock(file_.get(), F_UNLCK, kPendingByte, 2 + kSharedSize);
}

Status PosixFile::open_shm() {
  bump(counters_.opens);
  std::string name = path_ + "-shm";
  struct stat info;
  mode_t mode = ::fstat(file_.get(), &info) == 0 ? info.st_mode & 0777 : 0644;
  int fd = ::open(name.c_str(), (read_only_ ? O_RDONLY : O_RDWR | O_CREAT) | O_CLOEXEC, mode);
  if (fd < 0) return errno_error(errno, "opening " + name);
  shm_.set(fd);
  if (read_only_) return set_lock(fd, F_RDLCK, kShmAliveByte, 1);
  // Whoever comes first throws away what a crash left; the shared lock then says that we are here.
  if (set_lock(fd, F_WRLCK, kShmAliveByte, 1).ok()) {
    if (::ftruncate(fd, 0) != 0) return errno_error(errno, "truncating " + name);
  }
  return set_lock(fd, F_RDLCK, kShmAliveByte, 1);
}

Result<u8*> PosixFile::shm_region(u32 region, bool extend) {
  if (region < regions_.size() && regions_[region] != nullptr) return regions_[region];
  if (!shm_.is_open()) {
    Status opened = open_shm();
    if (!opened.ok()) {
      shm_.reset();
      return std::move(opened).error();
    }
  }
  u64 wanted = u64{region + 1} * kShmRegionBytes;
  struct stat info;
  if (::fstat(shm_.get(), &info) != 0) return errno_error(errno, "looking at the -shm file");
  if (static_cast<u64>(info.st_size) < wanted) {
    if (!extend) return static_cast<u8*>(nullptr);
    // Written, not just truncated: a full disk must show now, not as a fault in the mapping.
    for (u64 at = static_cast<u64>(info.st_size) / 4096 * 4096; at < wanted; at += 4096) {
      if (::pwrite(shm_.get(), "", 1, static_cast<off_t>(at + 4095)) != 1)
        return Error(ErrorCode::kFull, "database or disk is full");
    }
  }
  void* at = ::mmap(nullptr, kShmRegionBytes, read_only_ ? PROT_READ : PROT_READ | PROT_WRITE,
                    MAP_SHARED, shm_.get(), static_cast<off_t>(u64{region} * kShmRegionBytes));
  if (at == MAP_FAILED) return errno_error(errno, "mapping the -shm file");
  if (regions_.size() <= region) regions_.resize(region + 1);
  regions_[region] = static_cast<u8*>(at);
  return regions_[region];
}

class PosixVfs final : public Vfs {
 public:
  Result<std::unique_ptr<VfsFile>> open(const std::string& path, VfsOpen mode) override {
    bump(counters_.opens);
    int flags = O_CLOEXEC | (mode.read_only ? O_RDONLY : O_RDWR) | (mode.create ? O_CREAT : 0) |
                (mode.exclusive ? O_EXCL : 0);
    int fd = ::open(path.c_str(), flags, mode.permissions);
    if (fd < 0) return errno_error(errno, "opening " + path);
    return std::unique_ptr<VfsFile>(
        std::make_unique<PosixFile>(path, fd, mode.read_only, counters_));
  }

  Status remove(const std::string& path, bool sync_directory) override {
    bump(counters_.removes);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return errno_error(errno, "removing " + path);
    return sync_directory ? sync_directory_of(path) : Status{};
  }

  Result<bool> exists(const std::string& path) override {
    bump(counters_.stats);
    if (::access(path.c_str(), F_OK) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return errno_error(errno, "looking for " + path);
  }

  Status sync_directory_of(const std::string& path) override {
    size_t slash = path.rfind('/');
    std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    Descriptor fd;
    fd.set(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Directories that cannot be opened or synced (some network mounts) are as durable as they get.
    if (!fd.is_open()) return {};
    bump(counters_.syncs);
    (void)::fsync(fd.get());
    return {};
  }

  std::string absolute(const std::string& path) override {
    if (path.empty() || path[0] == '/') return path;
    char buffer[PATH_MAX];
    if (::getcwd(buffer, sizeof(buffer)) == nullptr) return path;
    return std::string(buffer) + "/" + path;
  }

  VfsCounts counts() const override {
    const Counters& c = counters_;
    return {c.reads, c.writes, c.syncs, c.locks, c.stats, c.opens, c.removes, c.truncates};
  }

 private:
  mutable Counters counters_;
};

}  // namespace

Vfs& posix_vfs() {
  static PosixVfs vfs;
  return vfs;
}

}  // namespace db
