// The log: every change in the order it was made. A change may be acknowledged only after sync()
// said that the log up to it is on disk.
#pragma once
#include <functional>
#include <string>

#include "resp.h"

namespace kv {

class Log {
 public:
  ~Log();
  // Opens or creates `path`, hands every whole change in it to `replay`, cuts off a torn tail.
  // False: `error()` says why.
  bool open(const std::string& path, const std::function<void(const Command&)>& replay);
  // Buffers one change. Nothing is on disk before sync().
  void append(const Command& change);
  // Writes what was appended and waits until the disk has it. False: nothing appended since the
  // last good sync() counts, and it has been taken out of the file again.
  bool sync();
  bool dirty() const { return !pending_.empty(); }
  const std::string& error() const { return error_; }

 private:
  int fd_ = -1;
  long long size_ = 0;  // bytes that are known to be good
  std::string pending_;
  std::string error_;
};

}  // namespace kv
