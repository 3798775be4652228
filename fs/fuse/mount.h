// Attaching /dev/fuse to a folder: mount(2) as root, the set-uid helper fusermount3 for everybody
// else. Always nosuid and nodev: what an agent writes must not become root's problem. Errors:
// kNotFound, kPermission, kBusy, kIo, with a sentence. Thread-safe.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>

namespace fs::fuse {

struct MountOptions {
  std::string source = "agentfs";  // first column of /proc/mounts
  bool allow_other = true;         // other users too (fusermount3 may refuse it)
  bool read_only = false;
  bool no_exec = false;
};

// An open descriptor of a FUSE connection, closed when the object goes.
class Device {
 public:
  Device() = default;
  explicit Device(int fd) : fd_(fd) {}
  Device(Device&& other) noexcept : fd_(other.release()) {}
  Device& operator=(Device&& other) noexcept;
  ~Device();
  int fd() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

base::Result<Device> mount(const std::string& folder, const MountOptions& options);

// Lazy: the name goes now, open files end when they close. Busy mounts stay without `lazy`.
base::Status unmount(const std::string& folder, bool lazy);

// The source of the mount of ours whose root `folder` is, by /proc/self/mountinfo; nullopt when
// there is none.
std::optional<std::string> mounted_source(const std::string& folder);

}  // namespace fs::fuse
