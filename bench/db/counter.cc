#include "bench/db/counter.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace bench {

InstructionCounter::InstructionCounter() {
  perf_event_attr what;
  std::memset(&what, 0, sizeof what);
  what.type = PERF_TYPE_HARDWARE;
  what.size = sizeof what;
  what.config = PERF_COUNT_HW_INSTRUCTIONS;
  what.exclude_kernel = 1;
  what.exclude_hv = 1;
  what.inherit = 1;
  fd_ = static_cast<int>(::syscall(SYS_perf_event_open, &what, 0, -1, -1, 0));
}

InstructionCounter::~InstructionCounter() {
  if (fd_ >= 0) ::close(fd_);
}

u64 InstructionCounter::now() const {
  u64 value = 0;
  if (fd_ < 0 || ::read(fd_, &value, sizeof value) != sizeof value) return 0;
  return value;
}

}  // namespace bench
