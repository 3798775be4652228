#include "fs/fuse/caller_affinity.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fs::fuse {

int processor_of(u32 pid) {
  // The command name, field 2, may hold anything: count fields from its closing bracket.
  constexpr int fields_after_name = 37;
  char path[48], text[1024];
  std::snprintf(path, sizeof(path), "/proc/%u/stat", pid);
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t got = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  if (got <= 0) return -1;
  text[got] = 0;
  const char* at = std::strrchr(text, ')');
  for (int field = 0; at != nullptr && field < fields_after_name; field++) {
    at = std::strchr(at + 1, ' ');
  }
  return at == nullptr ? -1 : std::atoi(at + 1);
}

void CallerAffinity::look(u32 pid) {
  count_ = 0;
  next_look_ = kSampleSoon;
  int processor = processor_of(pid);
  if (processor < 0 || processor >= CPU_SETSIZE) return;
  // The caller waits for us: if nobody else wants to run, one thread is runnable, this one. A
  // single look may have met some thread of the kernel.
  bool quiet = runnable_threads() == 1;
  if (may_yield_ && quiet == was_quiet_) yielding_.yield(quiet);
  was_quiet_ = quiet;
  bool again = processor == candidate_;
  candidate_ = processor;
  if (!again) return;
  next_look_ = kSampleEvery;
  if (processor == here_) return;
  if (yielding_.stay_on(processor)) here_ = processor;
}

}  // namespace fs::fuse
